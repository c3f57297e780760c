"""Which queues failed on which day of the week."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from analytics.days import Days
from analytics.outcomes import MENDED
from analytics.week_rows import Nights, Row

MAXIMUM_QUEUES = 20


@dataclass
class _Queue:
    incidents: list[int] = field(default_factory=lambda: [0] * 7)
    failed_calls: int = 0
    not_healed: int = 0

    def add(self, day: int, row: Row) -> None:
        self.incidents[day] += 1
        self.failed_calls += row["failed_calls"]
        self.not_healed += row["outcome"] not in MENDED


def queue_days(days: Days, nights: Nights) -> dict[str, Any]:
    """The queues with most incidents, `unresolved` like any, and how much is left out."""
    queues: dict[str, _Queue] = {}
    for number, day in enumerate(days):
        for row in nights[day].incidents if day in nights else ():
            queues.setdefault(row["queue_arn"], _Queue()).add(number, row)
    ranked = sorted(queues.items(), key=_most_first)
    return {
        "queues": [
            {
                "queue_arn": queue_arn,
                "incidents": queue.incidents,
                "failed_calls": queue.failed_calls,
                "not_healed": queue.not_healed,
            }
            for queue_arn, queue in ranked[:MAXIMUM_QUEUES]
        ],
        **_left_out(ranked[MAXIMUM_QUEUES:]),
    }


def _most_first(item: tuple[str, _Queue]) -> tuple[int, int, str]:
    queue_arn, queue = item
    return -sum(queue.incidents), -queue.failed_calls, queue_arn


def _left_out(ranked: Sequence[tuple[str, _Queue]]) -> dict[str, int]:
    return {
        "queues_left_out": len(ranked),
        "incidents_left_out": sum(sum(queue.incidents) for _, queue in ranked),
    }
