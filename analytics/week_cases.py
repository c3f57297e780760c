"""The parts of a week's document that cases tell: who waits, what it cost, what is earned."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import date, datetime, tzinfo
from typing import Any

from analytics.cases import (
    FIXED,
    MOST_NAME,
    STANDING_DAYS,
    Life,
    Transition,
    is_count,
    shortened,
    steps_of,
)
from analytics.days import DAY, Days
from analytics.incidents import FAILED_CALLS
from analytics.week_parts import (
    FURTHER,
    MAXIMUM_CASES,
    PRESSING,
    ByDay,
    Row,
    nearest_rank,
    rows_of,
    time_text,
)
from mendq.catalogue.visibility.needed_timeout import spans_of
from mendq.model.case import WROTE, State
from mendq.model.timeline import build_timeline

MAXIMUM_NOTIFIED = 50
_NEXT_STEP = ("sentence", "command", "runbook")
_FIGURES = ("backlog", "oldest_age_seconds")
_HARM = ("delayed", "handled_twice", "dead", "lost")
LEAST_EARNED, MAXIMUM_EARNED = 5, 10
_ANSWERS = (State.APPROVED, State.DECLINED)
# Where a plan comes to that was approved and held; anything else has taught something.
_HELD = frozenset({State.PROPOSED, State.APPROVED, State.CLOSED, *WROTE}) - {State.INEFFECTIVE}
# Outcomes of incidents into which Mendq did not step.
_UNTOUCHED = frozenset({"observed", "proposed", "expired", "refused", "declined"})
MORNING, EVENING, SATURDAY = 7, 22, 5


def urgent_notifications(days: Days, lives: Iterable[Life], zone: tzinfo) -> dict[str, int]:
    """How many cases sent in `days`, and how many of them at night or at the weekend there."""
    sent = [each.at for life in lives for each in life.pages(days) if each.urgent is True]
    out_of_hours = sum(_is_out_of_hours(each.astimezone(zone)) for each in sent)
    return {"urgent_notifications": len(sent), "out_of_hours": out_of_hours}


def _is_out_of_hours(local: datetime) -> bool:
    return local.weekday() >= SATURDAY or not MORNING <= local.hour < EVENING


def open_now(lives: Iterable[Life], queues: Mapping[str, Mapping[str, int]]) -> dict[str, Any]:
    """The cases that wait for a person, most pressing first; of alike ones the older."""
    waiting = sorted((each for each in lives if each.newest.state in PRESSING), key=_pressing)
    return {
        "open_now": [
            _waiting(each, queues.get(each.newest.queue_arn, {}))
            for each in waiting[:MAXIMUM_CASES]
        ],
        "open_now_left_out": len(waiting[MAXIMUM_CASES:]),
    }


def _pressing(life: Life) -> tuple[int, bool, datetime, str]:
    is_info = life.newest.state is State.ESCALATED and not life.is_urgent
    return PRESSING.index(life.newest.state), is_info, life.opened_at, life.newest.case_id


def _waiting(life: Life, figures: Mapping[str, int]) -> dict[str, Any]:
    case = life.newest
    return {
        **_named(case),
        "urgent": life.is_urgent,
        "opened_at": time_text(life.opened_at),
        "since": time_text(life.since),
        "reason": shortened(case.reason),
        "next_step": {each: shortened(case.next_step.get(each)) for each in _NEXT_STEP},
        **{each: figures.get(each) for each in _FIGURES},
        **pictured(life),
    }


def pictured(life: Life | None) -> dict[str, Any]:
    """What a case's pictures are drawn of; of no case, nothing."""
    points = build_timeline(life.transitions) if life else []
    spans = spans_of(life.transitions) if life else []
    return {
        "timeline": [
            {"at": time_text(it.at), "state": it.what, "says": shortened(it.says, MOST_NAME)}
            for it in points
        ],
        "visibility": [
            {"what": shortened(what, MOST_NAME), "seconds": seconds} for what, seconds in spans
        ],
    }


def _named(case: Transition) -> dict[str, str]:
    names = ("case_id", "queue_arn", "symptom", "code")
    return {
        **{name: shortened(getattr(case, name), MOST_NAME) for name in names},
        "state": str(case.state),
    }


def impact(case_ids: Collection[str | None], lives: Iterable[Life]) -> dict[str, int | None]:
    """What the messages suffered of which these cases know; each None where none does."""
    messages = (e.newest.evidence.get("messages") for e in lives if e.newest.case_id in case_ids)
    known = [each for each in messages if isinstance(each, Mapping)]
    counts = {name: [each[name] for each in known if is_count(each.get(name))] for name in _HARM}
    return {name: sum(each) if each else None for name, each in counts.items()}


