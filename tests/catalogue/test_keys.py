"""Test the symptoms about KMS keys of queues: denied, unusable and throttled keys."""

from __future__ import annotations

import json
import shlex
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mendq.catalogue.examples import queue, standard_queue
from mendq.catalogue.keys.kms_denied import KMS_DENIED
from mendq.catalogue.keys.kms_key_unusable import KMS_KEY_UNUSABLE
from mendq.catalogue.keys.kms_throttled import KMS_THROTTLED
from mendq.catalogue.keys.service_cannot_use_key import SERVICE_CANNOT_USE_KEY
from mendq.catalogue.symptom import Symptom
from mendq.model.facts import Facts
from mendq.model.plan import Escalate
from tests.catalogue.asking import (
    detect_fault,
    expect_plan,
    expect_refusal,
    only_step_of,
    read_test_data,
)

OURS = "arn:aws:kms:us-east-1:123456789012:key/1234abcd"


def make_queue_with_key(key: str, *event_names: str) -> Facts:
    return queue(KmsMasterKeyId=key, event_names=event_names)


@pytest.mark.parametrize(("key", "code"), read_test_data("tables")["keys"])
def test_kms_denied_page_depends_on_whose_key_the_queue_uses(key: str, code: str) -> None:
    assert expect_refusal(KMS_DENIED, make_queue_with_key(key, "SendMessage")).code == code


@pytest.mark.parametrize(("event_names", "sends", "receives"), read_test_data("tables")["calls"])
def test_kms_denied_page_names_the_grants_of_producers_and_consumers_by_the_failed_calls(
    event_names: tuple[str, ...], *, sends: bool, receives: bool
) -> None:
    reason = expect_refusal(KMS_DENIED, make_queue_with_key(OURS, *event_names)).reason
    assert ("hoever sends needs kms:GenerateDataKey and kms:Decrypt" in reason) == sends
    assert ("hoever receives needs kms:Decrypt" in reason) == receives
    assert ". Whoever " in reason


def test_command_about_a_key_alias_looks_up_the_key_id_first() -> None:
    page = expect_refusal(KMS_DENIED, make_queue_with_key("alias/orders", "SendMessage"))
    words = shlex.split(page.next_command)
    key_id = words[words.index("--key-id") + 1]
    assert key_id.startswith("$(aws kms describe-key ")
    assert key_id.endswith("--key-id alias/orders --query KeyMetadata.KeyId --output text)")


@given(st.text(max_size=200), st.sampled_from([KMS_DENIED, KMS_KEY_UNUSABLE]))
def test_any_text_as_a_key_name_stays_one_quoted_word_of_the_command(
    key: str, entry: Symptom
) -> None:
    page = expect_refusal(entry, make_queue_with_key(key, "ReceiveMessage"))
    assert isinstance(page, Escalate)
    if key and "alias/" not in key:
        assert key in shlex.split(page.next_command)


@pytest.mark.parametrize(("seconds", "raised"), [(299, 300), (None, 600), (301, 602), (1801, 3600)])
def test_kms_throttled_raises_the_data_key_reuse_period_to_300_s_or_twice_its_value(
    seconds: int | None, raised: int
) -> None:
    period: dict[str, Any] = {} if seconds is None else {"KmsDataKeyReusePeriodSeconds": seconds}
    facts = queue(KmsMasterKeyId="alias/orders", **period)
    assert only_step_of(expect_plan(KMS_THROTTLED, facts)).after == raised


@pytest.mark.parametrize(("key", "statement", "finds"), read_test_data("tables")["senders"])
def test_service_cannot_use_key_is_detected_only_if_an_aws_service_sends_and_aws_owns_the_key(
    key: str, statement: dict[str, Any], *, finds: bool
) -> None:
    sns = {"Service": "sns.amazonaws.com"}
    allow = {"Effect": "Allow", "Principal": sns, "Action": "sqs:SendMessage", "Resource": "*"}
    policy = json.dumps({"Statement": [{**allow, **statement}]})
    facts = standard_queue(KmsMasterKeyId=key, Policy=policy)
    faulty = detect_fault(SERVICE_CANNOT_USE_KEY, facts)
    assert bool(faulty) is finds
    if faulty is not None:
        assert "sns.amazonaws.com" in faulty.found
