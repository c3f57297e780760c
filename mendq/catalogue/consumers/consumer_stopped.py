"""The Lambda function that read the queue is switched off, and messages wait."""

from __future__ import annotations

from mendq.catalogue.examples import FUNCTION, as_dlq, standard, vary
from mendq.catalogue.symptom import (
    DetectedFault,
    Detection,
    NotifiedSymptom,
    QueueExample,
    QueueNearMiss,
)
from mendq.model.facts import Facts, Need, function_name
from mendq.model.limits import Limits
from mendq.model.plan import Escalate, Refusal
from mendq.notifications.commands import consumers_of
from mendq.notifications.text import format_count, span


def detect(facts: Facts) -> DetectedFault | None:
    """A disabled mapping, nothing received, and messages that waited all the while.

    Without a mapping nothing tells a reader that stopped from an archive that nobody reads, or from
    a job that reads once a nightly run; what waits there too long is `messages_about_to_expire`. A
    DLQ's mapping is disabled until somebody wants the messages.
    """
    measured = facts.measurement
    if measured is None or facts.receives_only_dlq_messages:
        return None
    if not _is_switched_off(facts) or measured.received or not measured.least_visible:
        return None
    name, more = function_name(facts.stopped_consumers[0]), len(facts.stopped_consumers) - 1
    return DetectedFault(
        f"{format_count(measured.now.visible, 'message')} waiting, the oldest for "
        f"{measured.now.oldest_age_seconds:,} s, and none was received in "
        f"{span(measured.duration)}: the event source mapping of "
        f"{f'{name} and {more} more' if more else name} is disabled"
    )


def _is_switched_off(facts: Facts) -> bool:
    return bool(facts.stopped_consumers) and not facts.lambda_consumers


def is_suspect(facts: Facts) -> bool:
    return _is_switched_off(facts) and facts.visible > 0


def plan(facts: Facts, _limits: Limits) -> Refusal:
    """A page: why somebody switched it off is not in the queue."""
    reason = (
        f"{facts.found}. Whoever disabled it may have had a reason; Lambda itself does it where "
        "the function or its permissions are gone. Messages are kept for "
        f"{facts.retention_seconds:,} s from when they were sent, and lost after that"
    )
    query = '--query "EventSourceMappings[].[UUID, FunctionArn, State, StateTransitionReason]"'
    return Escalate("consumer_stopped", reason, f"{consumers_of(facts.queue_arn)} {query}")


_STOPPED = standard(
    ApproximateNumberOfMessages=340,
    stopped_consumers=(FUNCTION.function_arn,),
    sent=300,
    visible_now=340,
    least_visible=40,
    oldest_age_seconds_now=25_200,
)


CONSUMER_STOPPED = NotifiedSymptom(
    name="consumer_stopped",
    sentence="The function that reads the queue is switched off, and messages wait.",
    plan_in_words="Page with what waits and how to see the event source mapping.",
    aws_page="https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-configure.html",
    needs=frozenset({Need.QUEUE, Need.LAMBDA_CONSUMERS}),
    plan=plan,
    detection=Detection(detect, frozenset({Need.MEASUREMENTS, Need.DLQ_SOURCES}), is_suspect),
    examples=lambda: (
        QueueExample("its only mapping is disabled", _STOPPED, "consumer_stopped"),
        QueueExample("nobody sends any more either", vary(_STOPPED, sent=0), "consumer_stopped"),
        QueueNearMiss("another function reads it", vary(_STOPPED, lambda_consumers=(FUNCTION,))),
        QueueNearMiss("somebody else receives", vary(_STOPPED, received=1)),
        QueueNearMiss("nothing waited all the while", vary(_STOPPED, least_visible=0)),
        QueueNearMiss("an archive, which nobody ever read", vary(_STOPPED, stopped_consumers=())),
        QueueNearMiss("DLQ messages, read when somebody wants to", as_dlq(_STOPPED)),
    ),
)
