"""What is left, and nothing that is somebody else's."""

from __future__ import annotations

import pytest

from mendq.catalogue import CATALOGUE, examples, match
from mendq.catalogue.invalid_request import INVALID_REQUEST
from mendq.model.failed_call import CODES

HANDLE = "Value AQEB for parameter ReceiptHandle is invalid. Reason: "
OWN_DELETE = "Message does not exist or is not available for visibility timeout change."


def test_it_is_the_last_of_the_catalogue() -> None:
    assert CATALOGUE[-1] is INVALID_REQUEST


def test_it_opens_nothing_and_asks_for_nothing() -> None:
    assert INVALID_REQUEST.plan is None
    assert INVALID_REQUEST.needs == frozenset()
    assert INVALID_REQUEST.ships_as == "count only"
    counted = [each.name for each in CATALOGUE if each.ships_as == INVALID_REQUEST.ships_as]
    assert counted == [INVALID_REQUEST.name]


@pytest.mark.parametrize(
    "code", [each.canonical for each in CODES if each.label != INVALID_REQUEST.name]
)
@pytest.mark.parametrize("event_name", ["SendMessage", "ReceiveMessage", "SetQueueAttributes"])
def test_a_code_that_means_a_symptom_is_never_counted_away(code: str, event_name: str) -> None:
    assert match(examples.failed_call(event_name, code)) not in {None, INVALID_REQUEST}


@pytest.mark.parametrize(
    ("event_name", "code", "message"),
    [
        ("ReceiveMessage", "OverLimit", ""),
        ("DeleteMessage", "InvalidParameterValue", f"{HANDLE}The receipt handle has expired."),
        ("SendMessage", "Unheard", ""),
        ("SendMessage", "", ""),
    ],
)
def test_what_is_not_the_caller_s_mistake(event_name: str, code: str, message: str) -> None:
    assert match(examples.failed_call(event_name, code, message)) is not INVALID_REQUEST


@pytest.mark.parametrize(
    ("event_name", "code", "message"),
    [
        ("ChangeMessageVisibility", "InvalidParameterValue", f"{HANDLE}{OWN_DELETE}"),
        ("DeleteMessage", "InvalidParameterValueException", ""),
        ("DeleteMessage", "ReceiptHandleIsInvalid", "The input receipt handle is invalid."),
        ("SendMessage", "InvalidParameterValue", "something that SQS has never said"),
        ("NoSuchCall", "InvalidMessageContents", ""),
    ],
)
def test_what_is_left_of_the_documented_codes_is_counted(
    event_name: str, code: str, message: str
) -> None:
    assert match(examples.failed_call(event_name, code, message)) is INVALID_REQUEST
