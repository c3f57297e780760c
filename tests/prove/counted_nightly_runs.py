"""Nightly runs of hostile days in every order, held row by row against a count in plain Python."""

from __future__ import annotations

import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession

from analytics.days import Days
from analytics.session import session
from mendq.nightly.verdict import FALLBACK, NATIVE
from tests.analytics.outsider.compared import disagreements, tables
from tests.analytics.outsider.plain_count import Count, count
from tests.analytics.outsider.ran import backfill, nightly, run
from tests.analytics.outsider.scene import Scene, Size, scene
from tests.prove.proof import Proof, Proving

SEEDS = (1, 2, 3)
LARGE = Size(bursts=400, chained=290, records_of_largest_file=24)
_SHOWN = 5


@dataclass(frozen=True)
class Order:
    """A way to come to the same tables."""

    name: str
    runs: list[Days]
    reader: str


def prove(proving: Proving) -> None:
    spark = session()
    # Interpreted plans: compiling them takes longer than three days of calls.
    spark.conf.set("spark.sql.codegen.wholeStage", value=False)
    spark.conf.set("spark.sql.codegen.factoryMode", "NO_CODEGEN")
    tally: Counter[str] = Counter()
    try:
        for turn, seed in enumerate(SEEDS):
            proving.progress(turn / len(SEEDS))
            with tempfile.TemporaryDirectory(prefix="mendq-outsider-") as folder:
                tally += _of_seed(proving, spark, Path(folder), seed)
    finally:
        spark.stop()
    proving.figure("seeds", len(SEEDS))
    for name, number in tally.items():
        proving.figure(name, number)


def _of_seed(proving: Proving, spark: SparkSession, folder: Path, seed: int) -> Counter[str]:
    """How much was compared."""
    hostile = scene(folder, seed, LARGE)
    counted = count(hostile.trail, hostile.cases)
    tally = Counter({"files": hostile.files})
    written = []
    for order in orders(hostile):
        out = folder / order.name
        run(spark, hostile, out, order.runs, order.reader)
        written.append(tables(out))
        tally += _compared(proving, out, counted, f"seed {seed}, {order.name}, {order.reader}")
        tally["nightly_runs"] += len(order.runs)
    same = all(each == written[0] for each in written)
    proving.holds(f"seed {seed}: every order writes the same rows", whether=same)
    return tally


def orders(hostile: Scene) -> tuple[Order, ...]:
    """What the contract allows; the readers come to the same rows."""
    days = hostile.days
    return (
        Order("in order", nightly(days), NATIVE),
        Order("reversed, one twice", nightly([*days[::-1], days[1]]), FALLBACK),
        Order("backfill", backfill(days), NATIVE),
        Order("backfill without wheels", backfill(days), FALLBACK),
    )


def _compared(proving: Proving, out: Path, counted: Count, name: str) -> Counter[str]:
    differing = disagreements(out, counted)
    proving.holds(f"{name}: what an outsider counts", whether=not differing)
    proving.failures.extend(differing[:_SHOWN])
    found = tables(out)
    return Counter({f"rows_of_{table}": sum(map(len, found[table].values())) for table in found})


COUNTED_NIGHTLY_RUNS = (
    Proof(
        "counted_nightly_runs",
        "Nightly runs in any order, repeated or as one backfill, write what plain Python counts.",
        prove,
        alone=True,
    ),
)
