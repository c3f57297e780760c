"""Summaries for tests. All of it is made up: no such queue failed in any such week."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any

from mendq.report.read_summary import read
from mendq.report.summary import Summary
from tests.report import week_parts
from tests.report.week_parts import (
    ACCOUNT,
    nightly,
    notified,
    queue_days,
    reached_a_person,
    recommendation,
    scanned,
    times_to_heal,
)

MONDAY = date(2026, 11, 9)
DAYS = tuple(MONDAY + timedelta(days=each) for each in range(7))
Document = dict[str, Any]
arn = week_parts.arn


def incident(
    queue: str = "orders",
    *,
    day: int = 0,
    symptom: str = "visibility_timeout_too_short",
    outcome: str = "healed",
    failed_calls: int = 12,
    seconds_to_heal: float | None = None,
    why: str | None = None,
    reason: str = "",
    **fields: object,
) -> Document:
    """A case of the summary; healed ones took 40 s unless told."""
    first = datetime(2026, 11, 9, 14, 2, 11, tzinfo=UTC) + timedelta(days=day)
    healed_seconds = 40.0 if outcome == "healed" else None
    return {
        "incident_id": f"{queue}-{symptom}-{day}",
        "queue_arn": arn(queue),
        "symptom": symptom,
        "error_codes": ["MessageNotInflight"],
        "first_failure": f"{first:%FT%TZ}",
        "last_failure": f"{first + timedelta(minutes=7):%FT%TZ}",
        "failed_calls": failed_calls,
        "principals": [f"arn:aws:iam::{ACCOUNT}:role/{queue}-consumer"],
        "outcome": outcome,
        "why": why,
        "case_id": None if outcome == "not_seen" else f"{symptom}-0a1b2c3d4e5f",
        "seconds_to_heal": healed_seconds if seconds_to_heal is None else seconds_to_heal,
        "notified": outcome == "escalated",
        "reason": reason,
    } | fields


def week(cases: Sequence[Mapping[str, Any]] = (), **changes: object) -> Document:
    """A whole summary.json around `cases`; `changes` replace fields, `not_seen` is merged.

    Nobody was paged, no scan found anything and there is nothing to do, unless told.
    """
    outcomes = Counter(each["outcome"] for each in cases)
    healed = sorted(each for symptom in times_to_heal(cases) for each in symptom["seconds"])
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
            "notified": sum(each["notified"] for each in cases),
            "median_seconds_to_heal": healed[(len(healed) - 1) // 2] if healed else None,
            "healed_with_time": len(healed),
        },
        "by_outcome": dict(outcomes),
        "by_symptom": dict(Counter(each["symptom"] for each in cases)),
        "per_day": per_day(cases),
        "previous_weeks": [],
        "cases": [dict(each) for each in cases],
        "cases_left_out": 0,
        "not_seen": {
            "nightly_runs_missing": [],
            "files_read": 412,
            "files_unreadable": 0,
            "bytes_read": 81_200_000,
            "bytes_unreadable": 0,
            "records_read": 1_284_019,
            "unknown_code": {},
            "unreadable_files": [],
            "nightly_runs": [nightly(each) for each in DAYS],
            "case_files_unreadable": 0,
            "week_is_over": True,
            "began": "2026-10-01",
            "drill_incidents": 0,
        },
        "times_to_heal": times_to_heal(cases),
        "queue_days": queue_days(cases, DAYS),
        "reached_a_person": reached_a_person(),
        "scanned": scanned(),
        "do_this_week": [],
        "do_this_week_left_out": 0,
    }
    changes["not_seen"] = document["not_seen"] | dict(changes.get("not_seen", {}))  # type: ignore[call-overload]
    return document | changes


def per_day(cases: Sequence[Mapping[str, Any]]) -> list[Document]:
    """The rows of each day by symptom, or its one empty row."""
    rows = []
    for day in DAYS:
        mine = [each for each in cases if each["first_failure"].startswith(f"{day}")]
        for symptom in sorted({each["symptom"] for each in mine}) or [None]:
            here = [each for each in mine if each["symptom"] == symptom]
            calls = sum(it["failed_calls"] for it in here)
            rows.append(
                {
                    "date": str(day),
                    "symptom": symptom,
                    "incidents": len(here),
                    "failed_calls": calls,
                }
            )
    return rows


def earlier(
    *incidents: int,
    healed: int = 0,
    notified: int = 0,
    median_seconds: float | None = None,
    nightly_runs: int = 7,
) -> list[Document]:
    """Weeks before this one, the last of `incidents` being last week's."""
    weeks = range(46 - len(incidents), 46)
    return [
        {
            "week": f"2026-W{number}",
            "incidents": count,
            "failed_calls": 10 * count,
            "healed": healed,
            "notified": notified,
            "median_seconds_to_heal": median_seconds,
            "healed_with_time": 0 if median_seconds is None else healed,
            "nightly_runs": nightly_runs,
        }
        for number, count in zip(weeks, incidents, strict=True)
    ]


