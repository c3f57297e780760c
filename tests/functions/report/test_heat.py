from __future__ import annotations

import pytest

from functions.report.tables import LEVELS, Heat, heat, level
from functions.report.words import plain
from tests.functions.report.weeks import incident, summary


def found(*cases: object, **changes: object) -> Heat:
    made = heat(summary(list(cases), **changes))  # type: ignore[arg-type]
    assert made is not None
    return made


def test_a_week_without_incidents_has_none() -> None:
    assert heat(summary()) is None


def test_a_row_for_each_queue_and_a_cell_for_each_day() -> None:
    made = found(incident("a"), incident("a", day=2), incident("b", outcome="refused"))
    assert made.days == ("Mon 9", "Tue 10", "Wed 11", "Thu 12", "Fri 13", "Sat 14", "Sun 15")
    first, second = made.rows
    assert [each.figure for each in first.cells] == ["1", "0", "1", "0", "0", "0", "0"]
    assert (first.queue, first.total, first.calls) == ("a", "2", "24 failed calls")
    assert (first.not_healed, second.not_healed) == ("all healed", "1 not healed")
    assert (first.place, second.place) == ("", "")


def test_healed_after_approval_is_healed() -> None:
    cases = [incident("a", outcome="approved"), incident("a", day=1)]
    assert found(*cases).rows[0].not_healed == "all healed"
    assert found(*cases, incident("a", outcome="proposed")).rows[0].not_healed == "1 not healed"


def test_of_a_list_that_was_cut_the_night_s_count_is_said() -> None:
    row = {"queue_arn": "a", "incidents": [9] * 7, "failed_calls": 99, "not_healed": 41}
    days = {"queues": [row], "queues_left_out": 0, "incidents_left_out": 0}
    made = found(incident("a"), queue_days=days, cases_left_out=62)
    assert made.rows[0].not_healed == "41 not healed"


def test_a_day_that_was_not_read_is_no_zero() -> None:
    missing = {"nights_missing": ["2026-11-09", "2026-11-10"]}
    cells = found(incident("a"), not_seen=missing).rows[0].cells
    assert [each.figure for each in cells[:3]] == ["1", "?", "0"]


@pytest.mark.parametrize(
    ("queues", "said"),
    [
        ("a", "a had the one incident."),
        ("abc", "No queue had more than one incident."),
        ("aa", "a had all 2 incidents."),
        ("aab", "a had the most: 2 of 3 incidents."),
        ("aabb", "2 queues had the most: 2 of 4 incidents each."),
    ],
)
def test_the_caption_names_who_had_the_most(queues: str, said: str) -> None:
    made = found(*(incident(each, day=n) for n, each in enumerate(queues)))
    assert plain(made.caption) == said


@pytest.mark.parametrize(
    ("queues", "incidents", "said"),
    [
        (0, 0, ""),
        (1, 1, "1 more queue had 1 incident."),
        (480, 8_150, "480 more queues had 8,150 incidents together."),
    ],
)
def test_queues_beyond_the_list_are_counted(queues: int, incidents: int, said: str) -> None:
    days = {"queues_left_out": queues, "incidents_left_out": incidents}
    row = {"queue_arn": "a", "incidents": [1] * 7, "failed_calls": 7, "not_healed": 0}
    assert found(queue_days=days | {"queues": [row]}).beyond == said


def test_a_cell_is_the_darker_the_more_it_holds() -> None:
    levels = [level(count, 1_000) for count in (0, 1, 10, 100, 1_000)]
    assert levels == sorted(levels)
    assert (levels[0], levels[1], levels[-1]) == (0, 1, LEVELS)
    assert [level(count, 1) for count in (0, 1)] == [0, LEVELS]


def test_an_unread_day_is_told_where_a_cell_says_so() -> None:
    assert not found(incident("a")).has_unread
    unread = {"nights_missing": ["2026-11-10"]}
    assert found(incident("a"), not_seen=unread).has_unread
    assert not found(incident("a", day=1), not_seen=unread).has_unread


def test_the_place_is_named_where_there_are_several() -> None:
    made = found(incident("a"), regions=["eu-west-1", "us-east-1"])
    assert made.rows[0].place == "123456789012, us-east-1"
