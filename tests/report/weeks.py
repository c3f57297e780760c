"""Summaries for tests. All of it is made up: no such queue failed in any such week."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from copy import deepcopy
from datetime import UTC, date, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from analytics import week_parts
from mendq.catalogue import CATALOGUE
from mendq.catalogue.symptom import NotifiedSymptom
from mendq.report.drawing import Picture
from mendq.report.links import ReportedAccount
from mendq.report.mail import OutgoingReport
from mendq.report.summary import Summary
from mendq.report.summary import read_summary as read_whole

MONDAY = date(2026, 11, 9)
DAYS = tuple(MONDAY + timedelta(days=days) for days in range(7))
ACCOUNT = "123456789012"
HERE = ReportedAccount("us-east-1", ACCOUNT, docs_url="https://docs.example/mendq/*.html")
REPORT_URI = "s3://reports/report/week=2026-W46/report.html"
Document = dict[str, Any]
Rows = Sequence[Mapping[str, Any]]
# A whole part of each kind, an empty week, and one with most things that a page can have.
_SAMPLES: dict[str, Document] = json.loads(Path(__file__).with_name("samples.json").read_text())
HABITS = {
    symptom.name: symptom.habit
    for symptom in CATALOGUE
    if isinstance(symptom, NotifiedSymptom) and symptom.habit
}
# What a case's pictures are drawn of.
PICTURED = _SAMPLES["pictured"]
NEWER = {"times_to_heal", "queue_days", "reached_a_person", "do_this_week", "habits",
         "do_this_week_left_out", "median_seconds_to_heal", "healed_with_time", "nightly_runs",
         "case_files_unreadable", "week_is_over", "began", "own_incidents", "time_zone",
         "by_found_by", "open_now", "open_now_left_out", "impact", "earned",
         "does_it_help", "found_by", "urgent", "timeline", "visibility"}  # fmt: skip


def make_queue_arn(queue: str) -> str:
    return f"arn:aws:sqs:us-east-1:{ACCOUNT}:{queue}"


def make_incident(
    queue: str = "orders", *, day: int = 0, outcome: str = "healed", **fields: object
) -> Document:
    """A case of the summary; healed ones took 40 s unless told."""
    first = datetime(2026, 11, 9, 14, 2, 11, tzinfo=UTC) + timedelta(days=day)
    symptom = fields.get("symptom", "visibility_timeout_too_short")
    made = {
        "incident_id": f"{queue}-{symptom}-{day}",
        "queue_arn": make_queue_arn(queue),
        "first_failure": f"{first:%FT%TZ}",
        "last_failure": f"{first + timedelta(minutes=7):%FT%TZ}",
        "principals": [f"arn:aws:iam::{ACCOUNT}:role/{queue}-consumer"],
        "outcome": outcome,
        "case_id": None if outcome == "not_seen" else f"{symptom}-0a1b2c3d4e5f",
        "seconds_to_heal": 40.0 if outcome == "healed" else None,
        "notified": outcome == "escalated",
        "urgent": outcome == "escalated",
    }
    return deepcopy(_SAMPLES["incident"]) | made | fields


def make_notified_case(queue: str = "invoices", **fields: object) -> Document:
    """A case that reached a person on Thursday and is still open."""
    return _SAMPLES["notified"] | {"queue_arn": make_queue_arn(queue)} | fields


def make_open_case(queue: str = "invoices", **fields: object) -> Document:
    """A case that paged urgently on Thursday and waits for a person."""
    return deepcopy(_SAMPLES["open_case"]) | {"queue_arn": make_queue_arn(queue)} | fields


def make_recommendation(
    kind: str = "write_into_template", queue: str = "orders", **fields: object
) -> Document:
    """A visibility timeout that Mendq raised and no template knows of."""
    case_id = f"visibility_timeout_too_short-{sha256(queue.encode()).hexdigest()[:12]}"
    made = {"kind": kind, "queue_arn": make_queue_arn(queue), "case_id": case_id}
    return _SAMPLES["recommendation"] | made | fields


def make_nightly_run(day: date, **fields: object) -> Document:
    """A nightly run like the ones before it."""
    return _SAMPLES["nightly"] | {"day": f"{day}"} | fields


def make_previous_weeks(
    *incidents: int, healed: int = 0, notified_count: int = 0, median_seconds: float | None = None,
    nightly_runs: int = 7,
) -> list[Document]:  # fmt: skip
    """Weeks before this one, the last of `incidents` being last week's."""
    sums: Document = {"healed": healed, "notified": notified_count, "nightly_runs": nightly_runs}
    sums |= {"healed_with_time": 0 if median_seconds is None else healed}
    sums |= {"median_seconds_to_heal": median_seconds}
    weeks = []
    for weeks_ago, count in zip(range(len(incidents), 0, -1), incidents, strict=True):
        monday = MONDAY - timedelta(weeks=weeks_ago)
        counts = {"incidents": count, "failed_calls": 10 * count}
        weeks.append({**counts, **sums, "week": f"{monday:%G-W%V}"})
    return weeks


