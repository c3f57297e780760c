"""Measure the nightly job.

The measures: reading a trail, compared with the fastest possible reader; ten times the records;
small files; finding bursts of failed calls; and whole nightly runs.

Spark runs in this process on two cores, with one session for all rounds. Only whole nightly runs,
and the memory for finding bursts, are measured as processes of their own.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor
from contextlib import ExitStack, closing
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from msgspec.structs import replace
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from rich.console import Console

from analytics.days import Days
from analytics.incidents import group_into_bursts
from analytics.session import session
from analytics.storage import open_root
from analytics.trail import Reader, TrailReader, load_binary_files
from bench import readers
from bench.rounds import Cost, Measure, Variant, measure_call, measure_process, take_measure
from bench.trail import DAY, MadeUpTrail, make_trail
from mendq.nightly.verdict import FALLBACK, NATIVE

# The last files of a day are published on the next.
PUBLISHED = Days(DAY.date(), DAY.date() + timedelta(days=1))
READERS = {"native": Reader(NATIVE), "standard library": Reader(FALLBACK)}
# The made-up failed calls: each of KEYS queues has bursts of BURST_CALLS calls that are
# APART_SECONDS apart, with SILENCE_SECONDS between bursts.
KEYS = 2_000
BURST_CALLS = 20
APART_SECONDS = 10
SILENCE_SECONDS = 3_600


class TrailSize(NamedTuple):
    """The size of a trail."""

    files: int
    records_per_file: int

    @property
    def records(self) -> int:
        """Number of records in all files."""
        return self.files * self.records_per_file

    @property
    def words(self) -> str:
        """The size in words, such as `2,000 files of 100`."""
        return f"{self.files:,} files of {self.records_per_file:,}"


ONCE = TrailSize(20, 10_000)
TENFOLD = TrailSize(200, 10_000)
# As many records as ONCE, in small files.
SMALL = TrailSize(2_000, 100)
# 1,000,000 records in small files, and in very small ones.
MANY_SMALL = TrailSize(2_000, 500)
MANY_TINY = TrailSize(100_000, 10)
# The numbers of failed calls in which bursts are found.
FAILED_CALLS = (1_000_000, 10_000_000)
ROUNDS = 5
SLOW_ROUNDS = 3
FEW_ROUNDS = 2
# A program that only starts the nightly job's Spark session, reads a file and writes a table: every
# Spark job costs at least this.
SPARK_ALONE = """
import sys
from analytics.session import session
fields = "Records array<struct<eventSource: string, errorCode: string>>"
records = session().read.schema(fields).json(sys.argv[1], multiLine=True)
records.selectExpr("inline(Records)").write.parquet(sys.argv[2])
"""


class _Plan(NamedTuple):
    """A planned measurement: its name, title, number of rounds and variants."""

    name: str
    title: str
    rounds: int
    variants: list[Variant]

    @property
    def warm_up_rounds(self) -> int:
        """The number of rounds to drop. Single rounds and whole processes have no warm-up."""
        if self.rounds == 1 or self.name == "nightly_runs":
            return 0
        return 1


def take_measures(console: Console, *, with_peers: bool) -> Iterator[Measure]:
    """Take all measures of the nightly job, in the order of the page.

    If `with_peers`, DuckDB and Polars are installed and measured too.
    """
    with ExitStack() as stack:
        limit = stack.enter_context(readers.start_processes())
        peers: Executor | None = None
        if with_peers:
            readers.install_peers()
            peers = stack.enter_context(readers.start_processes(peers=True))
        spark = session()
        stack.callback(spark.stop)
        for plan in NightlyPlans(spark, limit, peers).list_plans():
            yield take_measure(
                console,
                plan.name,
                plan.title,
                plan.variants,
                plan.rounds,
                dropped=plan.warm_up_rounds,
            )


@dataclass
class NightlyPlans:
    """The session and the processes that the measures of the nightly job share."""

    spark: SparkSession
    limit: Executor  # the processes of the fastest possible reader
    peers: Executor | None = None  # the process of DuckDB and Polars, if they are measured

    def list_plans(self) -> Iterator[_Plan]:
        """Yield each measure. Its trails are made just before, if they do not exist yet."""
        yield _Plan(
            "ingest",
            f"From gzip files to failed SQS calls, {ONCE.records:,} records",
            ROUNDS,
            [
                self._make_limit(ONCE, "limit: isal + msgspec in two processes"),
                *(self._make_reader(reader, ONCE, f"{reader} reader") for reader in READERS),
            ],
        )
        yield _Plan(
            "growth",
            "The same for ten times the records",
            SLOW_ROUNDS,
            [
                self._make_limit(ONCE, f"limit, {ONCE.records:,}"),
                self._make_reader("native", ONCE, f"native reader, {ONCE.records:,}"),
                self._make_limit(TENFOLD, f"limit, {TENFOLD.records:,}"),
                self._make_reader("native", TENFOLD, f"native reader, {TENFOLD.records:,}"),
                self._make_hand_over(TENFOLD),
            ],
        )
        yield _Plan(
            "files",
            "The same records in small files and in large ones",
            SLOW_ROUNDS,
            [
                self._make_reader("native", ONCE, f"native reader, {ONCE.words}"),
                self._make_reader("native", SMALL, f"native reader, {SMALL.words}"),
            ],
        )
        if self.peers:
            yield _Plan(
                "peers",
                "One question, asked of others too: how many SQS calls failed?",
                FEW_ROUNDS,
                [
                    self._make_reader("native", TENFOLD, "native reader"),
                    *(self._make_peer(self.peers, name) for name in readers.PEERS),
                ],
            )
        yield _Plan(
            "sessions",
            "Incidents from failed calls that are there already",
            FEW_ROUNDS,
            [self._make_burst_finder(calls) for calls in FAILED_CALLS],
        )
        yield _Plan(
            "session memory",
            "The same, each in a process of its own",
            1,
            [_make_burst_process(calls) for calls in FAILED_CALLS],
        )
        yield _Plan(
            "nightly_runs",
            "Whole nightly runs: python -m analytics.job backfill of one day, from start to end",
            SLOW_ROUNDS,
            [_make_spark_alone(), _make_nightly_run(ONCE), _make_nightly_run(TENFOLD)],
        )
        yield _Plan(
            "small_runs",
            "The same, once, of small files and of very small ones",
            1,
            [_make_nightly_run(MANY_SMALL), _make_nightly_run(MANY_TINY)],
        )

    def _make_limit(self, size: TrailSize, name: str) -> Variant:
        """Return the variant that reads a trail with the fastest possible reader."""
        trail = make_trail(*size)
        files = trail.files()

        def count() -> None:
            counts = readers.count_all(self.limit, files)
            expected = (trail.truth.raw_bytes, trail.truth.failed_sqs_calls)
            _require_equal("unpacked bytes, failed calls", counts, expected)

        return _make_reading_variant(name, trail, count)

    def _make_reader(self, reader: str, size: TrailSize, name: str) -> Variant:
        """Return the variant that reads a trail with one of the nightly job's readers."""
        trail = make_trail(*size)
        return _make_reading_variant(name, trail, partial(read_trail, self.spark, trail, reader))

    def _make_hand_over(self, size: TrailSize) -> Variant:
        """Return the variant in which Spark reads the bytes and Python only gets them."""
        trail = make_trail(*size)
        name = f"Spark hands the bytes to Python, {size.records:,}"
        return _make_reading_variant(name, trail, partial(hand_over, self.spark, trail))

    def _make_peer(self, peers: Executor, name: str) -> Variant:
        """Return the variant that reads a trail with DuckDB or Polars."""
        trail = make_trail(*TENFOLD)

        def count() -> None:
            failed = peers.submit(readers.PEERS[name], trail.files()).result()
            _require_equal("failed calls", failed, trail.truth.failed_sqs_calls)

        return _make_reading_variant(name, trail, count)

    def _make_burst_finder(self, calls: int) -> Variant:
        """Return the variant that groups made-up failed calls into bursts, in this process."""
        find = partial(find_bursts, self.spark, calls)
        return Variant(f"{calls:,} calls", partial(measure_call, find))


