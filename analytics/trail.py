"""Read a CloudTrail trail: the failed SQS calls of some days, and a report on every file.

CloudTrail writes gzipped JSON files, several an hour for each account and region. It puts them into
a folder for the day on which it published them, which this page calls a publish folder:

    AWSLogs/[o-ORGANIZATION/]ACCOUNT/CloudTrail/REGION/YYYY/MM/DD/NAME.json.gz

The nightly job needs two answers. `TrailReader.load_failed_calls` says which SQS calls failed on
these UTC days. `TrailReader.make_quality_rows` says how well the files were read, so that a broken
delivery does not look like a quiet day.

The parts: `list_branches` and `list_publish_folders` find the folders. `TrailReader` lists their
files, lets a `Reader` read them, and keeps the rows. There are two readers, which give the same
rows: the native one needs compiled packages (wheels), the slower one only Python's standard
library.
`analytics/trail_file.py` reads the bytes of one file and has its own theory.
`analytics/incidents.py` removes duplicates and Mendq's own calls.

Rules:

1. A call belongs to the day of its event time, not to its publish folder. CloudTrail retries a
   delivery for up to 30 days. So to find a day's calls, `load_failed_calls` reads the publish
   folders of the day and of the 30 days after it, and then selects the calls by their time.
   Without this, calls that arrive after midnight are in no table. In a run on time the later
   folders do not exist yet, so looking for them costs one listing per month, account and region.

2. A publish folder is read once in a run. The nightly run asks for more days until no burst of
   calls (`analytics/incidents.py`) can be cut at the first or last day. `read` reads only folders
   that are new, and `close` releases the rows.

3. Only files directly in a publish folder are read, and only if they have a log file's name. Spark
   also looks into deeper folders, so its result is filtered: a file that no listing mentions would
   add calls that `quality` cannot explain. Digests are in a folder beside `CloudTrail`.

4. Every listed file has a row in `quality`, read or not. `reason` is null if it was read. A broken
   file loses only its own calls, all of them; a broken record in a good file loses only itself and
   is counted. Files that are not opened have a reason too: `no_file` (a folder or pipe with a log
   file's name), `empty`, `not_json_gz`, `too_large`, or `not_read` (Spark hides its name, or it was
   deleted after the listing). So a fault in the trail is a number that an alarm can watch.

5. A file is what it was when it was listed. On the driver no more bytes are read than the listing
   said, so that a growing file cannot fill the memory.

6. Few files are read in this process, many by Spark. The limits hold for one `read`, not for the
   trail or the run: a run that reads more days decides anew. With up to 384 MB of compressed files,
   the driver is done before Spark has started its Python workers. With the standard library, which
   takes eight times as long, the limit is an eighth of that. If the files turn out to hold more
   than 25,000 failed calls, or take more than 120 seconds, the driver gives up and Spark reads all
   of them from the start.

7. Both readers give the same rows, on the driver and in Spark. They call the same Python functions
   to read and label a record. `Reader.why_not_native` records why the slower one was used, and the
   run's `nightly.json` shows it.

8. A folder's name is taken literally. Hadoop would read `{}[]*?\\` in it as a pattern, and Spark
   would read `x=1` as a column.

The module writes nothing to the trail. It does not decide if an empty day is a fault, but
`find_first_publish_day` returns since when the trail exists.

https://docs.aws.amazon.com/awscloudtrail/latest/userguide/get-and-view-log-files.html
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import date
from functools import cached_property, partial
from time import monotonic
from typing import Any, NamedTuple

from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from analytics.days import Days
from analytics.incidents import UNREADABLE_RECORDS_TYPE, format_schema, select_failed_calls
from analytics.storage import Storage
from analytics.trail_file import (
    CALL_SCHEMA,
    MAXIMUM_LOG_FILE_BYTES,
    WHY_NOT_NATIVE,
    FileReading,
    make_call_row,
    make_file_reader,
)
from mendq.model.account_and_region import AccountAndRegion
from mendq.nightly.verdict import FALLBACK_READER, NATIVE_READER, parse_day

try:
    import pyarrow as pa
    from pyspark.sql.pandas.types import to_arrow_schema
except Exception as error:  # noqa: BLE001 - a wheel for another machine raises more than ImportError
    WHY_NO_ARROW = f"cannot import pyarrow: {error}"
else:
    WHY_NO_ARROW = WHY_NOT_NATIVE

LOGS_FOLDER = "AWSLogs"
LOG_FILES_FOLDER = "CloudTrail"
DIGESTS_FOLDER = "CloudTrail-Digest"
LOG_FILE_SUFFIX = ".json.gz"
# CloudTrail retries a delivery for up to this many days (rule 1).
MAXIMUM_LATE_DAYS = 30
# The reason for a file that Spark hides, or that was deleted after the listing (rule 4).
NOT_READ_REASON = "not_read"
# The columns of a row for each file that was read.
READING_COLUMNS: Mapping[str, str] = {
    "file": "string",  # its path in the trail
    "reason": "string",  # why it could not be read; null if it was
    "records": "bigint",
    "unreadable_records": UNREADABLE_RECORDS_TYPE,
    "calls": f"array<{CALL_SCHEMA}>",
}
READING_SCHEMA = format_schema(READING_COLUMNS)
# The driver reads at most MAXIMUM_DRIVER_BYTES compressed bytes. The standard library takes
# SLOW_READER_FACTOR times as long as the native reader, so its limit is MAXIMUM_DRIVER_BYTES
# divided by this factor (rule 6).
MAXIMUM_DRIVER_BYTES = 384 * 1024 * 1024
SLOW_READER_FACTOR = 8
# The driver gives up if it finds more failed calls or needs more time. Spark has more machines, and
# can put the calls on disk (rule 6).
MAXIMUM_DRIVER_CALLS = 25_000
MAXIMUM_DRIVER_SECONDS = 120
# The driver fetches this number of files at once, because S3 takes some ten milliseconds for even
# the smallest file. The files of one batch are in memory together.
_PARALLEL_READS = 16
_FILES_PER_BATCH = 128
# An Arrow batch holds the rows of many small files, until it has this number of failed calls.
_MAXIMUM_CALLS_PER_BATCH = 20_000


@dataclass
class TrailReader:
    """Reads a trail's files into DataFrames, and keeps the rows that it has read until `close`.

    Attributes:
        spark: The session to which the DataFrames belong.
        trail: The folder that contains `AWSLogs`.
        reader: The reader of log files.
        staging_storage: A temporary storage through which Spark gets the rows that this process has
            read.
        account_and_region: The account and region whose files are read; None for all files.
        listed_files: Every file that was found, in the order of listing.
    """

    spark: SparkSession
    trail: Storage
    reader: Reader
    staging_storage: Storage
    account_and_region: AccountAndRegion | None = None
    listed_files: list[ListedFile] = field(default_factory=list)
    _known_folders: set[PublishFolder] = field(default_factory=set)
    _rows_read_on_driver: list[dict[str, Any]] = field(default_factory=list)
    _frames_read_by_spark: list[DataFrame] = field(default_factory=list)

    def load_failed_calls(self, days: Days) -> DataFrame:
        """Return the failed calls made on `days`, even if they were published later (rule 1)."""
        self.read(days.widen(0, MAXIMUM_LATE_DAYS))
        calls = select_failed_calls(self.load_readings(), self.account_and_region)
        call_microseconds = sf.unix_micros("event_time")
        is_call_of_days = (call_microseconds >= days.start_microseconds) & (
            call_microseconds < days.end_microseconds
        )
        calls = calls.where(is_call_of_days)
        if self._frames_read_by_spark:
            return calls.persist()
        return calls

    def read(self, days: Days) -> None:
        """Read the publish folders of `days` that were not read yet (rule 2)."""
        folders_with_files: list[str] = []
        paths_and_sizes: list[tuple[str, int]] = []
        for folder in self._find_new_folders(days):
            size_by_path = self._list_files(folder)
            if size_by_path:
                folders_with_files.append(folder.folder)
                paths_and_sizes.extend(size_by_path.items())
        rows_read_on_driver = self._read_on_driver(paths_and_sizes)
        if rows_read_on_driver is not None:
            self._rows_read_on_driver.extend(rows_read_on_driver)
            return
        root = self.trail.make_spark_root(folders_with_files)
        readings_frame = self.reader.read_in_spark(
            load_binary_files(self.spark, root, folders_with_files), root
        )
        self._frames_read_by_spark.append(readings_frame.persist(StorageLevel.MEMORY_AND_DISK))

    def load_readings(self) -> DataFrame:
        """Return a row for each file that was read so far, with the columns of READING_COLUMNS.

        The rows that this process has read form one partition, so Spark does not shuffle them.
        """
        readings_frames = [*self._frames_read_by_spark]
        if self._rows_read_on_driver or not readings_frames:
            path = f"readings-{len(self._rows_read_on_driver)}.json"
            readings_frames.append(
                self.staging_storage.write_frame(
                    path, self._rows_read_on_driver, READING_SCHEMA, self.spark
                )
            )
        readings = readings_frames[0]
        for readings_frame in readings_frames[1:]:
            readings = readings.unionByName(readings_frame)
        return readings

    def make_quality_rows(self) -> list[dict[str, Any]]:
        """Return a row of the table `quality` for each listed file, read or not (rule 4).

        A row also has `published`, the day of its folder, and `is_file`, which is False for a
        folder or pipe with a log file's name.
        """
        row_by_file: dict[str, dict[str, Any]] = {}
        for row in self._rows_read_on_driver:
            row_by_file[row["file"]] = {**row, "failed_calls": len(row["calls"])}
        quality_columns = ("file", "reason", "records", "unreadable_records")
        for readings_frame in self._frames_read_by_spark:
            frame_without_calls = readings_frame.select(
                *quality_columns, sf.size("calls").alias("failed_calls")
            )
            for spark_row in frame_without_calls.collect():
                row_by_file[spark_row["file"]] = spark_row.asDict(recursive=True)
        zero_count_by_column = {"records": 0, "failed_calls": 0, "unreadable_records": ()}
        rows: list[dict[str, Any]] = []
        for file in self.listed_files:
            default_row = {**zero_count_by_column, "reason": file.unread_reason}
            rows.append({**default_row, **row_by_file.get(file.file, {}), **file._asdict()})
        return rows

    def close(self) -> None:
        """Release the rows that Spark keeps in memory and on disk."""
        for readings_frame in self._frames_read_by_spark:
            readings_frame.unpersist()

    @cached_property
    def _branches(self) -> list[AccountRegionFolder]:
        return list_branches(self.trail, self.account_and_region)

    def _find_new_folders(self, days: Days) -> list[PublishFolder]:
        """Return the publish folders of `days` that were not read yet, and mark them as read."""
        new_folders: list[PublishFolder] = []
        for branch in self._branches:
            folders = list_publish_folders(self.trail, branch, days)
            new_folders.extend(folder for folder in folders if folder not in self._known_folders)
        self._known_folders.update(new_folders)
        return new_folders

    def _list_files(self, folder: PublishFolder) -> dict[str, int]:
        """Add a folder's files to `listed_files`. Return the size of each file to read, by path."""
        size_by_path: dict[str, int] = {}
        for name, size, _ in sorted(self.trail.list_entries(folder.folder)):
            is_file = size is not None
            if not is_file and not name.endswith(LOG_FILE_SUFFIX):
                continue
            file = ListedFile(
                file=f"{folder.folder}/{name}",
                bytes=size or 0,
                account=folder.account,
                region=folder.region,
                published=folder.published,
                is_file=is_file,
            )
            self.listed_files.append(file)
            if file.unread_reason == NOT_READ_REASON and not _is_hidden_from_spark(name):
                size_by_path[file.file] = file.bytes
        return size_by_path

    def _read_on_driver(self, files: Sequence[tuple[str, int]]) -> list[dict[str, Any]] | None:
        """Read files on the driver. Return None if Spark should read them (rule 6)."""
        compressed_bytes = sum(size for _, size in files)
        if not self.reader.should_read_on_driver(compressed_bytes):
            return None
        return self.reader.read_on_driver(self.trail, files)


