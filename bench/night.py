"""What the night costs: reading against the limit, growth, small files, sessions, whole nights.

Spark's rounds share one warm session of this process, two cores of it; only the whole nights and
the sessions' memory are processes of their own, from their start to their end.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

from pyspark.sql import SparkSession

from analytics.session import session
from bench import limit, peers
from bench.process_tree import measured, sampled
from bench.rounds import ROOT, Cost, Measure, Way
from bench.spark_ways import READERS, count_by_read_json, find_sessions, read_trail
from bench.taking import Take
from bench.trail_files import Trail, trail
from bench.trail_records import DAY


class Size(NamedTuple):
    """A trail's."""

    files: int
    records_per_file: int

    @property
    def records(self) -> int:
        return self.files * self.records_per_file

    @property
    def words(self) -> str:
        return f"{self.files:,} files of {self.records_per_file:,}"


ONCE, TENFOLD = Size(20, 10_000), Size(200, 10_000)
SMALL, TINY = Size(2_000, 100), Size(100_000, 10)


@dataclass(frozen=True)
class Sizes:
    """What is read, and how often; a test takes less of everything."""

    once: Size = ONCE
    tenfold: Size = TENFOLD
    small: Size = SMALL
    tiny: Size = TINY
    sessions: tuple[int, ...] = (1_000_000, 10_000_000)
    rounds: int = 5
    slow_rounds: int = 3
    few_rounds: int = 2
    folder: Path = ROOT / "build" / "bench"


@dataclass
class Night:
    """The trails, the processes and the session that the ways share."""

    sizes: Sizes
    spark: SparkSession
    read_all: limit.ReadAll
    ask: peers.Ask | None
    trails: dict[Size, Trail] = field(default_factory=dict)

    def trail(self, size: Size) -> Trail:
        if size not in self.trails:
            self.trails[size] = trail(*size, self.sizes.folder)
        return self.trails[size]


def measures(take: Take, *, with_peers: bool, sizes: Sizes | None = None) -> Iterator[Measure]:
    with ExitStack() as opened:
        read_all = opened.enter_context(limit.processes())
        if with_peers:
            peers.installed()
        ask = opened.enter_context(peers.asked()) if with_peers else None
        spark = session()
        opened.callback(spark.stop)
        night = Night(sizes or Sizes(), spark, read_all, ask)
        yield from _measures(take, night)


def _measures(take: Take, night: Night) -> Iterator[Measure]:
    sizes = night.sizes
    reading = f"From gzip files to failed SQS calls, {sizes.once.records:,} records"
    yield take("ingest", reading, tuple(_ingest_ways(night)), sizes.rounds)
    growth = "The same for ten times the records"
    yield take("growth", growth, tuple(_growth_ways(night)), sizes.slow_rounds)
    fallback = "The same by the fallback, once"
    yield take("fallback growth", fallback, tuple(_fallback_ways(night)), 1, dropped=0)
    files = "The same records in small files and in large ones"
    yield take("files", files, tuple(_files_ways(night)), sizes.slow_rounds)
    if night.ask:
        beside = "One question, asked of others too: how many SQS calls failed?"
        yield take("peers", beside, tuple(_peers_ways(night, night.ask)), sizes.slow_rounds)
    sessions = "Incidents from failed calls that are there already"
    yield take("sessions", sessions, tuple(_session_ways(night)), sizes.few_rounds)
    alone = "The same, each in a process of its own"
    yield take("session memory", alone, tuple(_memory_ways(sizes)), 1, dropped=0)
    nights = "Whole nights: python -m analytics.job backfill of one day, from start to end"
    yield take("nights", nights, tuple(_night_ways(night)), sizes.few_rounds, dropped=0)
    tiny = "The same, once, of very small files"
    yield take("tiny files", tiny, (_night_way(night, sizes.tiny),), 1, dropped=0)


def _ingest_ways(night: Night) -> Iterator[Way]:
    made = night.trail(night.sizes.once)
    yield Way("inflate alone (isal, two processes)", _limit(night, limit.inflate, made))
    yield Way("limit: isal + msgspec in two processes", _limit(night, limit.parse, made))
    for name in READERS:
        yield Way(f"{name} reader", _read(night, name, made))
    count = partial(count_by_read_json, night.spark, made)
    yield Way("spark.read.json, counting alone", _reading(made, count))


