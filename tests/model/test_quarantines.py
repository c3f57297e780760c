"""What a quarantine is called, made with, and asked for where one is there already."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mendq.catalogue.examples import queue
from mendq.model.dlq import (
    arn_of_quarantine,
    attributes_of_quarantine,
    name_of_quarantine,
    why_unfit_as_quarantine,
)
from mendq.model.queue import arn_of, is_quarantine
from mendq.model.queue import name_of_dlq as dlq_name_for

STANDARD_ARN = "arn:aws:sqs:us-east-1:123456789012:orders"
FIFO_ARN = f"{STANDARD_ARN}.fifo"
OTHER = "999999999999"
OWN_ROLE = "arn:aws:iam::123456789012:role/on-call"
GOOD = {"MessageRetentionPeriod": "1209600", "SqsManagedSseEnabled": "true"}
NAMES = st.from_regex(r"[A-Za-z0-9_-]{1,75}(\.fifo)?", fullmatch=True)


@pytest.mark.parametrize(
    ("source", "quarantine"),
    [
        ("orders", "orders-quarantine"),
        ("orders.fifo", "orders-quarantine.fifo"),
        ("o" * 69, "o" * 69 + "-quarantine"),
    ],
)
def test_it_is_named_after_its_source(source: str, quarantine: str) -> None:
    assert name_of_quarantine(source) == quarantine
    assert is_quarantine(quarantine)


@given(NAMES, NAMES)
def test_names_are_legal_and_no_two_meet(one: str, other: str) -> None:
    assert len(name_of_quarantine(one)) <= 80
    source = f"arn:aws:sqs:us-east-1:123456789012:{one}"
    assert arn_of(arn_of_quarantine(source)) == arn_of_quarantine(source)
    assert (name_of_quarantine(one) == name_of_quarantine(other)) == (one == other)
    assert name_of_quarantine(one) != dlq_name_for(one)


@pytest.mark.parametrize("name", ["orders", "orders-dlq", "quarantine", "orders-quarantine-2"])
def test_other_queues_are_none(name: str) -> None:
    assert not is_quarantine(name)


def test_a_new_one_keeps_messages_as_long_and_as_safe_as_can_be() -> None:
    assert attributes_of_quarantine(queue(queue_arn=STANDARD_ARN)) == GOOD
    with_key = attributes_of_quarantine(queue(queue_arn=FIFO_ARN, KmsMasterKeyId="alias/orders"))
    assert with_key == {
        "MessageRetentionPeriod": "1209600",
        "KmsMasterKeyId": "alias/orders",
        "FifoQueue": "true",
    }


@pytest.mark.parametrize("source_arn", [STANDARD_ARN, FIFO_ARN])
@pytest.mark.parametrize("key", ["", "alias/orders"])
def test_one_of_our_making_fits(source_arn: str, key: str) -> None:
    source = queue(queue_arn=source_arn, KmsMasterKeyId=key)
    assert why_unfit_as_quarantine(source, attributes_of_quarantine(source)) is None


def _policy(effect: str, principal: object, **more: object) -> str:
    statement = {"Effect": effect, "Principal": principal, "Action": "sqs:*", "Resource": "*"}
    statement |= more
    return json.dumps({"Version": "2012-10-17", "Statement": [statement]})


@pytest.mark.parametrize(
    ("attributes", "because"),
    [
        ({"RedrivePolicy": "{}"}, "RedrivePolicy"),
        ({"Policy": _policy("Allow", "*")}, "everybody"),
        ({"Policy": "no policy"}, "everybody"),
        ({"Policy": _policy("Allow", "*", Condition={"Bool": {"x": "true"}})}, "everybody"),
        ({"Policy": _policy("Allow", {"AWS": f"arn:aws:iam::{OTHER}:root"})}, OTHER),
        ({"Policy": _policy("Allow", {"AWS": [OWN_ROLE, OTHER]})}, OTHER),
        ({"Policy": _policy("Allow", {"AWS": "AROAEXAMPLE"})}, "AROAEXAMPLE"),
        ({"Policy": _policy("Allow", {"Service": "sns.amazonaws.com"})}, "sns.amazonaws.com"),
        ({"KmsMasterKeyId": f"arn:aws:kms:us-east-1:{OTHER}:key/theirs"}, "another account's key"),
        ({"KmsMasterKeyId": f"arn:aws:kms:us-east-1:{OTHER}:alias/theirs"}, "another account's"),
        ({"MaximumMessageSize": "1024"}, "1048576 bytes"),
        ({"DelaySeconds": "900"}, "DelaySeconds"),
        ({"SqsManagedSseEnabled": "false"}, "encrypted"),
        ({"MessageRetentionPeriod": "1209599"}, "1209600"),
    ],
)
def test_one_that_keeps_messages_less_safe_is_not_used(
    attributes: dict[str, str], because: str
) -> None:
    reason = why_unfit_as_quarantine(queue(queue_arn=STANDARD_ARN), GOOD | attributes)
    assert reason is not None
    assert because in reason


@pytest.mark.parametrize(
    "attributes",
    [
        {},
        {"Policy": _policy("Deny", "*")},
        {"Policy": _policy("Allow", {"AWS": [OWN_ROLE, "123456789012"]})},
        {"Policy": _policy("Allow", {"AWS": "arn:aws:iam::123456789012:root"})},
        {"Policy": _policy("Deny", {"AWS": OTHER})},
        {"KmsMasterKeyId": "arn:aws:kms:us-east-1:123456789012:key/own"},
        {"KmsMasterKeyId": "alias/aws/sqs"},
        {"MaximumMessageSize": "1048576", "DelaySeconds": "0"},
        {"SqsManagedSseEnabled": "false", "KmsMasterKeyId": "alias/stronger"},
        {"RedrivePolicy": "", "Policy": ""},
    ],
)
def test_a_persons_changes_that_harm_no_message_are_fine(attributes: dict[str, str]) -> None:
    assert why_unfit_as_quarantine(queue(queue_arn=STANDARD_ARN), GOOD | attributes) is None


def test_where_the_source_has_a_key_sqs_own_is_too_little() -> None:
    source = queue(queue_arn=STANDARD_ARN, KmsMasterKeyId="alias/orders")
    assert why_unfit_as_quarantine(source, GOOD) is not None


KEYED = "arn:aws:kms:us-east-1:123456789012:key/own"


@pytest.mark.parametrize(
    ("of_source", "key", "fits"),
    [
        (KEYED, "alias/aws/sqs", False),
        (KEYED, "arn:aws:kms:us-east-1:123456789012:alias/aws/sqs", False),
        (KEYED, f"arn:aws:kms:us-east-1:{OTHER}:key/theirs", False),
        (KEYED, KEYED, True),
        (KEYED, "alias/stronger", True),
        ("alias/aws/sqs", "alias/aws/sqs", True),
        ("alias/aws/sqs", KEYED, True),
        (f"arn:aws:kms:us-east-1:{OTHER}:key/shared", "alias/aws/sqs", False),
        (*(f"arn:aws:kms:us-east-1:{OTHER}:key/shared",) * 2, True),
    ],
)
def test_its_key_is_as_good_as_the_sources(of_source: str, key: str, *, fits: bool) -> None:
    source = queue(queue_arn=STANDARD_ARN, KmsMasterKeyId=of_source)
    assert (why_unfit_as_quarantine(source, GOOD | {"KmsMasterKeyId": key}) is None) is fits


def test_one_that_a_function_consumes_keeps_nothing() -> None:
    reader = "arn:aws:lambda:us-east-1:123456789012:function:tidy"
    reason = why_unfit_as_quarantine(queue(queue_arn=STANDARD_ARN), GOOD, [reader])
    assert reason is not None
    assert "tidy consumes it" in reason
