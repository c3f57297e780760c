"""The cases that reached a person in a week, and those that only a sweep saw."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from analytics.days import Days
from analytics.lives import MOST_NAME, Life, is_within, shortened
from analytics.outcomes import HEALED
from analytics.week_names import MAXIMUM_LABELS, largest
from analytics.week_rows import time_text
from analytics.week_totals import counted

MAXIMUM_PAGED = 50


def reached_a_person(days: Days, lives: Sequence[Life]) -> dict[str, Any]:
    """The cases that paged somebody in `days`, the earliest page first."""
    paged = sorted(
        (each for each in lives if each.pages(days)), key=lambda each: _first(each, days)
    )
    return {
        "cases": [_paged(each, days) for each in paged[:MAXIMUM_PAGED]],
        "cases_left_out": len(paged[MAXIMUM_PAGED:]),
        "total": len(paged),
    }


def _first(life: Life, days: Days) -> tuple[datetime, str]:
    return life.pages(days)[0].at, life.newest.case_id


def _paged(life: Life, days: Days) -> dict[str, Any]:
    pages = life.pages(days)
    return {
        "case_id": shortened(life.newest.case_id, MOST_NAME),
        "queue_arn": shortened(life.newest.queue_arn, MOST_NAME),
        "symptom": shortened(life.newest.symptom, MOST_NAME),
        "state": str(life.newest.state),
        "opened_at": time_text(life.opened_at),
        "paged_at": time_text(pages[0].at),
        "pages": len(pages),
        "reason": shortened(pages[0].reason),
        "ended_at": time_text(life.ended_at) if life.ended_at else None,
        "seconds_open": _seconds_open(life),
        "swept": life.is_swept,
    }


def _seconds_open(life: Life) -> float | None:
    """None while it is open, and where a case contradicts itself."""
    if life.ended_at is None:
        return None
    seconds = (life.ended_at - life.opened_at).total_seconds()
    return seconds if seconds >= 0 else None


def swept(days: Days, lives: Sequence[Life]) -> dict[str, Any]:
    """The cases opened in `days` without a failed call: no incident tells of them."""
    found = [
        each
        for each in lives
        if each.is_swept and each.opening and is_within(each.opening.at, days)
    ]
    symptoms = counted(shortened(each.newest.symptom, MOST_NAME) for each in found)
    return {
        "cases": len(found),
        "by_symptom": largest(symptoms, MAXIMUM_LABELS).counts,
        "healed": sum(each.outcome == HEALED for each in found),
        "paged": sum(each.is_paged for each in found),
    }