def _growth_ways(night: Night) -> Iterator[Way]:
    for size in (night.sizes.once, night.sizes.tenfold):
        made = night.trail(size)
        yield Way(f"limit, {size.records:,}", _limit(night, limit.parse, made))
        yield Way(f"native reader, {size.records:,}", _read(night, "native", made))


def _fallback_ways(night: Night) -> Iterator[Way]:
    for size in (night.sizes.once, night.sizes.tenfold):
        read = _read(night, "standard library", night.trail(size))
        yield Way(f"standard library reader, {size.records:,}", read)


def _files_ways(night: Night) -> Iterator[Way]:
    for size in (night.sizes.once, night.sizes.small):
        for name in READERS:
            yield Way(f"{name} reader, {size.words}", _read(night, name, night.trail(size)))


def _peers_ways(night: Night, ask: peers.Ask) -> Iterator[Way]:
    made = night.trail(night.sizes.once)

    def answer(peer: str) -> None:
        _expect(peer, ask(peer, made.files()), made.truth.failed_sqs_calls)

    yield Way("native reader", _read(night, "native", made))
    for peer in ("Polars", "DuckDB"):
        yield Way(peer, _reading(made, partial(answer, peer)))


def _session_ways(night: Night) -> Iterator[Way]:
    for calls in night.sizes.sessions:
        find = partial(find_sessions, night.spark, calls)
        yield Way(f"{calls:,} calls", partial(measured, find))


def _memory_ways(sizes: Sizes) -> Iterator[Way]:
    for calls in sizes.sessions:
        words = ("bench.spark_ways", str(calls))
        yield Way(f"{calls:,} calls", partial(process_tree_cost, words))


def _night_ways(night: Night) -> Iterator[Way]:
    for size in (night.sizes.once, night.sizes.tenfold):
        yield _night_way(night, size)


def _night_way(night: Night, size: Size) -> Way:
    made = night.trail(size)

    def whole() -> Cost:
        with tempfile.TemporaryDirectory(prefix="mendq-bench-") as folder:
            (Path(folder) / "cases").mkdir()
            roots = {"trail": made.root, "cases": f"{folder}/cases", "out": f"{folder}/out"}
            day = f"{DAY:%Y-%m-%d}"
            words = [each for name, root in roots.items() for each in (f"--{name}", str(root))]
            cost = process_tree_cost(
                ["analytics.job", "backfill", "--from", day, "--to", day, *words]
            )
            _expect("files written", len([*Path(folder).rglob(f"dt={day}/*.parquet")]), 3)
            return _with_bytes(cost, made)

    return Way(f"{size.records:,} records in {size.files:,} files", whole)


def _limit(night: Night, read: Callable[[Path], limit.Found], made: Trail) -> Callable[[], Cost]:
    files = made.files()

    def go() -> None:
        found = night.read_all(read, files)
        _expect("inflated bytes", found.raw_bytes, made.truth.raw_bytes)
        if read is limit.parse:
            _expect("failed calls", found.failed_sqs_calls, made.truth.failed_sqs_calls)

    return _reading(made, go)


def _read(night: Night, reader: str, made: Trail) -> Callable[[], Cost]:
    return _reading(made, partial(read_trail, night.spark, made, reader))


def _reading(made: Trail, go: Callable[[], None]) -> Callable[[], Cost]:
    return lambda: _with_bytes(measured(go), made)


def _with_bytes(cost: Cost, made: Trail) -> Cost:
    return replace(cost, compressed_bytes=made.truth.bytes, raw_bytes=made.truth.raw_bytes)


def process_tree_cost(words: Sequence[str]) -> Cost:
    """A Python process with all that it starts; raise RuntimeError where it fails."""
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(
            [sys.executable, "-m", *words], stdout=said, stderr=said, cwd=ROOT
        )
        with sampled(process.pid) as peak:
            cost = measured(lambda: _ended(process))
        if process.returncode:
            said.seek(0)
            raise RuntimeError(f"{' '.join(words)} failed:\n{said.read().decode()[-2_000:]}")
    return Cost(cost.wall_ms, 1000 * peak.cpu_seconds, peak_mb=peak.bytes / 1e6)


def _ended(process: subprocess.Popen[bytes]) -> None:
    process.wait()


def _expect(what: str, found: int, expected: int) -> None:
    if found != expected:
        raise RuntimeError(f"{what}: {found}, not {expected}")
