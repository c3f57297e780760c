"""Whether messages may be moved between two queues, and with which keys."""

from __future__ import annotations

import pytest

from mendq.catalogue._redrive_causes import (
    KeyGrant,
    key_grants,
    key_sentence,
    redrive_is_off,
    why_not_to_move,
)
from mendq.catalogue.examples import DLQ_ARN, STANDARD_ARN
from mendq.model.facts import Facts
from mendq.model.limits import Consent, Mode

QUEUE = "arn:aws:sqs:us-east-1:123456789012:orders-dlq"
BY_TAG = Consent(Mode.OBSERVE, Mode.HEAL)


@pytest.mark.parametrize("word", ["off", "OFF", " off ", "false", "no", "", "0", "onn"])
def test_what_is_not_on_is_off(word: str) -> None:
    assert redrive_is_off({"mendq:redrive": word})


def test_on_and_no_tag_forbid_nothing() -> None:
    assert not redrive_is_off({"mendq:redrive": "on"})
    assert not redrive_is_off({"mendq": "heal"})


@pytest.mark.parametrize(
    ("tags", "said"),
    [
        ({}, "not managed"),
        ({"mendq": "off"}, "not managed"),
        ({"mendq": "observe"}, "only observed"),
        ({"mendq": "what"}, "only observed"),
        ({"mendq": "heal", "mendq:redrive": "off"}, "mendq:redrive"),
        ({"mendq": "heal"}, None),
        ({"mendq": "propose"}, None),
    ],
)
def test_the_tags_of_a_queue_say_it(tags: dict[str, str], said: str | None) -> None:
    why = why_not_to_move(Facts(QUEUE, {}, tags), BY_TAG)
    assert (said in why) if said and why else why is None and said is None


def test_a_tag_that_the_settings_do_not_let_raise_is_observed() -> None:
    named = Consent(Mode.OBSERVE, Mode.OBSERVE)
    assert why_not_to_move(Facts(QUEUE, {}, {"mendq": "heal"}), named)


def test_no_message_leaves_a_quarantine_by_mendq_s_own_doing() -> None:
    """The prefix of its source's name fits it, and so might a tag."""
    quarantine = Facts(QUEUE.replace("-dlq", "-quarantine"), {}, {"mendq": "heal"})
    why = why_not_to_move(quarantine, Consent(Mode.HEAL, Mode.HEAL, ("orders*",)))
    assert why is not None
    assert "not managed" in why


def test_the_settings_name_may_be_enough() -> None:
    assert (
        why_not_to_move(Facts(QUEUE, {}, {}), Consent(Mode.HEAL, Mode.HEAL, ("orders*",))) is None
    )


KEY = "arn:aws:kms:us-east-1:123456789012:key/0abc"
OTHER = "alias/messages"


def grants(dlq: str, source: str) -> tuple[KeyGrant, ...]:
    return key_grants(
        DLQ_ARN,
        {"KmsMasterKeyId": dlq} if dlq else {},
        STANDARD_ARN,
        {"KmsMasterKeyId": source} if source else {},
    )


def test_messages_are_read_with_both_keys_and_sent_with_the_source_s() -> None:
    assert grants(OTHER, KEY) == (
        KeyGrant(OTHER, ("kms:Decrypt",), ("orders-dlq",)),
        KeyGrant(KEY, ("kms:Decrypt", "kms:GenerateDataKey"), ("orders",)),
    )


def test_one_key_of_both_is_named_once() -> None:
    (only,) = grants(KEY, KEY)
    assert str(only) == f"kms:Decrypt and kms:GenerateDataKey on {KEY} (orders-dlq, orders)"


def test_a_source_without_a_key_asks_for_the_messages_key_alone() -> None:
    assert grants(KEY, "") == (KeyGrant(KEY, ("kms:Decrypt",), ("orders-dlq",)),)


def test_what_asks_nobody_needs_no_grant() -> None:
    assert grants("", "") == ()
    assert grants("alias/aws/sqs", "arn:aws:kms:us-east-1:123456789012:alias/aws/sqs") == ()


def test_a_sentence_says_who_needs_what_and_nothing_where_nobody_does() -> None:
    assert key_sentence((), "Mendq") == ""
    said = key_sentence(grants(OTHER, KEY), "Mendq's redrive role")
    assert said.startswith(
        "Mendq's redrive role needs kms:Decrypt on alias/messages (orders-dlq); "
    )
    assert not said.endswith(".")
