"""KMS keys of queues: whose key it is and who calls decide the page; how far one is stretched."""

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


def called(key: str, *event_names: str) -> Facts:
    return queue(KmsMasterKeyId=key, event_names=event_names)


@pytest.mark.parametrize(("key", "code"), read_test_data("tables")["keys"])
def test_the_key_decides_whose_matter_it_is(key: str, code: str) -> None:
    assert expect_refusal(KMS_DENIED, called(key, "SendMessage")).code == code


@pytest.mark.parametrize(("event_names", "sends", "receives"), read_test_data("tables")["calls"])
def test_the_calls_decide_which_grants_are_missing(
    event_names: tuple[str, ...], *, sends: bool, receives: bool
) -> None:
    reason = expect_refusal(KMS_DENIED, called(OURS, *event_names)).reason
    assert ("hoever sends needs kms:GenerateDataKey and kms:Decrypt" in reason) == sends
    assert ("hoever receives needs kms:Decrypt" in reason) == receives
    assert ". Whoever " in reason


def test_kms_gets_the_id_behind_an_alias_because_it_takes_no_alias_there() -> None:
    page = expect_refusal(KMS_DENIED, called("alias/orders", "SendMessage"))
    words = shlex.split(page.next_command)
    key_id = words[words.index("--key-id") + 1]
    assert key_id.startswith("$(aws kms describe-key ")
    assert key_id.endswith("--key-id alias/orders --query KeyMetadata.KeyId --output text)")


@given(st.text(max_size=200), st.sampled_from([KMS_DENIED, KMS_KEY_UNUSABLE]))
def test_any_text_as_a_key_pages_and_stays_one_word_of_the_command(
    key: str, entry: Symptom
) -> None:
    page = expect_refusal(entry, called(key, "ReceiveMessage"))
    assert isinstance(page, Escalate)
    if key and "alias/" not in key:
        assert key in shlex.split(page.next_command)


@pytest.mark.parametrize(("seconds", "raised"), [(299, 300), (None, 600), (301, 602), (1801, 3600)])
def test_how_far_the_use_of_a_data_key_is_stretched(seconds: int | None, raised: int) -> None:
    period: dict[str, Any] = {} if seconds is None else {"KmsDataKeyReusePeriodSeconds": seconds}
    facts = queue(KmsMasterKeyId="alias/orders", **period)
    assert only_step_of(expect_plan(KMS_THROTTLED, facts)).after == raised


@pytest.mark.parametrize(("key", "statement", "finds"), read_test_data("tables")["senders"])
def test_which_statements_let_a_service_send(
    key: str, statement: dict[str, Any], *, finds: bool
) -> None:
    sns = {"Service": "sns.amazonaws.com"}
    allow = {"Effect": "Allow", "Principal": sns, "Action": "sqs:SendMessage", "Resource": "*"}
    policy = json.dumps({"Statement": [{**allow, **statement}]})
    found = detect_fault(SERVICE_CANNOT_USE_KEY, standard_queue(KmsMasterKeyId=key, Policy=policy))
    assert bool(found) is finds
    assert not found or "sns.amazonaws.com" in found.found
