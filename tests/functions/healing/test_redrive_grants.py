"""Which grants on which keys moving letters takes."""

from __future__ import annotations

from functions.healing.examples import DEAD_LETTER_ARN, STANDARD_ARN
from functions.healing.redrive_consent import KeyGrant, key_grants, key_sentence

KEY = "arn:aws:kms:us-east-1:123456789012:key/0abc"
OTHER = "alias/letters"


def grants(dead_letters: str, source: str) -> tuple[KeyGrant, ...]:
    return key_grants(
        DEAD_LETTER_ARN,
        {"KmsMasterKeyId": dead_letters} if dead_letters else {},
        STANDARD_ARN,
        {"KmsMasterKeyId": source} if source else {},
    )


def test_letters_are_read_with_both_keys_and_sent_with_the_source_s() -> None:
    assert grants(OTHER, KEY) == (
        KeyGrant(OTHER, ("kms:Decrypt",), ("orders-dlq",)),
        KeyGrant(KEY, ("kms:Decrypt", "kms:GenerateDataKey"), ("orders",)),
    )


def test_one_key_of_both_is_named_once() -> None:
    (only,) = grants(KEY, KEY)
    assert str(only) == f"kms:Decrypt and kms:GenerateDataKey on {KEY} (orders-dlq, orders)"


def test_a_source_without_a_key_asks_for_the_letters_key_alone() -> None:
    assert grants(KEY, "") == (KeyGrant(KEY, ("kms:Decrypt",), ("orders-dlq",)),)


def test_what_asks_nobody_needs_no_grant() -> None:
    assert grants("", "") == ()
    assert grants("alias/aws/sqs", "arn:aws:kms:us-east-1:123456789012:alias/aws/sqs") == ()


def test_a_sentence_says_who_needs_what_and_nothing_where_nobody_does() -> None:
    assert key_sentence((), "Mendq") == ""
    said = key_sentence(grants(OTHER, KEY), "Mendq's redrive role")
    assert said.startswith("Mendq's redrive role needs kms:Decrypt on alias/letters (orders-dlq); ")
    assert not said.endswith(".")
