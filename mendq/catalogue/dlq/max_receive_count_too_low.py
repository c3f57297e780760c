"""Symptom `max_receive_count_too_low`: a message reaches the DLQ after fewer than five tries.

The fault: `maxReceiveCount` is below five, which AWS advises, and a Lambda function reads the
queue. Lambda also gives a message back when the function is throttled, and that counts as a
receive. So a good message can reach the DLQ although no code has seen it.
https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-configure.html

Or a framework reads the queue that counts the tries itself, and `maxReceiveCount` is not above its
number. Then SQS takes a message away before the framework can move it to its own error queue.

How it shows: in the queue's RedrivePolicy and its event source mappings, or the framework that a
tag or a guess names (`mendq/model/frameworks.py`).

What Mendq does: it reports the queue. It changes nothing, because how often a message should be
tried is for the function's owner to decide: some work must not be repeated.
"""

from __future__ import annotations

from typing import Any

from mendq.catalogue.examples import LAMBDA_FUNCTION, queue_with_dlq, standard_queue
from mendq.catalogue.symptom import (
    DetectedFault,
    Detection,
    EvidenceKind,
    QueueExample,
    QueueNearMiss,
    ReportedSymptom,
)
from mendq.catalogue.visibility.timeout_not_in_force import find_consumer
from mendq.model.facts import Facts, Need
from mendq.model.frameworks import CONSUMER_TAG
from mendq.model.queue import DEFAULT_MAX_RECEIVE_COUNT
from mendq.model.severity_class import SeverityClass
from mendq.notifications.text import format_count


def detect(facts: Facts) -> DetectedFault | None:
    """Report a `maxReceiveCount` below AWS's advice for Lambda, or below a framework's count."""
    max_receive_count = facts.max_receive_count
    if max_receive_count is None:
        return None
    if not facts.lambda_consumers:
        return _compare_with_framework(facts, max_receive_count)
    if max_receive_count >= DEFAULT_MAX_RECEIVE_COUNT:
        return None
    return DetectedFault(
        f"after {format_count(max_receive_count, 'receive')} a message that "
        f"{facts.lambda_consumers[0].function_arn} did not finish is a DLQ message; AWS advises "
        f"{DEFAULT_MAX_RECEIVE_COUNT} or more, because a throttled try counts as well. If the "
        "function gives messages back on purpose, set at least three times its mean number of "
        "receives: NumberOfMessagesReceived divided by NumberOfMessagesDeleted"
    )


def _compare_with_framework(facts: Facts, max_receive_count: int) -> DetectedFault | None:
    """Report a `maxReceiveCount` that is not above the tries of the framework that reads it."""
    consumer = find_consumer(facts)
    own_most_tries = consumer.framework.own_most_tries if consumer else None
    if consumer is None or own_most_tries is None or max_receive_count > own_most_tries:
        return None
    return DetectedFault(
        f"{consumer.describe()}. It tries a message {own_most_tries} times and then moves it to "
        f"{consumer.framework.moves_failures}, but after "
        f"{format_count(max_receive_count, 'receive')} SQS takes the message to the DLQ. Set "
        f"maxReceiveCount well above {own_most_tries}, and more with several processes"
    )


_LAMBDA_CONSUMER_FACTS: Any = {"lambda_consumers": (LAMBDA_FUNCTION,)}


MAX_RECEIVE_COUNT_TOO_LOW = ReportedSymptom(
    name="max_receive_count_too_low",
    sentence="A message becomes a DLQ message after fewer tries than its consumer needs.",
    plan_in_words="Report it; how often to try is for the consumer's owner to say.",
    first_step="Raise maxReceiveCount to at least 5, or to what the consumer needs.",
    aws_page="https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-configure.html",
    evidence_kinds=(EvidenceKind(SeverityClass.MAY_LOSE),),
    tags=(CONSUMER_TAG,),
    detection=Detection(
        detect, frozenset({Need.QUEUE, Need.LAMBDA_CONSUMERS}), is_of_configuration=True
    ),
    examples=lambda: (
        QueueExample("one try", queue_with_dlq(1, **_LAMBDA_CONSUMER_FACTS)),
        QueueExample("two tries", queue_with_dlq(2, **_LAMBDA_CONSUMER_FACTS)),
        QueueExample("four tries", queue_with_dlq(4, **_LAMBDA_CONSUMER_FACTS)),
        QueueExample(
            "fewer tries than NServiceBus makes",
            queue_with_dlq(6, tags={CONSUMER_TAG.key: "nservicebus"}),
        ),
        QueueNearMiss(
            "more tries than NServiceBus makes",
            queue_with_dlq(10, tags={CONSUMER_TAG.key: "nservicebus"}),
        ),
        QueueNearMiss(
            "a framework that leaves the count to SQS",
            queue_with_dlq(3, tags={CONSUMER_TAG.key: "spring"}),
        ),
        QueueNearMiss("five tries", queue_with_dlq(5, **_LAMBDA_CONSUMER_FACTS)),
        QueueNearMiss("no Lambda function reads it", queue_with_dlq(1)),
        QueueNearMiss("no DLQ", standard_queue(**_LAMBDA_CONSUMER_FACTS)),
    ),
)