@dataclass(frozen=True)
class Reader:
    """A reader of trail files: the native reader, or the standard library.

    Attributes:
        name: NATIVE_READER, or FALLBACK_READER for the standard library.
        why_not_native: Why the native reader cannot run here; empty if it can.
        maximum_driver_bytes: The most compressed bytes that this process reads; if there are more,
            Spark reads the files. For the slower reader, this number is divided by
            SLOW_READER_FACTOR.
    """

    name: str
    why_not_native: str = ""
    maximum_driver_bytes: int = MAXIMUM_DRIVER_BYTES

    @classmethod
    def choose_for_this_process(cls) -> Reader:
        """Return the native reader, or the slower one if this process cannot import its packages.

        The slower reader needs only the standard library. Executors have the same packages as this
        process, so they can use the same reader.
        """
        if WHY_NO_ARROW:
            return cls(FALLBACK_READER, WHY_NO_ARROW)
        return cls(NATIVE_READER)

    def should_read_on_driver(self, compressed_bytes: int) -> bool:
        """Return True if this process should read files with this total of bytes (rule 6)."""
        slow_reader_factor = 1 if self.name == NATIVE_READER else SLOW_READER_FACTOR
        return compressed_bytes <= self.maximum_driver_bytes // slow_reader_factor

    def read_on_driver(
        self, trail: Storage, paths_and_sizes: Sequence[tuple[str, int]]
    ) -> list[dict[str, Any]] | None:
        """Read files in this process, the driver.

        Args:
            trail: The trail.
            paths_and_sizes: The path of each file, and its size when it was listed (rule 5).

        Returns:
            A row for each file, with the columns of READING_COLUMNS. Files that were deleted
            meanwhile are left out. None if there are too many failed calls, or if reading takes too
            long (rule 6).
        """
        read_log_file = make_file_reader(can_use_native=self.name == NATIVE_READER)
        deadline = monotonic() + MAXIMUM_DRIVER_SECONDS
        call_count = 0
        rows: list[dict[str, Any]] = []
        with ThreadPoolExecutor(_PARALLEL_READS) as thread_pool:
            for batch_begin in range(0, len(paths_and_sizes), _FILES_PER_BATCH):
                batch_of_paths_and_sizes = paths_and_sizes[
                    batch_begin : batch_begin + _FILES_PER_BATCH
                ]
                file_contents = thread_pool.map(
                    lambda file: trail.read(*file), batch_of_paths_and_sizes
                )
                for (path, _), content in zip(batch_of_paths_and_sizes, file_contents, strict=True):
                    if content is not None:
                        row = _make_reading_row(path, read_log_file(content))
                        rows.append(row)
                        call_count += len(row["calls"])
                    if call_count > MAXIMUM_DRIVER_CALLS or monotonic() > deadline:
                        return None
        return rows

    def read_in_spark(self, files: DataFrame, root: str) -> DataFrame:
        """Read files on the executors. Return their rows, with the columns of READING_COLUMNS.

        Files larger than MAXIMUM_LOG_FILE_BYTES have no row.

        Args:
            files: The rows of Spark's `binaryFile` source.
            root: The beginning of the files' paths, which is removed from the column `file`.
        """
        readable_files = files.where(sf.col("length") <= MAXIMUM_LOG_FILE_BYTES).select(
            "path", "content"
        )
        spark = files.sparkSession
        if self.name == NATIVE_READER:
            schema = to_arrow_schema(spark.createDataFrame([], READING_SCHEMA).schema)
            return readable_files.mapInArrow(
                partial(_read_arrow_batches, root, schema), READING_SCHEMA
            )
        rows = readable_files.rdd.mapPartitions(partial(_read_file_rows, root))
        return spark.createDataFrame(rows, READING_SCHEMA, verifySchema=False)


