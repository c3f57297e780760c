from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from functions.report.read_summary import read
from functions.report.verdict import headline, verdict_text
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
        (of("healed"), {}, "1 incident: healed without a page."),
        (of("healed", "healed"), {}, "2 incidents: both healed without a page."),
        (of("healed", "healed", "healed"), {}, "3 incidents: all healed without a page."),
        (of("refused"), {}, "1 incident: not healed, 1 refused."),
        (
            of("refused", "expired"),
            {},
            "2 incidents: none healed, 1 refused, 1 expired without an answer.",
        ),
        (
            of("applied", "refused"),
            {},
            "2 incidents: none healed, 1 changed but not verified yet, 1 refused.",
        ),
        (of("healed", "refused"), {}, "2 incidents: 1 healed without a page, 1 refused."),
        (of("escalated"), {}, "1 incident: not healed, 1 paged a person."),
        (
            of("healed", "escalated", "escalated"),
            {},
            "3 incidents: 1 healed without a page, 2 paged a person.",
        ),
        (
            of("observed", "observed"),
            {},
            "2 incidents: none healed, 2 only observed (mode observe).",
        ),
        (
            of("healed", "healed"),
            {"nights_missing": ["2026-11-10", "2026-11-11"]},
            "2 incidents in the 5 days that were read: both healed without a page.",
        ),
    ],
)
def test_the_headline(cases: list[Any], not_seen: dict[str, Any], said: str) -> None:
    assert headline(summary(cases, not_seen=not_seen)) == said


def test_ten_thousand_incidents_are_counted_from_the_totals() -> None:
    totals = {"incidents": 10_000, "failed_calls": 1, "queues": 9, "healed": 9_990, "paged": 10}
    assert headline(summary(of("escalated"), totals=totals)) == (
        "10,000 incidents: 9,990 healed without a page, 10 paged a person."
    )


def test_the_text_has_the_verdict_first_and_then_the_figures() -> None:
    lines = verdict_text(read(busy_week())).split("\n")
    assert lines[0] == "Mendq, week 46 of 2026 (9 to 15 Nov 2026, UTC)"
    assert lines[1].startswith("26 incidents: 19 healed without a page")
    assert lines[2] == "invoices stands out: 3 of its 13 incidents were not healed."
    assert lines[3].startswith("Why: lease_expired, 224 failed calls: the need of 1,380 s")
    starts = [each.partition(":")[0] for each in lines[4:]]
    assert starts == [
        "Incidents",
        "Healed without a page",
        "Reached a person",
        "Failed calls",
        "Read",
    ]


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
