from __future__ import annotations

from typing import Any

import pytest

from functions.report.read_summary import read
from functions.report.tiles import Change, Tile, against, tiles
from tests.functions.report.week_parts import night, without_newer
from tests.functions.report.weeks import DAYS, earlier, incident, summary, week


@pytest.mark.parametrize(
    ("now", "before", "change"),
    [
        (5, [], Change("level", "no whole week before it to compare with")),
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
        (5, 0, [], "5 of 5", "100 %, no whole week before it to compare with", "plain"),
        (5, 0, [4], "5 of 5", "100 %, no whole week before it to compare with", "plain"),
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
        ([85, 41], "1 min 25 s", "the longest of 2: 41 s and 1 min 25 s"),
        ([4, 3, 2, 1], "4 s", "the longest of 4: 1 s, 2 s, 3 s and 4 s"),
        ([9, 1, 2, 3, 5_000], "3 s", "median of 5, no whole week before it to compare with"),
        ([1, 2, 3, 4, 5, 6], "3 s", "median of 6, no whole week before it to compare with"),
    ],
)
def test_time_to_heal_is_a_median_from_five_on(
    seconds: list[float], figure: str, note: str
) -> None:
    tile = _tile("Time to heal", healed(*seconds))
    assert (tile.figure, tile.note) == (figure, note)


@pytest.mark.parametrize(
    ("before", "note", "tone"),
    [
        (52.0, "median of 5, 11 s below the 2-week median of 52 s", "good"),
        (41.0, "median of 5, equal to the 2-week median of 41 s", "plain"),
        (30.0, "median of 5, 11 s above the 2-week median of 30 s", "bad"),
        (None, "median of 5, no whole week before it to compare with", "plain"),
    ],
)
def test_the_median_stands_against_those_of_weeks_before(
    before: float | None, note: str, tone: str
) -> None:
    weeks = earlier(9, 9, healed=9, median_seconds=before)
    few = earlier(4, healed=4, median_seconds=9_000.0)
    tile = _tile("Time to heal", healed(40, 40, 41, 50, 60), previous_weeks=[*few, *weeks])
    assert (tile.note, tile.tone) == (note, tone)


def test_an_earlier_week_of_few_nights_is_none_to_compare_with() -> None:
    whole, part = earlier(4, 8, 90), earlier(1, nights=2)
    tile = _tile("Incidents", healed(1, 2), previous_weeks=[*whole, *part])
    assert tile.note == "6 below the 3-week median of 8"
    alone = [
        _tile(title, healed(1, 2, 3, 4, 5), previous_weeks=earlier(9, healed=9, nights=6))
        for title in ("Incidents", "Healed without a page", "Reached a person", "Failed calls")
    ]
    assert {each.note.removeprefix("100 %, ") for each in alone} == {
        "no whole week before it to compare with"
    }
    timed = earlier(9, healed=9, median_seconds=3.0, nights=6)
    tile = _tile("Time to heal", healed(1, 2, 3, 4, 5), previous_weeks=timed)
    assert tile.note == "median of 5, no whole week before it to compare with"


def test_the_days_that_were_read_are_counted_once() -> None:
    missing = {"nights_missing": ["2026-11-10"]}
    notes = [each.note for each in tiles(summary(healed(1, 2), not_seen=missing))]
    assert [each for each in notes if "6 of 7 days read" in each] == notes[:1]


@pytest.mark.parametrize(
    "not_seen",
    [{"week_is_over": False}, {"nights": [night(DAYS[6], verdict="partial")]}],
)
def test_a_week_that_is_not_whole_is_not_judged(not_seen: dict[str, Any]) -> None:
    tile = _tile("Incidents", healed(1, 2), previous_weeks=earlier(9), not_seen=not_seen)
    assert (tile.direction, tile.tone) == ("level", "plain")


def test_what_an_older_night_did_not_time_is_not_made_up() -> None:
    found = {each.title: each for each in tiles(read(without_newer(week(healed(41)))))}
    assert (found["Time to heal"].figure, found["Time to heal"].note) == (
        "\N{EN DASH}",
        "nobody timed it",
    )


def test_what_healed_after_approval_was_not_timed() -> None:
    tile = _tile("Time to heal", [incident(outcome="approved", seconds_to_heal=None)])
    assert (tile.figure, tile.note) == ("\N{EN DASH}", "nothing healed by itself")


def test_how_many_paged_is_said_of_how_many() -> None:
    tile = _tile("Reached a person", [incident(outcome="escalated"), *healed(1, 2)])
    assert tile.in_words == "1 of 3, no whole week before it to compare with"
    assert _tile("Reached a person", []).in_words == "0, no whole week before it to compare with"


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