def summary(cases: Sequence[Mapping[str, Any]] = (), **changes: object) -> Summary:
    return read(week(cases, **changes))


def busy_week() -> Document:
    """Most things that can be on the page, at once."""
    over = "the need of 1,380 s is above the ceiling of 900 s; raise mendq:max-visibility-seconds"
    cases = [
        incident("invoices", day=3, outcome="escalated", failed_calls=96, reason=over),
        incident("invoices", day=4, outcome="escalated", failed_calls=88, reason=over),
        incident("invoices", day=1, outcome="refused", failed_calls=40, reason=over),
        incident(
            "orders-eu-west-consumer-with-a-name-that-uses-all-of-the-80-characters-it-is-all",
            day=4,
            symptom="access_denied",
            outcome="not_seen",
            why="not_managed",
            error_codes=["AccessDenied"],
        ),
        incident("emails", day=2, symptom="invalid_request", outcome="not_seen", why="count_only"),
        incident("emails", day=6, symptom="unknown:Teapot", outcome="not_seen", why="unknown_code"),
        incident("thumbnails", day=0, symptom="kms_throttled", outcome="observed"),
        *[
            incident("invoices" if n % 3 else "orders", day=n % 5, seconds_to_heal=20.0 + n * n)
            for n in range(16)
        ],
        *[incident("exports", day=4, symptom="kms_throttled", seconds_to_heal=75)] * 3,
    ]
    return week(
        cases,
        previous_weeks=earlier(19, 24, 21, 18, healed=15, notified=1, median_seconds=52.0),
        reached_a_person=reached_a_person(
            notified("invoices", reason=over),
            notified(
                "invoices",
                case_id="visibility_timeout_too_short-1a1b2c3d4e5f",
                opened_at="2026-11-13T14:02:30Z",
                notified_at="2026-11-13T14:02:31Z",
                ended_at="2026-11-13T15:32:31Z",
                seconds_open=5401.0,
                state="closed",
                reason=over,
            ),
            notified(
                "exports-dlq",
                case_id="dlq_messages_arriving-2a1b2c3d4e5f",
                symptom="dlq_messages_arriving",
                opened_at="2026-11-14T04:00:00Z",
                notified_at="2026-11-14T04:00:01Z",
                reason="40 messages are there and no cause is known",
                scanned=True,
            ),
        ),
        scanned=scanned(healed=1, notified=1, dlq_messages_arriving=1, dlq_retention_too_short=1),
        do_this_week=[
            recommendation(queue="invoices", incidents=9, failed_calls=240),
            recommendation("decide", "exports", why="overridden", incidents=3, failed_calls=36),
            recommendation(
                "fix",
                "invoices",
                attribute="",
                before="",
                after="",
                template_line="",
                why="refused",
                incidents=3,
                failed_calls=224,
            ),
        ],
        not_seen={
            "files_unreadable": 2,
            "bytes_unreadable": 1_250_000,
            "unknown_code": {"unknown:Teapot": 12},
            "unreadable_files": [
                {"file": "AWSLogs/123456789012/CloudTrail/us-east-1/2026/11/10/a.json.gz",
                 "reason": "the gzip stream ends early"},
                {"file": "AWSLogs/123456789012/CloudTrail/us-east-1/2026/11/11/b.json.gz",
                 "reason": "not gzip: it begins with <html"},
            ],
        },
    )  # fmt: skip
