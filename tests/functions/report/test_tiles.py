from __future__ import annotations

from typing import Any

import pytest

from functions.report.tiles import Change, Tile, against, tiles
from tests.functions.report.weeks import DAYS, earlier, incident, summary


@pytest.mark.parametrize(
    ("now", "before", "change"),
    [
        (5, [], Change("level", "no earlier week to compare with")),
        (5, [5], Change("level", "equal to the 5 of the one earlier week")),
        (5, [3], Change("rise", "2 above the 3 of the one earlier week")),
        (5, [4, 6], Change("level", "equal to the 2-week median of 5")),
        (5, [20, 21], Change("fall", "15.5 below the 2-week median of 20.5")),
        (29, [1, 20, 22, 900], Change("rise", "8 above the 4-week median of 21")),
        (1_029, [0, 0, 0], Change("rise", "1,029 above the 3-week median of 0")),
    ],
)
def test_a_figure_stands_against_the_median(now: int, before: list[int], change: Change) -> None:
    assert against(now, before) == change


def _tile(title: str, cases: list[Any], **changes: object) -> Tile:
    found = {each.title: each for each in tiles(summary(cases, **changes))}
    return found[title]


def healed(*seconds: float) -> list[Any]:
    return [incident(day=n % 7, seconds_to_heal=each) for n, each in enumerate(seconds)]


def test_nothing_read_gives_no_tile() -> None:
    missing = [f"{each}" for each in DAYS]
    assert tiles(summary(not_seen={"nights_missing": missing})) == ()


@pytest.mark.parametrize(
    ("before", "tone", "direction"),
    [([], "plain", "level"), ([2], "plain", "level"), ([1], "bad", "rise"), ([9], "good", "fall")],
)
def test_more_incidents_are_worse(before: list[int], tone: str, direction: str) -> None:
    tile = _tile("Incidents", healed(1, 2), previous_weeks=earlier(*before))
    assert (tile.figure, tile.tone, tile.direction) == ("2", tone, direction)


@pytest.mark.parametrize(
    ("count", "unhealed", "before", "figure", "note", "tone"),
    [
        (0, 0, [], "0", "there was nothing to heal", "plain"),
        (4, 0, [9], "4 of 4", "too few for a share", "plain"),
        (5, 0, [], "5 of 5", "100 %, no earlier week to compare with", "plain"),
        (5, 0, [4], "5 of 5", "100 %, no earlier week to compare with", "plain"),
        (5, 5, [10], "5 of 10", "50 %, equal to the 50 % of the one earlier week", "plain"),
        (6, 4, [10], "6 of 10", "60 %, 10 points above the 50 % of the one earlier week", "good"),
        (
            4,
            6,
            [10, 10, 3],
            "4 of 10",
            "40 %, 10 points below the 2-week median of 50 %",
            "bad",
        ),
    ],
)
def test_a_share_is_said_from_five_incidents_on(  # noqa: PLR0917 - a table's columns
    count: int, unhealed: int, before: list[int], figure: str, note: str, tone: str
) -> None:
    cases = [*healed(*range(count)), *(incident(outcome="refused") for _ in range(unhealed))]
    weeks = [each | {"healed": each["incidents"] // 2} for each in earlier(*before)]
    tile = _tile("Healed without a page", cases, previous_weeks=weeks)
    assert (f"{tile.figure} {tile.of}".strip(), tile.note, tile.tone) == (figure, note, tone)


@pytest.mark.parametrize(
    ("seconds", "figure", "note"),
    [
        ([], "\N{EN DASH}", "nothing was healed"),
        ([41], "41 s", "1 incident"),
        ([85, 41], "1 min 25 s", "the longest of 2 incidents: 41 s and 1 min 25 s"),
        ([4, 3, 2, 1], "4 s", "the longest of 4 incidents: 1 s, 2 s, 3 s and 4 s"),
        ([9, 1, 2, 3, 5_000], "3 s", "median of 5 incidents, from 1 s to 1 h 23 min"),
        ([1, 2, 3, 4, 5, 6], "4 s", "median of 6 incidents, from 1 s to 6 s"),
    ],
)
def test_time_to_heal_is_a_median_from_five_on(
    seconds: list[float], figure: str, note: str
) -> None:
    tile = _tile("Time to heal", healed(*seconds))
    assert (tile.figure, tile.note) == (figure, note)


def test_a_list_that_was_cut_says_so() -> None:
    note = _tile("Time to heal", healed(1, 2, 3, 4, 5), cases_left_out=1).note
    assert note == "median of 5 listed incidents, from 1 s to 5 s"


def test_a_week_with_days_missing_is_not_judged() -> None:
    tile = _tile(
        "Incidents",
        healed(1, 2),
        previous_weeks=earlier(9),
        not_seen={"nights_missing": ["2026-11-10", "2026-11-12"]},
    )
    assert tile == Tile(
        "Incidents", "2", "", "7 below the 9 of the one earlier week; 5 of 7 days read"
    )
