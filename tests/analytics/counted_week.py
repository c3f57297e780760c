"""A week of incidents and cases, and its summary: the golden file `week.json`."""

from __future__ import annotations

import json
from datetime import date
from typing import Any

from tests.analytics.week_builders import (
    MONDAY,
    make_case_files,
    make_file_row,
    make_incident,
    make_timeline,
    make_week_summary,
)

WEEK_FILE = "tests/analytics/week.json"


def count_week() -> dict[str, Any]:
    """Return the summary of a week in which failed calls and scans found cases of every outcome.

    Some cases notified people in other weeks as well; the summary counts only those of its week.
    """
    rows = [
        make_incident(1),
        make_incident(
            4, found_by="scan", failed_calls=0, error_codes=[], principals=[], urgent=True
        ),
        make_incident(2, outcome="refused", notified=True, queue_arn="q2", failed_calls=1),
        make_incident(3, outcome="not_seen", symptom="unknown:Teapot", queue_arn="unresolved"),
    ]
    files = [
        make_file_row("a"),
        make_file_row("b", bytes=5, records=0, reason="truncated"),
        make_file_row("c", bytes=7),
    ]
    last_monday = date(2026, 11, 2)
    stopped = ("escalated", "11-10 09:00", "its consumer stopped")
    paging = make_timeline(
        ("proposed", "11-08 09:00", "old"),
        ("applied", "11-09 09:00"),
        ("ineffective", "11-10 09:00", "it shows as before"),
        ("escalated", "11-11 09:00", "no further step"),
        ("closed", "11-17 09:00", "a person closed it"),
        notified=(1, 3, 4),
        queue="paging",
    )
    lives = [
        make_timeline(
            stopped, failed_calls=0, symptom="s", notified=(1,), queue="stopped", urgent=True
        ),
        make_timeline(("escalated", "11-08 09:00"), ("closed", "11-10 09:00"), notified=(1,)),
        make_timeline(("escalated", "11-16 00:00"), notified=(1,)),
        paging,
        make_timeline(("observed", "11-10 09:00"), failed_calls=0, queue="scanned"),
        make_timeline(("verified", "11-10 09:00"), failed_calls=0, queue="found"),
        make_timeline(("observed", "11-08 09:00"), failed_calls=0),
        make_timeline(("observed", "11-10 09:00"), failed_calls=0, first_n=2, queue="begun-before"),
    ]
    return make_week_summary(
        {MONDAY: rows, date(2026, 11, 11): [], last_monday: [make_incident(9, urgent=True)]},
        {MONDAY: files, date(2026, 11, 11): [], last_monday: []},
        case_files=make_case_files(*lives),
    )


def render_week() -> str:
    """Return the text of `week.json` as the summary is now."""
    return json.dumps(count_week(), indent=1) + "\n"
