"""Symptom `consumer_stopped`: the queue's Lambda function is switched off, and messages wait.

The fault: every event source mapping that reads the queue is disabled. Nobody reads the messages,
and they are lost when the retention period is over.

How it shows: Lambda lists only disabled mappings. CloudWatch counts no receive, and at every moment
of the measured time messages waited.

What Mendq does: it notifies people, with the number and age of the messages and a command that
shows the mapping. It does not enable the mapping. A person may have disabled it on purpose, and
Lambda itself disables a mapping if the function or its permissions were deleted.
"""

from __future__ import annotations

from mendq.catalogue.examples import LAMBDA_FUNCTION, as_dlq, replace_values, standard_queue
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
from mendq.notifications.commands import list_consumers_command
from mendq.notifications.text import format_count, format_duration


def detect(facts: Facts) -> DetectedFault | None:
    """Find a queue on which messages wait because all its event source mappings are disabled.

    In the measured time there was no receive, and at least one message waited at every moment.
    Without a mapping, a consumer that stopped looks like an archive that nobody reads, or like a
    job that reads once a night. `messages_about_to_expire` reports such queues if messages are in
    danger. A DLQ is not reported: its mapping is often disabled until somebody wants the messages.
    """
    measurement = facts.measurement
    if measurement is None or facts.receives_only_dlq_messages:
        return None
    if (
        not _has_only_disabled_mappings(facts)
        or measurement.received
        or not measurement.fewest_visible_messages
    ):
        return None
    stopped_functions_text = function_name(facts.stopped_consumers[0])
    other_function_count = len(facts.stopped_consumers) - 1
    if other_function_count:
        stopped_functions_text += f" and {other_function_count} more"
    return DetectedFault(
        f"{format_count(measurement.now.visible, 'message')} waiting, the oldest for "
        f"{measurement.now.oldest_age_seconds:,} s, and none was received in "
        f"{format_duration(measurement.duration)}: "
        f"the event source mapping of {stopped_functions_text} is disabled"
    )


def _has_only_disabled_mappings(facts: Facts) -> bool:
    """Return True if Lambda functions read the queue only through disabled mappings."""
    return bool(facts.stopped_consumers) and not facts.lambda_consumers


def is_possible(facts: Facts) -> bool:
    """Return True if all event source mappings are disabled."""
    return _has_only_disabled_mappings(facts)


def plan(facts: Facts, _limits: Limits) -> Refusal:
    """Return the refusal that notifies people: it is not known why the mapping was disabled."""
    reason = (
        f"{facts.found}. Whoever disabled it may have had a reason; Lambda itself does it where "
        "the function or its permissions are gone. Messages are kept for "
        f"{facts.retention_seconds:,} s from when they were sent, and lost after that"
    )
    query_option = (
        '--query "EventSourceMappings[].[UUID, FunctionArn, State, StateTransitionReason]"'
    )
    return Escalate(
        "consumer_stopped", reason, f"{list_consumers_command(facts.queue_arn)} {query_option}"
    )


_QUEUE_WITH_STOPPED_FUNCTION = standard_queue(
    ApproximateNumberOfMessages=340,
    stopped_consumers=(LAMBDA_FUNCTION.function_arn,),
    sent=300,
    visible_now=340,
    fewest_visible_messages=40,
    oldest_age_seconds_now=25_200,
)


CONSUMER_STOPPED = NotifiedSymptom(
    name="consumer_stopped",
    sentence="The function that reads the queue is switched off, and messages wait.",
    plan_in_words="Page with what waits and how to see the event source mapping.",
    aws_page="https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-configure.html",
    needs=frozenset({Need.QUEUE, Need.LAMBDA_CONSUMERS}),
    plan=plan,
    detection=Detection(detect, frozenset({Need.MEASUREMENTS, Need.DLQ_SOURCES}), is_possible),
    examples=lambda: (
        QueueExample(
            "its only mapping is disabled", _QUEUE_WITH_STOPPED_FUNCTION, "consumer_stopped"
        ),
        QueueExample(
            "nobody sends any more either",
            replace_values(_QUEUE_WITH_STOPPED_FUNCTION, sent=0),
            "consumer_stopped",
        ),
        QueueNearMiss(
            "another function reads it",
            replace_values(_QUEUE_WITH_STOPPED_FUNCTION, lambda_consumers=(LAMBDA_FUNCTION,)),
        ),
        QueueNearMiss(
            "somebody else receives", replace_values(_QUEUE_WITH_STOPPED_FUNCTION, received=1)
        ),
        QueueNearMiss(
            "nothing waited all the while",
            replace_values(_QUEUE_WITH_STOPPED_FUNCTION, fewest_visible_messages=0),
        ),
        QueueNearMiss(
            "an archive, which nobody ever read",
            replace_values(_QUEUE_WITH_STOPPED_FUNCTION, stopped_consumers=()),
        ),
        QueueNearMiss(
            "DLQ messages, read when somebody wants to", as_dlq(_QUEUE_WITH_STOPPED_FUNCTION)
        ),
    ),
)
