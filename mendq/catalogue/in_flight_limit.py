"""Consumers receive more than they finish, until SQS gives out no more.

https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/quotas-messages.html
"""

from __future__ import annotations

from dataclasses import replace

from mendq.catalogue import examples
from mendq.catalogue.symptom import Caught, NearMiss, SeenAs, Symptom
from mendq.model.evidence import named
from mendq.model.facts import Facts, Need
from mendq.model.limits import Limits
from mendq.model.plan import Escalate, Ignore, Refusal
from mendq.notifications.commands import get_attributes

# About: SQS counts approximately, and so do we.
IN_FLIGHT_QUOTA = 120_000
PASSED_BELOW = IN_FLIGHT_QUOTA // 2


def plan(facts: Facts, _limits: Limits) -> Refusal:
    """A page while the queue is full of unfinished messages; no attribute of it would help."""
    if facts.in_flight < PASSED_BELOW:
        reason = f"{facts.in_flight:,} messages are in flight now: the limit is far again"
        return Ignore("below_the_limit", reason)
    reason = (
        f"{facts.in_flight:,} messages are in flight, and SQS stops at about {IN_FLIGHT_QUOTA:,}: "
        "consumers receive and do not delete. Let them delete what is done and receive less at "
        "once, or stop those that hang. A longer visibility timeout would make it worse: what "
        "nobody deletes "
        f"stays in flight for {_visibility(facts)}. Long polling only hides the error. "
        f"Who receives: {named(facts.principals)}"
    )
    return Escalate("in_flight_full", reason, next_command=_counts(facts))


def _visibility(facts: Facts) -> str:
    return f"{facts.attributes.get('VisibilityTimeout', '30')} s"


def _counts(facts: Facts) -> str:
    names = ("ApproximateNumberOfMessagesNotVisible", "ApproximateNumberOfMessages")
    return get_attributes(facts.queue_arn, *names)


_WORKER = "arn:aws:iam::123456789012:role/orders-worker"


def _queue(in_flight: int) -> Facts:
    facts = examples.queue(
        queue_arn=examples.STANDARD_ARN, ApproximateNumberOfMessagesNotVisible=str(in_flight)
    )
    return replace(facts, principals=(_WORKER,))


IN_FLIGHT_LIMIT = Symptom(
    name="in_flight_limit",
    sentence="So many received messages are unfinished that SQS gives out no more.",
    plan_in_words="Page with the numbers and who receives; a longer visibility timeout would "
    "make it worse.",
    aws_page="https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/"
    "quotas-messages.html",
    seen_as=(SeenAs(frozenset({"ReceiveMessage"}), "OverLimit"),),
    needs=frozenset({Need.QUEUE}),
    plan=plan,
    caught=(
        Caught(
            "nothing is given out any more",
            examples.failed_call("ReceiveMessage", "OverLimit", "", examples.STANDARD_ARN),
            _queue(119_998),
            code="in_flight_full",
        ),
        Caught(
            "half of it and more, counted approximately",
            examples.failed_call("ReceiveMessage", "OverLimitException", "", examples.STANDARD_ARN),
            _queue(PASSED_BELOW),
            code="in_flight_full",
        ),
    ),
    near_misses=(
        NearMiss(
            "the consumers have caught up meanwhile",
            "below_the_limit",
            facts=_queue(PASSED_BELOW - 1),
        ),
        NearMiss(
            "too many permissions on one queue",
            "no_match",
            call=examples.failed_call("AddPermission", "OverLimit"),
        ),
        NearMiss(
            "a receive that is throttled",
            "no_match",
            call=examples.failed_call("ReceiveMessage", "RequestThrottled"),
        ),
    ),
)
