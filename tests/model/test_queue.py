"""Test queue names, ARNs, URLs and redrive policies, and the DLQs and quarantines Mendq makes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mendq.catalogue.examples import DLQ_ARN, QUEUE_ARN, STANDARD_ARN, queue
from mendq.model.dlq import (
    arn_of_quarantine,
    make_dlq_attributes,
    make_quarantine_attributes,
    why_unfit_as_quarantine,
)
from mendq.model.queue import (
    DEFAULT_NUMBER_BY_ATTRIBUTE,
    RedriveAllowPolicy,
    RedrivePolicy,
    arn_of_dlq,
    arn_of_url,
    is_quarantine,
    make_public_queue_url,
    parse_queue_arn,
    parse_redrive_allow_policy,
    parse_redrive_policy,
    queue_arn_or_none,
    why_unfit_as_dlq,
)
from tests.account.account import moto_account
from tests.model.tables import any_json, table

PREFIX = STANDARD_ARN.removesuffix("orders")
POLICIES = any_json(
    "deadLetterTargetArn", "maxReceiveCount", "redrivePermission", "sourceQueueArns", "byQueue"
)
NAMES = st.builds(
    lambda name, fifo: name + ".fifo" * fifo,
    st.text("abcABC019_-", min_size=1, max_size=75),
    st.booleans(),
)


@given(NAMES, NAMES)
def test_arns_of_dlq_and_quarantine_are_valid_and_unique_to_their_queue(
    name: str, other_name: str
) -> None:
    source_arn = PREFIX + name
    for make_arn in (arn_of_dlq, arn_of_quarantine):
        arn = make_arn(source_arn)
        assert queue_arn_or_none(arn) == arn
        assert why_unfit_as_dlq(source_arn, arn) is None
        assert (arn == make_arn(PREFIX + other_name)) == (name == other_name)


@given(NAMES)
def test_quarantine_of_any_queue_is_recognised_by_its_name_and_is_not_the_dlq(name: str) -> None:
    quarantine_arn = arn_of_quarantine(PREFIX + name)
    assert is_quarantine(parse_queue_arn(quarantine_arn).name)
    assert quarantine_arn != arn_of_dlq(PREFIX + name)


@pytest.mark.parametrize(
    ("source", "dlq", "quarantine"),
    [
        ("orders", "orders-dlq", "orders-quarantine"),
        ("orders.fifo", "orders-dlq.fifo", "orders-quarantine.fifo"),
        ("o" * 69, "o" * 69 + "-dlq", "o" * 69 + "-quarantine"),
        ("o" * 76, "o" * 76 + "-dlq", None),
        ("o" * 80, None, None),
    ],
)
def test_dlq_and_quarantine_names_have_a_suffix_and_at_most_80_characters(
    source: str, dlq: str | None, quarantine: str | None
) -> None:
    for make_arn, expected in ((arn_of_dlq, dlq), (arn_of_quarantine, quarantine)):
        name = parse_queue_arn(make_arn(PREFIX + source)).name
        if expected is None:
            assert len(name) == 80
        else:
            assert name == expected


def test_queue_whose_name_continues_after_quarantine_is_no_quarantine() -> None:
    assert is_quarantine("orders-quarantine")
    assert not is_quarantine("orders-quarantine-2")


@pytest.mark.parametrize(("dlq_arn", "because"), table("unfit"))
def test_dlq_of_another_region_account_type_or_the_queue_itself_is_unfit_with_the_reason(
    dlq_arn: str, because: str
) -> None:
    assert because in (why_unfit_as_dlq(STANDARD_ARN, dlq_arn) or "")


LONGEST_RETENTION = {"MessageRetentionPeriod": "1209600"}
SAFE_ATTRIBUTES = {**LONGEST_RETENTION, "SqsManagedSseEnabled": "true"}


ENCRYPTED_SOURCE = queue(KmsMasterKeyId="alias/orders", ContentBasedDeduplication="true")
ENCRYPTED_ATTRIBUTES = {
    **LONGEST_RETENTION,
    "KmsMasterKeyId": "alias/orders",
    "FifoQueue": "true",
}
SOURCE_WITH_DLQ = queue(queue_arn=STANDARD_ARN, RedrivePolicy=RedrivePolicy(DLQ_ARN, 5).text)


ATTRIBUTES_OF_SOURCE = {
    "KmsMasterKeyId": "alias/orders",
    "FifoQueue": "true",
    "ContentBasedDeduplication": "true",
}


def test_new_dlq_has_the_type_kms_key_and_deduplication_of_its_source() -> None:
    attributes = make_dlq_attributes(ENCRYPTED_SOURCE, arn_of_dlq(QUEUE_ARN))
    assert attributes.items() >= ATTRIBUTES_OF_SOURCE.items()


def test_new_dlq_keeps_messages_for_14_days_and_admits_only_its_source() -> None:
    attributes = make_dlq_attributes(ENCRYPTED_SOURCE, arn_of_dlq(QUEUE_ARN))
    own_names = attributes.keys() - ATTRIBUTES_OF_SOURCE.keys()
    assert {name: attributes[name] for name in own_names} == {
        **LONGEST_RETENTION,
        "RedriveAllowPolicy": RedriveAllowPolicy("byQueue", (QUEUE_ARN,)).text,
    }


NO_SOURCE_ALLOWED = {"RedriveAllowPolicy": RedriveAllowPolicy("denyAll").text}


def test_new_quarantine_gets_its_sources_type_and_key_longest_retention_and_is_no_dlq() -> None:
    expected_attributes = ENCRYPTED_ATTRIBUTES | NO_SOURCE_ALLOWED
    assert make_quarantine_attributes(ENCRYPTED_SOURCE) == expected_attributes


def test_new_dlq_that_a_redrive_policy_already_names_admits_other_sources_too() -> None:
    assert make_dlq_attributes(SOURCE_WITH_DLQ, DLQ_ARN) == SAFE_ATTRIBUTES


def test_new_quarantine_of_an_unencrypted_source_is_encrypted_by_sqs() -> None:
    assert make_quarantine_attributes(SOURCE_WITH_DLQ) == SAFE_ATTRIBUTES | NO_SOURCE_ALLOWED


QUARANTINES = json.loads(Path(__file__).with_name("quarantines.json").read_text())


@pytest.mark.parametrize(("key", "attributes", "because"), QUARANTINES)
def test_existing_queue_with_a_quarantine_name_is_used_only_if_messages_are_safe_there(
    key: str, attributes: dict[str, Any], because: str | None
) -> None:
    """`key` is the source's KMS key. `because` is part of the reason not to use the queue."""
    policy = attributes.get("Policy")
    if isinstance(policy, dict):
        statement = {"Action": "sqs:*", "Resource": "*", **policy}
        attributes = {**attributes, "Policy": json.dumps({"Statement": [statement]})}
    source = queue(queue_arn=STANDARD_ARN, KmsMasterKeyId=key)
    reason = why_unfit_as_quarantine(source, SAFE_ATTRIBUTES | attributes)
    assert (because in str(reason)) if because else (reason is None)


