"""A failed call as a row of the night, labelled in the same pass."""

from __future__ import annotations

from typing import NamedTuple

from analytics.days import microseconds
from analytics.labels import label_of
from analytics.readings import UNRESOLVED
from functions.healing.failed_call import FailedCall


class CallRow(NamedTuple):
    """Times are microseconds since 1970; the error message stays behind: it may hold a handle."""

    position: int
    event_id: str
    event_time: int
    event_name: str
    error_code: str
    queue_arn: str
    account: str
    region: str
    principal_arn: str
    request_id: str
    label: str


def call_row(position: int, call: FailedCall) -> CallRow:
    return CallRow(
        position,
        _text(call.event_id),
        microseconds(call.event_time),
        _text(call.event_name),
        _text(call.error_code),
        _text(call.queue_arn or UNRESOLVED),
        _text(call.account),
        _text(call.region),
        _text(call.principal_arn),
        _text(call.request_id),
        _text(label_of(call)),
    )


def _text(text: str) -> str:
    """JSON can spell half a surrogate pair; UTF-8 cannot."""
    return text.encode("utf-8", "replace").decode()
