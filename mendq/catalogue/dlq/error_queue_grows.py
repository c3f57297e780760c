"""Symptom `error_queue_grows`: software moves messages that failed into an error queue.

The fault: a consumer cannot finish messages. Its framework moves them to an error queue itself
(NServiceBus, MassTransit, Rebus, dramatiq), or a service such as SNS, EventBridge or Lambda sends
them there. The queue from which they came looks healthy: each message was deleted, and its DLQ
stays empty.

How it shows: messages were *sent* to a queue for failures. SQS does not count a move to a DLQ as a
send, so software did it. The tag `mendq:consumer` with the value `error-queue`, or else the end of
the queue's name, says that it is a queue for failures.
https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-available-cloudwatch-metrics.html

Not reported: a queue with such a name of which consumers delete most messages, because then it may
be an ordinary queue, and Mendq's quarantines.

What Mendq does: it notifies people with the number, and changes nothing. The fault is at the
consumer of another queue, and only the framework knows which.
"""

from __future__ import annotations

from typing import Any

from mendq.catalogue.dlq.attach import SOME_FAIL
from mendq.catalogue.examples import (
    LAMBDA_FUNCTION,
    as_dlq,
    dlq,
    queue,
    replace_values,
    standard_queue,
)
from mendq.catalogue.symptom import (
    DLQ_GUIDE,
    DetectedFault,
    Detection,
    NotifiedSymptom,
    QueueExample,
    QueueNearMiss,
)
from mendq.model.facts import Facts, Need
from mendq.model.frameworks import (
    CONSUMER_TAG,
    ERROR_QUEUE_WORD,
    is_error_queue_name,
    recognize_consumer,
)
from mendq.model.limits import Limits
from mendq.model.plan import Escalate, Refusal
from mendq.model.queue import is_quarantine
from mendq.notifications.commands import show_metric_command
from mendq.notifications.text import format_count, format_duration

# If consumers delete at least this share of the sends, the queue may be an ordinary one.
_HANDLED_SHARE_OF_SENDS = 0.5


def detect(facts: Facts) -> DetectedFault | None:
    """Find a queue for failures into which software sent messages.

    The result is None without measurements, and while a message movement task runs.
    """
    measurement = facts.measurement
    if measurement is None or facts.move_task_running or not is_possible(facts):
        return None
    is_handled = measurement.deleted >= _HANDLED_SHARE_OF_SENDS * measurement.sent
    if not facts.is_sent_to or (is_handled and not _is_tagged(facts)):
        return None
    return DetectedFault(
        f"{format_count(measurement.sent, 'send')} to this queue for failures in "
        f"{format_duration(measurement.duration)}, and {measurement.now.visible:,} wait here now. "
        "Software sends them: SQS does not count its own moves to a DLQ as sends",
        evidence_kind=SOME_FAIL,
    )


def is_possible(facts: Facts) -> bool:
    """Return True if the tag or the name says that messages which failed come into the queue."""
    if CONSUMER_TAG.key in facts.tags:
        return _is_tagged(facts)
    return is_error_queue_name(facts.name) and not is_quarantine(facts.name)


def _is_tagged(facts: Facts) -> bool:
    return facts.tags.get(CONSUMER_TAG.key) == ERROR_QUEUE_WORD


def plan(facts: Facts, _limits: Limits) -> Refusal:
    """Return the refusal that notifies people: the fault is at the consumer of another queue."""
    consumer = recognize_consumer(facts.name, facts.attributes, facts.tags)
    framework_text = (
        f" {consumer.framework.name} seems to do that (a guess by the queue's name)."
        if consumer and consumer.framework.moves_failures
        else ""
    )
    reason = (
        f"{facts.found}.{framework_text} Read the error in a message's headers or in the log of "
        "the consumer that failed. Its own queue can look healthy, and its DLQ stays empty. Send "
        "the messages back with the framework's tool when the cause is fixed"
    )
    command = show_metric_command(facts.queue_arn, "NumberOfMessagesSent", "Sum", facts.measurement)
    return Escalate("software_moves_failures", reason, command)


def _make_error_queue(name: str, **overrides: Any) -> Facts:
    """Return a queue with this name and 12 sends. It is the DLQ of no queue."""
    queue_arn = f"arn:aws:sqs:us-east-1:123456789012:{name}"
    counts: dict[str, Any] = {"sent": 12, "visible_now": 12}
    return queue(queue_arn=queue_arn, **{"dlq_sources": (), **counts, **overrides})


_TAGGED_QUEUE = standard_queue(
    tags={CONSUMER_TAG.key: ERROR_QUEUE_WORD}, sent=5, received=5, deleted=5
)

ERROR_QUEUE_GROWS = NotifiedSymptom(
    name="error_queue_grows",
    sentence="Software moves messages that failed into this queue; no redrive brings them here.",
    plan_in_words="Page with the number; the fault is at the consumer of another queue.",
    habit="keeps getting messages that failed elsewhere",
    first_step="Read the errors that the consumers store with the messages.",
    aws_page=DLQ_GUIDE,
    evidence_kinds=(SOME_FAIL,),
    plan=plan,
    tags=(CONSUMER_TAG,),
    detection=Detection(
        detect, frozenset({Need.QUEUE, Need.MEASUREMENTS, Need.MOVE_TASKS}), is_possible
    ),
    examples=lambda: (
        QueueExample(
            "MassTransit's error queue",
            _make_error_queue("orders_error"),
            "software_moves_failures",
        ),
        QueueExample(
            "NServiceBus's error queue", _make_error_queue("error"), "software_moves_failures"
        ),
        QueueExample(
            "a DLQ to which EventBridge sends",
            dlq(sent=3, visible_now=3),
            "software_moves_failures",
        ),
        QueueExample("a tag, and somebody handles them", _TAGGED_QUEUE, "software_moves_failures"),
        QueueNearMiss("SQS moves messages to the DLQ", dlq(visible_now=12)),
        QueueNearMiss("nothing comes", _make_error_queue("orders_error", sent=0)),
        QueueNearMiss("a queue of error reports", _make_error_queue("error-reports")),
        QueueNearMiss(
            "consumers work on errors as on anything",
            _make_error_queue(
                "page-errors", received=12, deleted=11, lambda_consumers=(LAMBDA_FUNCTION,)
            ),
        ),
        QueueNearMiss(
            "the tag says that it is no such queue",
            replace_values(_make_error_queue("orders_error"), tags={CONSUMER_TAG.key: "other"}),
        ),
        QueueNearMiss(
            "DLQ messages are moved back",
            replace_values(_make_error_queue("orders_error"), move_task_running=True),
        ),
        QueueNearMiss("people look at DLQ messages", as_dlq(standard_queue(received=30))),
    ),
)
