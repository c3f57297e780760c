"""How far one attribute is changed for failed calls: message size and high throughput."""

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
from tests.catalogue.asking import expect_plan, expect_refusal, golden, only_step_of

FULL = "1048576"


def taking(redrive: object = "", size: int = 1024, dlq: QueueFacts | None = None) -> Facts:
    policy = redrive if isinstance(redrive, str) else json.dumps(redrive)
    return standard_queue(MaximumMessageSize=size, RedrivePolicy=policy, dlq=dlq)


def with_dlq(attributes: dict[str, str] | None, arn: str = DLQ_ARN) -> Facts:
    redrive = {"deadLetterTargetArn": arn, "maxReceiveCount": 5}
    return taking(redrive, dlq=QueueFacts(arn, attributes or {}))


@pytest.mark.parametrize(
    "facts",
    [taking(), with_dlq({"MaximumMessageSize": FULL}), with_dlq({"VisibilityTimeout": "30"})],
)
def test_where_no_dlq_is_in_the_way_the_settings_decide(facts: Facts) -> None:
    answer = expect_plan(MESSAGE_TOO_LONG, facts)
    assert (answer.at_most, answer.first) == (Mode.HEAL, ())


@pytest.mark.parametrize(
    ("facts", "because", "command"),
    [
        (with_dlq({"MaximumMessageSize": "1048575"}), "takes 1,048,575 bytes", "set"),
        (with_dlq(None, DLQ_ARN.replace("us-east-1", "eu-west-1")), "account or region", "set"),
        (
            with_dlq({"MaximumMessageSize": FULL}, "arn:aws:sqs:us-east-1:210987654321:d"),
            "account or region",
            "set",
        ),
        (with_dlq(None), "is gone", "get"),
        (taking({"deadLetterTargetArn": DLQ_ARN}), "names no queue", "get"),
        (taking("{not json"), "names no queue", "get"),
        (taking("[]"), "names no queue", "get"),
        (taking({"deadLetterTargetArn": "arn:x; rm -rf"}), "names no queue", "get"),
        (taking({"deadLetterTargetArn": {"a": 1}}), "names no queue", "get"),
    ],
)
def test_a_dlq_in_the_way_makes_it_a_proposal(facts: Facts, because: str, command: str) -> None:
    answer = expect_plan(MESSAGE_TOO_LONG, facts)
    assert answer.at_most is Mode.PROPOSE
    assert because in answer.reason
    assert "rm -rf" not in answer.reason
    (first,) = answer.first
    assert f"{command}-queue-attributes" in first
    assert find_mistake(first) == ""


@given(st.integers(1_024, 1_048_576), st.text(max_size=80))
def test_any_redrive_policy_gives_an_answer_within_bounds(size: int, policy: str) -> None:
    facts = taking(policy, size)
    if size == 1_048_576:
        assert isinstance(expect_refusal(MESSAGE_TOO_LONG, facts), Ignore)
    else:
        assert only_step_of(expect_plan(MESSAGE_TOO_LONG, facts)).after == 1_048_576


@pytest.mark.parametrize(("scope", "limit", "answer"), golden("tables")["throughput"])
def test_what_is_missing_is_turned_on_in_the_order_sqs_wants(
    scope: str | None, limit: str | None, answer: Any
) -> None:
    pair: dict[str, Any] = {"DeduplicationScope": scope, "FifoThroughputLimit": limit}
    facts = queue(**{name: value for name, value in pair.items() if value is not None})
    if isinstance(answer, str):
        assert expect_refusal(FIFO_THROTTLED, facts).code == answer
    else:
        assert [step.attribute for step in expect_plan(FIFO_THROTTLED, facts).steps] == answer
