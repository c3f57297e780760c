"""What the nightly job costs: reading against the limit, growth, small files, sessions, whole
nightly runs.

Spark's rounds share one warm session of this process, two cores of it; only the whole nightly runs
and the sessions' memory are processes of their own, from their start to their end.
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
from bench.rounds import Cost, Measure, Way, measured, process_cost, take
from bench.trail import DAY, Trail, trail
from mendq.nightly.verdict import FALLBACK, NATIVE

# The last files of a day are published on the next.
PUBLISHED = Days(DAY.date(), DAY.date() + timedelta(days=1))
READERS = {"native": Reader(NATIVE), "standard library": Reader(FALLBACK)}
# Failed calls of a key: so many, so far apart, then an hour's silence.
KEYS, BURST_CALLS, APART_SECONDS, SILENCE_SECONDS = 2_000, 20, 10, 3_600


class Size(NamedTuple):
    """The size of a trail."""

    files: int
    records_per_file: int

    @property
    def records(self) -> int:
        """The number of records."""
        return self.files * self.records_per_file

    @property
    def words(self) -> str:
        """As a table has it."""
        return f"{self.files:,} files of {self.records_per_file:,}"


ONCE, TENFOLD = Size(20, 10_000), Size(200, 10_000)
SMALL = Size(2_000, 100)
FEWER, TINY = Size(2_000, 500), Size(100_000, 10)
SESSIONS = (1_000_000, 10_000_000)
ROUNDS, SLOW_ROUNDS, FEW_ROUNDS = 5, 3, 2
# The same session as the nightly job's; what Spark costs whoever uses it at all.
EMPTY = """
import sys
from analytics.session import session
fields = "Records array<struct<eventSource: string, errorCode: string>>"
records = session().read.schema(fields).json(sys.argv[1], multiLine=True)
records.selectExpr("inline(Records)").write.parquet(sys.argv[2])
"""


def measures(console: Console, *, with_peers: bool) -> Iterator[Measure]:
    """Every measure of the nightly job, in the order of the page."""
    with ExitStack() as opened:
        limit, peers = opened.enter_context(readers.processes()), None
        if with_peers:
            readers.install_peers()
            peers = opened.enter_context(readers.processes(peers=True))
        spark = session()
        opened.callback(spark.stop)
        for name, title, rounds, ways in Nightly(spark, limit, peers).table():
            # What is taken once, or starts its own process, has nothing to warm up.
            dropped = 0 if rounds == 1 or name == "nightly_runs" else 1
            yield take(console, name, title, ways, rounds, dropped=dropped)


@dataclass
class Nightly:
    """The trails, the processes and the session that the ways share."""

    spark: SparkSession
    limit: Executor
    peers: Executor | None = None

    def table(self) -> Iterator[tuple[str, str, int, list[Way]]]:
        """(name, title, rounds, ways) of each measure."""
        read = self._read
        title = f"From gzip files to failed SQS calls, {ONCE.records:,} records"
        limit = self._limit(ONCE, "limit: isal + msgspec in two processes")
        ways = [limit, *(read(name, ONCE) for name in READERS)]
        yield "ingest", title, ROUNDS, ways
        ways = []
        for size in (ONCE, TENFOLD):
            ways += [self._limit(size, f"limit, {size.records:,}")]
            ways += [read("native", size, f"native reader, {size.records:,}")]
        made = trail(*TENFOLD)
        hand = partial(hand_over, self.spark, made)
        ways += [_reading(f"Spark hands the bytes to Python, {TENFOLD.records:,}", made, hand)]
        yield "growth", "The same for ten times the records", SLOW_ROUNDS, ways
        ways = [read("native", size, f"native reader, {size.words}") for size in (ONCE, SMALL)]
        title = "The same records in small files and in large ones"
        yield "files", title, SLOW_ROUNDS, ways
        if self.peers:
            title = "One question, asked of others too: how many SQS calls failed?"
            ways = [read("native", TENFOLD), *map(self._peer, readers.PEERS)]
            yield "peers", title, FEW_ROUNDS, ways
        ways = [
            Way(f"{n:,} calls", partial(measured, partial(find_sessions, self.spark, n)))
            for n in SESSIONS
        ]
        title = "Incidents from failed calls that are there already"
        yield "sessions", title, FEW_ROUNDS, ways
        ways = [
            Way(f"{n:,} calls", partial(process_cost, ("-m", "bench.nightly", f"{n}")))
            for n in SESSIONS
        ]
        yield "session memory", "The same, each in a process of its own", 1, ways
        title = "Whole nightly runs: python -m analytics.job backfill of one day, from start to end"
        ways = [self._empty(), *map(self._whole, (ONCE, TENFOLD))]
        yield "nightly_runs", title, SLOW_ROUNDS, ways
        title = "The same, once, of small files and of very small ones"
        yield "small_runs", title, 1, [*map(self._whole, (FEWER, TINY))]

    def _peer(self, name: str) -> Way:
        made, peers = trail(*TENFOLD), self.peers
        assert peers  # noqa: S101 - there are ways of theirs

        def go() -> None:
            found = peers.submit(readers.PEERS[name], made.files()).result()
            _expect("failed calls", found, made.truth.failed_sqs_calls)

        return _reading(name, made, go)

    def _limit(self, size: Size, name: str) -> Way:
        made = trail(*size)
        files, truth = made.files(), made.truth

        def go() -> None:
            found, known = readers.read_all(self.limit, files), truth.failed_sqs_calls
            _expect("inflated bytes, failed calls", found, (truth.raw_bytes, known))

        return _reading(name, made, go)

    def _read(self, reader: str, size: Size, name: str = "") -> Way:
        made = trail(*size)
        read = partial(read_trail, self.spark, made, reader)
        return _reading(name or f"{reader} reader", made, read)

    def _empty(self) -> Way:
        made = trail(*ONCE)

        def empty() -> Cost:
            with tempfile.TemporaryDirectory(prefix="mendq-bench-") as folder:
                return process_cost(("-c", EMPTY, f"file:{made.files()[0]}", f"{folder}/out"))

        return Way("Spark alone: one file read, one table written", empty)

    def _whole(self, size: Size) -> Way:
        made, day = trail(*size), f"{DAY:%Y-%m-%d}"

        def whole() -> Cost:
            with tempfile.TemporaryDirectory(prefix="mendq-bench-") as folder:
                (Path(folder) / "cases").mkdir()
                roots = {"trail": made.root, "cases": f"{folder}/cases", "out": f"{folder}/out"}
                words = [each for name, root in roots.items() for each in (f"--{name}", str(root))]
                job = ("-m", "analytics.job", "backfill", "--from", day, "--to", day)
                cost = process_cost((*job, *words))
                _expect("files written", len([*Path(folder).rglob(f"dt={day}/*.parquet")]), 3)
                return _with_bytes(cost, made)

        return Way(f"{size.records:,} records in {size.files:,} files", whole)


def _reading(name: str, made: Trail, go: Callable[[], None]) -> Way:
    return Way(name, lambda: _with_bytes(measured(go), made))


def _with_bytes(cost: Cost, made: Trail) -> Cost:
    return replace(cost, raw_bytes=made.truth.raw_bytes)


def _expect(what: str, found: object, expected: object) -> None:
    if found != expected:
        raise RuntimeError(f"{what} were {found}, not {expected}")


def read_trail(spark: SparkSession, made: Trail, name: str) -> None:
    """List, read and label as a nightly run does; raise RuntimeError where anything is missing."""
    root = open_root(str(made.root), spark)
    with root.staging() as stage, closing(TrailReader(spark, root, READERS[name], stage)) as reader:
        reader.read(PUBLISHED)
        found = reader.load_readings().agg(sf.sum(sf.size("calls")), sf.sum("records")).collect()[0]
    truth = made.truth
    _expect("failed calls, records", tuple(found), (truth.failed_sqs_calls, truth.records))


def hand_over(spark: SparkSession, made: Trail) -> None:
    """Have Python count the bytes of the files that Spark has read for it."""
    files = made.files()
    handed = load_binary_files(spark, "file:", sorted({str(each.parent) for each in files}))
    counted = handed.select("content").mapInArrow(_lengths, "bytes bigint")
    found = counted.agg(sf.sum("bytes")).collect()[0][0]
    _expect("bytes", found, sum(each.stat().st_size for each in files))


def _lengths(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for each in batches:
        yield pa.record_batch([pc.binary_length(each.column(0)).cast("int64")], ["bytes"])


def find_sessions(spark: SparkSession, calls: int) -> None:
    """Find the incidents of made-up calls; raise RuntimeError where they are not as many."""
    counts = sf.count("*"), sf.sum("failed_calls")
    found = group_into_bursts(failed_calls(spark, calls)).agg(*counts).collect()[0]
    of_each_key = -(-(calls // KEYS) // BURST_CALLS)
    _expect("incidents, calls", tuple(found), (KEYS * of_each_key, calls))


def failed_calls(spark: SparkSession, calls: int) -> DataFrame:
    """Calls that are computed where they are needed, so that no disk is measured."""
    key, number = sf.col("id") % KEYS, sf.floor(sf.col("id") / KEYS)
    burst, place = sf.floor(number / BURST_CALLS), number % BURST_CALLS
    every = BURST_CALLS * APART_SECONDS + SILENCE_SECONDS
    second = sf.lit(int(DAY.timestamp())) + burst * every + place * APART_SECONDS
    scope = "arn:aws:sqs:us-east-1:123456789012"
    same = {
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
        *(sf.lit(value).alias(name) for name, value in same.items()),
        sf.lit(None).cast("string").alias("ignored"),
        sf.lit("false").cast("boolean").alias("is_own_look"),
    )


if __name__ == "__main__":
    find_sessions(session(), int(sys.argv[1]))
