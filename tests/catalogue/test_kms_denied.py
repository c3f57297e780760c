"""Whose key it is and who calls decide what the page says."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mendq.catalogue import examples
from mendq.catalogue.kms_denied import plan
from mendq.catalogue.kms_key_unusable import plan as plan_unusable
from mendq.model.case import State
from mendq.model.facts import Facts
from mendq.model.limits import Limits
from mendq.model.plan import Refusal

Decide = Callable[[Facts, Limits], Refusal]
OURS = "arn:aws:kms:us-east-1:123456789012:key/1234abcd"
THEIRS = "arn:aws:kms:us-east-1:210987654321:key/1234abcd"
LIMITS = Limits()


def facts(key: str | None, *event_names: str) -> Facts:
    queue = examples.queue() if key is None else examples.queue(KmsMasterKeyId=key)
    return replace(queue, event_names=event_names)


@pytest.mark.parametrize("decide", [plan, plan_unusable])
@pytest.mark.parametrize("event_names", [(), ("SendMessage",), ("SendMessageBatch",)])
def test_without_a_key_senders_have_nothing_left_to_complain_of(
    decide: Decide, event_names: tuple[str, ...]
) -> None:
    refusal = decide(facts(None, *event_names), LIMITS)
    assert refusal.code == "not_encrypted_with_kms"
    assert refusal.becomes is None


@pytest.mark.parametrize("decide", [plan, plan_unusable])
def test_without_a_key_receivers_may_still_need_the_old_one(decide: Decide) -> None:
    refusal = decide(facts(None, "ReceiveMessage", "SendMessage"), LIMITS)
    assert refusal.code == "key_changed"
    assert refusal.becomes is State.ESCALATED
    assert "AttributeValue=SetQueueAttributes" in refusal.next_command


@pytest.mark.parametrize(
    ("key", "code"),
    [
        (OURS, "key_not_granted"),
        ("1234abcd", "key_not_granted"),
        ("alias/orders", "key_not_granted"),
        ("alias/aws/sqs-not", "key_not_granted"),
        (THEIRS, "key_of_another_account"),
        ("alias/aws/sqs", "aws_managed_key"),
        ("arn:aws:kms:us-east-1:123456789012:alias/aws/sqs", "aws_managed_key"),
    ],
)
def test_the_key_decides_whose_matter_it_is(key: str, code: str) -> None:
    page = plan(facts(key, "SendMessage"), LIMITS)
    assert page.code == code
    assert page.becomes is State.ESCALATED
    assert page.next_command.startswith("aws kms get-key-policy ")


@pytest.mark.parametrize(
    ("event_names", "sends", "receives"),
    [
        (("SendMessage",), True, False),
        (("SendMessageBatch",), True, False),
        (("ReceiveMessage",), False, True),
        (("ReceiveMessage", "SendMessage"), True, True),
        ((), True, True),
    ],
)
def test_the_calls_decide_which_grants_are_missing(
    event_names: tuple[str, ...], *, sends: bool, receives: bool
) -> None:
    reason = plan(facts(OURS, *event_names), LIMITS).reason
    assert ("sends needs kms:GenerateDataKey and kms:Decrypt" in reason) == sends
    assert ("receives needs kms:Decrypt" in reason) == receives


def test_the_missing_grant_stands_before_the_callers() -> None:
    asked = replace(facts(OURS, "SendMessage"), principals=("arn:aws:iam::123456789012:role/x",))
    reason = plan(asked, LIMITS).reason
    assert reason.startswith(f"the key {OURS} is not granted. Whoever sends needs ")
    assert reason.endswith(". Refused: arn:aws:iam::123456789012:role/x")


def test_kms_gets_the_id_behind_an_alias_because_it_takes_no_alias_there() -> None:
    words = shlex.split(plan(facts("alias/orders", "SendMessage"), LIMITS).next_command)
    key_id = words[words.index("--key-id") + 1]
    assert key_id.startswith("$(aws kms describe-key ")
    assert key_id.endswith("--key-id alias/orders --query KeyMetadata.KeyId --output text)")


@given(st.text(max_size=200), st.sampled_from([plan, plan_unusable]))
def test_any_text_as_a_key_pages_and_stays_one_word_of_the_command(
    key: str, decide: Decide
) -> None:
    page = decide(facts(key, "ReceiveMessage"), LIMITS)
    assert page.becomes is State.ESCALATED
    if key and "alias/" not in key:
        assert key in shlex.split(page.next_command)
