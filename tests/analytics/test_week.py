"""summary.json, from rows and cases to the document."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analytics.week import CasesSeen, Observation, summary
from analytics.week_parts import NightlyRows
from analytics.weekly import as_json
from mendq.nightly.verdict import NightlyRead
from mendq.report.read_summary import read
from tests.analytics.week_authored import (
    DAYS,
    MADE_AT,
    MONDAY,
    WEEK,
    arn,
    file,
    incident,
    life,
    nightly,
)


def made(
    nightly_runs: dict[date, NightlyRows], **earlier: dict[date, NightlyRows]
) -> dict[str, Any]:
    weeks = {week.replace("_", "-"): rows for week, rows in earlier.items()}
    return summary(WEEK, Observation(nightly_runs, weeks), MADE_AT)


def test_a_week_without_nightly_runs_says_so_and_counts_nothing() -> None:
    document = made({})
    missing = document["not_seen"]["nightly_runs_missing"]
    assert [row["date"] for row in document["per_day"]] == missing
    assert {row["symptom"] for row in document["per_day"]} == {None}
    assert set(document["totals"].values()) == {0, None}
    assert document["previous_weeks"] == document["cases"] == document["accounts"] == []


def test_a_week_is_counted() -> None:
    rows = [
        incident(1),
        incident(2, outcome="refused", notified=True, queue_arn="q2", failed_calls=1),
        incident(3, outcome="not_seen", symptom="unknown:Teapot", queue_arn="unresolved"),
    ]
    files = [file("a"), file("b", bytes=5, records=0, reason="truncated"), file("c", bytes=7)]
    document = made(
        {MONDAY: NightlyRows(rows, files), date(2026, 11, 11): NightlyRows([], [])},
        **{"2026_W44": {}, "2026_W45": {date(2026, 11, 2): NightlyRows([incident(9)], [])}},
    )
    expected = json.loads(Path(__file__).with_name("week.json").read_text())
    assert json.loads(json.dumps(document)) == expected
    read(as_json(document))


DRILL = arn("mendq-drill-0123abcd.fifo")


def test_drills_are_counted_apart_and_nowhere_else() -> None:
    rows = [
        incident(1),
        incident(2, queue_arn=DRILL, outcome="escalated", symptom="drilled"),
        incident(3, queue_arn=arn("x-mendq-drill-1")),
    ]
    lives = [
        life(("escalated", "11-10 09:00"), queue="mendq-drill-0123abcd.fifo", notified=(1,)),
        life(("escalated", "11-10 09:00"), queue="mendq-drill-1", notified=(1,), failed_calls=0),
    ]
    last_monday = date(2026, 11, 2)
    seen = Observation(
        {MONDAY: nightly(*rows)}, {"2026-W45": {last_monday: nightly(*rows)}}, CasesSeen(lives)
    )
    document = summary(WEEK, seen, MADE_AT)
    assert document["not_seen"]["drill_incidents"] == 1
    assert document["totals"]["incidents"] == document["previous_weeks"][0]["incidents"] == 2
    assert (document["reached_a_person"]["total"], document["scanned"]["cases"]) == (0, 0)
    assert document["do_this_week"] == []
    assert "drilled" not in document["by_symptom"]
    assert DRILL not in json.dumps(document)
    assert document["by_outcome"] == {"healed": 2}


READ = NightlyRead(MONDAY, MADE_AT, "native", "", files=1, records=9)


def test_an_earlier_week_says_how_many_of_its_nightly_runs_are_whole() -> None:
    before = [MONDAY - timedelta(days=back) for back in range(1, 8)]
    reads = {day: replace(READ, day=day) for day in before[:4]}
    reads[before[0]] = replace(READ, day=before[0], made_at=MADE_AT - timedelta(days=8, hours=4))
    earlier = {day: nightly() for day in before[:5]}
    document = summary(WEEK, Observation({}, {"2026-W45": earlier}, reads=reads), MADE_AT)
    assert [each["nightly_runs"] for each in document["previous_weeks"]] == [4]


@pytest.mark.parametrize(
    ("made_at", "scheduled_at", "tables", "is_over"),
    [
        (timedelta(hours=-9), None, True, False),
        (timedelta(hours=1), None, False, False),
        (timedelta(hours=1), None, True, True),
        (timedelta(hours=6), None, False, True),
        (timedelta(hours=-9), timedelta(hours=6), False, True),
        (timedelta(hours=1), timedelta(hours=1), False, True),
        (timedelta(hours=6), timedelta(hours=-9), True, False),
    ],
)
def test_a_week_says_whether_it_is_over(
    made_at: timedelta, scheduled_at: timedelta | None, *, tables: bool, is_over: bool
) -> None:
    ended = datetime(2026, 11, 16, tzinfo=UTC)
    scheduled = None if scheduled_at is None else ended + scheduled_at
    nightly_runs = {DAYS[6]: nightly()} if tables else {}
    document = summary(WEEK, Observation(nightly_runs), ended + made_at, scheduled)
    assert document["not_seen"]["week_is_over"] is is_over


def test_the_last_nightly_of_another_day_is_not_the_weeks_last() -> None:
    early = datetime(2026, 11, 15, 2, tzinfo=UTC)
    reads = {DAYS[6]: replace(READ, day=DAYS[6], made_at=early, files=0, records=0)}
    at = datetime(2026, 11, 16, 1, tzinfo=UTC)
    document = summary(WEEK, Observation({DAYS[6]: nightly()}, reads=reads), at)
    assert document["not_seen"]["week_is_over"] is False
    assert document["not_seen"]["nightly_runs"][6]["verdict"] == "partial"


def test_a_case_says_why_of_the_listed_incidents() -> None:
    case = life(("applied", "11-10 09:00", "first"), ("verified", "11-10 10:00", "r" * 2_000))
    rows = [incident(1, case_id=case.newest.case_id), incident(2, case_id="older"), incident(3)]
    rows[2] |= {"outcome": "not_seen", "case_id": None}
    seen = Observation({MONDAY: nightly(*rows)}, cases=CasesSeen([case]))
    reasons = {
        each["incident_id"]: each["reason"] for each in summary(WEEK, seen, MADE_AT)["cases"]
    }
    assert reasons == {"i001": "r" * 997 + "...", "i002": "", "i003": ""}
    unasked = summary(WEEK, Observation({MONDAY: nightly(*rows)}), MADE_AT)
    assert {each["reason"] for each in unasked["cases"]} == {""}


def test_cases_are_worst_first_and_few() -> None:
    rows = [incident(number, failed_calls=number) for number in range(60)]
    rows[7] |= {"outcome": "escalated"}
    rows[8] |= {"outcome": "approved"}
    document = made({MONDAY: NightlyRows(rows, [])})
    assert [row["failed_calls"] for row in document["cases"][:3]] == [7, 59, 58]
    assert (len(document["cases"]), document["cases_left_out"]) == (50, 10)
    assert document["totals"]["healed"] == 58, "an approved one is not healed by itself"
    assert document["cases"][0]["first_failure"] == "2026-11-09T09:00:07Z"


OF_CASES = {"reached_a_person", "scanned", "do_this_week", "do_this_week_left_out"}


def test_a_case_bucket_without_cases_is_another_thing_than_none() -> None:
    document = summary(WEEK, Observation(), MADE_AT)
    assert not OF_CASES & set(document)
    assert "case_files_unreadable" not in document["not_seen"]
    assert not read(as_json(document)).cases_were_read
    document = summary(WEEK, Observation(cases=CasesSeen(files_unreadable=2)), MADE_AT)
    assert set(document) >= OF_CASES
    assert document["not_seen"]["case_files_unreadable"] == 2
    assert read(as_json(document)).cases_were_read


HOSTILE = "<script>\u202e\x00\ud800{{7*7}}\r\n${jndi:ldap://x}"


def test_hostile_text_goes_through_and_can_be_written_and_read() -> None:
    hostile = life(
        ("escalated", "11-10 09:00", HOSTILE),
        notified=(1,),
        steps=[(HOSTILE, HOSTILE, HOSTILE)],
        case_id="x; rm -rf ~",
    )
    document = summary(WEEK, Observation(cases=CasesSeen([hostile])), MADE_AT)
    content = json.dumps(document, indent=1).encode()
    (notified,) = read(content).reached_a_person.cases
    assert notified.reason == HOSTILE.replace("\ud800", "\\ud800")
    (recommendation,) = read(content).do_this_week
    assert recommendation.command == "mendq show 'x; rm -rf ~' --region us-east-1"
    assert recommendation.template_line.isprintable()


def _row(
    day: int, queue: int, outcome: str, failed_calls: int, seconds: float | None
) -> tuple[int, dict[str, Any]]:
    known: dict[str, Any] = {
        "outcome": outcome,
        "failed_calls": failed_calls,
        "queue_arn": arn(f"q{queue:02}"),
    }
    return day, incident(**known, seconds_to_heal=seconds if outcome == "healed" else None)


ROWS = st.lists(
    st.builds(
        _row,
        st.integers(0, 6),
        st.integers(0, 40),
        st.sampled_from(["healed", "refused", "not_seen"]),
        st.integers(1, 500),
        st.none() | st.floats(0, 1e6),
    ),
    max_size=120,
)


@settings(max_examples=60)
@given(ROWS)
def test_sums_add_up(rows: list[tuple[int, dict[str, Any]]]) -> None:
    nightly_runs = {
        MONDAY + timedelta(days=day): nightly(*(row for its, row in rows if its == day))
        for day in range(7)
    }
    document = summary(WEEK, Observation(nightly_runs), MADE_AT)
    total = len(rows)
    assert document["totals"]["incidents"] == total
    assert sum(document["by_outcome"].values()) == total
    assert sum(document["by_symptom"].values()) == total
    assert sum(row["incidents"] for row in document["per_day"]) == total
    by_queue = document["queue_days"]
    listed = [sum(queue["incidents"]) for queue in by_queue["queues"]]
    assert sum(listed) + by_queue["incidents_left_out"] == total
    assert len(listed) + by_queue["queues_left_out"] == document["totals"]["queues"]
    assert listed == sorted(listed, reverse=True)
    by_day = Counter(day for day, _ in rows)
    if not by_queue["queues_left_out"]:
        for day in range(7):
            assert sum(each["incidents"][day] for each in by_queue["queues"]) == by_day[day]
    times = document["times_to_heal"]
    assert sum(each["incidents"] for each in times) == document["totals"]["healed_with_time"]
    assert document["totals"]["healed_with_time"] <= document["totals"]["healed"]
    read(as_json(document))
