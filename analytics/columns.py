"""The columns of the night's tables, in their order: THE place that says them."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, auto


class Kind(Enum):
    """What a column holds; Arrow and Spark each have their own word for it."""

    TEXT = auto()
    TEXTS = auto()
    MOMENT = auto()
    WHOLE = auto()
    NUMBER = auto()
    TRUTH = auto()
    FAULTS = auto()


COLUMNS: Mapping[str, Mapping[str, Kind]] = {
    "incidents": {
        "incident_id": Kind.TEXT,
        "account": Kind.TEXT,
        "region": Kind.TEXT,
        "queue_arn": Kind.TEXT,
        "label": Kind.TEXT,
        "error_codes": Kind.TEXTS,
        "first_failure": Kind.MOMENT,
        "last_failure": Kind.MOMENT,
        "failed_calls": Kind.WHOLE,
        "principals": Kind.TEXTS,
        "outcome": Kind.TEXT,
        "why": Kind.TEXT,
        "case_id": Kind.TEXT,
        "seconds_to_heal": Kind.NUMBER,
        "paged": Kind.TRUTH,
    },
    "failed_calls": {
        "event_id": Kind.TEXT,
        "event_time": Kind.MOMENT,
        "event_name": Kind.TEXT,
        "error_code": Kind.TEXT,
        "queue_arn": Kind.TEXT,
        "account": Kind.TEXT,
        "region": Kind.TEXT,
        "principal_arn": Kind.TEXT,
        "request_id": Kind.TEXT,
        "label": Kind.TEXT,
        "file": Kind.TEXT,
    },
    "quality": {
        "file": Kind.TEXT,
        "account": Kind.TEXT,
        "region": Kind.TEXT,
        "bytes": Kind.WHOLE,
        "reason": Kind.TEXT,
        "records": Kind.WHOLE,
        "failed_calls": Kind.WHOLE,
        "unreadable_records": Kind.FAULTS,
    },
}
INCIDENTS, FAILED_CALLS = tuple(COLUMNS["incidents"]), tuple(COLUMNS["failed_calls"])
