"""A week's sums: of all its incidents, by word, by day."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import date
from typing import Any

from analytics.outcomes import HEALED
from analytics.readings import UNRESOLVED
from analytics.week_rows import Nights, Row
from analytics.week_times import median_of, seconds_of_the_healed


def totals(incidents: Sequence[Row]) -> dict[str, Any]:
    """The median is None where no healing was timed."""
    seconds = seconds_of_the_healed(incidents)
    return {
        "incidents": len(incidents),
        "failed_calls": sum(row["failed_calls"] for row in incidents),
        "healed": sum(row["outcome"] == HEALED for row in incidents),
        "paged": sum(row["paged"] for row in incidents),
        "median_seconds_to_heal": median_of(seconds),
        "healed_with_time": len(seconds),
    }


def queues_named(incidents: Iterable[Row]) -> int:
    return len({row["queue_arn"] for row in incidents} - {UNRESOLVED})


def counted(words: Iterable[str]) -> dict[str, int]:
    return dict(sorted(Counter(words).items()))


def day_rows(day: date, nights: Nights) -> list[dict[str, Any]]:
    """One row per label; a day without incidents has one with none."""
    incidents: Counter[str] = Counter()
    failed_calls: Counter[str] = Counter()
    for row in nights[day].incidents if day in nights else ():
        incidents[row["label"]] += 1
        failed_calls[row["label"]] += row["failed_calls"]
    if not incidents:
        return [{"date": str(day), "label": None, "incidents": 0, "failed_calls": 0}]
    return [
        {
            "date": str(day),
            "label": label,
            "incidents": incidents[label],
            "failed_calls": failed_calls[label],
        }
        for label in sorted(incidents)
    ]