def earned(days: Days, lives: Iterable[Life]) -> list[dict[str, Any]]:
    """The queues and symptoms of which every answered proposal was approved, and held."""
    asked = defaultdict[tuple[str, str], list[bool]](list)
    quarter = Days(days.last - (STANDING_DAYS - 1) * DAY, days.last)
    for life in lives:
        answered = any(
            each.came_from is State.PROPOSED and each.state in _ANSWERS
            for each in life.within(quarter)
        )
        if answered:
            asked[life.newest.queue_arn, life.newest.symptom].append(_held(life))
    all_held = [(about, len(held)) for about, held in asked.items() if all(held)]
    ranked = sorted((-count, *about) for about, count in all_held if count >= LEAST_EARNED)
    return [
        {
            "queue_arn": shortened(queue_arn, MOST_NAME),
            "symptom": shortened(symptom, MOST_NAME),
            "approved": -count,
            "asked": -count,
            "kind": "consider_heal",
        }
        for count, queue_arn, symptom in ranked[:MAXIMUM_EARNED]
    ]


def _held(life: Life) -> bool:
    """Approved, carried out as it was proposed, and neither overruled nor taken back."""
    plans = {tuple(steps_of(each)) for each in life.transitions if each.steps}
    return len(plans) <= 1 and all(each.state in _HELD for each in life.transitions)


def does_it_help(incidents: Iterable[Row], read: ByDay) -> list[dict[str, Any]]:
    """By symptom, the incidents of failed calls that were fixed, beside those left untouched.

    Of these, only where the day after them was read: `read` holds the incidents of all days.
    """
    failed_at = defaultdict[tuple[str, str], list[datetime]](list)
    for row in rows_of(read):
        failed_at[row["queue_arn"], row["symptom"]].append(row["first_failure"])
    by_symptom = defaultdict[str, list[Row]](list)
    for row in incidents:
        if row["found_by"] == FAILED_CALLS and row["symptom"] != FURTHER:
            by_symptom[row["symptom"]].append(row)
    compared = (_compared(name, rows, failed_at, read) for name, rows in sorted(by_symptom.items()))
    return [each for each in compared if each["fixed"] or each["untouched"]]


def _compared(
    symptom: str,
    rows: Iterable[Row],
    failed_at: Mapping[tuple[str, str], Sequence[datetime]],
    read: Collection[date],
) -> dict[str, Any]:
    fixed = [row["seconds_to_heal"] for row in rows if row["outcome"] in FIXED]
    untouched = [row for row in rows if row["outcome"] in _UNTOUCHED and _was_read(row, read)]
    recovered = [
        (row["last_failure"] - row["first_failure"]).total_seconds()
        for row in untouched
        if not any(
            row["last_failure"] < each <= row["last_failure"] + DAY
            for each in failed_at[row["queue_arn"], row["symptom"]]
        )
    ]
    return {
        "symptom": symptom,
        "fixed": len(fixed),
        "fixed_median_seconds": _median(each for each in fixed if each is not None),
        "untouched": len(untouched),
        "recovered": len(recovered),
        "recovered_median_seconds": _median(recovered),
    }


def _was_read(row: Row, read: Collection[date]) -> bool:
    """Whether the day after its last failure was."""
    last = row["last_failure"]
    return last.date() in read and (last + DAY).date() in read


def _median(seconds: Iterable[float]) -> float | None:
    ranked = sorted(seconds)
    return nearest_rank(ranked, 50) if ranked else None


def reached_a_person(days: Days, lives: Sequence[Life]) -> dict[str, Any]:
    """The cases that paged somebody in `days`, the earliest page first."""
    notified = [each for each in lives if each.pages(days)]
    notified.sort(key=lambda each: (each.pages(days)[0].at, each.newest.case_id))
    return {
        "cases": [_notified(each, days) for each in notified[:MAXIMUM_NOTIFIED]],
        "cases_left_out": len(notified[MAXIMUM_NOTIFIED:]),
        "total": len(notified),
    }


def _notified(life: Life, days: Days) -> dict[str, Any]:
    pages, ended = life.pages(days), life.ended_at
    return {
        **_named(life.newest),
        "opened_at": time_text(life.opened_at),
        "notified_at": time_text(pages[0].at),
        "pages": len(pages),
        "reason": shortened(pages[0].reason),
        "ended_at": time_text(ended) if ended else None,
        "scanned": life.is_scanned,
    }
