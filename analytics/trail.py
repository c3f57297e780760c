"""The trail's files: which of them a run reads, and a row per file with its failed calls in it.

By publish folder, neighbours of the log files left out.
https://docs.aws.amazon.com/awscloudtrail/latest/userguide/get-and-view-log-files.html
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date
from functools import partial, reduce
from typing import Any, NamedTuple

from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from analytics.days import Days
from analytics.incidents import FAULTS, failed_calls, within
from analytics.storage import Storage
from analytics.trail_file import (
    MAXIMUM_BYTES,
    WHY_NOT_NATIVE,
    CallRow,
    Reading,
    call_row,
    file_reader,
)
from mendq.nightly.verdict import FALLBACK, NATIVE, is_in_reach

try:
    import pyarrow as pa
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
SPARK_LISTED = (
    "file string, bytes bigint, account string, region string, published date, is_file boolean"
)
# Times are microseconds since 1970.
_WHOLE = ("position", "event_time")
_CALLS = ", ".join(
    f"{name}: {'bigint' if name in _WHOLE else 'string'}" for name in CallRow._fields
)
SPARK_READING = (
    "file string, reason string, records bigint, "
    f"unreadable_records {FAULTS}, calls array<struct<{_CALLS}>>"
)
_MAXIMUM_FILES = 2_000
_MAXIMUM_CALLS = 20_000
_YEAR, _PART = re.compile(r"[0-9]{4}"), re.compile(r"[0-9]{2}")


class Branch(NamedTuple):
    """One account and region of a trail."""

    folder: str
    account: str
    region: str


class PublishFolder(NamedTuple):
    """One publish day of one account and region."""

    folder: str
    account: str
    region: str
    published: date


def publish_days(event_days: Days) -> Days:
    """The publish days whose files may hold calls of `event_days`."""
    return event_days.widened(0, LATE_DAYS)


def branches(trail: Storage, kind: str = LOG_FILES) -> list[Branch]:
    """Every account and region; an organization's trail has its id above the accounts."""
    return [
        Branch(f"{account_folder}/{kind}/{region}", account_folder.rpartition("/")[2], region)
        for account_folder in _account_folders(trail)
        for region in trail.folders(f"{account_folder}/{kind}")
    ]


def publish_folders(trail: Storage, branch: Branch, days: Days) -> Iterator[PublishFolder]:
    """The folders of `days` that are there."""
    for month in sorted({(day.year, day.month) for day in days}):
        folder = f"{branch.folder}/{month[0]:04}/{month[1]:02}"
        names = trail.folders(folder)
        for day in days:
            if (day.year, day.month) == month and f"{day.day:02}" in names:
                path = f"{folder}/{day.day:02}"
                yield PublishFolder(path, branch.account, branch.region, day)


def began(trail: Storage) -> date | None:
    """The first publish day of any log file or digest; None where there is none yet."""
    every = [each for kind in (LOG_FILES, DIGESTS) for each in branches(trail, kind)]
    days = [_first_day(trail, each.folder) for each in every]
    return min((day for day in days if day), default=None)


def _account_folders(trail: Storage) -> Iterator[str]:
    for name in trail.folders(LOGS):
        if name.startswith("o-"):
            yield from (f"{LOGS}/{name}/{each}" for each in trail.folders(f"{LOGS}/{name}"))
        else:
            yield f"{LOGS}/{name}"


def _first_day(trail: Storage, folder: str) -> date | None:
    for year in _numbered(_YEAR, trail.folders(folder)):
        for month in _numbered(_PART, trail.folders(f"{folder}/{year}")):
            for day in _numbered(_PART, trail.folders(f"{folder}/{year}/{month}")):
                try:
                    found = date(int(year), int(month), int(day))
                except ValueError:
                    continue
                if is_in_reach(found.year):
                    return found
    return None


def _numbered(shape: re.Pattern[str], names: list[str]) -> Iterator[str]:
    return (each for each in names if shape.fullmatch(each))


def quality(listed: DataFrame, readings: DataFrame) -> DataFrame:
    """A row per file that lies in a publish folder, whether Spark read it or not.

    What only bears the name of one has no `is_file`, and a row all the same.
    """
    # Spark's binaryFile leaves out empty files and hidden names; the size is capped here.
    why_not_read = sf.coalesce(
        sf.when(~sf.col("is_file"), sf.lit("no_file")),
        sf.when(sf.col("bytes") == 0, sf.lit("empty")),
        sf.when(~sf.col("file").endswith(SUFFIX), sf.lit("not_json_gz")),
        sf.when(sf.col("bytes") > MAXIMUM_BYTES, sf.lit("too_large")),
        sf.lit("not_read"),
    )
    return listed.join(readings, on="file", how="left").select(
        "published",
        "file",
        "account",
        "region",
        "bytes",
        sf.when(sf.col("records").isNull(), why_not_read)
        .when(sf.col("reason").isNotNull(), sf.col("reason"))
        .alias("reason"),
        sf.coalesce("records", sf.lit(0)).cast("bigint").alias("records"),
        sf.greatest(sf.size("calls"), sf.lit(0)).cast("bigint").alias("failed_calls"),
        sf.coalesce("unreadable_records", sf.array()).alias("unreadable_records"),
    )


