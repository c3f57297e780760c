"""What a week is counted from: rows of its nights' tables, and how the document spells times."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from typing import Any

from analytics.days import Days
from functions.healing.managed import DRILL_QUEUE

Row = Mapping[str, Any]


@dataclass(frozen=True)
class NightRows:
    """The rows of one day's incidents and quality."""

    incidents: Sequence[Row]
    quality: Sequence[Row]


Nights = Mapping[date, NightRows]


def is_of_a_drill(queue_arn: str) -> bool:
    return queue_arn.rpartition(":")[2].startswith(DRILL_QUEUE)


def without_drills(nights: Nights) -> Nights:
    """What people practised is no incident of anybody's."""
    return {
        day: replace(
            rows, incidents=[row for row in rows.incidents if not is_of_a_drill(row["queue_arn"])]
        )
        for day, rows in nights.items()
    }


def incidents_of(days: Days, nights: Nights) -> list[Row]:
    return [row for day in days if day in nights for row in nights[day].incidents]


def quality_of(days: Days, nights: Nights) -> list[Row]:
    return [row for day in days if day in nights for row in nights[day].quality]


def time_text(moment: datetime) -> str:
    """To the second, in UTC, with a Z."""
    return moment.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
