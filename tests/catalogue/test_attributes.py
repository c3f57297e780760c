"""Test the fixes of one attribute after failed calls: message size and FIFO high throughput."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mendq.catalogue.examples import DLQ_ARN, queue, standard_queue
from mendq.catalogue.fifo.fifo_throttled import FIFO_THROTTLED
from mendq.catalogue.messages.message_too_long import MESSAGE_TOO_LONG
from mendq.model.facts import Facts, QueueFacts
from mendq.model.mode import Mode
from mendq.model.plan import Ignore
from tests.architecture.aws_commands import find_mistake
from tests.catalogue.asking import expect_plan, expect_refusal, only_step_of, read_test_data

LARGEST_SIZE = "1048576"


def make_queue(redrive: object = "", size: int = 1024, dlq: QueueFacts | None = None) -> Facts:
    policy = redrive if isinstance(redrive, str) else json.dumps(redrive)
    return standard_queue(MaximumMessageSize=size, RedrivePolicy=policy, dlq=dlq)


def make_queue_with_dlq(attributes: dict[str, str] | None, arn: str = DLQ_ARN) -> Facts:
    redrive = {"deadLetterTargetArn": arn, "maxReceiveCount": 5}
    return make_queue(redrive, dlq=QueueFacts(arn, attributes or {}))


@pytest.mark.parametrize(
    "facts",
    [
        make_queue(),
        make_queue_with_dlq({"MaximumMessageSize": LARGEST_SIZE}),
        make_queue_with_dlq({"VisibilityTimeout": "30"}),
    ],
)
def test_message_size_is_raised_automatically_without_a_dlq_or_if_the_dlq_accepts_1_mib(
    facts: Facts,
) -> None:
    answer = expect_plan(MESSAGE_TOO_LONG, facts)
    assert (answer.highest_mode, answer.first_commands) == (Mode.HEAL, ())


@pytest.mark.parametrize(
    ("facts", "because", "command"),
    [
        (make_queue_with_dlq({"MaximumMessageSize": "1048575"}), "takes 1,048,575 bytes", "set"),
        (
            make_queue_with_dlq(None, DLQ_ARN.replace("us-east-1", "eu-west-1")),
            "account or region",
            "set",
        ),
        (
            make_queue_with_dlq(
                {"MaximumMessageSize": LARGEST_SIZE}, "arn:aws:sqs:us-east-1:210987654321:d"
            ),
            "account or region",
            "set",
        ),
        (make_queue_with_dlq(None), "is gone", "get"),
    ],
)
def test_message_size_raise_is_only_proposed_if_the_dlq_accepts_less_or_is_elsewhere_or_gone(
    facts: Facts, because: str, command: str
) -> None:
    answer = expect_plan(MESSAGE_TOO_LONG, facts)
    assert answer.highest_mode is Mode.PROPOSE
    assert because in answer.reason
    (first,) = answer.first_commands
    assert f"{command}-queue-attributes" in first
    assert find_mistake(first) == ""


@pytest.mark.parametrize(
    "policy",
    [
        {"deadLetterTargetArn": DLQ_ARN},
        "{not json",
        "[]",
        {"deadLetterTargetArn": "arn:x; rm -rf"},
        {"deadLetterTargetArn": {"a": 1}},
    ],
    ids=str,
)
def test_message_size_raise_is_only_proposed_and_repeats_no_text_of_an_unreadable_redrive_policy(
    policy: object,
) -> None:
    answer = expect_plan(MESSAGE_TOO_LONG, make_queue(policy))
    assert answer.highest_mode is Mode.PROPOSE
    assert "names no queue" in answer.reason
    assert "rm -rf" not in answer.reason
    (first,) = answer.first_commands
    assert "get-queue-attributes" in first
    assert find_mistake(first) == ""


@given(st.integers(1_024, 1_048_575), st.text(max_size=80))
def test_message_size_below_1_mib_is_raised_to_1_mib_for_any_text_in_the_redrive_policy(
    size: int, policy: str
) -> None:
    facts = make_queue(policy, size)
    assert only_step_of(expect_plan(MESSAGE_TOO_LONG, facts)).after == 1_048_576


@given(st.text(max_size=80))
def test_message_size_of_1_mib_is_left_alone_for_any_text_in_the_redrive_policy(
    policy: str,
) -> None:
    facts = make_queue(policy, size=1_048_576)
    assert isinstance(expect_refusal(MESSAGE_TOO_LONG, facts), Ignore)


def make_queue_with_throughput(scope: str | None, limit: str | None) -> Facts:
    """Make a FIFO queue with these values. An attribute whose value is None is not set."""
    values: dict[str, Any] = {"DeduplicationScope": scope, "FifoThroughputLimit": limit}
    return queue(**{name: value for name, value in values.items() if value is not None})


@pytest.mark.parametrize(("scope", "limit", "changed"), read_test_data("tables")["throughput"])
def test_high_throughput_sets_what_is_missing_and_deduplication_scope_first(
    scope: str | None, limit: str | None, changed: list[str]
) -> None:
    plan = expect_plan(FIFO_THROTTLED, make_queue_with_throughput(scope, limit))
    assert [step.attribute for step in plan.steps] == changed


@pytest.mark.parametrize(("scope", "limit"), read_test_data("tables")["unknown throughput"])
def test_high_throughput_of_an_unknown_scope_or_limit_is_refused(
    scope: str | None, limit: str | None
) -> None:
    refusal = expect_refusal(FIFO_THROTTLED, make_queue_with_throughput(scope, limit))
    assert refusal.code == "high_throughput_unknown"
