"""Only receives, and only while the queue is full."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mendq.catalogue import examples, match
from mendq.catalogue.in_flight_limit import IN_FLIGHT_LIMIT, PASSED_BELOW, plan
from mendq.model.case import State
from mendq.model.facts import Facts
from mendq.model.limits import Limits
from mendq.model.plan import Refusal


def queue(in_flight: int, visibility: str = "30") -> Facts:
    return examples.queue(
        queue_arn=examples.STANDARD_ARN,
        ApproximateNumberOfMessagesNotVisible=str(in_flight),
        VisibilityTimeout=visibility,
    )


@pytest.mark.parametrize("event_name", ["AddPermission", "SetQueueAttributes", "SendMessage", ""])
def test_another_call_over_a_limit_is_its_caller_s_mistake(event_name: str) -> None:
    symptom = match(examples.failed_call(event_name, "OverLimit"))
    assert symptom is not None
    assert symptom.name == "invalid_request"


@pytest.mark.parametrize("code", ["OverLimit", "OverLimitException", "com.amazonaws.sqs#OverLimit"])
def test_a_receive_over_the_limit_is_caught(code: str) -> None:
    assert match(examples.failed_call("ReceiveMessage", code)) is IN_FLIGHT_LIMIT


@given(st.integers(0, 200_000))
def test_it_pages_from_half_of_the_quota_on_and_never_plans(in_flight: int) -> None:
    answer = plan(queue(in_flight), Limits())
    assert isinstance(answer, Refusal)
    full = in_flight >= PASSED_BELOW
    assert answer.code == ("in_flight_full" if full else "below_the_limit")
    assert answer.becomes is (State.ESCALATED if full else None)
    assert f"{in_flight:,}" in answer.reason


def test_the_page_warns_of_a_longer_visibility_and_says_how_long_it_is() -> None:
    reason = plan(queue(119_000, "43200"), Limits()).reason
    assert "A longer visibility timeout would make it worse" in reason
    assert "for 43200 s" in reason
