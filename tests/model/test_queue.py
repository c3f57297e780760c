"""Names, ARNs and URLs of queues, their policies of redrive, and what is made beside them."""

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
    *("deadLetterTargetArn", "maxReceiveCount", "redrivePermission", "sourceQueueArns", "byQueue")
)
NAMES = st.builds(
    lambda name, fifo: name + ".fifo" * fifo,
    st.text("abcABC019_-", min_size=1, max_size=75),
    st.booleans(),
)


@given(NAMES, NAMES)
def test_what_is_made_beside_a_queue_is_legal_fits_and_is_its_own(one: str, other: str) -> None:
    for made in (arn_of_dlq, arn_of_quarantine):
        beside = made(PREFIX + one)
        assert queue_arn_or_none(beside) == beside
        assert why_unfit_as_dlq(PREFIX + one, beside) is None
        assert (beside == made(PREFIX + other)) == (one == other)
    assert arn_of_dlq(PREFIX + one) != arn_of_quarantine(PREFIX + one)
    assert is_quarantine(parse_queue_arn(arn_of_quarantine(PREFIX + one)).name)


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
def test_a_name_that_fits_is_retained_whole(
    source: str, dlq: str | None, quarantine: str | None
) -> None:
    for made, name in ((arn_of_dlq, dlq), (arn_of_quarantine, quarantine)):
        found = parse_queue_arn(made(PREFIX + source)).name
        assert (found == name) if name else (len(found) == 80)
    assert not is_quarantine(f"{source.removesuffix('.fifo')[:60]}-quarantine-2")


@pytest.mark.parametrize(("dlq_arn", "because"), table("unfit"))
def test_two_queues_that_do_not_fit_say_why(dlq_arn: str, because: str) -> None:
    assert because in (why_unfit_as_dlq(STANDARD_ARN, dlq_arn) or "")


KEPT = {"MessageRetentionPeriod": "1209600"}
GOOD = {**KEPT, "SqsManagedSseEnabled": "true"}


def test_a_new_queue_keeps_messages_as_long_and_as_safe_as_can_be() -> None:
    source = queue(KmsMasterKeyId="alias/orders", ContentBasedDeduplication="true")
    encrypted = {**KEPT, "KmsMasterKeyId": "alias/orders", "FifoQueue": "true"}
    by_content = {"ContentBasedDeduplication": "true"}
    allowed = {"RedriveAllowPolicy": RedriveAllowPolicy("byQueue", (QUEUE_ARN,)).text}
    assert make_dlq_attributes(source, arn_of_dlq(QUEUE_ARN)) == encrypted | by_content | allowed
    assert make_quarantine_attributes(source) == encrypted
    again = queue(queue_arn=STANDARD_ARN, RedrivePolicy=RedrivePolicy(DLQ_ARN, 5).text)
    assert make_dlq_attributes(again, DLQ_ARN) == GOOD, "it stays open to others"
    assert make_quarantine_attributes(again) == GOOD


QUARANTINES = json.loads(Path(__file__).with_name("quarantines.json").read_text())


@pytest.mark.parametrize(("key", "attributes", "because"), QUARANTINES)
def test_which_queue_of_a_quarantine_s_name_keeps_messages_safe(
    key: str, attributes: dict[str, Any], because: str | None
) -> None:
    """By the source's key; `because` is part of why it is not used."""
    policy = attributes.get("Policy")
    if isinstance(policy, dict):
        statement = {"Action": "sqs:*", "Resource": "*", **policy}
        attributes = {**attributes, "Policy": json.dumps({"Statement": [statement]})}
    source = queue(queue_arn=STANDARD_ARN, KmsMasterKeyId=key)
    reason = why_unfit_as_quarantine(source, GOOD | attributes)
    assert (because in str(reason)) if because else (reason is None)


@pytest.mark.parametrize("source_arn", [STANDARD_ARN, QUEUE_ARN])
@pytest.mark.parametrize("key", ["", "alias/orders"])
def test_one_of_our_making_fits_until_a_function_consumes_it(source_arn: str, key: str) -> None:
    source = queue(queue_arn=source_arn, KmsMasterKeyId=key)
    assert why_unfit_as_quarantine(source, make_quarantine_attributes(source)) is None
    reader = "arn:aws:lambda:us-east-1:123456789012:function:tidy"
    assert "tidy consumes it" in str(why_unfit_as_quarantine(source, GOOD, [reader]))


@given(st.text() | POLICIES.map(json.dumps))
def test_no_text_makes_a_reader_raise(text: str) -> None:
    redrive, allowed = parse_redrive_policy(text), parse_redrive_allow_policy(text)
    assert redrive is None or parse_redrive_policy(redrive.text) == redrive
    assert allowed is None or parse_redrive_allow_policy(allowed.text) == allowed


@pytest.mark.parametrize(("text", "read"), table("redrive counts"))
def test_a_redrive_policy_s_count_is_a_number_or_its_text(text: str, read: int | None) -> None:
    assert parse_redrive_policy("[" * 100_000) is None
    assert parse_redrive_policy(text) == (None if read is None else RedrivePolicy("a", read))


@pytest.mark.parametrize(("text", "allows"), table("who may name it"))
def test_who_may_name_it_and_what_cannot_be_read_is_not_guessed(
    text: str, allows: bool | None
) -> None:
    allowed = parse_redrive_allow_policy(text)
    assert (allowed and allowed.allows(STANDARD_ARN)) is allows


def test_defaults_are_what_sqs_says_of_a_new_queue() -> None:
    with moto_account() as account:
        made = account.attributes(account.queue("plain", tag=None))
    announced = {name: int(made[name]) for name in DEFAULT_NUMBER_BY_ATTRIBUTE if name in made}
    assert announced == {name: DEFAULT_NUMBER_BY_ATTRIBUTE[name] for name in announced}
    assert len(announced) >= 5


@pytest.mark.parametrize(
    ("partition", "region", "host"),
    [("aws", "eu-west-1", "amazonaws.com"), ("aws-cn", "cn-north-1", "amazonaws.com.cn")],
)
def test_a_public_url_leads_back_to_its_queue(partition: str, region: str, host: str) -> None:
    arn = f"arn:{partition}:sqs:{region}:123456789012:orders"
    assert make_public_queue_url(arn) == f"https://sqs.{region}.{host}/123456789012/orders"
    assert arn_of_url(make_public_queue_url(arn), region) == arn
    with pytest.raises(ValueError, match="not the ARN"):
        make_public_queue_url(f"{arn};ls")