class AccountRegionFolder(NamedTuple):
    """The log files' folder of one account and region. It contains a folder for each year."""

    folder: str
    account: str
    region: str


class PublishFolder(NamedTuple):
    """The folder of the files that CloudTrail published on one day, for one account and region."""

    folder: str
    account: str
    region: str
    published: date


class ListedFile(NamedTuple):
    """An entry in the folder of the files that CloudTrail published on one day.

    It is a file, or something else (such as a folder or a pipe) with a log file's name.
    """

    file: str  # its path in the trail
    bytes: int  # 0 if it is not a file
    account: str
    region: str
    published: date
    is_file: bool

    @property
    def unread_reason(self) -> str:
        """The reason that the table `quality` gives if this entry was not read (rule 4)."""
        if not self.is_file:
            return "no_file"
        if not self.bytes:
            return "empty"
        if not self.file.endswith(LOG_FILE_SUFFIX):
            return "not_json_gz"
        if self.bytes > MAXIMUM_LOG_FILE_BYTES:
            return "too_large"
        return NOT_READ_REASON


def list_branches(
    trail: Storage, account_and_region: AccountAndRegion | None, log_folder: str = LOG_FILES_FOLDER
) -> list[AccountRegionFolder]:
    """Return the log files' folders of all accounts and regions, or only of `account_and_region`.

    In an organization's trail, the accounts are below a folder with the organization's id. So one
    account and region can have a folder directly in LOGS_FOLDER, and one in each organization's
    folder. The returned folders may not exist. `log_folder` is LOG_FILES_FOLDER or DIGESTS_FOLDER.
    """
    organizations = [name for name in trail.list_folders(LOGS_FOLDER) if name.startswith("o-")]
    parent_folders = [
        LOGS_FOLDER,
        *(f"{LOGS_FOLDER}/{organization}" for organization in organizations),
    ]
    branches: list[AccountRegionFolder] = []
    for parent_folder in parent_folders:
        accounts = (
            [account_and_region.account]
            if account_and_region
            else _list_accounts(trail, parent_folder)
        )
        for account in accounts:
            folder = f"{parent_folder}/{account}/{log_folder}"
            regions = (
                [account_and_region.region] if account_and_region else trail.list_folders(folder)
            )
            branches.extend(
                AccountRegionFolder(f"{folder}/{region}", account, region) for region in regions
            )
    return branches


