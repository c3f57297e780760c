"""Advanced event selectors, as AWS evaluates them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from local_account.cloudtrail.trails import is_logged

QUEUE = "arn:aws:sqs:us-east-1:000000000000:orders"
OURS = "arn:aws:sts::000000000000:assumed-role/mendq-heal-us-east-1/heal"


def _record(**changed: Any) -> dict[str, Any]:
    record = {
        "eventCategory": "Data",
        "managementEvent": False,
        "eventName": "DeleteMessage",
        "eventSource": "sqs.amazonaws.com",
        "eventType": "AwsApiCall",
        "readOnly": False,
        "resources": [{"type": "AWS::SQS::Queue", "ARN": QUEUE}],
        "userIdentity": {"type": "Root", "arn": "arn:aws:iam::000000000000:root"},
    }
    return record | changed


def _selector(*more: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [
        {
            "FieldSelectors": [
                {"Field": "eventCategory", "Equals": ["Data"]},
                {"Field": "resources.type", "Equals": ["AWS::SQS::Queue"]},
                *more,
            ]
        }
    ]


@pytest.mark.parametrize(
    ("field", "takes", "leaves"),
    [
        ({"Equals": [QUEUE]}, QUEUE, QUEUE + "-2"),
        ({"Equals": ["x", QUEUE]}, QUEUE, "y"),
        ({"StartsWith": ["arn:aws:sqs:us-east-1:"]}, QUEUE, "arn:aws:sqs:eu-west-1:0:orders"),
        ({"EndsWith": [":orders"]}, QUEUE, QUEUE + ".fifo"),
        ({"NotEquals": [QUEUE]}, QUEUE + "-2", QUEUE),
        ({"NotEquals": ["x", QUEUE]}, "y", QUEUE),
        ({"NotStartsWith": ["arn:aws:sqs:eu-"]}, QUEUE, "arn:aws:sqs:eu-west-1:0:orders"),
        ({"NotEndsWith": [".fifo", "-dlq"]}, QUEUE, QUEUE + "-dlq"),
        ({"StartsWith": [QUEUE], "NotEndsWith": ["-dlq"]}, QUEUE + "-2", QUEUE + "-dlq"),
        ({"StartsWith": ["x"], "EndsWith": ["orders"]}, QUEUE, "y"),
    ],
)
def test_each_operator(field: dict[str, list[str]], takes: str, leaves: str) -> None:
    selectors = _selector({"Field": "resources.ARN", **field})
    assert not is_logged(_on(leaves), selectors)
    assert is_logged(_on(takes), selectors)


def _on(arn: str) -> dict[str, Any]:
    return _record(resources=[{"type": "AWS::SQS::Queue", "ARN": arn}])


def test_comparison_minds_the_case() -> None:
    selectors = _selector({"Field": "eventName", "Equals": ["deletemessage"]})
    assert not is_logged(_record(), selectors)


def test_own_roles_are_left_out_and_everybody_else_is_not() -> None:
    left_out = {"Field": "userIdentity.arn", "NotStartsWith": [OURS.rpartition("/")[0]]}
    assert not is_logged(_record(userIdentity={"arn": OURS}), _selector(left_out))
    assert is_logged(_record(userIdentity={"arn": OURS.replace("heal", "x")}), _selector(left_out))
    assert is_logged(_record(userIdentity={"type": "AWSAccount"}), _selector(left_out))


def test_all_fields_of_one_selector_and_any_selector_of_many() -> None:
    reading = _selector({"Field": "readOnly", "Equals": ["true"]})
    deleting = _selector({"Field": "eventName", "Equals": ["DeleteMessage"]})
    assert not is_logged(_record(eventName="SendMessage"), reading + deleting)
    assert is_logged(_record(), reading + deleting)
    assert is_logged(_record(eventName="GetQueueUrl", readOnly=True), reading + deleting)


def test_no_selector_logs_nothing() -> None:
    assert not is_logged(_record(), [])


def test_data_selectors_take_no_management_event() -> None:
    assert not is_logged(_record(eventCategory="Management"), _selector())


def test_basic_selectors_log_management_events() -> None:
    management = _record(eventCategory="Management", managementEvent=True)
    assert is_logged(management, [{"ReadWriteType": "All"}])
    assert not is_logged(management, [{"IncludeManagementEvents": False}])
    assert not is_logged(_record(), [{}])
