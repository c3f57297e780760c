"""Symptom `in_flight_limit`: so many messages are in flight that SQS returns no more.

The fault: a message is in flight from its receive until it is deleted or its visibility timeout is
over. A standard queue takes about 120,000 of them. Consumers receive messages and do not delete
them, so the limit is reached and all consumers stand still.

How it shows: with short polling, CloudTrail records ReceiveMessage calls that fail with OverLimit.
With long polling SQS returns no error, only no messages.
https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-visibility-timeout.html

What Mendq does: it notifies people, with the numbers and the callers. It changes nothing: a longer
visibility timeout would keep messages in flight for longer, a shorter one would have messages
handled twice, and long polling would only hide the error.
"""

from __future__ import annotations

from mendq.catalogue.examples import ROLE_ARN, failed_call, standard_queue
from mendq.catalogue.symptom import (
    SQS_GUIDE,
    CallExample,
    CallNearMiss,
    FailedCallPattern,
    NotifiedSymptom,
    QuotaSection,
    RefusalExample,
)
from mendq.model.facts import Facts
from mendq.model.limits import Limits
from mendq.model.plan import Escalate, Ignore, Refusal
from mendq.model.principals import name_first_principals
from mendq.notifications.commands import get_attributes_command

# SQS's documented limit is approximate too.
IN_FLIGHT_QUOTA = 120_000
# With fewer messages in flight than this, the queue has recovered.
RECOVERED_BELOW_IN_FLIGHT_COUNT = IN_FLIGHT_QUOTA // 2
_IN_FLIGHT_ATTRIBUTE = "ApproximateNumberOfMessagesNotVisible"


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
        f"hides the error. Who receives: {name_first_principals(facts.principals)}"
    )
    command = get_attributes_command(
        facts.queue_arn, _IN_FLIGHT_ATTRIBUTE, "ApproximateNumberOfMessages"
    )
    return Escalate("in_flight_full", reason, command)


def _make_example_queue(in_flight_count: int) -> Facts:
    return standard_queue(**{_IN_FLIGHT_ATTRIBUTE: in_flight_count}, principals=(ROLE_ARN,))


def _make_example(title: str, error_code: str, in_flight_count: int) -> CallExample:
    call = failed_call("ReceiveMessage", error_code)
    return CallExample(title, call, _make_example_queue(in_flight_count), "in_flight_full")


IN_FLIGHT_LIMIT = NotifiedSymptom(
    name="in_flight_limit",
    sentence="So many received messages are unfinished that SQS gives out no more.",
    plan_in_words="Page with the numbers and who receives; a longer visibility timeout would "
    "make it worse.",
    habit="keeps reaching its in-flight limit",
    aws_page=f"{SQS_GUIDE}/quotas-messages.html",
    seen_as=(FailedCallPattern(frozenset({"ReceiveMessage"}), "OverLimit"),),
    plan=plan,
    extra_sections=QuotaSection("messages in flight", f"about {IN_FLIGHT_QUOTA:,}", "sqs"),
    examples=lambda: (
        _make_example("nothing is given out any more", "OverLimit", 119_998),
        _make_example(
            "half of it and more, counted approximately",
            "OverLimitException",
            RECOVERED_BELOW_IN_FLIGHT_COUNT,
        ),
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