def make_reached_a_person(*cases: Document, left_out: int = 0) -> Document:
    return {"cases": [*cases], "cases_left_out": left_out, "total": len(cases) + left_out}


def make_times_to_heal(symptom: str, *seconds: float) -> Document:
    """A symptom's times to heal."""
    rows = (
        {"outcome": "healed", "symptom": symptom, "seconds_to_heal": time_seconds}
        for time_seconds in seconds
    )
    (made,) = week_parts.list_times_to_heal(rows)
    return made


def make_queue_days(cases: Rows) -> Document:
    """The queues of `cases`, day by day."""
    return week_parts.make_queue_days(_group_by_day(cases))


def _group_by_day(cases: Rows) -> dict[date, Rows]:
    by_day: dict[date, Rows] = {}
    for day in DAYS:
        by_day[day] = [case for case in cases if case["first_failure"].startswith(f"{day}")]
    return by_day


def make_week(cases: Rows = (), **changes: object) -> Document:
    """A whole summary.json around `cases`; `changes` replace fields, `not_seen` is merged.

    Nobody was paged and there is nothing to do, unless told.
    """
    document = deepcopy(_SAMPLES["week"])
    document |= {
        "totals": week_parts.count_totals(cases) | {"queues": week_parts.count_named_queues(cases)},
        "by_found_by": week_parts.count_texts(case["found_by"] for case in cases),
        "by_outcome": week_parts.count_texts(case["outcome"] for case in cases),
        "by_symptom": week_parts.count_texts(case["symptom"] for case in cases),
        "habits": HABITS,
        "per_day": [
            row
            for day, mine in _group_by_day(cases).items()
            for row in week_parts.make_day_rows(day, mine)
        ],
        "cases": [dict(case) for case in cases],
        "times_to_heal": week_parts.list_times_to_heal(cases),
        "queue_days": make_queue_days(cases),
    }
    document["not_seen"]["nightly_runs"] = [make_nightly_run(day) for day in DAYS]
    changes["not_seen"] = document["not_seen"] | dict(changes.get("not_seen", {}))  # type: ignore[call-overload]
    return document | changes


def read_document(document: Document) -> Summary:
    return read_whole(json.dumps(document).encode())


def make_outgoing_report(document: Document, attached: str = "") -> OutgoingReport:
    """Return the mail of a summary; `attached` is the HTML page that goes with the mail."""
    summary = read_document(document)
    return OutgoingReport(summary, REPORT_URI, HERE, "reports@example.com", attached)


def make_summary(cases: Rows = (), **changes: object) -> Summary:
    return read_document(make_week(cases, **changes))


def make_busy_week() -> Document:
    """Most things that can be on the page, at once."""
    return deepcopy(_SAMPLES["busy_week"]) | {"habits": HABITS}


def make_member(number: int, **fields: object) -> Document:
    """A stack of an organization that told of every day."""
    counts = {"incidents": 12 - number % 12, "failed_calls": 90, "healed": 3, "urgent": 0}
    odd = {"waiting": 0, "rows_left_out": 0, "files_unreadable": 0}
    named = {"account": f"{111_111_111_111 + number}", "alias": f"team-{number}-prod"}
    told = {"state": "reported", "last_day": f"{DAYS[-1]}", "region": "eu-west-1"}
    return {**named, **told, **counts, **odd, **fields}


def make_organization_week(members: int = 40, **changes: Any) -> Document:
    """Make a week of `members` accounts: one unreliable, one silent, one late."""
    nothing = dict.fromkeys(("incidents", "failed_calls", "healed"), 0)
    told = [
        make_member(0, waiting=2, urgent=1, rows_left_out=3, files_unreadable=1),
        make_member(1, alias="", state="late", last_day=f"{DAYS[3]}"),
        make_member(2, state="silent", last_day=None, **nothing),
        *map(make_member, range(3, members)),
    ]
    named = {"account": told[0]["account"], "region": "eu-west-1"}
    queues = [
        {
            **named,
            "queue_arn": f"arn:aws:sqs:eu-west-1:{named['account']}:{name}",
            "symptom": "dlq_messages_waiting",
            "outcome": "escalated",
            "incidents": 1,
            "failed_calls": n * 40,
            "urgent": not n,
        }
        for n, name in enumerate(("invoices", "exports"))
    ]
    sums = ("incidents", "failed_calls", "healed", "urgent", "waiting", "rows_left_out")
    totals = {}
    for name in (*sums, "files_unreadable"):
        totals[name] = sum(member[name] for member in told)
    totals |= {"accounts": members, "silent": 1, "late": 1}
    file = "account=111111111111/region=eu-west-1/incidents/week=2026-W46/2026-11-10.parquet"
    unreadable = [{"file": file, "reason": "unreadable"}]
    of_all = {"totals": totals, "members": told, "members_left_out": 0}
    document = make_week(**changes) if changes else make_busy_week()
    lists = {"queues": queues, "unreadable_files": unreadable}
    return document | {
        "organization": of_all | lists,
        "standing": [*map(make_standing_value, range(3))],
    }


