"""The payload of an invocation that failed."""

from __future__ import annotations

import traceback

import pytest

from local_account.lambdas.exceptions import payload_of

BODY = {"errorMessage": "it broke", "errorType": "Runtime.HandlerError"}


class OddError(Exception):
    """Not one of Python's own."""


def _handler(error: Exception) -> None:
    raise error


def _payload(error: Exception, logged_before: str = "") -> dict[str, object]:
    try:
        _handler(error)
    except type(error):
        trace = traceback.format_exc()
    body = {**BODY, "errorMessage": str(error)}
    return payload_of(body, logged_before + trace, "r-1")


def test_without_a_trace_it_stays_as_it_is() -> None:
    assert payload_of(BODY, "", "r-1") == BODY
    assert payload_of(BODY, "it broke", "r-1") == BODY


@pytest.mark.parametrize(
    ("error", "name"),
    [
        (OddError("it broke"), "OddError"),
        (OddError(), "OddError"),
        (OddError("two\nlines: x"), "OddError"),
        (KeyError("x"), "KeyError"),
        (ValueError("a: b"), "ValueError"),
    ],
)
def test_the_exception_is_named(error: Exception, name: str) -> None:
    payload = _payload(error)
    assert (payload["errorType"], payload["errorMessage"]) == (name, str(error))
    assert payload["requestId"] == "r-1"


def test_the_stack_begins_in_the_handler() -> None:
    frames = _payload(OddError("x"), logged_before="a line\n")["stackTrace"]
    assert isinstance(frames, list)
    (frame,) = frames
    assert frame.startswith('  File "')
    assert frame.endswith("in _handler\n    raise error\n")


def test_only_the_last_of_a_chain_counts() -> None:
    first = 'Traceback (most recent call last):\n  File "x", line 1, in f\nKeyError: 1\n\n'
    assert _payload(OddError("x"), logged_before=first)["errorType"] == "OddError"


def test_a_timeout_names_the_request() -> None:
    body = {"errorMessage": "Task timed out after 2.00 seconds", "errorType": "Sandbox.Timedout"}
    said = payload_of(body, "", "r-1")
    assert said == {
        "errorMessage": "RequestId: r-1 Error: Task timed out after 2.00 seconds",
        "errorType": "Sandbox.Timedout",
    }
