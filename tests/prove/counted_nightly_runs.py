"""Nightly runs of hostile days in every order, held row by row against a count in plain Python."""

from __future__ import annotations

import tempfile
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

from pyspark.sql import SparkSession

from analytics.days import Days
from analytics.nightly import NightlyRun
from analytics.session import start_session
from analytics.storage import open_root
from analytics.tables import Tables
from analytics.trail import Reader
from mendq.model.account_and_region import AccountAndRegion
from mendq.nightly.verdict import FALLBACK_READER, NATIVE_READER
from tests.analytics.recount.comparison import list_disagreements, read_tables
from tests.analytics.recount.plain_count import count_incidents
from tests.analytics.recount.scene import RecountScene, SceneSize, write_scene
from tests.prove.proof import Proof, Proving

SEEDS = (1, 2, 3)
LARGE = SceneSize(bursts=400, chained=290, records_of_largest_file=24)
MADE_AT = datetime(2026, 12, 24, tzinfo=UTC)
OUTCOMES = (
    "healed applied approved observed refused proposed declined expired escalated overridden "
    "rolled_back ineffective not_seen"
)
WHYS = (
    "unknown_code count_only unresolved_queue case_open too_little_evidence event_lost unknown "
    "not_managed not_tagged_in_time elsewhere no_evidence"
)
_SHOWN = 5


def prove(proving: Proving) -> None:
    spark = start_session()
    # Interpreted plans: compiling them takes longer than three days of calls.
    spark.conf.set("spark.sql.codegen.wholeStage", value=False)
    spark.conf.set("spark.sql.codegen.factoryMode", "NO_CODEGEN")
    tally: Counter[str] = Counter()
    try:
        for turn, seed in enumerate(SEEDS):
            proving.progress(turn / len(SEEDS))
            with tempfile.TemporaryDirectory(prefix="mendq-outsider-") as folder:
                tally += _compare_runs_of_seed(proving, spark, Path(folder), seed)
    finally:
        spark.stop()
    proving.figure("seeds", len(SEEDS))
    for name, number in tally.items():
        proving.figure(name, number)


def _compare_runs_of_seed(
    proving: Proving, spark: SparkSession, folder: Path, seed: int
) -> Counter[str]:
    """How much was compared."""
    hostile = write_scene(folder, seed, LARGE)
    counted = count_incidents(hostile.trail, hostile.cases)
    rows = [record for of_day in counted.incidents.values() for record in of_day]
    for name, words in (("outcome", OUTCOMES), ("why", WHYS)):
        met = {row[name] for row in rows} - {None}
        proving.holds(f"seed {seed}: every {name} occurs", whether=met == set(words.split()))
    tally = Counter({"files": hostile.files})
    written = []
    for name, (runs, reader) in orders(hostile).items():
        out = folder / name
        _run(spark, hostile, out, runs, reader)
        differing = list_disagreements(out, counted)
        found = read_tables(out)
        claim = f"seed {seed}, {name}, {reader.name}: what an outsider counts"
        proving.holds(claim, whether=not differing)
        proving.failures.extend(differing[:_SHOWN])
        written.append(found)
        tally += Counter({f"rows_of_{t}": sum(map(len, found[t].values())) for t in found})
        tally["nightly_runs"] += len(runs)
    proving.failures.extend(
        _list_one_place_differences(spark, hostile, folder / "one place", tally)
    )
    same = all(row == written[0] for row in written)
    proving.holds(f"seed {seed}: every order writes the same rows", whether=same)
    return tally


def _list_one_place_differences(
    spark: SparkSession, hostile: RecountScene, out: Path, tally: Counter[str]
) -> list[str]:
    """What differs where a run is asked for one account and region of all that lie there."""
    home = AccountAndRegion("111122223333", "us-east-1")
    _run(
        spark, hostile, out, [Days(hostile.days[0], hostile.days[-1])], Reader(NATIVE_READER), home
    )
    counted = count_incidents(hostile.trail, hostile.cases, (home.account, home.region))
    tally["rows_of_one_place"] += sum(map(len, counted.incidents.values()))
    return list_disagreements(out, counted)[:_SHOWN]


def orders(hostile: RecountScene) -> dict[str, tuple[list[Days], Reader]]:
    """What the contract allows; the readers come to the same rows, on the driver or by Spark."""
    first, second, third = nights = [Days(day, day) for day in hostile.days]
    backfill = [first | third]
    return {
        "in order": (nights, Reader(NATIVE_READER)),
        "reversed, one twice": ([third, second, first, second], Reader(FALLBACK_READER)),
        "backfill": (backfill, Reader(NATIVE_READER, maximum_driver_bytes=0)),
        "backfill without wheels": (backfill, Reader(FALLBACK_READER, maximum_driver_bytes=0)),
    }


def _run(  # noqa: PLR0917 - a night's circumstances
    spark: SparkSession,
    hostile: RecountScene,
    out: Path,
    runs: list[Days],
    reader: Reader,
    home: AccountAndRegion | None = None,
) -> None:
    """Write the tables of `runs`, one after another, as the named reader reads the trail."""
    roots = (hostile.trail, hostile.cases, hostile.findings, out)
    trail, cases, findings, into = (open_root(str(root), spark) for root in roots)
    written_tables = Tables(spark, into, lambda _: None)
    nightly = NightlyRun(written_tables, trail, cases, findings, MADE_AT, reader, home)
    for days in runs:
        nightly.write(days)


COUNTED_NIGHTLY_RUNS = (
    Proof(
        "counted_nightly_runs",
        "Nightly runs in any order, repeated or as one backfill, write what plain Python counts.",
        prove,
        alone=True,
    ),
)
