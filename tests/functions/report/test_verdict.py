from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from functions.healing.states import State
from functions.report.outcomes import OUTCOMES
from functions.report.read_summary import read
from functions.report.summary import MENDED
from functions.report.verdict import headline, others, verdict_text
from functions.report.words import plain
from tests.functions.report.hostile import hostile_weeks
from tests.functions.report.week_parts import deed
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
        (of("healed"), {}, "1 incident, healed, and nobody was paged."),
        (of("healed", "healed"), {}, "2 incidents, both healed, and nobody was paged."),
        (of(*["healed"] * 3), {}, "3 incidents, all healed, and nobody was paged."),
        (of("refused"), {}, "1 incident, not healed."),
        (of("refused", "expired"), {}, "2 incidents, none healed."),
        (of("escalated", "escalated"), {}, "2 incidents, none healed."),
        (of("healed", "refused"), {}, "2 incidents, 1 healed, and nobody was paged."),
        (of("healed", "escalated"), {}, "2 incidents, 1 healed before anyone was paged."),
        (of("approved"), {}, "1 incident, healed after approval."),
        (of("approved", "approved"), {}, "2 incidents, both healed after approval."),
        (of("approved", "refused"), {}, "2 incidents, 1 healed after approval."),
        (
            of("approved", "healed", "healed", "escalated"),
            {},
            "4 incidents, 3 healed, 1 of them after approval.",
        ),
        (
            [incident(paged=True), incident(day=1)],
            {},
            "2 incidents, both healed.",
        ),
        (
            of("healed", "healed"),
            {"nights_missing": ["2026-11-10", "2026-11-11"]},
            "2 incidents in the 5 days that were read, both healed, and nobody was paged.",
        ),
        ([], {"week_is_over": False}, "No incidents so far this week."),
        (
            [],
            {"week_is_over": False, "nights_missing": ["2026-11-15"]},
            "No incidents so far in the 6 days that were read.",
        ),
        (
            of("healed"),
            {"week_is_over": False, "nights_missing": ["2026-11-14", "2026-11-15"]},
            "1 incident so far in the 5 days that were read, healed, and nobody was paged.",
        ),
        (
            [],
            NOTHING | {"week_is_over": False},
            "Nothing was read this week so far: whether there were incidents is not known.",
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
        (of("healed", "approved", "refused"), "The other: 1 refused."),
        (of("healed", "approved"), ""),
        (
            of("healed", "escalated", "escalated"),
            "The other 2: 2 left to a person; 2 of the 3 paged a person.",
        ),
        (of("escalated"), "What became of it: 1 left to a person; it paged a person."),
        (
            of("escalated", "escalated"),
            "What became of them: 2 left to a person; both paged a person.",
        ),
        (
            of(*["escalated"] * 3),
            "What became of them: 3 left to a person; all 3 paged a person.",
        ),
        ([incident(paged=True), incident(day=1)], "1 of the 2 paged a person."),
        ([incident(outcome="approved", paged=True)], "It paged a person."),
        (of("healed", "a_word"), "The other: 1 a_word."),
    ],
)
def test_what_became_of_the_others(cases: list[Any], said: str) -> None:
    assert plain(others(summary(cases))) == said


@pytest.mark.parametrize(
    ("outcome", "words"),
    [
        ("applied", "changed but not verified yet"),
        ("observed", "only observed (mode observe)"),
        ("proposed", "waiting for approval"),
        ("refused", "refused"),
        ("declined", "declined"),
        ("expired", "expired without an answer"),
        ("ineffective", "changed without effect"),
        ("contested", "left to whoever changed it back"),
        ("rolled_back", "rolled back"),
        ("escalated", "left to a person"),
        ("not_seen", "without a case"),
    ],
)
def test_each_outcome_has_its_words(outcome: str, words: str) -> None:
    cases = [incident(outcome=outcome, paged=False), incident(day=1)]
    assert plain(others(summary(cases))) == f"The other: 1 {words}."


def test_the_words_are_the_outcomes_of_the_night() -> None:
    states = {*map(str, State)} - {"applied_unproven", "verified", "watching", "closed"}
    assert {*OUTCOMES, *MENDED} == states | {"healed", "not_seen"}


def test_nobody_is_lost_where_others_paged_than_were_escalated() -> None:
    cases = [
        *(incident(f"p{n}", outcome="proposed", paged=True) for n in range(3)),
        *(incident(f"e{n}", outcome="escalated", paged=False) for n in range(2)),
    ]
    assert plain(others(summary(cases))) == (
        "What became of them: 3 waiting for approval, 2 left to a person; "
        "3 of the 5 paged a person."
    )


_WORDS = {*OUTCOMES, *MENDED, "a_word"}


@given(
    st.dictionaries(st.sampled_from(sorted(_WORDS)), st.integers(0, 3_000), min_size=1),
    st.integers(0, 9_000),
)
def test_whatever_the_outcomes_the_clauses_sum_to_the_incidents(
    by_outcome: dict[str, int], paged: int
) -> None:
    incidents = sum(by_outcome.values())
    healed = by_outcome.get("healed", 0)
    totals = {"failed_calls": 1, "queues": 1, "incidents": incidents, "healed": healed}
    totals["paged"] = min(paged, incidents)
    week = summary(by_outcome=by_outcome, totals=totals)
    said = plain(others(week)).partition(";")[0].partition(": ")[2].rstrip(".")
    clauses = [int(each.split(" ")[0].replace(",", "")) for each in said.split(", ") if each]
    assert sum(clauses) + _healed_of(headline(week), incidents) == incidents


def _healed_of(said: str, incidents: int) -> int:
    """How many the headline calls healed."""
    words = said.partition(", ")[2].rstrip(".")
    number = re.match(r"([\d,]+) healed", words)
    if number:
        return int(number[1].replace(",", ""))
    return incidents if re.match(r"(healed|both healed|all healed)\b", words) else 0


def test_ten_thousand_incidents_are_counted_from_the_totals() -> None:
    totals = {"incidents": 10_000, "failed_calls": 1, "queues": 9, "healed": 9_990, "paged": 10}
    outcomes = {"healed": 9_990, "escalated": 10}
    week = summary(of("escalated"), totals=totals, by_outcome=outcomes)
    assert headline(week) == "10,000 incidents, 9,990 healed before anyone was paged."
    assert others(week) == ("The other 10: 10 left to a person; 10 of the 10,000 paged a person.")


def test_the_text_has_the_verdict_first_and_then_the_figures() -> None:
    lines = verdict_text(read(busy_week())).split("\n")
    assert lines[0] == "Mendq, week 46 of 2026 (9 to 15 Nov 2026, UTC)"
    assert lines[1] == (
        "26 incidents, 19 healed before anyone was paged. The other 7: 1 only observed "
        "(mode observe), 1 refused, 2 left to a person, 3 without a case; "
        "2 of the 26 paged a person."
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
    assert starts == ["Incidents", "Healed without a page", "Reached a person", "Read"]


def test_a_deed_that_is_behind_nothing_ends_in_no_space() -> None:
    lines = verdict_text(summary(do_this_week=[deed(incidents=0, failed_calls=0)])).split("\n")
    assert "Do first: Set VisibilityTimeout of orders to 690 s in its template." in lines


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