def _list_accounts(trail: Storage, parent_folder: str) -> list[str]:
    """Return the accounts in a folder. Folders of organizations are left out."""
    return [name for name in trail.list_folders(parent_folder) if not name.startswith("o-")]


def list_publish_folders(
    trail: Storage, branch: AccountRegionFolder, days: Days
) -> Iterator[PublishFolder]:
    """Yield the publish folders of `days` that exist for an account and region."""
    listed_month_folder = ""
    day_folder_names: list[str] = []
    for day in days:
        month_folder = f"{branch.folder}/{day:%Y/%m}"
        if month_folder != listed_month_folder:
            day_folder_names = trail.list_folders(month_folder)
            listed_month_folder = month_folder
        if f"{day:%d}" in day_folder_names:
            yield PublishFolder(f"{month_folder}/{day:%d}", branch.account, branch.region, day)


def find_first_publish_day(
    trail: Storage, account_and_region: AccountAndRegion | None = None
) -> date | None:
    """Return the earliest day with a publish folder, or None if there is none.

    If `account_and_region` is given, only its folders count. Folders of digests count like those of
    log files, because CloudTrail writes digests even without calls.
    """
    first_publish_days: list[date] = []
    for log_folder in (LOG_FILES_FOLDER, DIGESTS_FOLDER):
        for branch in list_branches(trail, account_and_region, log_folder):
            day = _find_first_publish_day_below(trail, branch.folder)
            if day is not None:
                first_publish_days.append(day)
    return min(first_publish_days, default=None)


