from __future__ import annotations

from datetime import date
from typing import Any

import pytest

from functions.healing.nightly import FALLBACK, Verdict
from functions.report.not_seen import (
    FAR_FEWER,
    NOTHING_READ,
    SLOWER,
    nights_in_doubt,
    nights_read,
    slower_reader,
)
from functions.report.words import plain
from tests.functions.report.week_parts import night
from tests.functions.report.weeks import DAYS, summary


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({}, []),
        (
            {"verdict": "far_fewer", "records": 900},
            ["Tue 10 Nov had far fewer records than usual: 900, where 181,000 are usual."],
        ),
        (
            {"verdict": "nothing_read", "records": 0, "usual_records": None},
            ["Tue 10 Nov had not one record: is the trail on?"],
        ),
        (
            {"verdict": "nothing_read", "records": 0, "usual_records": 1_204.5},
            ["Tue 10 Nov had not one record, where 1,204 are usual: is the trail on?"],
        ),
        (
            {"verdict": "partial"},
            ["Tue 10 Nov was read before it was over, and not since."],
        ),
        (
            {"verdict": "torn"},
            ["The tables of Tue 10 Nov are not what its night counted: run it again."],
        ),
        ({"verdict": "missing"}, []),
    ],
)
def test_a_night_in_doubt_is_named(fields: dict[str, Any], said: list[str]) -> None:
    week = summary(not_seen={"nights": [night(DAYS[0]), night(DAYS[1], **fields)]})
    assert list(nights_in_doubt(week)) == said


def silent(*days: date) -> list[dict[str, Any]]:
    return [night(each, verdict="nothing_read", records=0) for each in days]


def test_several_silent_nights_are_one_sentence() -> None:
    week = summary(not_seen={"nights": silent(*DAYS[:3])})
    assert list(nights_in_doubt(week)) == [
        "Mon 9 Nov, Tue 10 Nov and Wed 11 Nov had not one record: is the trail on?"
    ]


def missing(*days: date, **fields: object) -> dict[str, Any]:
    return {"nights_missing": [f"{each}" for each in days], **fields}


@pytest.mark.parametrize(
    ("seen", "said"),
    [
        ({}, ["All 7 nights were read."]),
        (missing(DAYS[1]), ["1 night was not read: Tue 10 Nov."]),
        (missing(*DAYS), ["No night of the week was read."]),
        (
            missing(*DAYS[:2], began="2026-11-11"),
            ["5 nights were read.", "Mendq had not begun before Wed 11 Nov."],
        ),
        (
            missing(*DAYS[:2], DAYS[4], began="2026-11-11"),
            ["1 night was not read: Fri 13 Nov.", "Mendq had not begun before Wed 11 Nov."],
        ),
        (
            missing(*DAYS[:6], began="2026-11-15"),
            ["1 night was read.", "Mendq had not begun before Sun 15 Nov."],
        ),
        (
            missing(*DAYS, began="2026-11-16"),
            ["No night of the week was read.", "Mendq had not begun before Mon 16 Nov."],
        ),
        (missing(DAYS[1], nights=silent(DAYS[1])), ["6 nights were read."]),
        ({"nights": [night(DAYS[6], verdict="partial")]}, ["6 nights were read."]),
        (
            missing(*DAYS[:6], nights=[night(DAYS[6], verdict="partial")], began="2026-11-15"),
            ["No night was read whole.", "Mendq had not begun before Sun 15 Nov."],
        ),
        (
            missing(DAYS[0], DAYS[1], nights=silent(DAYS[1])),
            ["1 night was not read: Mon 9 Nov."],
        ),
    ],
)
def test_the_nights_are_counted_and_each_that_is_missing_is_told_once(
    seen: dict[str, Any], said: list[str]
) -> None:
    assert list(nights_read(summary(not_seen=seen))) == said


@pytest.mark.parametrize(
    ("made_at", "days", "said"),
    [
        (
            "2026-11-14T10:00:00Z",
            DAYS[5:],
            [
                "5 nights were read.",
                "The week is not over: the nights of Sat 14 Nov and Sun 15 Nov are still to come.",
            ],
        ),
        (
            "2026-11-15T10:00:00Z",
            (DAYS[1], DAYS[6]),
            [
                "1 night was not read: Tue 10 Nov.",
                "The week is not over: the night of Sun 15 Nov is still to come.",
            ],
        ),
        (
            "2026-11-16T00:40:00Z",
            (DAYS[6],),
            [
                "6 nights were read.",
                "The week is not over: the night of Sun 15 Nov is still to come.",
            ],
        ),
        ("2026-11-15T10:00:00Z", (), ["All 7 nights were read.", "The week is not over."]),
    ],
)  # fmt: skip
def test_a_week_that_is_not_over_says_what_is_to_come(
    made_at: str, days: tuple[date, ...], said: list[str]
) -> None:
    week = summary(made_at=made_at, not_seen=missing(*days, week_is_over=False))
    assert list(nights_read(week)) == said


def test_of_days_before_mendq_and_days_to_come_nothing_is_doubted() -> None:
    seen = missing(*DAYS, nights=silent(*DAYS), week_is_over=False, began="2026-11-11")
    week = summary(made_at="2026-11-12T10:00:00Z", not_seen=seen)
    assert list(nights_in_doubt(week)) == [
        "Wed 11 Nov had not one record, where 181,000 are usual: is the trail on?"
    ]


SLOW = {"reader": "spark_json", "why_fallback": "isal is missing on the driver"}


@pytest.mark.parametrize(
    ("nights", "said"),
    [
        ([], []),
        ([night(DAYS[0])], []),
        (
            [night(DAYS[0], **SLOW)],
            [
                (
                    "1 night (Mon 9 Nov) was read by Spark's JSON reader, which is slower: "
                    "isal is missing on the driver."
                )
            ],
        ),
        (
            [night(each, **SLOW) for each in DAYS],
            [
                (
                    "7 nights were read by Spark's JSON reader, which is slower: "
                    "isal is missing on the driver."
                )
            ],
        ),
        (
            [night(DAYS[0], **SLOW), night(DAYS[1], **(SLOW | {"why_fallback": ""}))],
            [
                "1 night (Tue 10 Nov) was read by Spark's JSON reader, which is slower.",
                (
                    "1 night (Mon 9 Nov) was read by Spark's JSON reader, which is slower: "
                    "isal is missing on the driver."
                ),
            ],
        ),
    ],
)
def test_the_slower_reader_says_why(nights: list[dict[str, Any]], said: list[str]) -> None:
    assert [plain(each) for each in slower_reader(summary(not_seen={"nights": nights}))] == said


def test_the_words_are_the_night_s_own() -> None:
    assert SLOWER == FALLBACK
    assert {FAR_FEWER, NOTHING_READ} <= set(Verdict)
