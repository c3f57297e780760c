from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from functions.report.names import plain
from functions.report.read_summary import read
from functions.report.verdict import headline, others, verdict_text
from tests.functions.report.hostile import hostile_weeks
from tests.functions.report.weeks import DAYS, busy_week, incident, summary

NOTHING = {"files_read": 0, "bytes_read": 0, "records_read": 0}
NO_NIGHT = {"nights_missing": [f"{each}" for each in DAYS]}


def of(*outcomes: str) -> list[Any]:
    return [incident(f"q{n}", outcome=each) for n, each in enumerate(outcomes)]


@pytest.mark.parametrize(
    ("cases", "not_seen", "said"),
    [
        ([], {}, "No incidents this week."),
        ([], {"nights_missing": ["2026-11-10"]}, "No incidents in the 6 days that were read."),
        (
            [],
            {"nights_missing": NO_NIGHT["nights_missing"][1:]},
            "No incidents in the 1 day that was read.",
        ),
        ([], NOTHING, "Nothing was read this week: whether there were incidents is not known."),
        ([], NO_NIGHT, "Nothing was read this week: whether there were incidents is not known."),
        (of("healed"), {}, "1 incident, healed before anyone was paged."),
        (of("healed", "healed"), {}, "2 incidents, both healed before anyone was paged."),
        (of(*["healed"] * 3), {}, "3 incidents, all healed before anyone was paged."),
        (of("refused"), {}, "1 incident, not healed before anyone was paged."),
        (of("refused", "expired"), {}, "2 incidents, none healed before anyone was paged."),
        (of("healed", "refused"), {}, "2 incidents, 1 healed before anyone was paged."),
        (
            of("healed", "healed"),
            {"nights_missing": ["2026-11-10", "2026-11-11"]},
            "2 incidents in the 5 days that were read, both healed before anyone was paged.",
        ),
    ],
)
def test_the_headline(cases: list[Any], not_seen: dict[str, Any], said: str) -> None:
    assert headline(summary(cases, not_seen=not_seen)) == said


@pytest.mark.parametrize(
    ("cases", "said"),
    [
        ([], ""),
        (of("healed", "healed"), ""),
        (of("refused"), "What became of it: 1 refused."),
        (of("refused", "expired"), "What became of them: 1 refused, 1 expired without an answer."),
        (
            of("applied", "refused"),
            "What became of them: 1 changed but not verified yet, 1 refused.",
        ),
        (of("healed", "refused"), "The other: 1 refused."),
        (of("healed", "escalated", "escalated"), "The other 2: 2 paged a person."),
        (of("observed", "observed"), "What became of them: 2 only observed (mode observe)."),
        (of("healed", "a_word"), "The other: 1 a_word."),
    ],
)
def test_what_became_of_the_others(cases: list[Any], said: str) -> None:
    assert plain(others(summary(cases))) == said


def test_ten_thousand_incidents_are_counted_from_the_totals() -> None:
    totals = {"incidents": 10_000, "failed_calls": 1, "queues": 9, "healed": 9_990, "paged": 10}
    week = summary(of("escalated"), totals=totals)
    assert headline(week) == "10,000 incidents, 9,990 healed before anyone was paged."
    assert others(week) == "The other 10: 10 paged a person."


def test_the_text_has_the_verdict_first_and_then_the_figures() -> None:
    lines = verdict_text(read(busy_week())).split("\n")
    assert lines[0] == "Mendq, week 46 of 2026 (9 to 15 Nov 2026, UTC)"
    assert lines[1] == (
        "26 incidents, 19 healed before anyone was paged. The other 7: 1 only observed "
        "(mode observe), 1 refused, 3 without a case, 2 paged a person."
    )
    assert lines[2] == (
        "invoices keeps outrunning its lease: 13 of 19 lease_expired incidents came from it."
    )
    assert lines[3].startswith("Why: 3 of its 13 incidents were not healed. lease_expired, 224")
    assert lines[4] == (
        "Do first: Set VisibilityTimeout of invoices to 690 s in its template. "
        "Behind 9 incidents with 240 failed calls this week."
    )
    starts = [each.partition(":")[0] for each in lines[5:]]
    assert starts == ["Incidents", "Healed without a page", "Paged a person", "Read"]


def test_a_week_in_which_nothing_was_read_gives_no_figures() -> None:
    assert verdict_text(summary(not_seen=NOTHING | NO_NIGHT)) == (
        "Mendq, week 46 of 2026 (9 to 15 Nov 2026, UTC)\n"
        "Nothing was read this week: whether there were incidents is not known.\n"
        "Read: No night of the week was read. There was no trail file to read."
    )


@given(hostile_weeks())
def test_whatever_the_names_say_the_text_is_a_few_plain_lines(document: dict[str, Any]) -> None:
    text = verdict_text(read(document))
    lines = text.split("\n")
    assert len(lines) <= 9
    assert all(line.isprintable() and line for line in lines)
    assert "://" not in text
    assert len(text.encode()) < 8_000
