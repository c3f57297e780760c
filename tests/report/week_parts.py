"""The newer parts of a made-up summary: times, queues by day, pages, scans, recommendations,
nightly runs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import date
from math import ceil
from typing import Any

Document = dict[str, Any]
Rows = Sequence[Mapping[str, Any]]
ACCOUNT = "123456789012"
NEWER = ("times_to_heal", "queue_days", "reached_a_person", "scanned", "do_this_week")
NEWER_NUMBERS = ("median_seconds_to_heal", "healed_with_time", "nightly_runs")
NEWER_OF_READING = (
    "nightly_runs",
    "case_files_unreadable",
    "week_is_over",
    "began",
    "drill_incidents",
)


def arn(queue: str) -> str:
    return f"arn:aws:sqs:us-east-1:{ACCOUNT}:{queue}"


def times_to_heal(cases: Rows) -> list[Document]:
    """What the healed of `cases` took, by symptom."""
    by_symptom: dict[str, list[float]] = defaultdict(list)
    for each in cases:
        if each["outcome"] == "healed" and isinstance(each["seconds_to_heal"], int | float):
            by_symptom[each["symptom"]].append(each["seconds_to_heal"])
    return sorted(
        (times(symptom, *seconds) for symptom, seconds in by_symptom.items()),
        key=lambda each: (-each["incidents"], each["symptom"]),
    )


def times(symptom: str, *seconds: float) -> Document:
    """A symptom's times to heal."""
    ranked = sorted(seconds)
    return {
        "symptom": symptom,
        "incidents": len(ranked),
        "median_seconds": _nearest_rank(ranked, 0.5),
        "p90_seconds": _nearest_rank(ranked, 0.9) if len(ranked) >= 5 else None,
        "seconds": ranked[:200],
    }


def _nearest_rank(ranked: Sequence[float], share: float) -> float | None:
    return ranked[ceil(share * len(ranked)) - 1] if ranked else None


def queue_days(cases: Rows, days: Sequence[date]) -> Document:
    """The queues of `cases`, day by day."""
    queues = [_queue_week(each, cases, days) for each in {each["queue_arn"] for each in cases}]
    queues.sort(
        key=lambda each: (-sum(each["incidents"]), -each["failed_calls"], each["queue_arn"])
    )
    return {
        "queues": queues[:20],
        "queues_left_out": len(queues[20:]),
        "incidents_left_out": sum(sum(each["incidents"]) for each in queues[20:]),
    }


def _queue_week(queue_arn: str, cases: Rows, days: Sequence[date]) -> Document:
    mine = [each for each in cases if each["queue_arn"] == queue_arn]
    return {
        "queue_arn": queue_arn,
        "incidents": [
            sum(each["first_failure"].startswith(f"{day}") for each in mine) for day in days
        ],
        "failed_calls": sum(each["failed_calls"] for each in mine),
        "not_healed": sum(each["outcome"] not in {"healed", "approved"} for each in mine),
    }


def notified(queue: str = "invoices", **fields: object) -> Document:
    """A case that reached a person on Thursday and is still open."""
    return {
        "case_id": "visibility_timeout_too_short-0a1b2c3d4e5f",
        "queue_arn": arn(queue),
        "symptom": "visibility_timeout_too_short",
        "state": "escalated",
        "opened_at": "2026-11-12T14:02:30Z",
        "notified_at": "2026-11-12T14:02:31Z",
        "pages": 1,
        "reason": "the need of 1,380 s is above the ceiling of 900 s",
        "ended_at": None,
        "seconds_open": None,
        "scanned": False,
        **fields,
    }


def reached_a_person(*cases: Document, left_out: int = 0) -> Document:
    return {"cases": [*cases], "cases_left_out": left_out, "total": len(cases) + left_out}


def scanned(healed: int = 0, notified: int = 0, **by_symptom: int) -> Document:
    """Cases that a scan opened."""
    return {
        "cases": sum(by_symptom.values()),
        "by_symptom": by_symptom,
        "healed": healed,
        "notified": notified,
    }


def recommendation(
    kind: str = "write_into_template", queue: str = "orders", **fields: object
) -> Document:
    """A visibility timeout that Mendq raised and the next deployment would lower again."""
    return {
        "kind": kind,
        "queue_arn": arn(queue),
        "symptom": "visibility_timeout_too_short",
        "attribute": "VisibilityTimeout",
        "before": "460",
        "after": "690",
        "template_line": "VisibilityTimeout: 690",
        "owner": "",
        "command": f"mendq show visibility_timeout_too_short-{queue} --region us-east-1",
        "why": "verified",
        "case_id": f"visibility_timeout_too_short-{queue}",
        "incidents": 4,
        "failed_calls": 120,
        "queues": 1,
        "reason": "it needs 1.2 x 575 s, which its consumer's timeout names",
        "remedy": "Raise VisibilityTimeout to what a Lambda consumer or a tag names.",
        **fields,
    }


def nightly(day: date, **fields: object) -> Document:
    """A nightly run like the ones before it."""
    return {
        "day": f"{day}",
        "reader": "native",
        "why_fallback": "",
        "records": 183_431,
        "usual_records": 181_000,
        "verdict": "read",
        **fields,
    }


def without_newer(document: Document) -> Document:
    """As an older Mendq wrote it."""
    older = {name: each for name, each in document.items() if name not in NEWER}
    older.pop("do_this_week_left_out", None)
    older["totals"] = _older(document["totals"])
    older["previous_weeks"] = [_older(each) for each in document["previous_weeks"]]
    older["cases"] = [
        {name: each for name, each in case.items() if name != "reason"}
        for case in document["cases"]
    ]
    not_seen = dict(document["not_seen"])
    for name in NEWER_OF_READING:
        not_seen.pop(name, None)
    return older | {"not_seen": not_seen}


def _older(sums: Mapping[str, Any]) -> Document:
    return {name: each for name, each in sums.items() if name not in NEWER_NUMBERS}
