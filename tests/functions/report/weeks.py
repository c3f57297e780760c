"""Summaries for tests. All of it is made up: no such queue failed in any such week."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any

from functions.report.read_summary import read
from functions.report.summary import Summary

MONDAY = date(2026, 11, 9)
DAYS = tuple(MONDAY + timedelta(days=each) for each in range(7))
ACCOUNT = "123456789012"
Document = dict[str, Any]


def arn(queue: str) -> str:
    return f"arn:aws:sqs:us-east-1:{ACCOUNT}:{queue}"


def incident(
    queue: str = "orders",
    *,
    day: int = 0,
    label: str = "lease_expired",
    outcome: str = "healed",
    failed_calls: int = 12,
    seconds_to_heal: float | None = None,
    why: str | None = None,
    **fields: object,
) -> Document:
    """A case of the summary; healed ones took 40 s unless told."""
    first = datetime(2026, 11, 9, 14, 2, 11, tzinfo=UTC) + timedelta(days=day)
    healed_seconds = 40.0 if outcome == "healed" else None
    return {
        "incident_id": f"{queue}-{label}-{day}",
        "queue_arn": arn(queue),
        "label": label,
        "error_codes": ["MessageNotInflight"],
        "first_failure": f"{first:%FT%TZ}",
        "last_failure": f"{first + timedelta(minutes=7):%FT%TZ}",
        "failed_calls": failed_calls,
        "principals": [f"arn:aws:iam::{ACCOUNT}:role/{queue}-consumer"],
        "outcome": outcome,
        "why": why,
        "case_id": f"{label}-0a1b2c3d4e5f",
        "seconds_to_heal": healed_seconds if seconds_to_heal is None else seconds_to_heal,
        "paged": outcome == "escalated",
    } | fields


def week(cases: Sequence[Mapping[str, Any]] = (), **changes: object) -> Document:
    """A whole summary.json around `cases`; `changes` replace fields, `not_seen` is merged."""
    outcomes = Counter(each["outcome"] for each in cases)
    document: Document = {
        "schema": 1,
        "week": "2026-W46",
        "from": f"{DAYS[0]}",
        "to": f"{DAYS[-1]}",
        "made_at": "2026-11-16T06:00:00Z",
        "accounts": [ACCOUNT],
        "regions": ["us-east-1"],
        "totals": {
            "incidents": len(cases),
            "failed_calls": sum(each["failed_calls"] for each in cases),
            "queues": len({each["queue_arn"] for each in cases}),
            "healed": outcomes["healed"],
            "paged": sum(each["paged"] for each in cases),
        },
        "by_outcome": dict(outcomes),
        "by_label": dict(Counter(each["label"] for each in cases)),
        "per_day": per_day(cases),
        "previous_weeks": [],
        "cases": [dict(each) for each in cases],
        "cases_left_out": 0,
        "not_seen": {
            "nights_missing": [],
            "files_read": 412,
            "files_unreadable": 0,
            "bytes_read": 81_200_000,
            "bytes_unreadable": 0,
            "records_read": 1_284_019,
            "unlabelled": {},
            "unreadable_files": [],
        },
    }
    changes["not_seen"] = document["not_seen"] | dict(changes.get("not_seen", {}))  # type: ignore[call-overload]
    return document | changes


def per_day(cases: Sequence[Mapping[str, Any]]) -> list[Document]:
    """The rows of each day by label, or its one empty row."""
    rows = []
    for day in DAYS:
        mine = [each for each in cases if each["first_failure"].startswith(f"{day}")]
        for label in sorted({each["label"] for each in mine}) or [None]:
            here = [each for each in mine if each["label"] == label]
            calls = sum(each["failed_calls"] for each in here)
            rows.append(
                {"date": f"{day}", "label": label, "incidents": len(here), "failed_calls": calls}
            )
    return rows


def earlier(*incidents: int, healed: int = 0, paged: int = 0) -> list[Document]:
    """Weeks before this one, the last of `incidents` being last week's."""
    weeks = range(46 - len(incidents), 46)
    return [
        {
            "week": f"2026-W{number}",
            "incidents": count,
            "failed_calls": 10 * count,
            "healed": healed,
            "paged": paged,
        }
        for number, count in zip(weeks, incidents, strict=True)
    ]


def summary(cases: Sequence[Mapping[str, Any]] = (), **changes: object) -> Summary:
    return read(week(cases, **changes))


def busy_week() -> Document:
    """Most things that can be on the page, at once."""
    over = "the need of 1,380 s is above the ceiling of 900 s; raise mendq:max-visibility-seconds"
    cases = [
        incident("invoices", day=3, outcome="escalated", failed_calls=96, why=over),
        incident("invoices", day=4, outcome="escalated", failed_calls=88, why=over),
        incident("invoices", day=1, outcome="refused", failed_calls=40, why=over),
        incident(
            "orders-eu-west-consumer-with-a-name-that-uses-all-of-the-80-characters-it-is-all",
            day=4,
            label="access_denied",
            outcome="not_seen",
            why="not_managed",
            case_id=None,
            error_codes=["AccessDenied"],
        ),
        incident("emails", day=2, label="caller_bug", outcome="not_seen", why="count_only"),
        incident("emails", day=6, label="unlabelled:Teapot", outcome="not_seen", why="unlabelled"),
        incident("thumbnails", day=0, label="kms_throttled", outcome="observed"),
        *[
            incident("invoices" if n % 3 else "orders", day=n % 5, seconds_to_heal=20.0 + n * n)
            for n in range(16)
        ],
        *[incident("exports", day=4, label="kms_throttled", seconds_to_heal=75) for _ in range(3)],
    ]
    return week(
        cases,
        previous_weeks=earlier(19, 24, 21, 18, healed=15, paged=1),
        not_seen={
            "files_unreadable": 2,
            "bytes_unreadable": 1_250_000,
            "unlabelled": {"unlabelled:Teapot": 12},
            "unreadable_files": [
                {"file": "AWSLogs/123456789012/CloudTrail/us-east-1/2026/11/10/a.json.gz",
                 "reason": "the gzip stream ends early"},
                {"file": "AWSLogs/123456789012/CloudTrail/us-east-1/2026/11/11/b.json.gz",
                 "reason": "not gzip: it begins with <html"},
            ],
        },
    )  # fmt: skip
