"""Measure the nightly job.

The measures: reading a trail, compared with the fastest possible reader; ten times the records;
small files; finding bursts of failed calls; and whole nightly runs.

Spark runs in this process on two cores, with one session for all rounds. Of Spark's measures, only
whole nightly runs, and the memory for finding bursts, are measured as processes of their own. The
fastest possible reader, DuckDB and Polars have processes of their own too.
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
from analytics.session import start_session
from analytics.storage import open_root
from analytics.trail import Reader, TrailReader, load_binary_files
from bench import readers
from bench.rounds import Cost, Measure, Variant, measure_call, measure_process, measure_variants
from bench.trail import TRAIL_DAY, MadeUpTrail, make_trail
from mendq.nightly.verdict import FALLBACK_READER, NATIVE_READER

# The days on which CloudTrail publishes the trail's files. It publishes the last files of a day on
# the next day.
PUBLISHING_DAYS = Days(TRAIL_DAY.date(), TRAIL_DAY.date() + timedelta(days=1))
READER_BY_NAME = {"native": Reader(NATIVE_READER), "standard library": Reader(FALLBACK_READER)}
# The made-up failed calls: each of QUEUE_COUNT queues has bursts of CALLS_PER_BURST calls.
QUEUE_COUNT = 2_000
CALLS_PER_BURST = 20
SECONDS_BETWEEN_CALLS = 10
SECONDS_BETWEEN_BURSTS = 3_600


class TrailSize(NamedTuple):
    """The size of a trail."""

    files: int
    records_per_file: int

    @property
    def records(self) -> int:
        """Number of records in all files."""
        return self.files * self.records_per_file

    @property
    def size_text(self) -> str:
        """The size in words, such as `2,000 files of 100`."""
        return f"{self.files:,} files of {self.records_per_file:,}"


ONE_DAY_SIZE = TrailSize(20, 10_000)
TENFOLD_SIZE = TrailSize(200, 10_000)
# As many records as ONE_DAY_SIZE, in small files.
SMALL_FILES_SIZE = TrailSize(2_000, 100)
# 1,000,000 records in small files, and in very small ones.
MANY_SMALL_FILES_SIZE = TrailSize(2_000, 500)
MANY_TINY_FILES_SIZE = TrailSize(100_000, 10)
# The numbers of failed calls in which bursts are found.
FAILED_CALL_COUNTS = (1_000_000, 10_000_000)
# The numbers of counted rounds. A measure that takes longer has fewer.
INGEST_ROUNDS = 5
SLOW_MEASURE_ROUNDS = 3
ROUNDS_OF_SLOWEST_MEASURES = 2
# A program that only starts the nightly job's Spark session, reads a file and writes a table: every
# Spark job costs at least this.
SPARK_ALONE_PROGRAM = """
import sys
from analytics.session import start_session
fields = "Records array<struct<eventSource: string, errorCode: string>>"
records = start_session().read.schema(fields).json(sys.argv[1], multiLine=True)
records.selectExpr("inline(Records)").write.parquet(sys.argv[2])
"""


class _PlannedMeasure(NamedTuple):
    """A planned measurement: its name, title, number of counted rounds and variants."""

    name: str
    title: str
    rounds: int
    variants: list[Variant]

    @property
    def warm_up_rounds(self) -> int:
        """The number of rounds that are run first and dropped.

        0 if there is only one round, or if each variant is a whole process, which has no warm-up.
        """
        if self.rounds == 1 or self.name == "nightly_runs":
            return 0
        return 1


def run_measurements(console: Console, *, must_measure_peers: bool) -> Iterator[Measure]:
    """Take all measures of the nightly job, in the order of docs/performance.md, and yield them.

    If `must_measure_peers` is True, DuckDB and Polars are installed and measured too.
    """
    with ExitStack() as exit_stack:
        fastest_reader_pool = exit_stack.enter_context(readers.start_process_pool())
        peer_pool: Executor | None = None
        if must_measure_peers:
            readers.install_peers()
            peer_pool = exit_stack.enter_context(readers.start_process_pool(is_for_peers=True))
        spark = start_session()
        exit_stack.callback(spark.stop)
        for planned_measure in NightlyMeasurePlanner(
            spark, fastest_reader_pool, peer_pool
        ).list_plans():
            yield measure_variants(
                console,
                planned_measure.name,
                planned_measure.title,
                planned_measure.variants,
                planned_measure.rounds,
                dropped_rounds=planned_measure.warm_up_rounds,
            )


@dataclass
class NightlyMeasurePlanner:
    """Plans the measures of the nightly job, which share a Spark session and processes."""

    spark: SparkSession
    fastest_reader_pool: Executor  # the processes of the fastest possible reader
    peer_pool: Executor | None = None  # the process of DuckDB and Polars, if they are measured

    def list_plans(self) -> Iterator[_PlannedMeasure]:
        """Yield the planned measures.

        The trails of a measure are made just before it is yielded, if they do not exist yet.
        """
        yield _PlannedMeasure(
            "ingest",
            f"From gzip files to failed SQS calls, {ONE_DAY_SIZE.records:,} records",
            INGEST_ROUNDS,
            [
                self._make_fastest_reader_variant(
                    ONE_DAY_SIZE, "limit: isal + msgspec in two processes"
                ),
                *(
                    self._make_reader_variant(reader_name, ONE_DAY_SIZE, f"{reader_name} reader")
                    for reader_name in READER_BY_NAME
                ),
            ],
        )
        yield _PlannedMeasure(
            "growth",
            "The same for ten times the records",
            SLOW_MEASURE_ROUNDS,
            [
                self._make_fastest_reader_variant(ONE_DAY_SIZE, f"limit, {ONE_DAY_SIZE.records:,}"),
                self._make_reader_variant(
                    "native", ONE_DAY_SIZE, f"native reader, {ONE_DAY_SIZE.records:,}"
                ),
                self._make_fastest_reader_variant(TENFOLD_SIZE, f"limit, {TENFOLD_SIZE.records:,}"),
                self._make_reader_variant(
                    "native", TENFOLD_SIZE, f"native reader, {TENFOLD_SIZE.records:,}"
                ),
                self._make_byte_reader_variant(TENFOLD_SIZE),
            ],
        )
        yield _PlannedMeasure(
            "files",
            "The same records in small files and in large ones",
            SLOW_MEASURE_ROUNDS,
            [
                self._make_reader_variant(
                    "native", ONE_DAY_SIZE, f"native reader, {ONE_DAY_SIZE.size_text}"
                ),
                self._make_reader_variant(
                    "native", SMALL_FILES_SIZE, f"native reader, {SMALL_FILES_SIZE.size_text}"
                ),
            ],
        )
        if self.peer_pool:
            yield _PlannedMeasure(
                "peers",
                "One question, asked of others too: how many SQS calls failed?",
                ROUNDS_OF_SLOWEST_MEASURES,
                [
                    self._make_reader_variant("native", TENFOLD_SIZE, "native reader"),
                    *(
                        self._make_peer_variant(self.peer_pool, peer_name)
                        for peer_name in readers.COUNTING_FUNCTION_BY_PEER
                    ),
                ],
            )
        yield _PlannedMeasure(
            "sessions",
            "Incidents from failed calls that are there already",
            ROUNDS_OF_SLOWEST_MEASURES,
            [self._make_burst_finding_variant(call_count) for call_count in FAILED_CALL_COUNTS],
        )
        yield _PlannedMeasure(
            "session memory",
            "The same, each in a process of its own",
            1,
            [_make_burst_finding_process_variant(call_count) for call_count in FAILED_CALL_COUNTS],
        )
        yield _PlannedMeasure(
            "nightly_runs",
            "Whole nightly runs: python -m analytics.job backfill of one day, from start to end",
            SLOW_MEASURE_ROUNDS,
            [
                _make_spark_alone_variant(),
                _make_nightly_run_variant(ONE_DAY_SIZE),
                _make_nightly_run_variant(TENFOLD_SIZE),
            ],
        )
        yield _PlannedMeasure(
            "small_runs",
            "The same, once, of small files and of very small ones",
            1,
            [
                _make_nightly_run_variant(MANY_SMALL_FILES_SIZE),
                _make_nightly_run_variant(MANY_TINY_FILES_SIZE),
            ],
        )

    def _make_fastest_reader_variant(self, trail_size: TrailSize, variant_name: str) -> Variant:
        """Return the variant that reads a trail with the fastest possible reader in Python."""
        trail = make_trail(*trail_size)
        files = trail.list_files()

        def count_trail() -> None:
            file_counts = readers.count_files(self.fastest_reader_pool, files)
            expected_counts = (trail.true_counts.raw_bytes, trail.true_counts.failed_sqs_calls)
            _require_equal("unpacked bytes, failed calls", file_counts, expected_counts)

        return _make_reading_variant(variant_name, trail, count_trail)

    def _make_reader_variant(
        self, reader_name: str, trail_size: TrailSize, variant_name: str
    ) -> Variant:
        """Return the variant that reads a trail with one of the nightly job's readers."""
        trail = make_trail(*trail_size)
        return _make_reading_variant(
            variant_name, trail, partial(read_trail, self.spark, trail, reader_name)
        )

    def _make_byte_reader_variant(self, trail_size: TrailSize) -> Variant:
        """Return the variant in which Spark reads the files and Python only gets their bytes."""
        trail = make_trail(*trail_size)
        variant_name = f"Spark hands the bytes to Python, {trail_size.records:,}"
        return _make_reading_variant(
            variant_name, trail, partial(hand_bytes_to_python, self.spark, trail)
        )

    def _make_peer_variant(self, peer_pool: Executor, peer_name: str) -> Variant:
        """Return the variant that reads the trail of TENFOLD_SIZE with DuckDB or Polars."""
        trail = make_trail(*TENFOLD_SIZE)

        def count_trail() -> None:
            failed_calls = peer_pool.submit(
                readers.COUNTING_FUNCTION_BY_PEER[peer_name], trail.list_files()
            ).result()
            _require_equal("failed calls", failed_calls, trail.true_counts.failed_sqs_calls)

        return _make_reading_variant(peer_name, trail, count_trail)

    def _make_burst_finding_variant(self, call_count: int) -> Variant:
        """Return the variant that groups made-up failed calls into bursts, in this process."""
        find_bursts_once = partial(find_bursts, self.spark, call_count)
        return Variant(f"{call_count:,} calls", partial(measure_call, find_bursts_once))


