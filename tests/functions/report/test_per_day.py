from __future__ import annotations

from typing import Any

import pytest

from functions.report.days import caption, in_words, per_day
from functions.report.summary import FURTHER
from tests.functions.report.weeks import incident, summary


def on(*days: int) -> list[Any]:
    return [incident(day=each) for each in days]


@pytest.mark.parametrize(
    ("cases", "said"),
    [
        ([], "No day that was read had an incident."),
        (on(4), "Fri 13 Nov had the one incident."),
        (on(4, 4), "Fri 13 Nov had all 2."),
        (on(0, 4, 4), "Fri 13 Nov had the most: 2."),
        (on(0, 4), "No day had more than one incident."),
        (on(0, 0, 4, 4), "Mon 9 Nov and Fri 13 Nov had the most: 2 each."),
        (on(0, 0, 1, 1, 4, 4), "3 days had the most: 2 each."),
    ],
)
def test_the_caption_names_the_busiest_day(cases: list[Any], said: str) -> None:
    assert caption(per_day(summary(cases))) == said


def test_the_only_day_that_was_read_had_no_more_than_others() -> None:
    missing = [f"2026-11-{each:02}" for each in range(9, 15)]
    week = per_day(summary(on(6, 6, 6), not_seen={"nights_missing": missing}))
    assert caption(week) == "Sun 15 Nov is the only day that was read."


def test_every_day_is_there_also_without_a_row() -> None:
    week = per_day(summary(on(2), per_day=[]))
    assert [each.name for each in week.days] == [
        "Mon 9", "Tue 10", "Wed 11", "Thu 12", "Fri 13", "Sat 14", "Sun 15",
    ]  # fmt: skip
    assert not week.has_incidents


def labelled(*labels: str) -> list[Any]:
    return [incident(label=each, day=n % 7) for n, each in enumerate(labels)]


@pytest.mark.parametrize(
    ("labels", "series"),
    [
        ("", ()),
        ("abb", ("b", "a")),
        ("ab", ("a", "b")),
        ("abcde", ("a", "b", "c", "d", "e")),
        ("abcdef", ("a", "b", "c", "d", "2 other labels")),
        ("abcdefgg", ("g", "a", "b", "c", "3 other labels")),
    ],
)
def test_what_one_picture_cannot_show_is_folded(labels: str, series: tuple[str, ...]) -> None:
    week = per_day(summary(labelled(*labels)))
    assert week.series == series
    assert sum(each.total for each in week.days) == len(labels)


def test_what_stands_for_many_labels_is_among_the_others_and_counts_as_many() -> None:
    cases = labelled(*"abcdefgg", *[FURTHER] * 9)
    week = per_day(summary(cases, labels_left_out=901))
    assert week.series == ("g", "a", "b", "c", "904 other labels")
    assert week.total == len(cases)


@pytest.mark.parametrize(
    ("day", "missing", "is_unknown"),
    [(0, [], False), (0, ["2026-11-10"], True), (1, ["2026-11-10"], False)],
)
def test_a_day_is_unknown_where_nothing_of_it_was_read(
    day: int, missing: list[str], *, is_unknown: bool
) -> None:
    week = per_day(summary(on(day), not_seen={"nights_missing": missing}))
    assert week.has_unknown is is_unknown


def test_the_words_say_what_the_picture_shows() -> None:
    cases = [*on(0, 0), incident(day=0, label="access_denied"), incident(day=2)]
    week = per_day(summary(cases, not_seen={"nights_missing": ["2026-11-10", "2026-11-11"]}))
    assert in_words(week) == (
        "Incidents per day. Mon 9: 3 (lease_expired 2, access_denied 1). Tue 10: not read. "
        "Wed 11: 1 (lease_expired 1). Thu 12: 0. Fri 13: 0. Sat 14: 0. Sun 15: 0."
    )