def _find_first_publish_day_below(trail: Storage, folder: str) -> date | None:
    """Return the first day below a folder of years, or None if there is no day."""
    for year_folder in trail.list_folders(folder):
        for month_folder in trail.list_folders(f"{folder}/{year_folder}"):
            for day_folder in trail.list_folders(f"{folder}/{year_folder}/{month_folder}"):
                publish_day = parse_day(f"{year_folder}-{month_folder}-{day_folder}")
                if publish_day:
                    return publish_day
    return None


def load_binary_files(spark: SparkSession, root: str, folders: Sequence[str]) -> DataFrame:
    """Return the log files directly in `folders` below `root`, read by Spark's `binaryFile`.

    Spark also reads deeper folders, because it would otherwise take a folder `x=1` for a column.
    Files from deeper folders are removed afterwards (rules 3 and 8).
    """
    paths = [f"{root}{folder}" for folder in folders]
    files = (
        spark.read.format("binaryFile")
        .option("pathGlobFilter", f"*{LOG_FILE_SUFFIX}")
        .option("recursiveFileLookup", value=True)
        .load([escape_pattern(path) for path in paths])
    )
    return files.where(sf.regexp_replace("path", r"/[^/]*\z", "").isin(paths))


def escape_pattern(path: str) -> str:
    """Return a path with escaped special characters, so that Hadoop takes it literally (rule 8)."""
    return "".join(f"\\{character}" if character in "{}[]*?\\" else character for character in path)


