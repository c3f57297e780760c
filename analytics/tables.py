"""Write and read the nightly tables: one Parquet object for each table and day.

S3 cannot replace a folder at once, but it can replace one object. So Spark writes a day's rows to a
temporary folder, and the driver then copies the file from there to one object with a fixed name.
The driver needs no compiled packages for this.

`read_members` sums up the `incidents` tables of an organization's accounts. Other accounts write
these tables, so every value in them is checked.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, NamedTuple

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf

from analytics.cases import HEALED_OUTCOME, MAXIMUM_ACCEPTED_COUNT, MAXIMUM_NAME_CHARACTERS
from analytics.days import microseconds_to_time
from analytics.incidents import (
    COLUMN_TYPES_BY_TABLE,
    FOUND_BY_FAILED_CALLS,
    format_schema,
)
from analytics.own_incidents import make_own_incident_column
from analytics.packed_table import PACKING
from analytics.storage import Storage
from analytics.week_parts import WAITING_STATES, Row, RowsByDay

# The columns by which the rows of each table are sorted.
_SORT_COLUMNS_BY_TABLE: Mapping[str, tuple[str, ...]] = {
    "incidents": ("first_failure", "incident_id"),
    "failed_calls": ("event_time", "event_id"),
    "quality": ("file",),
}
# The columns of `incidents` and `quality` that may be null. All others have a value in every row.
_NULLABLE_COLUMNS = frozenset({"reason", "why", "case_id", "seconds_to_heal"})
# The default values of columns that tables of older versions do not have.
_DEFAULT_BY_COLUMN = {"found_by": FOUND_BY_FAILED_CALLS, "urgent": False}
TableRows = list[dict[str, Any]]


@dataclass(frozen=True)
class Tables:
    """The nightly tables below one root.

    Attributes:
        spark: The session that reads and writes them.
        table_storage: The root.
        say: Prints a line for people, such as the name of a table that cannot be read.
    """

    spark: SparkSession
    table_storage: Storage
    say: Callable[[str], None]

    def write(
        self, calls: DataFrame, rows_by_table: Mapping[str, RowsByDay], days: Collection[date]
    ) -> None:
        """Write all tables of these days. They replace existing tables.

        Columns and rows have a fixed order, so that equal rows give equal bytes.

        Args:
            calls: The rows of the table `failed_calls`, with their `day`.
            rows_by_table: The rows of the other tables, by table and day.
            days: The days to write.
        """
        if not days:
            return
        with self.table_storage.staging() as staging:
            frame_by_table = {
                table: self._make_frame(staging, table, rows_by_day)
                for table, rows_by_day in rows_by_table.items()
            }
            frame_by_table["failed_calls"] = calls
            for table, frame in frame_by_table.items():
                typed_columns = [
                    sf.col(column_name).cast(spark_type)
                    for column_name, spark_type in COLUMN_TYPES_BY_TABLE[table].items()
                ]
                requested_rows = frame.where(sf.col("day").isin(*days)).select(
                    *typed_columns, "day"
                )
                ordered_rows = requested_rows.coalesce(1).sortWithinPartitions(
                    "day", *_SORT_COLUMNS_BY_TABLE[table]
                )
                ordered_rows.write.partitionBy("day").parquet(
                    f"{staging.make_spark_root([])}{table}", compression=PACKING
                )
            for day in sorted(days):
                for table in frame_by_table:
                    parquet_bytes = _read_parquet_part(staging, f"{table}/day={day}")
                    if not parquet_bytes:
                        parquet_bytes = self._make_empty_table(staging, table)
                    self.table_storage.write(make_table_path(table, day), parquet_bytes)

    def _make_frame(self, staging: Storage, table: str, rows_by_day: RowsByDay) -> DataFrame:
        """Return the rows of a table, with their `day`, as a DataFrame.

        Times are passed as numbers, because Spark would interpret Python's times as local times.
        """
        time_columns = _list_time_columns(COLUMN_TYPES_BY_TABLE[table])
        type_by_column = {
            **COLUMN_TYPES_BY_TABLE[table],
            **dict.fromkeys(time_columns, "bigint"),
            "day": "date",
        }
        dated_rows: TableRows = []
        for day, rows in rows_by_day.items():
            dated_rows.extend({**row, "day": day} for row in rows)
        frame = staging.write_frame(
            f"rows/{table}.json", dated_rows, format_schema(type_by_column), self.spark
        )
        return frame.withColumns(
            {column_name: sf.timestamp_micros(column_name) for column_name in time_columns}
        )

    def _make_empty_table(self, staging: Storage, table: str) -> bytes:
        """Return a Parquet file without rows. Spark writes no file for a day without rows."""
        folder = f"empty/{table}"
        if not staging.list_file_sizes(folder):
            empty_frame = self.spark.createDataFrame(
                [], format_schema(COLUMN_TYPES_BY_TABLE[table])
            ).coalesce(1)
            empty_frame.write.parquet(f"{staging.make_spark_root([])}{folder}", compression=PACKING)
        return _read_parquet_part(staging, folder)

    def read_rows(self, table: str, days: Iterable[date]) -> dict[date, TableRows]:
        """Return the rows of `incidents` or `quality`, for each of `days` that has the table.

        A day whose table cannot be read, or lacks a required value, is left out, and `say` names
        it.
        """
        rows_by_day = self._read_columns(table, days, COLUMN_TYPES_BY_TABLE[table])
        required_columns = COLUMN_TYPES_BY_TABLE[table].keys() - _NULLABLE_COLUMNS
        complete_rows_by_day: dict[date, TableRows] = {}
        for day, rows in rows_by_day.items():
            if table == "incidents":
                _add_defaults(rows)
            if any(_lacks_required_value(row, required_columns) for row in rows):
                self.say(
                    f"{make_table_path(table, day)} has rows without a value: {day} is left out"
                )
            else:
                complete_rows_by_day[day] = rows
        return complete_rows_by_day

    def read_file_names(self, table: str, days: Iterable[date]) -> dict[date, set[str]]:
        """Return the trail files that `failed_calls` or `quality` names, for each day.

        A day whose table is missing or cannot be read is left out.
        """
        rows_by_day = self._read_columns(table, days, {"file": "string"}, is_distinct=True)
        file_names_by_day: dict[date, set[str]] = {}
        for day, rows in rows_by_day.items():
            file_names_by_day[day] = {row["file"] for row in rows}
        return file_names_by_day

    def _read_columns(
        self,
        table: str,
        days: Iterable[date],
        type_by_column: Mapping[str, str],
        *,
        is_distinct: bool = False,
    ) -> dict[date, TableRows]:
        """Return these columns of a table, for each day whose table can be read.

        `say` names each day whose table exists but cannot be read. With `is_distinct`, equal rows
        are returned once.
        """
        size_by_day: dict[date, int | None] = {}
        for day in days:
            size_by_day[day] = self.table_storage.list_file_sizes(
                _make_table_folder(table, day)
            ).get(make_table_path(table, day))
        # Spark would read an empty object as a table without rows.
        days_with_content = [day for day, size in size_by_day.items() if size]
        rows_by_day = self._collect_rows(
            table, days_with_content, type_by_column, is_distinct=is_distinct
        )
        if rows_by_day is None:
            # A day cannot be read. Read the days one by one to find it.
            rows_by_day = {}
            for day in days_with_content:
                rows_of_single_day = self._collect_rows(
                    table, [day], type_by_column, is_distinct=is_distinct
                )
                rows_by_day.update(rows_of_single_day or {})
        for day, size in size_by_day.items():
            if size is not None and day not in rows_by_day:
                path = make_table_path(table, day)
                self.say(f"{path} is no table of the nightly job's: {day} is left out")
        return rows_by_day

    def _collect_rows(
        self,
        table: str,
        days: Collection[date],
        type_by_column: Mapping[str, str],
        *,
        is_distinct: bool,
    ) -> dict[date, TableRows] | None:
        """Return these columns of each day. Return None if any of the days cannot be read."""
        if not days:
            return {}
        root = self.table_storage.make_spark_root([_make_table_folder(table, day) for day in days])
        rows_by_day: dict[str, TableRows] = {str(day): [] for day in days}
        time_columns = _list_time_columns(type_by_column)
        paths = [f"{root}{make_table_path(table, day)}" for day in days]
        day_column = sf.regexp_extract(sf.input_file_name(), r"/dt=([0-9-]{10})/[^/]*\z", 1)
        try:
            frame = self.spark.read.schema(format_schema(type_by_column)).parquet(*paths)
            dated_frame = frame.withColumn("day", day_column)
            # Spark would return times without a zone.
            numeric_frame = dated_frame.withColumns(
                {column_name: sf.unix_micros(column_name) for column_name in time_columns}
            )
            if is_distinct:
                numeric_frame = numeric_frame.distinct()
            for spark_row in numeric_frame.collect():
                row = spark_row.asDict(recursive=True)
                for column_name in time_columns:
                    if row[column_name] is not None:
                        row[column_name] = microseconds_to_time(row[column_name])
                rows_by_day[row.pop("day")].append(row)
        except (Py4JJavaError, PySparkException, OverflowError):
            return None
        return {day: rows_by_day[str(day)] for day in days}


def _list_time_columns(type_by_column: Mapping[str, str]) -> list[str]:
    """Return the names of the columns with times."""
    return [
        column_name
        for column_name, spark_type in type_by_column.items()
        if spark_type == "timestamp"
    ]


def _add_defaults(rows: TableRows) -> None:
    """Add defaults for the columns that incidents of older versions do not have."""
    for row in rows:
        for column_name, default_value in _DEFAULT_BY_COLUMN.items():
            if row[column_name] is None:
                row[column_name] = default_value


def _lacks_required_value(row: Row, required_columns: Iterable[str]) -> bool:
    """Return True if any of these columns is null in a row."""
    return any(row[column_name] is None for column_name in required_columns)


def make_table_path(table: str, day: date) -> str:
    """Return the path of the object for one day of a table."""
    return f"{_make_table_folder(table, day)}/{table}.parquet"


def _make_table_folder(table: str, day: date) -> str:
    return f"{table}/dt={day}"


def _read_parquet_part(staging: Storage, folder: str) -> bytes:
    """Return the Parquet file that Spark wrote in a folder, or no bytes if it wrote none."""
    for path in staging.list_file_sizes(folder):
        if path.endswith(".parquet"):
            return staging.read(path) or b""
    return b""


# The columns with the sums of each member of the organization.
SUM_COLUMNS = ("incidents", "failed_calls", "healed", "urgent", "waiting", "rows_left_out")
# The number of queues with waiting incidents that the summary of an organization lists.
MAXIMUM_WAITING_QUEUES = 10
_MEMBER_IN_PATH_PATTERN = (
    r"/account=([0-9]{12})/region=([a-z0-9-]+)/incidents/week=[0-9W-]+/[0-9-]+\.parquet\z"
)
_REGION_AND_ACCOUNT_IN_ARN_PATTERN = "^arn:[a-z-]+:sqs:([a-z0-9-]+):([0-9]{12}):"


# The columns of `incidents` from which the sums are made. Spark reads only these.
SUMMED_COLUMNS = frozenset(
    {"account", "region", "queue_arn", "symptom", "failed_calls", "outcome", "why", "urgent"}
)


class OrganizationSums(NamedTuple):
    """Sums over the incidents of an organization. A member is one account and region."""

    members: list[Row]  # a row for each member: `of_account`, `of_region` and SUM_COLUMNS
    queues: list[Row]  # the queues with the most pressing incidents that wait for a person


def read_members(
    spark: SparkSession, central_storage: Storage, paths: Sequence[str]
) -> tuple[OrganizationSums, set[str]]:
    """Sum up the `incidents` tables at these paths.

    Returns:
        The sums over the tables that Spark can read, and the paths of the others.
    """
    try:
        return _sum_tables(spark, central_storage, paths), set()
    except (Py4JJavaError, PySparkException):
        unreadable_paths = _find_unreadable_paths(spark, central_storage, paths)
        readable_paths = [path for path in paths if path not in unreadable_paths]
        return _sum_tables(spark, central_storage, readable_paths), unreadable_paths


def _find_unreadable_paths(
    spark: SparkSession, central_storage: Storage, paths: Sequence[str]
) -> set[str]:
    """Return the paths that Spark cannot read.

    If Spark cannot read all of them together, each half of the list is tried separately.
    """
    try:
        _sum_tables(spark, central_storage, paths)
    except (Py4JJavaError, PySparkException):
        if len(paths) == 1:
            return {*paths}
        middle_position = len(paths) // 2
        unreadable_in_first_half = _find_unreadable_paths(
            spark, central_storage, paths[:middle_position]
        )
        return unreadable_in_first_half | _find_unreadable_paths(
            spark, central_storage, paths[middle_position:]
        )
    return set()


def _sum_tables(
    spark: SparkSession, central_storage: Storage, paths: Sequence[str]
) -> OrganizationSums:
    """Sum up the incidents in these tables, by member (account and region) and by queue.

    - Tables that members have copied to the central bucket are at `account=A/region=R/...`. A row
      there counts only if it names the account and region of its path.
    - If one trail has the files of all accounts, `paths` are the tables of one stack, and each row
      counts for the account and region that it names.
    - Rows that the nightly job cannot have written are counted as `rows_left_out`.
    - Drills, the probe's queue and operators' own calls are not counted.
    """
    if not paths:
        return OrganizationSums([], [])
    root = central_storage.make_spark_root(sorted({path.rpartition("/")[0] for path in paths}))
    type_by_column = {
        column_name: spark_type
        for column_name, spark_type in COLUMN_TYPES_BY_TABLE["incidents"].items()
        if column_name in SUMMED_COLUMNS
    }
    parquet_reader = spark.read.schema(format_schema(type_by_column))
    rows = parquet_reader.parquet(*(f"{root}{path}" for path in paths))
    sums_by_queue = _sum_by_queue(
        rows, has_member_in_path=paths[0].startswith("account=")
    ).persist()
    try:
        sum_expressions = [sf.sum(name).alias(name) for name in SUM_COLUMNS]
        member_rows = (
            sums_by_queue.groupBy("of_account", "of_region").agg(*sum_expressions).collect()
        )
        ranked_queues = sums_by_queue.where("waiting > 0").orderBy(
            sf.col("worst.rank"),
            sf.col("urgent_waiting").desc(),
            sf.col("failed_calls").desc(),
            "queue",
        )
        queue_rows = ranked_queues.limit(MAXIMUM_WAITING_QUEUES).collect()
    finally:
        sums_by_queue.unpersist()
    return OrganizationSums(
        [row.asDict() for row in member_rows], [row.asDict(recursive=True) for row in queue_rows]
    )


def _sum_by_queue(rows: DataFrame, *, has_member_in_path: bool) -> DataFrame:
    """Return the sums of the incidents for each member and each of its queues.

    Args:
        rows: Rows of `incidents`.
        has_member_in_path: True if the path of a row's file names the member. False if the row
            itself names it.
    """
    account = sf.col("account")
    region = sf.col("region")
    if has_member_in_path:
        path = sf.input_file_name()
        account = sf.regexp_extract(path, _MEMBER_IN_PATH_PATTERN, 1)
        region = sf.regexp_extract(path, _MEMBER_IN_PATH_PATTERN, 2)
    outcome = sf.col("outcome")
    names_own_account_and_region = (sf.col("account") == account) & (sf.col("region") == region)
    # A failed call may name another account's queue. But a waiting incident always has a case, and
    # a case is always about a queue of its own account and region.
    has_no_case = ~outcome.isin(*WAITING_STATES)
    is_about_own_queue = has_no_case | _make_queue_of_member_column(account, region)
    has_possible_values = (
        sf.col("failed_calls").between(0, MAXIMUM_ACCEPTED_COUNT) & outcome.isNotNull()
    )
    is_valid_row = names_own_account_and_region & is_about_own_queue & has_possible_values
    false_literal = sf.lit(False)
    rows_with_member = rows.select(
        account.alias("of_account"),
        region.alias("of_region"),
        sf.coalesce(is_valid_row, false_literal).alias("fits"),
        make_own_incident_column().alias("is_own"),
        "queue_arn",
        "symptom",
        "outcome",
        "failed_calls",
        sf.coalesce("urgent", false_literal).alias("is_urgent"),
    )
    return _sum_rows_by_member_and_queue(rows_with_member)


def _make_queue_of_member_column(account: Column, region: Column) -> Column:
    """Return a column that is true if the queue's ARN names this account and region."""
    queue_arn = sf.col("queue_arn")
    region_in_arn = sf.regexp_extract(queue_arn, _REGION_AND_ACCOUNT_IN_ARN_PATTERN, 1)
    account_in_arn = sf.regexp_extract(queue_arn, _REGION_AND_ACCOUNT_IN_ARN_PATTERN, 2)
    return (region_in_arn == region) & (account_in_arn == account)


