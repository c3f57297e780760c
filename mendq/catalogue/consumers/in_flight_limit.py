"""Symptom `in_flight_limit`: so many messages are in flight that SQS returns no more.

The fault: a message is in flight from its receive until it is deleted or its visibility timeout is
over. A queue takes about 120,000 of them, a FIFO queue too. Consumers receive messages and do not
delete them, so the limit is reached and all consumers stand still.

How it shows: the attribute ApproximateNumberOfMessagesNotVisible, which every scan reads, is
114,000 or more. With short polling on a standard queue, CloudTrail also records ReceiveMessage
calls that fail with OverLimit. Otherwise SQS returns no error, only no messages.
https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-visibility-timeout.html

What Mendq does: it notifies people, with the numbers and, if failed calls showed it, the callers.
It changes nothing: a longer visibility timeout would keep messages in flight for longer, a shorter
one would have messages handled twice, and long polling would only hide the error.
"""

from __future__ import annotations

from typing import Any

from mendq.catalogue.examples import (
    QUEUE_ARN,
    ROLE_ARN,
    STANDARD_ARN,
    failed_call,
    queue,
    standard_queue,
)
from mendq.catalogue.symptom import (
    SQS_GUIDE,
    CallExample,
    CallNearMiss,
    DetectedFault,
    Detection,
    EvidenceKind,
    FailedCallPattern,
    NotifiedSymptom,
    QueueExample,
    QueueNearMiss,
    QuotaSection,
    RefusalExample,
)
from mendq.model.facts import Facts
from mendq.model.limits import Limits
from mendq.model.plan import Escalate, Ignore, Refusal
from mendq.model.principals import name_first_principals
from mendq.model.severity_class import SeverityClass
from mendq.notifications.commands import get_attributes_command

# SQS's documented limit is approximate too.
IN_FLIGHT_QUOTA = 120_000
# With fewer messages in flight than this, the queue has recovered.
RECOVERED_BELOW_IN_FLIGHT_COUNT = IN_FLIGHT_QUOTA // 2
# From this many messages in flight on, the queue is at its limit as far as the inexact gauge shows.
FULL_FROM_IN_FLIGHT_COUNT = IN_FLIGHT_QUOTA * 95 // 100
_IN_FLIGHT_ATTRIBUTE = "ApproximateNumberOfMessagesNotVisible"


def detect(facts: Facts) -> DetectedFault | None:
    """Find a queue whose messages in flight are at SQS's limit. No metric is needed for that."""
    if facts.in_flight < FULL_FROM_IN_FLIGHT_COUNT:
        return None
    return DetectedFault(
        f"{facts.in_flight:,} messages are in flight, which is SQS's limit of about "
        f"{IN_FLIGHT_QUOTA:,}, and {facts.visible:,} more wait: consumers get none of them"
    )


def plan(facts: Facts, _limits: Limits) -> Refusal:
    """Return the refusal that notifies people; `Ignore` if few messages are in flight by now."""
    if facts.in_flight < RECOVERED_BELOW_IN_FLIGHT_COUNT:
        reason = f"{facts.in_flight:,} messages are in flight now: the limit is far again"
        return Ignore("below_the_limit", reason)
    reason = (
        f"{facts.in_flight:,} messages are in flight, and SQS stops at about {IN_FLIGHT_QUOTA:,}: "
        "consumers receive and do not delete. Let them delete what is done and receive less at "
        "once, or stop those that hang. A longer visibility timeout would make it worse: what "
        f"nobody deletes stays in flight for {facts.visibility_seconds:,} s. Long polling only "
        f"hides the error{_describe_receivers(facts)}"
    )
    command = get_attributes_command(
        facts.queue_arn, _IN_FLIGHT_ATTRIBUTE, "ApproximateNumberOfMessages"
    )
    return Escalate("in_flight_full", reason, command)


def _describe_receivers(facts: Facts) -> str:
    """Return the end of a sentence: the callers, as far as failed calls name them."""
    if facts.found:
        return ""
    return f". Who receives: {name_first_principals(facts.principals)}"


def _make_example_queue(in_flight_count: int) -> Facts:
    return standard_queue(**{_IN_FLIGHT_ATTRIBUTE: in_flight_count}, principals=(ROLE_ARN,))


def _make_scanned_queue(in_flight_count: int, queue_arn: str) -> Facts:
    """Return a queue on which 95,862 messages wait behind those in flight."""
    attributes: dict[str, Any] = {
        _IN_FLIGHT_ATTRIBUTE: in_flight_count,
        "ApproximateNumberOfMessages": 95_862,
    }
    return queue(queue_arn=queue_arn, **attributes)


def _make_example(title: str, error_code: str, in_flight_count: int) -> CallExample:
    call = failed_call("ReceiveMessage", error_code)
    return CallExample(title, call, _make_example_queue(in_flight_count), "in_flight_full")


IN_FLIGHT_LIMIT = NotifiedSymptom(
    name="in_flight_limit",
    sentence="So many received messages are unfinished that SQS gives out no more.",
    plan_in_words="Page with the numbers and who receives; a longer visibility timeout would "
    "make it worse.",
    habit="keeps reaching its in-flight limit",
    first_step="Make consumers delete finished messages; do not raise the timeout.",
    aws_page=f"{SQS_GUIDE}/quotas-messages.html",
    evidence_kinds=(EvidenceKind(SeverityClass.STANDING_STILL),),
    seen_as=(FailedCallPattern(frozenset({"ReceiveMessage"}), "OverLimit"),),
    plan=plan,
    detection=Detection(detect),
    extra_sections=QuotaSection("messages in flight", f"about {IN_FLIGHT_QUOTA:,}", "sqs"),
    examples=lambda: (
        _make_example("nothing is given out any more", "OverLimit", 119_998),
        _make_example(
            "half of it and more, counted approximately",
            "OverLimitException",
            RECOVERED_BELOW_IN_FLIGHT_COUNT,
        ),
        QueueExample(
            "nothing is given out, and no call fails",
            _make_scanned_queue(IN_FLIGHT_QUOTA, STANDARD_ARN),
            "in_flight_full",
        ),
        QueueExample(
            "the same on a FIFO queue, where no call fails",
            _make_scanned_queue(FULL_FROM_IN_FLIGHT_COUNT, QUEUE_ARN),
            "in_flight_full",
        ),
        QueueNearMiss(
            "many in flight, and room for more",
            _make_scanned_queue(FULL_FROM_IN_FLIGHT_COUNT - 1, STANDARD_ARN),
        ),
        QueueNearMiss(
            "half of the limit on a FIFO queue",
            _make_scanned_queue(RECOVERED_BELOW_IN_FLIGHT_COUNT, QUEUE_ARN),
        ),
        QueueNearMiss("none in flight, and many wait", _make_scanned_queue(0, STANDARD_ARN)),
        RefusalExample(
            "they have caught up meanwhile",
            _make_example_queue(RECOVERED_BELOW_IN_FLIGHT_COUNT - 1),
            "below_the_limit",
        ),
        CallNearMiss(
            "too many permissions on one queue", failed_call("AddPermission", "OverLimit")
        ),
        CallNearMiss("a throttled receive", failed_call("ReceiveMessage", "RequestThrottled")),
    ),
)
