"""What was asked for, beside what was measured. A machine that misses a goal is told so."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from bench.rounds import Cost, Measure, aws_calls, middle, paired_ratio, peak, wall


@dataclass(frozen=True)
class Goal:
    """A way of a measure, by itself or against another, takes at most or at least so much."""

    text: str
    measure: str
    way: str
    of: Callable[[Cost], float]
    against: str | None = None
    at_most: float | None = None
    at_least: float | None = None
    stretch: float | None = None
    unit: str = " x"

    @property
    def bound(self) -> str:
        if self.at_least is not None:
            return f"≥ {self.worded(self.at_least)}"
        stretch = f", stretch {self.worded(self.stretch)}" if self.stretch is not None else ""
        return f"≤ {self.worded(self.at_most or 0)}{stretch}"

    def found(self, measures: Mapping[str, Measure]) -> float | None:
        """None where it was not measured."""
        measure = measures.get(self.measure)
        costs = measure.costs.get(self.way) if measure else None
        if not measure or not costs:
            return None
        if self.against is None:
            return middle(costs, self.of)
        floor = measure.costs.get(self.against)
        return paired_ratio(costs, floor, self.of) if floor else None

    def verdict(self, found: float) -> str:
        met = found >= self.at_least if self.at_least is not None else found <= (self.at_most or 0)
        if not met:
            return "missed"
        return "met, stretch too" if self.stretch is not None and found <= self.stretch else "met"

    def worded(self, amount: float) -> str:
        return f"{amount:,.4g}{self.unit}" if amount < 1000 else f"{amount:,.0f}{self.unit}"


GOALS = [
    Goal(
        "ingest of 2 million records, against isal + msgspec in two processes",
        *("growth", "native reader, 2,000,000", wall),
        against="limit, 2,000,000",
        at_most=1.4,
        stretch=1.2,
    ),
    Goal(
        "ingest, faster than Polars",
        *("peers", "Polars", wall),
        against="native reader",
        at_least=3,
    ),
    Goal(
        "ingest, faster than DuckDB",
        *("peers", "DuckDB", wall),
        against="native reader",
        at_least=15,
    ),
    Goal(
        "2,000 small files, against the same volume in large ones",
        *("files", "native reader, 2,000 files of 100", wall),
        against="native reader, 20 files of 10,000",
        at_most=2,
    ),
    Goal(
        "sessions of 10 million calls, against 1 million",
        *("sessions", "10,000,000 calls", wall),
        against="1,000,000 calls",
        at_most=8,
    ),
    Goal(
        "peak memory of the same",
        *("session memory", "10,000,000 calls", peak),
        against="1,000,000 calls",
        at_most=1.25,
    ),
    Goal(
        "peak memory of a night of 2 million records, driver and workers",
        *("nights", "2,000,000 records in 200 files", peak),
        at_most=2_500,
        unit=" MB",
    ),
    # Beyond the floor's 190 ms of CPU, compiled: 75 for our own modules, most of it frozen
    # dataclasses; 40 for the clients of the ledger (8), Lambda (8), the case bucket (19) and
    # writes (3); 2 to 4 for the first call of each kind.
    Goal(
        "a mended queue, cold, against the AWS client with one call",
        *("cold", "heal, one mended queue", wall),
        against="boto3 SQS client, one call",
        at_most=1.4,
    ),
    # Twelve: its tags (whose it is, and what lowers its mode), the ledger (kill switch, open case,
    # what a run that died has left), who else shows the symptom and the note that it does (many at
    # once are not written), its attributes, its consumers (they name the need), the claim with
    # snapshot and budget, its attributes again (compared before the write), the write, the record,
    # the case bucket's object, and that it lies there. Six leave some of that out.
    Goal("AWS calls of a mended queue", "warm", "mended queue", aws_calls, at_most=6, unit=""),
    # Five, the first five of those: only the last looks at the queue. One would be to act on a
    # queue before asking whose it is, and to leave a dead run's claim where it lies.
    Goal("AWS calls of a healthy queue", "warm", "healthy queue", aws_calls, at_most=1, unit=""),
    Goal(
        "AWS calls of 10,000 events, which come in ten batches, against one batch of 10",
        *("storm", "10,000 events of one queue", aws_calls),
        against="10 events of one queue",
        at_most=10,
    ),
]
