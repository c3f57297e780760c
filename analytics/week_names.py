"""Names without an end, such as callers' error codes: of them a week's document has the largest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from analytics.days import Days
from analytics.labels import UNLABELLED
from analytics.lives import shortened
from analytics.week_rows import Nights, Row, incidents_of

MAXIMUM_LABELS = 100
MAXIMUM_PLACES = 1_000
MOST_PLACE = 64
# The label of the codes beyond, together; a code's own has a colon.
FURTHER = "unlabelled"


@dataclass(frozen=True)
class Largest:
    """The names with most, sorted by name, and what is left out."""

    counts: Mapping[str, int]
    names_left_out: int = 0
    count_left_out: int = 0


def largest(counts: Mapping[str, int], most: int) -> Largest:
    """At most `most` of `counts`."""
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    beyond = ranked[most:]
    kept = dict(sorted(ranked[:most]))
    return Largest(kept, len(beyond), sum(count for _, count in beyond))


def places(rows: Iterable[Row], name: str) -> tuple[list[str], int]:
    """The accounts or regions with most `rows`, sorted, and how many more there are."""
    found = largest(Counter(row[name] for row in rows), MAXIMUM_PLACES)
    return sorted({shortened(each, MOST_PLACE) for each in found.counts}), found.names_left_out


def with_few_labels(days: Days, nights: Nights) -> tuple[Nights, int]:
    """`nights` with at most MAXIMUM_LABELS, and how many codes FURTHER stands for.

    What Mendq labels itself stays; of the codes without a label, those of most incidents.
    """
    weights = _weights(incidents_of(days, nights))
    if len(weights) <= MAXIMUM_LABELS:
        return nights, 0
    ranked = sorted(weights, key=lambda label: _rank(label, *weights[label]))
    kept = frozenset(ranked[: MAXIMUM_LABELS - 1])
    few = {
        day: replace(rows, incidents=[_labelled(row, kept) for row in rows.incidents])
        for day, rows in nights.items()
    }
    return few, len(weights) - len(kept)


def _weights(incidents: Iterable[Row]) -> dict[str, tuple[int, int]]:
    """The incidents and failed calls of each label."""
    number, calls = Counter[str](), Counter[str]()
    for row in incidents:
        number[row["label"]] += 1
        calls[row["label"]] += row["failed_calls"]
    return {label: (number[label], calls[label]) for label in number}


def _rank(label: str, incidents: int, failed_calls: int) -> tuple[bool, int, int, str]:
    return label.startswith(UNLABELLED), -incidents, -failed_calls, label


def _labelled(row: Row, kept: frozenset[str]) -> Row:
    return row if row["label"] in kept else {**row, "label": FURTHER}