def make_standing_value(number: int = 0, **fields: object) -> Document:
    """A value that Mendq set so many weeks ago."""
    queue = f"orders-{number}"
    set_at = datetime(2026, 11, 12, 9, tzinfo=UTC) - timedelta(weeks=3 * (2 - number))
    case = {
        "symptom": "visibility_timeout_too_short",
        "case_id": f"visibility_timeout_too_short-{number:012x}",
    }
    value = {"attribute": "VisibilityTimeout", "before": "30", "after": "690", "owner": ""}
    return {
        "queue_arn": make_queue_arn(queue),
        **case,
        **value,
        "set_at": set_at.isoformat(),
        **fields,
    }


def make_scan_only_week() -> Document:
    """Three cases that scans opened, one of which paged at night; no call failed."""
    found: Document = {
        "found_by": "scan", "failed_calls": 0, "error_codes": [], "principals": [],
        "symptom": "dlq_messages_waiting",
    }  # fmt: skip
    reason = "40 messages are there and no cause is known"
    names = ("orders", "exports", "emails")
    cases = [
        make_incident(name, outcome="escalated", day=n, urgent=not n, reason=reason, **found)
        | {"case_id": f"dlq_messages_waiting-{n:012x}"}
        for n, name in enumerate(names)
    ]
    waiting = [
        make_open_case(
            f"{name}-dlq",
            symptom="dlq_messages_waiting",
            code="",
            urgent=not n,
            reason=reason,
            case_id=f"dlq_messages_waiting-{n:012x}",
            backlog=40 + n,
            next_step={
                "sentence": "Read one of the messages.",
                "command": "",
                "runbook": "docs/runbooks/dlq_messages_waiting.md",
            },
        )
        for n, name in enumerate(names)
    ]
    paged = [
        make_notified_case(
            f"{name}-dlq",
            symptom="dlq_messages_waiting",
            reason=reason,
            scanned=True,
            case_id=f"dlq_messages_waiting-{n:012x}",
        )
        for n, name in enumerate(names)
    ]
    made = make_week(
        cases, open_now=waiting, previous_weeks=make_previous_weeks(3, 2, notified_count=2)
    )
    made["reached_a_person"] = make_reached_a_person(*paged)
    made["totals"] |= {"urgent_notifications": 1, "out_of_hours": 1}
    return made


def drop_newer_fields(value: Any) -> Any:
    """A document as an older Mendq wrote it."""
    if isinstance(value, list):
        return [drop_newer_fields(item) for item in value]
    if not isinstance(value, dict):
        return value
    old = value.keys() - NEWER - ({"reason"} if "incident_id" in value else set())
    return {name: drop_newer_fields(value[name]) for name in value if name in old}


def make_largest_week() -> Document:
    """50 incidents with long names of 10,000, and of everything as much as a summary lists."""
    long = "a-queue-whose-name-uses-all-of-the-80-characters-that-sqs-lets-a-queue-s-name-"
    names = [f"{long}{n:02}" for n in range(20)]
    why = "the need of 1,380 s is above the ceiling of 900 s; " * 8
    outcomes = ["escalated", "refused", "healed", "not_seen", "observed"] * 10
    cases = [
        make_incident(
            names[n % 20], day=n % 7, outcome=outcome, reason=f"{n}: {why}", failed_calls=9_000 - n
        )
        for n, outcome in enumerate(outcomes)
    ]
    ends = [None] * 14 + ["2026-11-13T09:00:00Z"] * 36
    paged = (
        make_notified_case(names[n % 20], reason=why, ended_at=end) for n, end in enumerate(ends)
    )
    symptoms = [f"unknown:A{n}" * 4 for n in range(32)]
    seconds = [(10 + n * 97) ** 1.7 for n in range(200)]
    return make_week(
        cases,
        cases_left_out=9_950,
        per_day=[
            {"date": f"{day}", "symptom": symptom, "incidents": 40 - n, "failed_calls": 900}
            for day in DAYS
            for n, symptom in enumerate(symptoms)
        ],
        times_to_heal=[make_times_to_heal(symptom, *seconds) for symptom in symptoms],
        reached_a_person=make_reached_a_person(*paged, left_out=350),
        do_this_week=[
            make_recommendation("fix", name, reason=why, why="refused") for name in names[:10]
        ],
        do_this_week_left_out=312,
        open_now=[
            make_open_case(
                names[n % 20], reason=why, case_id=f"visibility_timeout_too_short-{n:012x}"
            )
            for n in range(50)
        ],
        open_now_left_out=350,
    )


def stub_pictures(patch: pytest.MonkeyPatch) -> None:
    """Pictures hold no name, as their own tests show, and drawing them takes longest."""
    blank = Picture("data:image/svg+xml;base64,QQ==", 1, 1)
    patch.setattr("mendq.report.drawing.make_picture", lambda _: blank)
    patch.setattr("mendq.report.mail.make_png", lambda _: b"a picture")
    for chart in (
        "html_page.make_days_chart",
        "mail.make_days_chart",
        "times.make_strip_chart",
        "times.make_axis_chart",
        "html_page.make_sparkline_chart",
    ):
        patch.setattr(f"mendq.report.{chart}", lambda *_: None)