def _is_hidden_from_spark(name: str) -> bool:
    """Return True if Spark ignores files with this name."""
    return name.startswith(".") or (name.startswith("_") and "=" not in name)


def _read_file_rows(root: str, files: Iterable[Any]) -> Iterator[dict[str, Any]]:
    """Read files with the standard library on an executor. Yield a row for each file."""
    read_log_file = make_file_reader(can_use_native=False)
    for path, content in files:
        yield _make_reading_row(path.removeprefix(root), read_log_file(content))


def _read_arrow_batches(
    root: str, schema: pa.Schema, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Read files with the native reader on an executor. Yield Arrow batches with a row per file."""
    read_log_file = make_file_reader()
    rows: list[dict[str, Any]] = []
    call_count = 0
    for batch in batches:
        for path, content in zip(batch.column("path"), batch.column("content"), strict=True):
            row = _make_reading_row(
                path.as_py().removeprefix(root), read_log_file(content.as_buffer())
            )
            rows.append(row)
            call_count += len(row["calls"])
            if call_count >= _MAXIMUM_CALLS_PER_BATCH:
                yield pa.RecordBatch.from_pylist(rows, schema)
                rows = []
                call_count = 0
    if rows:
        yield pa.RecordBatch.from_pylist(rows, schema)


def _make_reading_row(file: str, file_reading: FileReading) -> dict[str, Any]:
    """Return the result of reading a file as a row with the columns of READING_COLUMNS."""
    unreadable_records = [
        {"reason": reason, "records": record_count}
        for reason, record_count in file_reading.unreadable_count_by_reason.items()
    ]
    return {
        "file": file,
        "reason": file_reading.reason,
        "records": file_reading.record_count,
        "unreadable_records": unreadable_records,
        "calls": [make_call_row(position, call) for position, call in file_reading.calls],
    }
