"""The trail's files: which of them a run reads, and a row per file with its failed calls in it.

By publish folder, neighbours of the log files left out.
https://docs.aws.amazon.com/awscloudtrail/latest/userguide/get-and-view-log-files.html
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import date
from functools import cached_property, partial, reduce
from itertools import groupby
from time import monotonic
from typing import Any, NamedTuple

from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from analytics.days import Days
from analytics.incidents import FAULTS, failed_calls
from analytics.storage import Storage
from analytics.trail_file import (
    MAXIMUM_BYTES,
    SPARK_CALL,
    WHY_NOT_NATIVE,
    Reading,
    call_row,
    file_reader,
)
from mendq.catalogue import Home
from mendq.nightly.verdict import FALLBACK, NATIVE, day_named

try:
    import pyarrow as pa
    from pyspark.sql.pandas.types import to_arrow_schema
except Exception as error:  # noqa: BLE001 - a wheel for another machine raises more than ImportError
    WHY_NO_ARROW = f"cannot import pyarrow: {error}"
else:
    WHY_NO_ARROW = WHY_NOT_NATIVE

LOGS = "AWSLogs"
LOG_FILES = "CloudTrail"
DIGESTS = "CloudTrail-Digest"
# CloudTrail retries a delivery for 30 days; a nightly run that runs in time finds none of the later
# folders, so that the long reach costs only who runs an old night again.
LATE_DAYS = 30
SUFFIX = ".json.gz"
# Of a file that was to be read, and that Spark hides or that was gone.
NOT_READ = "not_read"
SPARK_READING = (
    "file string, reason string, records bigint, "
    f"unreadable_records {FAULTS}, calls array<{SPARK_CALL}>"
)
_MAXIMUM_CALLS = 20_000
# A trail of so many bytes is read on the driver: Spark takes longer to start its Python workers
# and to hand them the bytes. The standard library takes eight times as long.
DRIVER_BYTES, SLOWNESS = 384 * 1024 * 1024, 8
# Packed small there may be any number of failed calls, which Spark can put down on disk, and files
# that take long to read, for which it has executors.
DRIVER_CALLS, DRIVER_SECONDS = 25_000, 120
# S3 answers a request in some ten milliseconds, however small the file; what is fetched ahead of
# the reader is in memory.
_READ_AT_ONCE, _READ_AHEAD = 16, 128


class PublishFolder(NamedTuple):
    """One publish day of one account and region."""

    folder: str
    account: str
    region: str
    published: date


class Listed(NamedTuple):
    """What lies in a publish folder under a log file's name, or is a file of another."""

    file: str
    bytes: int
    account: str
    region: str
    published: date
    is_file: bool

    @property
    def why_not_read(self) -> str:
        """Why nothing in it was read, if nothing was."""
        whys = {
            "no_file": not self.is_file,
            "empty": not self.bytes,
            "not_json_gz": not self.file.endswith(SUFFIX),
            "too_large": self.bytes > MAXIMUM_BYTES,
        }
        return next((why for why, holds in whys.items() if holds), NOT_READ)


def _is_hidden(name: str) -> bool:
    """Whether Spark opens no file of that name."""
    return name.startswith(".") or (name.startswith("_") and "=" not in name)


def branches(
    trail: Storage, home: Home | None, kind: str = LOG_FILES
) -> list[tuple[str, str, str]]:
    """(folder, account, region) of each, or of `home` alone, whatever else lies there.

    An organization's trail has its id above the accounts.
    """
    above = [LOGS, *(f"{LOGS}/{each}" for each in trail.folders(LOGS) if each.startswith("o-"))]
    return [
        (f"{folder}/{account}/{kind}/{region}", account, region)
        for folder in above
        for account in ([home.account] if home else trail.folders(folder))
        if not account.startswith("o-")
        for region in ([home.region] if home else trail.folders(f"{folder}/{account}/{kind}"))
    ]


def publish_folders(
    trail: Storage, branch: tuple[str, str, str], days: Days
) -> Iterator[PublishFolder]:
    """The folders of `days` that are there."""
    folder, account, region = branch
    for month, of_month in groupby(days, key=lambda day: f"{folder}/{day:%Y/%m}"):
        names = trail.folders(month)
        for day in of_month:
            if f"{day:%d}" in names:
                yield PublishFolder(f"{month}/{day:%d}", account, region, day)


