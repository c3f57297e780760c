"""Whether what waits will be gone in time, and what a longer retention is told with."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mendq.catalogue import examples
from mendq.catalogue.messages_about_to_expire import (
    LONGEST_SECONDS,
    MESSAGES_ABOUT_TO_EXPIRE,
    detect,
    plan,
)
from mendq.model.case import State
from mendq.model.facts import Facts
from mendq.model.limits import Limits
from mendq.model.plan import Plan, Refusal

A_DAY = 86_400
WAITING = MESSAGES_ABOUT_TO_EXPIRE.detected[0].facts


def waiting(retention_seconds: int = 4 * A_DAY, **counted: int) -> Facts:
    assert WAITING.measured is not None
    measured = examples.recounted(WAITING.measured, **counted)
    attributes = {**WAITING.attributes, "MessageRetentionPeriod": str(retention_seconds)}
    return replace(WAITING, attributes=attributes, measured=measured)


@pytest.mark.parametrize(
    ("backlog", "deleted", "found"),
    [
        # A day is left but 2 h: at 300 in 6 h, 1,100 are gone in 22 h.
        (1_100, 300, False),
        (1_101, 300, True),
        (1, 0, True),
        (0, 300, False),
    ],
)
def test_it_counts_whether_all_is_gone_in_time(backlog: int, deleted: int, found: bool) -> None:
    facts = waiting(backlog_now=backlog, deleted=deleted)
    assert bool(detect(facts)) is found


def test_the_pace_of_others_says_nothing_of_a_message_that_stays() -> None:
    moving = waiting(backlog_now=1, deleted=100_000)
    assert detect(moving) is None
    stays = waiting(
        backlog_now=1, deleted=100_000, oldest_age_seconds_before=3 * A_DAY + 7_200 - 21_600
    )
    assert detect(stays) is not None


def test_what_is_lost_already_is_found_however_fast_the_rest_goes() -> None:
    assert detect(waiting(oldest_age_seconds_now=4 * A_DAY, backlog_now=10, deleted=9)) is not None


@given(st.integers(60, LONGEST_SECONDS), st.integers(0, LONGEST_SECONDS))
def test_a_plan_goes_to_the_longest_retention_or_to_a_person(
    retention_seconds: int, age_seconds: int
) -> None:
    facts = waiting(retention_seconds, deleted=0, oldest_age_seconds_now=age_seconds)
    answer = plan(facts, Limits())
    if 4 * age_seconds <= 3 * retention_seconds:
        assert isinstance(answer, Refusal)
        assert (answer.code, answer.becomes) == ("need_already_met", None)
    elif retention_seconds == LONGEST_SECONDS:
        assert isinstance(answer, Refusal)
        assert answer.becomes is State.ESCALATED
    else:
        assert isinstance(answer, Plan)
        (step,) = answer.steps
        assert (step.before, step.after) == (retention_seconds, LONGEST_SECONDS)
        assert step.out_of_bounds() is None


@pytest.mark.parametrize(
    ("queue_arn", "announced"), [(examples.STANDARD_ARN, True), (examples.QUEUE_ARN, False)]
)
def test_a_standard_queue_s_dlq_have_to_be_retained_as_long(
    queue_arn: str, announced: bool
) -> None:
    """A FIFO queue's begin their time anew."""
    redrive = '{"deadLetterTargetArn":"arn:aws:sqs:us-east-1:123456789012:d","maxReceiveCount":5}'
    attributes = {**WAITING.attributes, "RedrivePolicy": redrive}
    facts = replace(WAITING, queue_arn=queue_arn, attributes=attributes)
    answer = plan(facts, Limits())
    assert ("Its DLQ counts from when" in answer.reason) is announced
    assert "dead-letter" not in plan(replace(facts, attributes=WAITING.attributes), Limits()).reason
