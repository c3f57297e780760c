"""What may be switched on, and which calls on which queues then fail."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.session import Session

from local_account.sqs.error_switch import (
    DELETING,
    KINDS,
    RECEIVE,
    SENDING,
    ErrorSwitch,
    Moment,
    read,
)
from local_account.switch import SwitchRefused

KEY = {"KmsMasterKeyId": "alias/orders", "KmsDataKeyReusePeriodSeconds": "60"}
HIGH_THROUGHPUT = {
    "DeduplicationScope": "messageGroup",
    "FifoThroughputLimit": "perMessageGroupId",
}


def _moment(
    action: str = "SendMessage",
    name: str = "orders",
    attributes: dict[str, str] | None = None,
    *,
    wait_seconds: int | None = None,
) -> Moment:
    arn = f"arn:aws:sqs:us-east-1:000000000000:{name}"
    return Moment(action, arn, name.endswith(".fifo"), attributes or {}, wait_seconds, "ann")


def _switch(error: str, *queues: str, **more: Any) -> ErrorSwitch:
    switch = ErrorSwitch()
    switch.replace({"errors": [{"error": error, "queues": list(queues or ("*",)), **more}]})
    return switch


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (None, "send {"),
        ({"errors": [], "more": 1}, "send {"),
        ({"errors": {}}, "send {"),
        ({"errors": ["KmsThrottled"]}, "send {"),
        ({"errors": [{"error": "KmsThrotled", "queues": ["a"]}]}, "error: give one of KmsAcc"),
        ({"errors": [{"error": "OverLimit"}]}, "queues: list names"),
        ({"errors": [{"error": "OverLimit", "queues": ["a*b"]}]}, "queues: list names"),
        ({"errors": [{"error": "OverLimit", "queues": ["Mendq-*"]}]}, "queues: list names"),
        ({"errors": [{"error": "OverLimit", "queues": ["a"], "x": 1}]}, "x: not known"),
        (
            {"errors": [{"error": "OverLimit", "queues": ["a"], "below_seconds": 300}]},
            "below_seconds: give KmsThrottled a number",
        ),
        *(
            (
                {"errors": [{"error": "KmsThrottled", "queues": ["a"], "below_seconds": seconds}]},
                "below_seconds: give KmsThrottled a number",
            )
            for seconds in (60, "300")
        ),
    ],
)
def test_a_mistake_is_named_and_changes_nothing(asked: object, said: str) -> None:
    switch = _switch("OverLimit", "other")
    before = switch.as_json()
    with pytest.raises(SwitchRefused) as refused:
        switch.replace(asked)
    assert str(refused.value).startswith(said)
    assert "\n" not in str(refused.value)
    assert switch.as_json() == before


def test_what_it_shows_can_be_asked_for_again() -> None:
    switch = _switch("KmsThrottled", "orders-*", "b", below_seconds=3600)
    assert read(switch.as_json()) == switch.errors
    assert switch.as_json()["errors"][0]["below_seconds"] == 3600


@pytest.mark.parametrize(
    ("pattern", "name", "hit"),
    [
        ("orders", "orders-2", False),
        ("orders-*", "orders", False),
        ("orders", "orders", True),
        ("order*", "orders-2", True),
        ("*", "orders", True),
    ],
)
def test_names_and_prefixes(pattern: str, name: str, hit: bool) -> None:
    refusal = _switch("KmsDisabled", pattern).error_of(_moment(name=name, attributes=KEY))
    assert (refusal is not None) is hit


@pytest.mark.parametrize(
    ("error", "moment", "hit"),
    [
        ("KmsThrottled", _moment(), False),
        ("KmsThrottled", _moment("DeleteMessage", attributes=KEY), False),
        (
            "KmsThrottled",
            _moment(attributes={**KEY, "KmsDataKeyReusePeriodSeconds": "300"}),
            False,
        ),
        ("KmsThrottled", _moment(attributes={"KmsMasterKeyId": "k"}), False),
        ("KmsThrottled", _moment(attributes=KEY), True),
        ("KmsThrottled", _moment("SendMessageBatch", attributes=KEY), True),
        ("KmsThrottled", _moment("ReceiveMessage", attributes=KEY), True),
        ("KmsAccessDenied", _moment(), False),
        ("KmsAccessDenied", _moment(attributes={"KmsMasterKeyId": "k"}), True),
        ("RequestThrottled", _moment(), False),
        ("RequestThrottled", _moment("ReceiveMessage", wait_seconds=1), False),
        (
            "RequestThrottled",
            _moment("ReceiveMessage", attributes={"ReceiveMessageWaitTimeSeconds": "20"}),
            False,
        ),
        ("RequestThrottled", _moment("ReceiveMessage"), True),
        (
            "ThrottlingException",
            _moment(
                "ReceiveMessage",
                attributes={"ReceiveMessageWaitTimeSeconds": "20"},
                wait_seconds=0,
            ),
            True,
        ),
        ("RequestThrottled", _moment(name="o.fifo", attributes=HIGH_THROUGHPUT), False),
        (
            "RequestThrottled",
            _moment(name="o.fifo", attributes={"DeduplicationScope": "messageGroup"}),
            True,
        ),
        ("ThrottlingException", _moment("DeleteMessageBatch", name="o.fifo"), True),
        ("OverLimit", _moment(), False),
        ("OverLimit", _moment("ReceiveMessage", name="o.fifo"), False),
        ("OverLimit", _moment("ReceiveMessage", wait_seconds=5), False),
        ("OverLimit", _moment("ReceiveMessage"), True),
    ],
)
def test_an_error_lasts_until_its_attribute_is_fixed(error: str, moment: Moment, hit: bool) -> None:
    assert _switch(error).error_of(moment) == (error if hit else None)


@pytest.mark.parametrize(
    ("key", "arn"),
    [
        ("alias/orders", "arn:aws:kms:us-east-1:000000000000:alias/orders"),
        ("1234", "arn:aws:kms:us-east-1:000000000000:key/1234"),
        ("arn:aws:kms:eu-west-1:1:key/2", "arn:aws:kms:eu-west-1:1:key/2"),
    ],
)
def test_a_denied_key_is_named_with_who_lacks_what(key: str, arn: str) -> None:
    attributes = {"KmsMasterKeyId": key}
    text = KINDS["KmsAccessDenied"].text
    send = text.format(_moment(attributes=attributes))
    assert send.startswith(
        f"User: ann is not authorized to perform: kms:GenerateDataKey on resource: {arn} because"
    )
    assert "kms:Decrypt" in text.format(_moment("ReceiveMessage", attributes=attributes))


def test_names_and_actions_are_those_of_the_service_model() -> None:
    """ThrottlingException alone is a common error, which no model lists."""
    model = Session().get_service_model("sqs")
    assert KINDS.keys() - {each.name for each in model.error_shapes} == {"ThrottlingException"}
    assert set(model.operation_names) >= (SENDING | DELETING | {RECEIVE})