def began(trail: Storage, home: Home | None = None) -> date | None:
    """The first publish day of any log file or digest; None where there is none yet."""
    folders = [each for kind in (LOG_FILES, DIGESTS) for each, *_ in branches(trail, home, kind)]
    return min(filter(None, (_first_day(trail, each) for each in folders)), default=None)


def _first_day(trail: Storage, folder: str) -> date | None:
    for year in trail.folders(folder):
        for month in trail.folders(f"{folder}/{year}"):
            for day in trail.folders(f"{folder}/{year}/{month}"):
                if found := day_named(f"{year}-{month}-{day}"):
                    return found
    return None


@dataclass(frozen=True)
class Reader:
    """NATIVE or FALLBACK; `why` says what the native one lacks here, empty where it runs."""

    name: str
    why: str = ""
    driver_bytes: int = DRIVER_BYTES

    @classmethod
    def of_this_process(cls) -> Reader:
        """The native one where its wheels import; executors have the same archive."""
        return cls(FALLBACK, WHY_NO_ARROW) if WHY_NO_ARROW else cls(NATIVE)

    def reads_here(self, size: int) -> bool:
        """Whether so many bytes are less work for the driver than for Spark."""
        return size <= self.driver_bytes // (1 if self.name == NATIVE else SLOWNESS)

    def rows(self, trail: Storage, files: Sequence[tuple[str, int]]) -> list[dict[str, Any]] | None:
        """What `readings` has of these files, read one after another by this process.

        Each is a path and its size when it was listed: no more of it is read. None where they hold
        more failed calls than it should, or take longer.
        """
        read, calls = file_reader(native=self.name == NATIVE), 0
        until = monotonic() + DRIVER_SECONDS
        rows: list[dict[str, Any]] = []
        with ThreadPoolExecutor(_READ_AT_ONCE) as threads:
            for first in range(0, len(files), _READ_AHEAD):
                some = files[first : first + _READ_AHEAD]
                contents = threads.map(lambda each: trail.read(*each), some)
                for (path, _), content in zip(some, contents, strict=True):
                    if content is not None:
                        rows.append(_row(path, read(content)))
                        calls += len(rows[-1]["calls"])
                    if calls > DRIVER_CALLS or monotonic() > until:
                        return None
        return rows

    def readings(self, files: DataFrame, root: str) -> DataFrame:
        """A row per file of Spark's binaryFile; `root` is what their paths begin with.

        Both readers give the same rows, because reading and labelling are `mendq.model` and
        `mendq.catalogue` themselves, in Python on the executors.
        """
        small = files.where(sf.col("length") <= MAXIMUM_BYTES).select("path", "content")
        spark = files.sparkSession
        if self.name == NATIVE:
            schema = to_arrow_schema(spark.createDataFrame([], SPARK_READING).schema)
            return small.mapInArrow(partial(_arrow_batches, root, schema), SPARK_READING)
        rows = small.rdd.mapPartitions(partial(_rows, root))
        return spark.createDataFrame(rows, SPARK_READING, verifySchema=False)


def _rows(root: str, files: Iterable[Any]) -> Iterator[dict[str, Any]]:
    read = file_reader(native=False)
    for path, content in files:
        yield _row(path.removeprefix(root), read(content))


