"""How long healing took: every time, or of many some that show the same shape."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from analytics.outcomes import HEALED
from analytics.week_rows import Row

MAXIMUM_SECONDS = 200
# Of fewer, the 90th percentile would be the longest by another name.
LEAST_FOR_A_PERCENTILE = 5


def seconds_of_the_healed(incidents: Iterable[Row]) -> list[float]:
    """Of those whose healing was timed, shortest first."""
    return sorted(row["seconds_to_heal"] for row in incidents if _was_timed(row))


def times_to_heal(incidents: Iterable[Row]) -> list[dict[str, Any]]:
    """A row per label: most healed first, then by name."""
    by_label: dict[str, list[Row]] = defaultdict(list)
    for row in incidents:
        if _was_timed(row):
            by_label[row["label"]].append(row)
    times = [_times(label, seconds_of_the_healed(rows)) for label, rows in by_label.items()]
    return sorted(times, key=lambda each: (-each["incidents"], each["label"]))


def median_of(ranked: Sequence[float]) -> float | None:
    """By nearest rank, so that it is a time that was measured; None of none."""
    return nearest_rank(ranked, 50) if ranked else None


def nearest_rank(ranked: Sequence[float], percent: int) -> float:
    """The least of `ranked`, sorted and not empty, that `percent` of them do not exceed."""
    return ranked[-(-percent * len(ranked) // 100) - 1]


def _was_timed(row: Row) -> bool:
    return row["outcome"] == HEALED and row["seconds_to_heal"] is not None


def _times(label: str, ranked: Sequence[float]) -> dict[str, Any]:
    enough = len(ranked) >= LEAST_FOR_A_PERCENTILE
    return {
        "label": label,
        "incidents": len(ranked),
        "median_seconds": median_of(ranked),
        "p90_seconds": nearest_rank(ranked, 90) if enough else None,
        "seconds": spread(ranked, MAXIMUM_SECONDS),
    }


def spread(ranked: Sequence[float], most: int) -> list[float]:
    """At most `most`, evenly spaced by rank, the first and the last among them."""
    if len(ranked) <= most:
        return list(ranked)
    return [ranked[each * (len(ranked) - 1) // (most - 1)] for each in range(most)]