@dataclass(frozen=True)
class Reader:
    """NATIVE or FALLBACK; `why` says what the native one lacks here, empty where it runs."""

    name: str
    why: str = ""

    @classmethod
    def of_this_process(cls) -> Reader:
        """The native one where its wheels import; executors have the same archive."""
        return cls(FALLBACK, WHY_NO_ARROW) if WHY_NO_ARROW else cls(NATIVE)

    def readings(self, files: DataFrame, root: str) -> DataFrame:
        """A row per file of Spark's binaryFile; `root` is what their paths begin with.

        Both readers give the same rows, because reading and symptomling are `mendq.model` and
        `mendq.catalogue` themselves, in Python on the executors.
        """
        small = files.where(sf.col("length") <= MAXIMUM_BYTES).select("path", "content")
        if self.name == NATIVE:
            return small.mapInArrow(partial(_arrow_batches, root), SPARK_READING)
        rows = small.rdd.mapPartitions(partial(_rows, root))
        return files.sparkSession.createDataFrame(rows, SPARK_READING, verifySchema=False)


def _rows(root: str, files: Iterable[Any]) -> Iterator[tuple[Any, ...]]:
    read = file_reader(native=False)
    for path, content in files:
        yield _row(path.removeprefix(root), read(content))


def _arrow_batches(root: str, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Many small files to a batch."""
    read = file_reader()
    taken: list[tuple[Any, ...]] = []
    calls = 0
    for batch in batches:
        paths, contents = batch.column("path"), batch.column("content")
        for path, content in zip(paths, contents, strict=True):
            taken.append(_row(path.as_py().removeprefix(root), read(content.as_buffer())))
            calls += len(taken[-1][-1])
            if len(taken) >= _MAXIMUM_FILES or calls >= _MAXIMUM_CALLS:
                yield _batch(taken)
                taken, calls = [], 0
    if taken:
        yield _batch(taken)


def _row(file: str, reading: Reading) -> tuple[Any, ...]:
    calls = [call_row(*call) for call in reading.calls]
    faults = [{"reason": reason, "records": n} for reason, n in reading.unreadable.items()]
    return file, reading.reason, reading.records, faults, calls


def _batch(rows: Sequence[tuple[Any, ...]]) -> pa.RecordBatch:
    files, reasons, records, unreadable, calls = zip(*rows, strict=True)
    kinds = {name: pa.int64() if name in _WHOLE else pa.string() for name in CallRow._fields}
    fault = pa.struct({"reason": pa.string(), "records": pa.int64()}.items())
    columns = {
        "file": pa.array(files, pa.string()),
        "reason": pa.array(reasons, pa.string()),
        "records": pa.array(records, pa.int64()),
        "unreadable_records": pa.array(unreadable, pa.list_(fault)),
        "calls": pa.array(
            [[each._asdict() for each in of] for of in calls], pa.list_(pa.struct(kinds.items()))
        ),
    }
    return pa.RecordBatch.from_pydict(columns)


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
    """The files of a trail as DataFrames, each publish folder read once, kept until `close`."""

    spark: SparkSession
    trail: Storage
    reader: Reader
    listed: list[tuple[str, int, str, str, object, bool]] = field(default_factory=list)
    _read: set[PublishFolder] = field(default_factory=set)
    _frames: list[DataFrame] = field(default_factory=list)
    _branches: list[Branch] | None = None

    def failed_calls(self, days: Days) -> DataFrame:
        """The failed calls of `days`, from every publish folder that may hold them."""
        self.read(publish_days(days))
        return within(failed_calls(self.readings()), "event_time", days)

    def read(self, days: Days) -> None:
        """Read the publish folders of `days` that were not read yet."""
        if self._branches is None:
            self._branches = branches(self.trail)
        found = [
            folder
            for branch in self._branches
            for folder in publish_folders(self.trail, branch, days)
        ]
        new = [each for each in found if each not in self._read]
        self._read.update(new)
        with_files = [each.folder for each in new if self._list(each)]
        if with_files:
            root = self.trail.spark_root(with_files)
            frame = self.reader.readings(binary_files(self.spark, root, with_files), root)
            self._frames.append(frame.persist(StorageLevel.MEMORY_AND_DISK))

    def readings(self) -> DataFrame:
        """A row per file that Spark could open."""
        nothing = self.spark.createDataFrame([], SPARK_READING)
        return reduce(DataFrame.unionByName, self._frames, nothing)

    def quality(self) -> DataFrame:
        """A row per file that lies in the folders."""
        return quality(self.spark.createDataFrame(self.listed, SPARK_LISTED), self.readings())

    def close(self) -> None:
        for frame in self._frames:
            frame.unpersist()

    def _list(self, folder: PublishFolder) -> bool:
        """Whether anything in `folder` is for Spark to open."""
        files = self.trail.files(folder.folder)
        strange = [each for each in self.trail.no_files(folder.folder) if each.endswith(SUFFIX)]
        lying = [(*each, True) for each in files] + [(each, 0, False) for each in strange]
        self.listed += [
            (path, size_bytes, folder.account, folder.region, folder.published, is_file)
            for path, size_bytes, is_file in lying
        ]
        return any(each.path.endswith(SUFFIX) and each.size_bytes for each in files)