@pytest.mark.parametrize("source_arn", [STANDARD_ARN, QUEUE_ARN])
@pytest.mark.parametrize("key", ["", "alias/orders"])
def test_quarantine_that_mendq_made_is_fit_for_its_source(source_arn: str, key: str) -> None:
    source = queue(queue_arn=source_arn, KmsMasterKeyId=key)
    assert why_unfit_as_quarantine(source, make_quarantine_attributes(source)) is None


def test_quarantine_that_a_lambda_function_consumes_is_unfit() -> None:
    source = queue(queue_arn=STANDARD_ARN)
    reader = "arn:aws:lambda:us-east-1:123456789012:function:tidy"
    assert why_unfit_as_quarantine(source, SAFE_ATTRIBUTES) is None
    assert "tidy consumes it" in str(why_unfit_as_quarantine(source, SAFE_ATTRIBUTES, [reader]))


@given(st.text() | POLICIES.map(json.dumps))
def test_redrive_policy_parsers_never_raise_and_round_trip_what_they_read(text: str) -> None:
    redrive = parse_redrive_policy(text)
    assert redrive is None or parse_redrive_policy(redrive.text) == redrive
    allowed = parse_redrive_allow_policy(text)
    assert allowed is None or parse_redrive_allow_policy(allowed.text) == allowed


@pytest.mark.parametrize(("text", "read"), [*table("redrive counts"), ("[" * 100_000, None)])
def test_redrive_policy_is_unreadable_without_a_dlq_arn_and_a_valid_max_receive_count(
    text: str, read: int | None
) -> None:
    expected = None if read is None else RedrivePolicy("a", read)
    assert parse_redrive_policy(text) == expected


@pytest.mark.parametrize(("text", "allows"), table("who may name it"))
def test_redrive_allow_policy_allows_only_its_sources_and_is_none_if_unreadable(
    text: str, allows: bool | None
) -> None:
    policy = parse_redrive_allow_policy(text)
    if allows is None:
        assert policy is None
    else:
        assert policy is not None
        assert policy.allows(STANDARD_ARN) is allows


def test_default_attributes_equal_those_of_a_new_queue_in_an_emulated_account() -> None:
    with moto_account() as account:
        made = account.attributes(account.queue("plain", tag=None))
    announced = {name: int(made[name]) for name in DEFAULT_NUMBER_BY_ATTRIBUTE if name in made}
    assert announced == {name: DEFAULT_NUMBER_BY_ATTRIBUTE[name] for name in announced}
    assert len(announced) >= 5


@pytest.mark.parametrize(
    ("partition", "region", "host"),
    [("aws", "eu-west-1", "amazonaws.com"), ("aws-cn", "cn-north-1", "amazonaws.com.cn")],
)
def test_public_queue_url_in_aws_and_china_has_the_partitions_domain_and_maps_back_to_the_arn(
    partition: str, region: str, host: str
) -> None:
    arn = f"arn:{partition}:sqs:{region}:123456789012:orders"
    assert make_public_queue_url(arn) == f"https://sqs.{region}.{host}/123456789012/orders"
    assert arn_of_url(make_public_queue_url(arn), region) == arn


def test_public_queue_url_of_an_arn_with_shell_syntax_is_refused() -> None:
    with pytest.raises(ValueError, match="not the ARN"):
        make_public_queue_url(f"{STANDARD_ARN};ls")
