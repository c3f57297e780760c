from __future__ import annotations

import pytest

from functions.healing.error_messages import reason_given

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
