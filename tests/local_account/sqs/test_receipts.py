"""What a receipt handle is worth: every state on either type of queue."""

from __future__ import annotations

import pytest

from local_account.sqs.receipts import Receipt, change_refusal, delete_refusal, deletes

HOLDING = {"message_exists": True, "is_latest": True, "is_in_flight": True}
EXPIRED = HOLDING | {"is_in_flight": False}
TAKEN_OVER = HOLDING | {"is_latest": False}
GONE = HOLDING | {"message_exists": False}
GONE_LONG_AGO = EXPIRED | {"message_exists": False}


def _receipt(state: dict[str, bool], is_fifo: bool) -> Receipt:
    return Receipt("handle-1", is_fifo, **state)


@pytest.mark.parametrize(
    ("state", "standard_deletes", "fifo_answers", "fifo_deletes"),
    [
        (HOLDING, True, None, True),
        (EXPIRED, True, "expired", False),
        (TAKEN_OVER, False, "expired", False),
        (GONE, False, None, False),
        (GONE_LONG_AGO, False, "expired", False),
    ],
)
def test_deleting(
    state: dict[str, bool], standard_deletes: bool, fifo_answers: str | None, fifo_deletes: bool
) -> None:
    standard = _receipt(state, is_fifo=False)
    assert delete_refusal(standard) is None
    assert deletes(standard) is standard_deletes
    fifo = _receipt(state, is_fifo=True)
    refusal = delete_refusal(fifo)
    assert (refusal is None) is (fifo_answers is None)
    if refusal:
        assert refusal.name == "InvalidParameterValueException"
        assert refusal.message == (
            "Value handle-1 for parameter ReceiptHandle is invalid. "
            "Reason: The receipt handle has expired."
        )
    else:
        assert deletes(fifo) is fifo_deletes


@pytest.mark.parametrize(
    ("state", "standard", "fifo"),
    [
        (HOLDING, None, None),
        (EXPIRED, None, "MessageNotInflight"),
        (TAKEN_OVER, "MessageNotInflight", "MessageNotInflight"),
        (GONE, "InvalidParameterValueException", "InvalidParameterValueException"),
    ],
)
def test_changing_visibility(
    state: dict[str, bool], standard: str | None, fifo: str | None
) -> None:
    for is_fifo, name in ((False, standard), (True, fifo)):
        refusal = change_refusal(_receipt(state, is_fifo), 30)
        assert (refusal and refusal.name) == name


def test_the_words_after_a_delete() -> None:
    refusal = change_refusal(_receipt(GONE, is_fifo=True), 30)
    assert refusal is not None
    assert refusal.message == (
        "Value handle-1 for parameter ReceiptHandle is invalid. Reason: "
        "Message does not exist or is not available for visibility timeout change."
    )


@pytest.mark.parametrize(("seconds", "taken"), [(0, True), (43_200, True), (43_201, False)])
def test_one_extension_has_a_limit(seconds: int, taken: bool) -> None:
    assert (change_refusal(_receipt(HOLDING, is_fifo=False), seconds) is None) is taken


@pytest.mark.parametrize(("ago", "taken"), [(3_200, True), (3_201, False)])
def test_all_extensions_together_end_after_twelve_hours(ago: float, taken: bool) -> None:
    held = Receipt("handle-1", is_fifo=False, **HOLDING, received_seconds_ago=ago)
    assert (change_refusal(held, 40_000) is None) is taken