def _make_burst_finding_process_variant(call_count: int) -> Variant:
    """Return the variant that groups made-up failed calls into bursts, in a new process."""
    command = ("-m", "bench.nightly", f"{call_count}")
    return Variant(f"{call_count:,} calls", partial(measure_process, command))


def _make_spark_alone_variant() -> Variant:
    """Return the variant that runs SPARK_ALONE_PROGRAM in a new process."""
    trail = make_trail(*ONE_DAY_SIZE)

    def measure_run() -> Cost:
        with tempfile.TemporaryDirectory(prefix="mendq-bench-") as folder:
            file_uri = f"file:{trail.list_files()[0]}"
            return measure_process(("-c", SPARK_ALONE_PROGRAM, file_uri, f"{folder}/out"))

    return Variant("Spark alone: one file read, one table written", measure_run)


def _make_nightly_run_variant(trail_size: TrailSize) -> Variant:
    """Return the variant that runs the nightly job for one day in a new process.

    The run finds no cases.
    """
    trail = make_trail(*trail_size)
    trail_day = f"{TRAIL_DAY:%Y-%m-%d}"

    def measure_run() -> Cost:
        with tempfile.TemporaryDirectory(prefix="mendq-bench-") as folder:
            (Path(folder) / "cases").mkdir()
            cost = measure_process(
                (
                    *("-m", "analytics.job", "backfill", "--from", trail_day, "--to", trail_day),
                    *("--trail", str(trail.root)),
                    *("--cases", f"{folder}/cases"),
                    *("--out", f"{folder}/out"),
                )
            )
            table_files = list(Path(folder).rglob(f"dt={trail_day}/*.parquet"))
            _require_equal("files written", len(table_files), 3)
            return _add_unpacked_bytes(cost, trail)

    return Variant(f"{trail_size.records:,} records in {trail_size.files:,} files", measure_run)