def _make_burst_process(calls: int) -> Variant:
    """Return the variant that groups made-up failed calls into bursts, in a new process."""
    command = ("-m", "bench.nightly", f"{calls}")
    return Variant(f"{calls:,} calls", partial(measure_process, command))


def _make_spark_alone() -> Variant:
    """Return the variant that runs SPARK_ALONE in a new process."""
    trail = make_trail(*ONCE)

    def run() -> Cost:
        with tempfile.TemporaryDirectory(prefix="mendq-bench-") as folder:
            file = f"file:{trail.files()[0]}"
            return measure_process(("-c", SPARK_ALONE, file, f"{folder}/out"))

    return Variant("Spark alone: one file read, one table written", run)


def _make_nightly_run(size: TrailSize) -> Variant:
    """Return the variant that runs the nightly job for one day, without cases, in a new process."""
    trail = make_trail(*size)
    day = f"{DAY:%Y-%m-%d}"

    def run() -> Cost:
        with tempfile.TemporaryDirectory(prefix="mendq-bench-") as folder:
            (Path(folder) / "cases").mkdir()
            cost = measure_process(
                (
                    *("-m", "analytics.job", "backfill", "--from", day, "--to", day),
                    *("--trail", str(trail.root)),
                    *("--cases", f"{folder}/cases"),
                    *("--out", f"{folder}/out"),
                )
            )
            tables = list(Path(folder).rglob(f"dt={day}/*.parquet"))
            _require_equal("files written", len(tables), 3)
            return _add_bytes(cost, trail)

    return Variant(f"{size.records:,} records in {size.files:,} files", run)