def _sum_rows_by_member_and_queue(rows_with_member: DataFrame) -> DataFrame:
    """Return the sums for each member and queue. Invalid rows are summed up with the queue null."""
    outcome = sf.col("outcome")
    is_counted_row = sf.col("fits") & ~sf.col("is_own")
    is_waiting_incident = is_counted_row & outcome.isin(*WAITING_STATES)
    rank_columns = [
        sf.when(outcome == state, position) for position, state in enumerate(WAITING_STATES)
    ]
    worst_incident = sf.struct(sf.coalesce(*rank_columns).alias("rank"), "symptom", "outcome")
    condition_by_sum_name = {
        "incidents": is_counted_row,
        "healed": is_counted_row & (outcome == HEALED_OUTCOME),
        "urgent": is_counted_row & sf.col("is_urgent"),
        "waiting": is_waiting_incident,
        "urgent_waiting": is_waiting_incident & sf.col("is_urgent"),
        "rows_left_out": ~sf.col("fits"),
    }
    count_columns = [
        sf.sum(condition.cast("int")).alias(sum_name)
        for sum_name, condition in condition_by_sum_name.items()
    ]
    # Other accounts wrote these numbers. Sums of decimals cannot overflow.
    failed_calls = sf.when(is_counted_row, sf.col("failed_calls").cast("decimal(38,0)")).otherwise(
        0
    )
    shortened_arn = sf.substring(sf.col("queue_arn"), 1, MAXIMUM_NAME_CHARACTERS)
    queue_column = sf.when(sf.col("fits"), shortened_arn).alias("queue")
    return rows_with_member.groupBy("of_account", "of_region", queue_column).agg(
        *count_columns,
        sf.sum(failed_calls).alias("failed_calls"),
        sf.min(sf.when(is_waiting_incident, worst_incident)).alias("worst"),
    )
