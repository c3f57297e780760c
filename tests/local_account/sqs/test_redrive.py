"""Redrive policies that SQS refuses, near-misses first."""

from __future__ import annotations

import json
from typing import Any

import pytest

from local_account.sqs.redrive import (
    DeadLetterQueue,
    redrive_allow_policy_refusal,
    redrive_policy_refusal,
)

HERE = "arn:aws:sqs:us-east-1:000000000000:"
SOURCE = HERE + "orders"
QUEUES = {
    HERE + "dlq": DeadLetterQueue(is_fifo=False, redrive_allow_policy=""),
    HERE + "dlq.fifo": DeadLetterQueue(is_fifo=True, redrive_allow_policy=""),
    HERE + "closed": DeadLetterQueue(False, '{"redrivePermission": "denyAll"}'),
    HERE + "open": DeadLetterQueue(False, '{"redrivePermission": "allowAll"}'),
    HERE + "ours": DeadLetterQueue(
        False, json.dumps({"redrivePermission": "byQueue", "sourceQueueArns": [SOURCE]})
    ),
    HERE + "theirs": DeadLetterQueue(
        False, json.dumps({"redrivePermission": "byQueue", "sourceQueueArns": [SOURCE + "-2"]})
    ),
}


def _policy(target: str, receives: object = 5) -> str:
    return json.dumps({"deadLetterTargetArn": target, "maxReceiveCount": receives})


@pytest.mark.parametrize(
    "policy",
    [
        "",
        _policy(HERE + "dlq"),
        _policy(HERE + "open"),
        _policy(HERE + "ours"),
        _policy(HERE + "dlq", 1),
        _policy(HERE + "dlq", "1000"),
    ],
)
def test_policies_that_are_taken(policy: str) -> None:
    assert redrive_policy_refusal(policy, SOURCE, False, QUEUES.get) is None


@pytest.mark.parametrize(
    ("policy", "reason"),
    [
        (_policy(HERE + "gone"), "does not exist"),
        (_policy(HERE + "dlq.fifo"), "same type"),
        (_policy("arn:aws:sqs:us-east-1:111111111111:dlq"), "account"),
        (_policy("arn:aws:sqs:eu-west-1:000000000000:dlq"), "Region"),
        (_policy(HERE + "closed"), "does not allow"),
        (_policy(HERE + "theirs"), "does not allow"),
        (_policy(HERE + "dlq", 0), "from 1 to 1000"),
        (_policy(HERE + "dlq", 1001), "from 1 to 1000"),
        (_policy(HERE + "dlq", "many"), "from 1 to 1000"),
        (json.dumps({"maxReceiveCount": 5}), "deadLetterTargetArn"),
        (json.dumps({"deadLetterTargetArn": HERE + "dlq"}), "maxReceiveCount"),
    ],
)
def test_policies_that_are_refused(policy: str, reason: str) -> None:
    refusal = redrive_policy_refusal(policy, SOURCE, False, QUEUES.get)
    assert refusal is not None
    assert refusal.name == "InvalidParameterValueException"
    assert refusal.message.startswith(f"Value {policy} for parameter RedrivePolicy is invalid.")
    assert reason in refusal.message


def test_a_fifo_source_needs_a_fifo_target() -> None:
    assert redrive_policy_refusal(_policy(HERE + "dlq.fifo"), SOURCE, True, QUEUES.get) is None
    assert redrive_policy_refusal(_policy(HERE + "dlq"), SOURCE, True, QUEUES.get)


@pytest.mark.parametrize("policy", ["{", "[]", '"{}"'])
def test_a_policy_that_is_no_object(policy: str) -> None:
    refusal = redrive_policy_refusal(policy, SOURCE, False, QUEUES.get)
    assert refusal is not None
    assert refusal.name == "InvalidAttributeValue"


@pytest.mark.parametrize(
    ("policy", "taken"),
    [
        ({"redrivePermission": "allowAll"}, True),
        ({"redrivePermission": "denyAll"}, True),
        ({"redrivePermission": "byQueue", "sourceQueueArns": [SOURCE] * 10}, True),
        ({"redrivePermission": "byQueue", "sourceQueueArns": [SOURCE] * 11}, False),
        ({"redrivePermission": "byQueue"}, False),
        ({"redrivePermission": "allowAll", "sourceQueueArns": [SOURCE]}, False),
        ({"redrivePermission": "some"}, False),
        ({}, False),
    ],
)
def test_redrive_allow_policies(policy: dict[str, Any], taken: bool) -> None:
    assert (redrive_allow_policy_refusal(json.dumps(policy)) is None) is taken


def test_an_empty_redrive_allow_policy_removes_it() -> None:
    assert redrive_allow_policy_refusal("") is None
    assert redrive_allow_policy_refusal("{")
