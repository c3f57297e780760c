"""Nightly runs of hostile days in every order, held row by row against a count in plain Python."""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path

from pyspark.sql import SparkSession

from analytics.days import Days
from analytics.session import session
from mendq.nightly.verdict import FALLBACK, NATIVE
from tests.analytics.outsider.compared import disagreements, tables
from tests.analytics.outsider.plain_count import count
from tests.analytics.outsider.ran import backfill, nightly, run
from tests.analytics.outsider.scene import Scene, Size, scene
from tests.prove.proof import Proof, Proving

SEEDS = (1, 2, 3)
LARGE = Size(bursts=400, chained=290, records_of_largest_file=24)
_SHOWN = 5


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
    for name, (runs, reader) in orders(hostile).items():
        out = folder / name
        run(spark, hostile, out, runs, reader)
        differing, found = disagreements(out, counted), tables(out)
        claim = f"seed {seed}, {name}, {reader}: what an outsider counts"
        proving.holds(claim, whether=not differing)
        proving.failures.extend(differing[:_SHOWN])
        written.append(found)
        tally += Counter({f"rows_of_{t}": sum(map(len, found[t].values())) for t in found})
        tally["nightly_runs"] += len(runs)
    same = all(each == written[0] for each in written)
    proving.holds(f"seed {seed}: every order writes the same rows", whether=same)
    return tally


def orders(hostile: Scene) -> dict[str, tuple[list[Days], str]]:
    """What the contract allows; the readers come to the same rows."""
    days = hostile.days
    return {
        "in order": (nightly(days), NATIVE),
        "reversed, one twice": (nightly([*days[::-1], days[1]]), FALLBACK),
        "backfill": (backfill(days), NATIVE),
        "backfill without wheels": (backfill(days), FALLBACK),
    }


COUNTED_NIGHTLY_RUNS = (
    Proof(
        "counted_nightly_runs",
        "Nightly runs in any order, repeated or as one backfill, write what plain Python counts.",
        prove,
        alone=True,
    ),
)
