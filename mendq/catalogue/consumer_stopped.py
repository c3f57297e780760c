"""The Lambda function that read the queue is switched off, and messages wait.

https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-configure.html
"""

from __future__ import annotations

from dataclasses import replace

from mendq.catalogue import examples
from mendq.catalogue.symptom import NOT_FOUND, Detected, Detection, Found, NearMiss, Symptom
from mendq.model.facts import Facts, LambdaConsumer, Need, SourceQueue, function_name
from mendq.model.limits import Limits
from mendq.model.plan import Escalate, Refusal
from mendq.model.queue import parts_of
from mendq.notifications.text import counted


def detect(facts: Facts) -> Found | None:
    """A disabled mapping, nothing received, and messages that waited all the while.

    Without a mapping nothing tells a reader that stopped from an archive that nobody reads, or from
    a job that reads once a nightly run; what waits there too long is `messages_about_to_expire`. A
    DLQ's mapping is disabled until somebody wants the messages.
    """
    measured = facts.measured
    if measured is None or facts.takes_dlq_messages:
        return None
    if not _is_switched_off(facts) or measured.received or not measured.least_visible:
        return None
    return Found(
        f"{counted(measured.visible_now, 'message')} waiting, the oldest for "
        f"{measured.oldest_age_seconds_now:,} s, and none was received in {measured.hours:.1f} h: "
        f"the event source mapping of {_first(facts)} is disabled"
    )


def _is_switched_off(facts: Facts) -> bool:
    return bool(facts.stopped_consumers) and not facts.lambda_consumers


def _first(facts: Facts) -> str:
    name = function_name(facts.stopped_consumers[0])
    more = len(facts.stopped_consumers) - 1
    return f"{name} and {more} more" if more else name


def is_suspect(facts: Facts) -> bool:
    return _is_switched_off(facts) and facts.visible > 0


def plan(facts: Facts, _limits: Limits) -> Refusal:
    """A page: why somebody switched it off is not in the queue."""
    reason = (
        f"{facts.found}. Whoever disabled it may have had a reason; Lambda itself does it where "
        "the function or its permissions are gone. Messages are kept for "
        f"{facts.retention_seconds:,} s from when they were sent, and lost after that"
    )
    return Escalate("consumer_stopped", reason, next_command=_mappings(facts))


def _mappings(facts: Facts) -> str:
    return (
        "aws lambda list-event-source-mappings "
        f"--region {parts_of(facts.queue_arn).region} --event-source-arn {facts.queue_arn} "
        '--query "EventSourceMappings[].[UUID, FunctionArn, State, StateTransitionReason]"'
    )


_STOPPED = "arn:aws:lambda:us-east-1:123456789012:function:bill"
_RUNNING = LambdaConsumer("arn:aws:lambda:us-east-1:123456789012:function:ship", 30, 0)
_SOURCE = SourceQueue("arn:aws:sqs:us-east-1:123456789012:orders", {})
_WAITING = examples.measured(
    sent=300,
    backlog_before=40,
    backlog_now=340,
    visible_before=40,
    visible_now=340,
    least_visible=40,
    oldest_age_seconds_before=3_600,
    oldest_age_seconds_now=25_200,
)


def _queue(*stopped: str, **counted: int) -> Facts:
    facts = examples.queue(queue_arn=examples.STANDARD_ARN, ApproximateNumberOfMessages="340")
    return replace(
        facts,
        stopped_consumers=stopped,
        dlq_sources=(),
        measured=replace(_WAITING, **counted),  # type: ignore[arg-type]
    )


CONSUMER_STOPPED = Symptom(
    name="consumer_stopped",
    sentence="The function that reads the queue is switched off, and messages wait.",
    plan_in_words="Page with what waits and how to see the event source mapping.",
    aws_page="https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-configure.html",
    needs=frozenset({Need.QUEUE, Need.LAMBDA_CONSUMERS}),
    plan=plan,
    detection=Detection(detect, frozenset({Need.MEASUREMENTS, Need.DLQ_SOURCES}), is_suspect),
    detected=(
        Detected("its only mapping is disabled", _queue(_STOPPED), code="consumer_stopped"),
        Detected(
            "nobody sends any more either",
            _queue(_STOPPED, sent=0, visible_now=40, backlog_now=40),
            code="consumer_stopped",
        ),
    ),
    near_misses=(
        NearMiss(
            "another function reads it",
            NOT_FOUND,
            facts=replace(_queue(_STOPPED), lambda_consumers=(_RUNNING,)),
        ),
        NearMiss("somebody else receives", NOT_FOUND, facts=_queue(_STOPPED, received=1)),
        NearMiss(
            "nothing waited all the while", NOT_FOUND, facts=_queue(_STOPPED, least_visible=0)
        ),
        NearMiss("an archive, which nobody ever read", NOT_FOUND, facts=_queue()),
        NearMiss(
            "DLQ messages, read when somebody wants to",
            NOT_FOUND,
            facts=replace(_queue(_STOPPED), dlq_sources=(_SOURCE,)),
        ),
    ),
)
