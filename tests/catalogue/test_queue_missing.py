"""Whether the queue is there decides; nothing else does."""

from __future__ import annotations

import shlex

import pytest

from mendq.catalogue import examples, match
from mendq.catalogue.queue_missing import QUEUE_MISSING, plan
from mendq.model.case import State
from mendq.model.facts import Facts
from mendq.model.limits import Limits

CALLERS = tuple(f"arn:aws:iam::123456789012:role/worker-{number}" for number in range(5))
GONE = Facts(examples.STANDARD_ARN, {}, {}, principals=CALLERS)


def test_a_queue_that_is_there_is_not_written_down() -> None:
    refusal = plan(examples.queue(), Limits())
    assert refusal.code == "queue_exists"
    assert refusal.becomes is None


@pytest.mark.parametrize(
    "event_name", ["SendMessage", "ReceiveMessage", "PurgeQueue", "GetQueueUrl"]
)
def test_any_call_on_a_queue_that_is_not_there_is_caught(event_name: str) -> None:
    assert match(examples.failed_call(event_name, "QueueDoesNotExist")) is QUEUE_MISSING


def test_nothing_has_to_be_asked_of_a_queue_that_may_be_gone() -> None:
    assert QUEUE_MISSING.needs == frozenset()


def test_a_queue_that_is_gone_pages_with_who_calls_and_how_to_find_who_deleted() -> None:
    page = plan(GONE, Limits())
    assert page.becomes is State.ESCALATED
    assert f"{CALLERS[0]}, {CALLERS[1]}, {CALLERS[2]} and 2 more" in page.reason
    *_, query = shlex.split(page.next_command)
    assert "AttributeValue=DeleteQueue" in page.next_command
    assert query == (
        "Events[?contains(CloudTrailEvent, '/123456789012/orders\"')].[EventTime,Username]"
    )


def test_nobody_named_is_said_so() -> None:
    reason = plan(Facts(examples.STANDARD_ARN, {}, {}), Limits()).reason
    assert "Who called: a caller that CloudTrail does not name" in reason