def _make_reading_variant(name: str, trail: MadeUpTrail, read: Callable[[], None]) -> Variant:
    """Return a variant that reads the whole trail, so that its cost has the trail's bytes."""

    def run() -> Cost:
        return _add_bytes(measure_call(read), trail)

    return Variant(name, run)


def _add_bytes(cost: Cost, trail: MadeUpTrail) -> Cost:
    return replace(cost, raw_bytes=trail.truth.raw_bytes)


def _require_equal(what: str, result: object, expected: object) -> None:
    """Raise RuntimeError if a result is wrong: a fast variant must also be right."""
    if result != expected:
        raise RuntimeError(f"{what} were {result}, not {expected}")


def read_trail(spark: SparkSession, trail: MadeUpTrail, name: str) -> None:
    """List, read and label a trail as a nightly run does. `name` is the reader's name.

    Raises:
        RuntimeError: if failed calls or records are missing.
    """
    root = open_root(str(trail.root), spark)
    with root.staging() as stage, closing(TrailReader(spark, root, READERS[name], stage)) as reader:
        reader.read(PUBLISHED)
        sums = reader.load_readings().agg(sf.sum(sf.size("calls")), sf.sum("records")).collect()[0]
    truth = trail.truth
    _require_equal("failed calls, records", tuple(sums), (truth.failed_sqs_calls, truth.records))


def hand_over(spark: SparkSession, trail: MadeUpTrail) -> None:
    """Let Spark read the files, and Python only count their bytes.

    Raises:
        RuntimeError: if bytes are missing.
    """
    files = trail.files()
    folders = sorted({str(file.parent) for file in files})
    contents = load_binary_files(spark, "file:", folders).select("content")
    sizes = contents.mapInArrow(_measure_lengths, "bytes bigint")
    total = sizes.agg(sf.sum("bytes")).collect()[0][0]
    _require_equal("bytes", total, sum(file.stat().st_size for file in files))


def _measure_lengths(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield pa.record_batch([pc.binary_length(batch.column(0)).cast("int64")], ["bytes"])


def find_bursts(spark: SparkSession, calls: int) -> None:
    """Group this number of made-up failed calls into bursts.

    Raises:
        RuntimeError: if their number is wrong.
    """
    bursts = group_into_bursts(make_failed_calls(spark, calls))
    counts = bursts.agg(sf.count("*"), sf.sum("failed_calls")).collect()[0]
    bursts_of_a_queue = -(-(calls // KEYS) // BURST_CALLS)  # rounded up
    _require_equal("incidents, calls", tuple(counts), (KEYS * bursts_of_a_queue, calls))


def make_failed_calls(spark: SparkSession, calls: int) -> DataFrame:
    """Return made-up failed calls. Spark computes them when it needs them, so no disk is read."""
    key = sf.col("id") % KEYS
    number = sf.floor(sf.col("id") / KEYS)
    burst = sf.floor(number / BURST_CALLS)
    place = number % BURST_CALLS
    burst_seconds = BURST_CALLS * APART_SECONDS + SILENCE_SECONDS
    second = sf.lit(int(DAY.timestamp())) + burst * burst_seconds + place * APART_SECONDS
    scope = "arn:aws:sqs:us-east-1:123456789012"
    constants = {
        "account": "123456789012",
        "region": "us-east-1",
        "symptom": "visibility_timeout_too_short",
        "error_code": "MessageNotInflight",
        "principal_arn": "arn:aws:iam::123456789012:role/orders-worker",
    }
    return spark.range(calls).select(
        sf.concat(sf.lit("event-"), "id").alias("event_id"),
        sf.timestamp_seconds(second).alias("event_time"),
        sf.concat(sf.lit(f"{scope}:queue-"), key).alias("queue_arn"),
        *(sf.lit(value).alias(name) for name, value in constants.items()),
        sf.lit(None).cast("string").alias("ignored"),
        sf.lit("false").cast("boolean").alias("is_own_look"),
    )


if __name__ == "__main__":
    find_bursts(session(), int(sys.argv[1]))