def _make_reading_variant(
    variant_name: str, trail: MadeUpTrail, read_files: Callable[[], None]
) -> Variant:
    """Return a variant that calls `read_files`, which must read the whole trail.

    The variant's cost contains the trail's unpacked bytes, so that a reading rate can be computed.
    """

    def measure_run() -> Cost:
        return _add_unpacked_bytes(measure_call(read_files), trail)

    return Variant(variant_name, measure_run)


def _add_unpacked_bytes(cost: Cost, trail: MadeUpTrail) -> Cost:
    return replace(cost, raw_bytes=trail.true_counts.raw_bytes)


def _require_equal(value_names: str, measured_result: object, expected_result: object) -> None:
    """Raise RuntimeError if `result` is not `expected_result`.

    The cost of a variant with a wrong result would mean nothing. `value_names` says in the error
    which values were compared.
    """
    if measured_result != expected_result:
        raise RuntimeError(f"{value_names} were {measured_result}, not {expected_result}")


def read_trail(spark: SparkSession, trail: MadeUpTrail, reader_name: str) -> None:
    """List, read and label a trail as a nightly run does.

    `reader_name` is a key of READER_BY_NAME.

    Raises:
        RuntimeError: if the number of failed calls or of records is wrong.
    """
    root = open_root(str(trail.root), spark)
    with (
        root.staging() as staging_storage,
        closing(TrailReader(spark, root, READER_BY_NAME[reader_name], staging_storage)) as reader,
    ):
        reader.read(PUBLISHING_DAYS)
        sums_frame = reader.load_readings().agg(sf.sum(sf.size("calls")), sf.sum("records"))
        sums_row = sums_frame.collect()[0]
    true_counts = trail.true_counts
    _require_equal(
        "failed calls, records",
        tuple(sums_row),
        (true_counts.failed_sqs_calls, true_counts.records),
    )


