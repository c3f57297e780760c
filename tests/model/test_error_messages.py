from __future__ import annotations

import pytest

from mendq.model.failed_call import asks_for_deduplication_id, reason_given, size_limit_bytes

EXPIRED = "The receipt handle has expired."


def message(handle: str, reason: str = EXPIRED) -> str:
    return f"Value {handle} for parameter ReceiptHandle is invalid. Reason: {reason}"


@pytest.mark.parametrize(
    "text",
    [
        "",
        EXPIRED,
        f"Reason: {EXPIRED}",
        f"One or more parameters are invalid. Reason: {EXPIRED}",
        f"Value x for parameter Label is invalid. Reason: {EXPIRED}",
        message("x") + "\n",
        message("x", f"{EXPIRED} Reason: Already exists."),
    ],
)
def test_another_form_gives_no_reason(text: str) -> None:
    assert reason_given(text, "ReceiptHandle") is None


def test_the_callers_own_reason_is_not_sqs_s() -> None:
    forged = message(message("x"), "can't find label.")
    assert reason_given(forged, "ReceiptHandle") == "can't find label."


@pytest.mark.parametrize("handle", ["AQEB", "", "a" * 900, "x Reason: y for parameter Label"])
def test_sqs_s_reason_is_found_behind_any_handle(handle: str) -> None:
    assert reason_given(message(handle), "ReceiptHandle") == EXPIRED


@pytest.mark.parametrize("handle", ["a" * 1024, "\u00e9" * 480])
def test_a_message_that_may_be_cut_gives_no_reason(handle: str) -> None:
    """Cut off, the caller's own sentence could be the end of it."""
    assert reason_given(message(handle + message("x"))[:1024], "ReceiptHandle") is None


TOO_LONG = "One or more parameters are invalid. Reason: Message must be shorter than 1024 bytes."
NO_ID = (
    "The queue should either have ContentBasedDeduplication enabled "
    "or MessageDeduplicationId provided explicitly"
)


@pytest.mark.parametrize(
    "text",
    [
        "",
        TOO_LONG[:-1],
        TOO_LONG + "\n",
        TOO_LONG.replace("1024", "01024"),
        TOO_LONG.replace("1024", "-1"),
        TOO_LONG.replace("1024", "1,024"),
        TOO_LONG.replace("1024", "1" * 10),
        TOO_LONG.replace("1024", "\u0661\u0660"),
        f"Value {TOO_LONG} for parameter Label is invalid. Reason: {TOO_LONG}",
        f"{'a' * 1000}{TOO_LONG}"[:1024],
    ],
)
def test_another_form_names_no_size_limit(text: str) -> None:
    assert size_limit_bytes(text) is None


@pytest.mark.parametrize("limit", [1, 1_024, 1_048_576, 999_999_999])
def test_sqs_s_size_limit_is_read(limit: int) -> None:
    assert size_limit_bytes(TOO_LONG.replace("1024", str(limit))) == limit


@pytest.mark.parametrize("text", ["", NO_ID[1:], NO_ID[:-1], f"{NO_ID}\n", f"Value {NO_ID}"])
def test_another_sentence_asks_for_no_deduplication_id(text: str) -> None:
    assert asks_for_deduplication_id(NO_ID)
    assert not asks_for_deduplication_id(text)
