"""The trail's files: which of them a run reads, and a row per file with its failed calls in it.

By publish folder, neighbours of the log files left out.
https://docs.aws.amazon.com/awscloudtrail/latest/userguide/get-and-view-log-files.html
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date
from functools import cached_property, partial, reduce
from itertools import groupby
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
_READING = ["file", "reason", "records", "unreadable_records", "calls"]
_MAXIMUM_FILES = 2_000
_MAXIMUM_CALLS = 20_000
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


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
    above = [f"{LOGS}/{each}" for each in trail.folders(LOGS) if each.startswith("o-")]
    accounts = [
        (folder, each)
        for folder in (LOGS, *above)
        for each in trail.folders(folder)
        if not each.startswith("o-")
    ]
    return [
        Branch(f"{above}/{account}/{kind}/{region}", account, region)
        for above, account in accounts
        for region in trail.folders(f"{above}/{account}/{kind}")
    ]


def publish_folders(trail: Storage, branch: Branch, days: Days) -> Iterator[PublishFolder]:
    """The folders of `days` that are there."""
    for month, of_month in groupby(days, key=lambda day: f"{branch.folder}/{day:%Y/%m}"):
        names = trail.folders(month)
        for day in of_month:
            if f"{day:%d}" in names:
                yield PublishFolder(f"{month}/{day:%d}", branch.account, branch.region, day)


def began(trail: Storage) -> date | None:
    """The first publish day of any log file or digest; None where there is none yet."""
    every = [each for kind in (LOG_FILES, DIGESTS) for each in branches(trail, kind)]
    return min(filter(None, (_first_day(trail, each.folder) for each in every)), default=None)


def _first_day(trail: Storage, folder: str) -> date | None:
    for year in trail.folders(folder):
        for month in trail.folders(f"{folder}/{year}"):
            for day in trail.folders(f"{folder}/{year}/{month}"):
                found = _day(f"{year}-{month}-{day}")
                if found is not None and is_in_reach(found.year):
                    return found
    return None


def _day(text: str) -> date | None:
    try:
        return date.fromisoformat(text) if _DAY.fullmatch(text) else None
    except ValueError:
        return None


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
    *plain, calls = zip(*rows, strict=True)
    fault = pa.struct({"reason": pa.string(), "records": pa.int64()}.items())
    call = pa.struct(
        (name, pa.int64() if name in _WHOLE else pa.string()) for name in CallRow._fields
    )
    kinds = (pa.string(), pa.string(), pa.int64(), pa.list_(fault), pa.list_(call))
    named = [[each._asdict() for each in of] for of in calls]
    arrays = [pa.array(each, kind) for each, kind in zip((*plain, named), kinds, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, names=_READING)


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

    def failed_calls(self, days: Days) -> DataFrame:
        """The failed calls of `days`, from every publish folder that may hold them."""
        self.read(publish_days(days))
        return within(failed_calls(self.readings()), "event_time", days)

    @cached_property
    def _branches(self) -> list[Branch]:
        return branches(self.trail)

    def read(self, days: Days) -> None:
        """Read the publish folders of `days` that were not read yet."""
        every = [each for of in self._branches for each in publish_folders(self.trail, of, days)]
        new = [each for each in every if each not in self._read]
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
        whose = folder.account, folder.region, folder.published
        self.listed += [(path, size, *whose, is_file) for path, size, is_file in lying]
        return any(each.path.endswith(SUFFIX) and each.size_bytes for each in files)