def hand_bytes_to_python(spark: SparkSession, trail: MadeUpTrail) -> None:
    """Let Spark read the files and hand their bytes to Python, which only counts them.

    Raises:
        RuntimeError: if the number of bytes is wrong.
    """
    files = trail.list_files()
    folders = sorted({str(file.parent) for file in files})
    file_contents = load_binary_files(spark, "file:", folders).select("content")
    file_sizes = file_contents.mapInArrow(_measure_content_lengths, "bytes bigint")
    total_bytes = file_sizes.agg(sf.sum("bytes")).collect()[0][0]
    _require_equal("bytes", total_bytes, sum(file.stat().st_size for file in files))


def _measure_content_lengths(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield pa.record_batch([pc.binary_length(batch.column(0)).cast("int64")], ["bytes"])


def find_bursts(spark: SparkSession, call_count: int) -> None:
    """Group `call_count` made-up failed calls into bursts.

    Raises:
        RuntimeError: if the number of bursts, or of the calls in them, is wrong.
    """
    bursts = group_into_bursts(make_failed_calls(spark, call_count))
    sums_row = bursts.agg(sf.count("*"), sf.sum("failed_calls")).collect()[0]
    bursts_per_queue = -(-(call_count // QUEUE_COUNT) // CALLS_PER_BURST)  # rounded up
    _require_equal(
        "incidents, calls", tuple(sums_row), (QUEUE_COUNT * bursts_per_queue, call_count)
    )


def make_failed_calls(spark: SparkSession, call_count: int) -> DataFrame:
    """Return `call_count` made-up failed calls.

    Spark computes them when it needs them, so nothing is read from disk.
    """
    queue_number = sf.col("id") % QUEUE_COUNT
    call_number = sf.floor(sf.col("id") / QUEUE_COUNT)
    burst_number = sf.floor(call_number / CALLS_PER_BURST)
    position_in_burst = call_number % CALLS_PER_BURST
    seconds_per_burst = CALLS_PER_BURST * SECONDS_BETWEEN_CALLS + SECONDS_BETWEEN_BURSTS
    call_epoch_seconds = (
        sf.lit(int(TRAIL_DAY.timestamp()))
        + burst_number * seconds_per_burst
        + position_in_burst * SECONDS_BETWEEN_CALLS
    )
    queue_arn_prefix = "arn:aws:sqs:us-east-1:123456789012"
    value_by_constant_column = {
        "account": "123456789012",
        "region": "us-east-1",
        "symptom": "visibility_timeout_too_short",
        "error_code": "MessageNotInflight",
        "principal_arn": "arn:aws:iam::123456789012:role/orders-worker",
    }
    return spark.range(call_count).select(
        sf.concat(sf.lit("event-"), "id").alias("event_id"),
        sf.timestamp_seconds(call_epoch_seconds).alias("event_time"),
        sf.concat(sf.lit(f"{queue_arn_prefix}:queue-"), queue_number).alias("queue_arn"),
        *(
            sf.lit(value).alias(column_name)
            for column_name, value in value_by_constant_column.items()
        ),
        sf.lit(None).cast("string").alias("ignored"),
        sf.lit("false").cast("boolean").alias("is_own_look"),
    )


if __name__ == "__main__":
    find_bursts(start_session(), int(sys.argv[1]))
