from __future__ import annotations

from typing import Any

import pytest

from functions.report.days import per_day
from functions.report.drawing import LIGHT
from functions.report.times import MOST_LABELS, Times, strips, times
from tests.functions.report import week_parts
from tests.functions.report.weeks import incident, summary


def found(*rows: dict[str, Any], cases: list[Any] | None = None) -> Times:
    week = summary(cases or [], times_to_heal=list(rows))
    made = times(week, per_day(week))
    assert made is not None
    return made


def test_nothing_timed_is_no_picture() -> None:
    week = summary()
    assert times(week, per_day(week)) is None


def test_figures_stand_beside_the_dots_and_no_percentile_of_few() -> None:
    many, few = found(
        week_parts.times("a", 10, 20, 30, 40, 500), week_parts.times("b", 41, 42)
    ).rows
    assert (many.label, many.count, many.median, many.p90) == ("a", "5", "30 s", "8 min 20 s")
    assert (few.label, few.count, few.median, few.p90) == ("b", "2", "41 s", "n<5")
    assert few.strip.p90 is None
    assert many.in_words == "5 healed incidents, from 10 s to 8 min 20 s"


def test_one_time_is_said_once() -> None:
    assert found(week_parts.times("a", 41)).rows[0].in_words == "1 healed incident, 41 s"


def test_a_label_keeps_the_colour_of_the_days() -> None:
    cases = [incident(label=each) for each in ("b", "b", "a")]
    rows = found(week_parts.times("a", 1), week_parts.times("b", 2), cases=cases).rows
    assert [each.series for each in rows] == [1, 0]


@pytest.mark.parametrize(
    ("rows", "caption"),
    [
        (
            [week_parts.times("a", 1)],
            "A dot for each healed incident, on a log scale. The bar is the median.",
        ),
        (
            [week_parts.times("a", *range(1, 6))],
            (
                "A dot for each healed incident, on a log scale. "
                "The bar is the median, the ring the 90th percentile."
            ),
        ),
        (
            [week_parts.times("a", 1) | {"incidents": 900}],
            "Dots for a sample of the healed incidents, on a log scale. The bar is the median.",
        ),
    ],
)
def test_the_caption_says_what_is_drawn(rows: list[dict[str, Any]], caption: str) -> None:
    assert found(*rows).caption == caption


def test_labels_beyond_the_picture_are_counted() -> None:
    every = [week_parts.times(f"l{n}", 1, 2) for n in range(MOST_LABELS + 2)]
    assert found(*every[:MOST_LABELS]).beyond == ""
    made = found(*every)
    assert len(made.rows) == MOST_LABELS
    assert made.beyond == "2 more labels: 4 healed incidents."


def test_a_strip_for_each_row_and_one_axis() -> None:
    made = found(week_parts.times("a", 1), week_parts.times("b", 2))
    drawn = strips(made, LIGHT)
    assert len(drawn) == 3
    assert len({each.width for each in drawn}) == 1