def _arrow_batches(
    root: str, schema: pa.Schema, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Many small files to a batch: of a task, a session has few hundred at most."""
    read = file_reader()
    taken: list[dict[str, Any]] = []
    calls = 0
    for batch in batches:
        paths, contents = batch.column("path"), batch.column("content")
        for path, content in zip(paths, contents, strict=True):
            taken.append(_row(path.as_py().removeprefix(root), read(content.as_buffer())))
            calls += len(taken[-1]["calls"])
            if calls >= _MAXIMUM_CALLS:
                yield pa.RecordBatch.from_pylist(taken, schema)
                taken, calls = [], 0
    if taken:
        yield pa.RecordBatch.from_pylist(taken, schema)


def _row(file: str, reading: Reading) -> dict[str, Any]:
    """As SPARK_READING has it."""
    return {
        "file": file,
        "reason": reading.reason,
        "records": reading.records,
        "unreadable_records": [
            {"reason": reason, "records": number} for reason, number in reading.unreadable.items()
        ],
        "calls": [call_row(*call) for call in reading.calls],
    }


def binary_files(spark: SparkSession, root: str, folders: Sequence[str]) -> DataFrame:
    """The log files in `folders` of `root`, with what is in them; not what lies deeper.

    Spark looks deeper all the same, because else it takes folders for columns.
    """
    here = [f"{root}{folder}" for folder in folders]
    found = (
        spark.read.format("binaryFile")
        .option("pathGlobFilter", f"*{SUFFIX}")
        .option("recursiveFileLookup", value=True)
        .load([literal(each) for each in here])
    )
    return found.where(sf.regexp_replace("path", r"/[^/]*\z", "").isin(here))


def literal(path: str) -> str:
    """Hadoop reads these characters as a pattern; here they are a folder's name."""
    return "".join(f"\\{each}" if each in "{}[]*?\\" else each for each in path)


@dataclass
class TrailReader:
    """The files of a trail as DataFrames, each publish folder read once, kept until `close`.

    Those of every account and region, where no `home` is given. What this process read is handed to
    Spark in `stage`.
    """

    spark: SparkSession
    trail: Storage
    reader: Reader
    stage: Storage
    home: Home | None = None
    listed: list[Listed] = field(default_factory=list)
    _read: set[PublishFolder] = field(default_factory=set)
    _rows: list[dict[str, Any]] = field(default_factory=list)
    _frames: list[DataFrame] = field(default_factory=list)

    def failed_calls(self, days: Days) -> DataFrame:
        """The failed calls of `days`, from every publish folder that may hold them."""
        self.read(days.widened(0, LATE_DAYS))
        moment = sf.unix_micros("event_time")
        is_in = (moment >= days.from_microseconds) & (moment < days.before_microseconds)
        calls = failed_calls(self.readings(), self.home).where(is_in)
        return calls.persist() if self._frames else calls

    @cached_property
    def _branches(self) -> list[tuple[str, str, str]]:
        return branches(self.trail, self.home)

    def read(self, days: Days) -> None:
        """Read the publish folders of `days` that were not read yet."""
        every = [each for of in self._branches for each in publish_folders(self.trail, of, days)]
        new = [each for each in every if each not in self._read]
        self._read.update(new)
        sizes = {each.folder: self._list(each) for each in new}
        with_files = [folder for folder, of in sizes.items() if of]
        files = [each for of in sizes.values() for each in of.items()]
        here = self.reader.reads_here(sum(size for _, size in files))
        if here and (rows := self.reader.rows(self.trail, files)) is not None:
            self._rows.extend(rows)
        else:
            root = self.trail.spark_root(with_files)
            frame = self.reader.readings(binary_files(self.spark, root, with_files), root)
            self._frames.append(frame.persist(StorageLevel.MEMORY_AND_DISK))

    def readings(self) -> DataFrame:
        """A row per file that was read; what this process read is one partition: no shuffle."""
        parts = [*self._frames]
        if self._rows or not parts:
            path = f"readings-{len(self._rows)}.json"
            parts.append(self.stage.frame(path, self._rows, SPARK_READING, self.spark))
        return reduce(DataFrame.unionByName, parts)

    def quality(self) -> list[dict[str, Any]]:
        """A row per file that lies in the folders, whether it was read or not.

        What only bears the name of one has no `is_file`, and a row all the same.
        """
        columns = ("file", "reason", "records", "unreadable_records")
        read = {each["file"]: {**each, "failed_calls": len(each["calls"])} for each in self._rows}
        for frame in self._frames:
            counted = frame.select(*columns, sf.size("calls").alias("failed_calls"))
            read.update({each["file"]: each.asDict(recursive=True) for each in counted.collect()})
        nothing = {"records": 0, "failed_calls": 0, "unreadable_records": ()}
        return [
            {**nothing, "reason": each.why_not_read, **read.get(each.file, {}), **each._asdict()}
            for each in self.listed
        ]

    def close(self) -> None:
        for frame in self._frames:
            frame.unpersist()

    def _list(self, folder: PublishFolder) -> dict[str, int]:
        """The size of each file in `folder` that is to be opened, by its path."""
        found = {}
        for name, size, _ in sorted(self.trail.entries(folder.folder)):
            is_file, is_log = size is not None, name.endswith(SUFFIX)
            if is_file or is_log:
                path, whose = f"{folder.folder}/{name}", folder[1:]
                self.listed.append(Listed(path, size or 0, *whose, is_file))
                if self.listed[-1].why_not_read == NOT_READ and not _is_hidden(name):
                    found[path] = size or 0
        return found
