"""Seals count only with a key that may prove them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from mendq.model.seal import SealKey

CREATED_AT = datetime(2026, 11, 30, 12, tzinfo=UTC)
BEFORE = CREATED_AT - timedelta(seconds=1)
FORMER = SealKey(b"former")
KEY = SealKey(b"present", b"former", CREATED_AT)
TEXT = b"source, case and body"


def test_seal_of_the_present_key_is_valid_whenever_the_message_was_sent() -> None:
    seal = KEY.make_seal(TEXT)
    assert KEY.is_seal_valid(seal, TEXT, BEFORE)
    assert KEY.is_seal_valid(seal, TEXT, CREATED_AT)
    assert not KEY.is_seal_valid(seal, TEXT + b".", CREATED_AT)


def test_seal_of_the_former_key_is_valid_only_for_messages_sent_before_the_present_key() -> None:
    seal = FORMER.make_seal(TEXT)
    assert KEY.is_seal_valid(seal, TEXT, BEFORE)
    assert not KEY.is_seal_valid(seal, TEXT, CREATED_AT)
    assert not KEY.is_seal_valid(seal, TEXT + b".", BEFORE)


@pytest.mark.parametrize("sent_at", [BEFORE, CREATED_AT])
def test_seal_made_with_an_empty_key_is_never_valid(sent_at: datetime) -> None:
    seal = SealKey(b"").make_seal(TEXT)
    for key in (KEY, SealKey(b"", b"former"), SealKey(b"present", b"", CREATED_AT)):
        assert not key.is_seal_valid(seal, TEXT, sent_at)
