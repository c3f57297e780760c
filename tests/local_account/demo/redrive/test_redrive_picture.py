"""The letters on their way, on a small terminal and a wide one."""

from __future__ import annotations

import io
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from rich.console import Console, RenderableType

from functions.healing.redrive_course import Course, Stage, begun
from local_account.demo.redrive.going_back import as_shipped, sentence, would_halt
from local_account.demo.redrive.picture import LettersPicture, clock, compared
from local_account.demo.redrive.queue_counts import Whereabouts

NOW = datetime(2026, 11, 21, 21, tzinfo=UTC)
BEGUN = begun("case-1", dead_letter_arn="d", source_arn="s", canary=5, now=NOW)


def _course(stage: Stage, **over: Any) -> Course:
    return replace(BEGUN, stage=stage, **over)


def _lines(shown: RenderableType, columns: int) -> list[str]:
    console = Console(width=columns, file=io.StringIO())
    with console.capture() as capture:
        console.print(shown)
    lines = capture.get().splitlines()
    assert max(map(len, lines)) <= columns
    return [each for each in lines if each.strip()]


@pytest.mark.parametrize("columns", [80, 120])
def test_each_queue_has_a_bar_as_long_as_its_letters(columns: int) -> None:
    there = Whereabouts(source=20, dead_letters=100, quarantine=0, handled=80)
    course = _course(Stage.RAMP, number=2, moved=100, returned=3, rate_per_second=9.5)
    picture = LettersPicture("orders", "orders-dlq", 200, course, there)
    head, *bars = _lines(picture.shown(), columns)
    assert " ".join(head.split()) == "redrive ramp 2, by hand moved 100 came back 3 rate 9.5/s"
    assert [(each.split()[0], each.split()[-1]) for each in bars] == [
        ("orders-dlq", "100"),
        ("orders", "20"),
        ("handled", "80"),
        ("orders-quarantine", "0"),
    ]
    drawn = [each.count("━") for each in bars]
    assert drawn[0] > drawn[2] > drawn[1] > drawn[3] == 0


def test_before_it_begins_it_says_so() -> None:
    assert "not begun" in _lines(LettersPicture("orders", "orders-dlq", 200).shown(), 80)[0]


@pytest.mark.parametrize(
    ("course", "said"),
    [
        (_course(Stage.CANARY), "canary"),
        (
            _course(Stage.SOAK, soak_ends_at=NOW + timedelta(seconds=4.2)),
            "soak after canary, 4.2 s left",
        ),
        (
            _course(Stage.SOAK, number=12, soak_ends_at=NOW - timedelta(seconds=1)),
            "soak after ramp 12, 0.0 s left",
        ),
        (_course(Stage.RAMP, number=3, by_task=True), "ramp 3, by a move task"),
        (_course(Stage.HALTED), "halted"),
    ],
)
def test_the_clock_says_what_is_waited_for(course: Course, said: str) -> None:
    assert clock(course, NOW) == said


@pytest.mark.parametrize(
    ("course", "said"),
    [
        (_course(Stage.CANARY), "canary: 5 letters go back first, by hand, each marked"),
        (
            _course(
                Stage.SOAK,
                moved=25,
                moved_in_stage=20,
                returned=2,
                number=1,
                soak_ends_at=NOW + timedelta(seconds=7.2),
            ),
            "ramp 1: 20 went back (25 in all, 2 came back); waits 7.2 s for what may come back",
        ),
        (
            _course(Stage.RAMP, number=3, size=320, by_task=True),
            "ramp 3: up to 320 go back by a move task of SQS's own",
        ),
        (_course(Stage.HALTED, because="the cause is back"), "halted: the cause is back"),
    ],
)
def test_a_stage_is_a_sentence(course: Course, said: str) -> None:
    assert sentence(course) == said


def test_where_the_shipped_bounds_halt_it_says_by_what() -> None:
    assert [would_halt(*each) for each in ((0, 0), (5, 0), (25, 1), (25, 2), (105, 5))] == [
        False,
        False,
        False,
        True,
        False,
    ]
    said = as_shipped(25, 2)
    assert "of 25 that went back 2 came back, and at 2 it stops" in said
    assert "the story lets 25% pass" in said


def test_what_the_consumers_made_of_it_stands_side_by_side() -> None:
    rows = [("charged again", (0, 20))]
    head, row = _lines(compared(rows, ("orders, careful", "receipts, careless")), 80)
    assert " ".join(head.split()) == "what went back orders, careful receipts, careless"
    assert row.split() == ["charged", "again", "0", "20"]
