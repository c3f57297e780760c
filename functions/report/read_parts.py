"""The newer parts of summary.json: where an older document lacks one, its empty value."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date

from functions.report.document import At, SummaryUnreadable
from functions.report.summary_parts import (
    Deed,
    Night,
    PagedCase,
    QueueDays,
    QueueWeek,
    ReachedAPerson,
    Swept,
    TimesToHeal,
)

MOST_QUEUES = 20
MOST_PAGED = 50
MOST_DEEDS = 10
MOST_SECONDS = 200
# Labels, accounts, regions: far more than a week has, and few enough to be counted and sorted.
MOST_NAMES = 1_000
DAYS = 7


def given(place: At, key: str) -> At | None:
    """The value under `key`, None where the object lacks it; raises where `place` is no object."""
    if isinstance(place.value, Mapping) and key not in place.value:
        return None
    return place[key]


def whole_if_given(place: At, key: str) -> int:
    number = given(place, key)
    return number.whole() if number else 0


def times_to_heal(place: At | None) -> tuple[TimesToHeal, ...]:
    return tuple(_times(each) for each in place.at_most(MOST_NAMES)) if place else ()


def _times(place: At) -> TimesToHeal:
    return TimesToHeal(
        label=place["label"].text(),
        incidents=place["incidents"].whole(),
        median_seconds=place["median_seconds"].seconds_or_none(),
        p90_seconds=place["p90_seconds"].seconds_or_none(),
        seconds=tuple(sorted(_seconds(each) for each in place["seconds"]))[:MOST_SECONDS],
    )


def _seconds(place: At) -> float:
    seconds = place.seconds_or_none()
    if seconds is None:
        raise place.wrong("seconds from 0")
    return seconds


def queue_days(place: At | None) -> QueueDays:
    """What is listed beyond the page's room counts as left out."""
    if place is None:
        return QueueDays()
    every = tuple(_queue_week(each) for each in place["queues"])
    beyond = every[MOST_QUEUES:]
    return QueueDays(
        queues=every[:MOST_QUEUES],
        queues_left_out=place["queues_left_out"].whole() + len(beyond),
        incidents_left_out=place["incidents_left_out"].whole()
        + sum(sum(each.incidents) for each in beyond),
    )


def _queue_week(place: At) -> QueueWeek:
    incidents = tuple(each.whole() for each in place["incidents"])
    if len(incidents) != DAYS:
        raise place["incidents"].wrong("seven numbers, Monday's first")
    return QueueWeek(
        queue_arn=place["queue_arn"].text(),
        incidents=incidents,
        failed_calls=place["failed_calls"].whole(),
        not_healed=place["not_healed"].whole(),
    )


def reached_a_person(place: At | None) -> ReachedAPerson:
    if place is None:
        return ReachedAPerson()
    every = tuple(_paged_case(each) for each in place["cases"])
    return ReachedAPerson(
        cases=every[:MOST_PAGED],
        cases_left_out=place["cases_left_out"].whole() + len(every[MOST_PAGED:]),
        total=place["total"].whole(),
    )


def _paged_case(place: At) -> PagedCase:
    ended_at = place["ended_at"]
    return PagedCase(
        case_id=place["case_id"].text(),
        queue_arn=place["queue_arn"].text(),
        symptom=place["symptom"].text(),
        state=place["state"].text(),
        opened_at=place["opened_at"].time(),
        paged_at=place["paged_at"].time(),
        pages=place["pages"].whole(),
        reason=place["reason"].text(),
        ended_at=None if ended_at.value is None else ended_at.time(),
        seconds_open=place["seconds_open"].seconds_or_none(),
        is_swept=place["swept"].truth(),
    )


def swept(place: At | None) -> Swept:
    if place is None:
        return Swept()
    return Swept(
        cases=place["cases"].whole(),
        by_symptom=place["by_symptom"].at_most(MOST_NAMES).counts(),
        healed=place["healed"].whole(),
        paged=place["paged"].whole(),
    )


def deeds(document: At) -> tuple[tuple[Deed, ...], int]:
    """`do_this_week`, as many as a page lists, and how many are left out."""
    every = tuple(_deed(each) for each in given(document, "do_this_week") or ())
    left_out = whole_if_given(document, "do_this_week_left_out")
    return every[:MOST_DEEDS], left_out + len(every[MOST_DEEDS:])


def _deed(place: At) -> Deed:
    return Deed(
        kind=place["kind"].text(),
        queue_arn=place["queue_arn"].text(),
        symptom=place["symptom"].text(),
        attribute=place["attribute"].text(),
        before=place["before"].text(),
        after=place["after"].text(),
        template_line=place["template_line"].text(),
        owner=place["owner"].text(),
        command=place["command"].text(),
        why=place["why"].text(),
        case_id=place["case_id"].text(),
        incidents=place["incidents"].whole(),
        failed_calls=place["failed_calls"].whole(),
        queues=place["queues"].whole(),
        reason=text_if_given(place, "reason"),
        cure=text_if_given(place, "cure"),
    )


def text_if_given(place: At, key: str) -> str:
    text = given(place, key)
    return text.text() if text else ""


def true_unless_given(place: At, key: str) -> bool:
    truth = given(place, key)
    return truth.truth() if truth else True


def day_if_given(place: At, key: str) -> date | None:
    day = given(place, key)
    return None if day is None or day.value is None else day.day()


def nights(place: At | None) -> tuple[Night, ...]:
    return tuple(_night(each) for each in place.at_most(DAYS)) if place else ()


def _night(place: At) -> Night:
    return Night(
        day=place["day"].day(),
        reader=place["reader"].text(),
        why_fallback=place["why_fallback"].text(),
        records=place["records"].whole(),
        usual_records=_number_or_none(place["usual_records"]),
        verdict=place["verdict"].text(),
    )


def _number_or_none(place: At) -> float | None:
    """A median of counts may lie between two."""
    try:
        return place.seconds_or_none()
    except SummaryUnreadable:
        raise place.wrong("a number from 0, or null") from None
