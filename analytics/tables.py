"""Write and read the nightly tables: one Parquet object for each table and day.

S3 cannot replace a folder at once, but it can replace one object. So Spark writes a day's rows into
a temporary folder, and the driver then puts the file from there as one object with a fixed name.
The driver needs no compiled packages for that.

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

from analytics.cases import HEALED, MAXIMUM_COUNT, MAXIMUM_NAME_CHARACTERS
from analytics.days import time_of
from analytics.incidents import COLUMNS, FAILED_CALLS, OWN_LOOK, schema_of
from analytics.storage import Storage
from analytics.week_parts import WAITING_STATES, ByDay, Row
from mendq.model.names import PROBE_QUEUE
from mendq.model.tags import DRILL_QUEUE_PREFIX

# The columns by which the rows of each table are sorted.
_SORTED_BY: Mapping[str, tuple[str, ...]] = {
    "incidents": ("first_failure", "incident_id"),
    "failed_calls": ("event_time", "event_id"),
    "quality": ("file",),
}
# The columns of `incidents` and `quality` that may be null. All others have a value in every row.
_NULLABLE = frozenset({"reason", "why", "case_id", "seconds_to_heal"})
# The values of columns that tables written by older versions do not have.
_DEFAULTS_OF_OLDER_TABLES = {"found_by": FAILED_CALLS, "urgent": False}
Rows = list[dict[str, Any]]


@dataclass(frozen=True)
class Tables:
    """The nightly tables below one root.

    Attributes:
        spark: The session that reads and writes them.
        out: The root.
        say: Prints a line for people, such as the name of a table that cannot be read.
    """

    spark: SparkSession
    out: Storage
    say: Callable[[str], None]

    def write(self, calls: DataFrame, rows: Mapping[str, ByDay], days: Collection[date]) -> None:
        """Replace all tables of these days.

        Columns and rows have a fixed order, so that equal rows give equal bytes.

        Args:
            calls: The rows of the table `failed_calls`, with their `day`.
            rows: The rows of the other tables, by table and day.
            days: The days to write.
        """
        if not days:
            return
        with self.out.staging() as stage:
            frames = {
                table: self._make_frame(stage, table, by_day) for table, by_day in rows.items()
            }
            frames["failed_calls"] = calls
            for table, frame in frames.items():
                typed = [sf.col(name).cast(kind) for name, kind in COLUMNS[table].items()]
                requested = frame.where(sf.col("day").isin(*days)).select(*typed, "day")
                ordered = requested.coalesce(1).sortWithinPartitions("day", *_SORTED_BY[table])
                ordered.write.partitionBy("day").parquet(f"{stage.make_spark_root([])}{table}")
            for day in sorted(days):
                for table in frames:
                    content = _read_part(stage, f"{table}/day={day}")
                    if not content:
                        content = self._make_empty_table(stage, table)
                    self.out.put(path_of(table, day), content)

    def _make_frame(self, stage: Storage, table: str, by_day: ByDay) -> DataFrame:
        """Return the rows of a table, with their `day`, as a DataFrame.

        Times are passed as numbers, because Spark would take Python's times as local ones.
        """
        times = _list_times(COLUMNS[table])
        kinds = {**COLUMNS[table], **dict.fromkeys(times, "bigint"), "day": "date"}
        dated_rows: Rows = []
        for day, rows in by_day.items():
            dated_rows.extend({**row, "day": day} for row in rows)
        frame = stage.frame(f"rows/{table}.json", dated_rows, schema_of(kinds), self.spark)
        return frame.withColumns({name: sf.timestamp_micros(name) for name in times})

    def _make_empty_table(self, stage: Storage, table: str) -> bytes:
        """Return a Parquet file without rows. Spark writes no file for a day without rows."""
        folder = f"empty/{table}"
        if not stage.files(folder):
            no_rows = self.spark.createDataFrame([], schema_of(COLUMNS[table])).coalesce(1)
            no_rows.write.parquet(f"{stage.make_spark_root([])}{folder}")
        return _read_part(stage, folder)

    def read_rows(self, table: str, days: Iterable[date]) -> dict[date, Rows]:
        """Return the rows of `incidents` or `quality`, for each of `days` that has the table.

        A day whose table cannot be read, or lacks a value, is left out, and `say` names it.
        """
        rows_of_day = self._read(table, days, COLUMNS[table])
        required = COLUMNS[table].keys() - _NULLABLE
        complete: dict[date, Rows] = {}
        for day, rows in rows_of_day.items():
            if table == "incidents":
                _add_defaults(rows)
            if any(_lacks_value(row, required) for row in rows):
                self.say(f"{path_of(table, day)} has rows without a value: {day} is left out")
            else:
                complete[day] = rows
        return complete

    def read_file_names(self, table: str, days: Iterable[date]) -> dict[date, set[str]]:
        """Return the trail files that `failed_calls` or `quality` names, for each day.

        A day whose table is missing or cannot be read is left out.
        """
        rows_of_day = self._read(table, days, {"file": "string"}, distinct=True)
        names: dict[date, set[str]] = {}
        for day, rows in rows_of_day.items():
            names[day] = {row["file"] for row in rows}
        return names

    def _read(
        self,
        table: str,
        days: Iterable[date],
        columns: Mapping[str, str],
        *,
        distinct: bool = False,
    ) -> dict[date, Rows]:
        """Return these columns of a table, for each day whose table can be read.

        `say` names each day whose table exists and cannot be read. With `distinct`, rows that are
        equal in these columns are returned once.
        """
        sizes: dict[date, int | None] = {}
        for day in days:
            sizes[day] = self.out.files(_folder(table, day)).get(path_of(table, day))
        # Spark would read an empty object as a table without rows.
        with_content = [day for day, size in sizes.items() if size]
        rows_of_day = self._collect(table, with_content, columns, distinct=distinct)
        if rows_of_day is None:
            # A day cannot be read. Read the days one by one to find it.
            rows_of_day = {}
            for day in with_content:
                alone = self._collect(table, [day], columns, distinct=distinct)
                rows_of_day.update(alone or {})
        for day, size in sizes.items():
            if size is not None and day not in rows_of_day:
                path = path_of(table, day)
                self.say(f"{path} is no table of the nightly job's: {day} is left out")
        return rows_of_day

    def _collect(
        self, table: str, days: Collection[date], columns: Mapping[str, str], *, distinct: bool
    ) -> dict[date, Rows] | None:
        """Return these columns of each day. Return None if any of the days cannot be read."""
        if not days:
            return {}
        root = self.out.make_spark_root([_folder(table, day) for day in days])
        rows_of_day: dict[str, Rows] = {str(day): [] for day in days}
        times = _list_times(columns)
        paths = [f"{root}{path_of(table, day)}" for day in days]
        day_in_path = sf.regexp_extract(sf.input_file_name(), r"/dt=([0-9-]{10})/[^/]*\z", 1)
        try:
            frame = self.spark.read.schema(schema_of(columns)).parquet(*paths)
            dated = frame.withColumn("day", day_in_path)
            # Spark would return times without a zone.
            with_numbers = dated.withColumns({name: sf.unix_micros(name) for name in times})
            if distinct:
                with_numbers = with_numbers.distinct()
            for spark_row in with_numbers.collect():
                row = spark_row.asDict(recursive=True)
                for name in times:
                    if row[name] is not None:
                        row[name] = time_of(row[name])
                rows_of_day[row.pop("day")].append(row)
        except (Py4JJavaError, PySparkException, OverflowError):
            return None
        return {day: rows_of_day[str(day)] for day in days}


def _list_times(columns: Mapping[str, str]) -> list[str]:
    """Return the names of the columns that hold times."""
    return [name for name, kind in columns.items() if kind == "timestamp"]


def _add_defaults(rows: Rows) -> None:
    """Fill the columns that incidents written by older versions do not have."""
    for row in rows:
        for name, default in _DEFAULTS_OF_OLDER_TABLES.items():
            if row[name] is None:
                row[name] = default


def _lacks_value(row: Row, required: Iterable[str]) -> bool:
    """Return True if any of these columns is null in a row."""
    return any(row[name] is None for name in required)


def path_of(table: str, day: date) -> str:
    """Return the path of the object that holds a day of a table."""
    return f"{_folder(table, day)}/{table}.parquet"


def _folder(table: str, day: date) -> str:
    return f"{table}/dt={day}"


def _read_part(stage: Storage, folder: str) -> bytes:
    """Return the Parquet file that Spark wrote in a folder, or no bytes if it wrote none."""
    for path in stage.files(folder):
        if path.endswith(".parquet"):
            return stage.read(path) or b""
    return b""


# The sums of each member of the organization.
SUMS = ("incidents", "failed_calls", "healed", "urgent", "waiting", "rows_left_out")
# The number of queues with waiting incidents that the summary of an organization lists.
MAXIMUM_NEEDY_QUEUES = 10
_PLACE_IN_PATH = (
    r"/account=([0-9]{12})/region=([a-z0-9-]+)/incidents/week=[0-9W-]+/[0-9-]+\.parquet\z"
)
_PLACE_IN_ARN = "^arn:[a-z-]+:sqs:([a-z0-9-]+):([0-9]{12}):"


class MemberRows(NamedTuple):
    """The incidents of an organization, summed up by member: by account and region."""

    members: list[Row]  # a row for each account and region: `of_account`, `of_region` and SUMS
    queues: list[Row]  # the queues with the most pressing incidents that wait for a person


def read_members(
    spark: SparkSession, central: Storage, paths: Sequence[str]
) -> tuple[MemberRows, set[str]]:
    """Sum up the `incidents` tables at these paths.

    Returns:
        The sums over the tables that Spark can read, and the paths of the others.
    """
    try:
        return _read_tables(spark, central, paths), set()
    except (Py4JJavaError, PySparkException):
        unreadable = _find_unreadable(spark, central, paths)
        readable = [path for path in paths if path not in unreadable]
        return _read_tables(spark, central, readable), unreadable


def _find_unreadable(spark: SparkSession, central: Storage, paths: Sequence[str]) -> set[str]:
    """Return the paths that Spark cannot read. They are found by reading halves of the list."""
    try:
        _read_tables(spark, central, paths)
    except (Py4JJavaError, PySparkException):
        if len(paths) == 1:
            return {*paths}
        middle = len(paths) // 2
        first_half = _find_unreadable(spark, central, paths[:middle])
        return first_half | _find_unreadable(spark, central, paths[middle:])
    return set()


def _read_tables(spark: SparkSession, central: Storage, paths: Sequence[str]) -> MemberRows:
    """Sum up the incidents in these tables, by member (account and region) and by queue.

    Tables that members have copied to the central bucket are at `account=A/region=R/...`. A row
    there counts only if it names the account and region of its path. In the hub's own tables, each
    row counts for the account and region that it names. Rows that no nightly job writes are counted
    as `rows_left_out`. Drills, the probe's queue and operators' own calls are not counted.
    """
    if not paths:
        return MemberRows([], [])
    root = central.make_spark_root(sorted({path.rpartition("/")[0] for path in paths}))
    reader = spark.read.schema(schema_of(COLUMNS["incidents"]))
    rows = reader.parquet(*(f"{root}{path}" for path in paths))
    by_queue = _sum_by_queue(rows, is_shared=paths[0].startswith("account=")).persist()
    try:
        sums = [sf.sum(name).alias(name) for name in SUMS]
        members = by_queue.groupBy("of_account", "of_region").agg(*sums).collect()
        ranked = by_queue.where("waiting > 0").orderBy(
            sf.col("worst.rank"),
            sf.col("urgent_waiting").desc(),
            sf.col("failed_calls").desc(),
            "queue",
        )
        queues = ranked.limit(MAXIMUM_NEEDY_QUEUES).collect()
    finally:
        by_queue.unpersist()
    return MemberRows(
        [row.asDict() for row in members], [row.asDict(recursive=True) for row in queues]
    )


def _sum_by_queue(rows: DataFrame, *, is_shared: bool) -> DataFrame:
    """Return the sums of the incidents for each member and each of its queues.

    Args:
        rows: Rows of `incidents`.
        is_shared: True if the path of a row's file names the member, False if the row does.
    """
    account = sf.col("account")
    region = sf.col("region")
    if is_shared:
        path = sf.input_file_name()
        account = sf.regexp_extract(path, _PLACE_IN_PATH, 1)
        region = sf.regexp_extract(path, _PLACE_IN_PATH, 2)
    outcome = sf.col("outcome")
    is_right_place = (sf.col("account") == account) & (sf.col("region") == region)
    # A failed call may name another account's queue. But a case, which all waiting incidents have,
    # is always about a queue of its own account and region.
    has_no_case = ~outcome.isin(*WAITING_STATES)
    is_own_case = has_no_case | _is_queue_of(account, region)
    is_possible = sf.col("failed_calls").between(0, MAXIMUM_COUNT) & outcome.isNotNull()
    fits = is_right_place & is_own_case & is_possible
    no = sf.lit(False)
    placed = rows.select(
        account.alias("of_account"),
        region.alias("of_region"),
        sf.coalesce(fits, no).alias("fits"),
        sf.coalesce(_is_practice(), no).alias("is_own"),
        "queue_arn",
        "symptom",
        "outcome",
        "failed_calls",
        sf.coalesce("urgent", no).alias("is_urgent"),
    )
    return _aggregate(placed)


def _is_queue_of(account: Column, region: Column) -> Column:
    """Return a column that is true if the queue's ARN names this account and region."""
    queue_arn = sf.col("queue_arn")
    region_in_arn = sf.regexp_extract(queue_arn, _PLACE_IN_ARN, 1)
    account_in_arn = sf.regexp_extract(queue_arn, _PLACE_IN_ARN, 2)
    return (region_in_arn == region) & (account_in_arn == account)


def _is_practice() -> Column:
    """Return a column that is true for drills, the probe's queue and operators' own calls."""
    queue_name = sf.substring_index(sf.col("queue_arn"), ":", -1)
    is_own_queue = queue_name.startswith(DRILL_QUEUE_PREFIX) | (queue_name == PROBE_QUEUE)
    return is_own_queue | (sf.col("why") == OWN_LOOK)


def _aggregate(placed: DataFrame) -> DataFrame:
    """Return sums for each member and queue. Rows that do not fit are summed up as queue null."""
    outcome = sf.col("outcome")
    is_counted = sf.col("fits") & ~sf.col("is_own")
    is_waiting = is_counted & outcome.isin(*WAITING_STATES)
    ranks = [sf.when(outcome == state, position) for position, state in enumerate(WAITING_STATES)]
    worst = sf.struct(sf.coalesce(*ranks).alias("rank"), "symptom", "outcome")
    conditions = {
        "incidents": is_counted,
        "healed": is_counted & (outcome == HEALED),
        "urgent": is_counted & sf.col("is_urgent"),
        "waiting": is_waiting,
        "urgent_waiting": is_waiting & sf.col("is_urgent"),
        "rows_left_out": ~sf.col("fits"),
    }
    counts = [sf.sum(condition.cast("int")).alias(name) for name, condition in conditions.items()]
    # Other accounts wrote these numbers. Sums of decimals cannot overflow.
    failed_calls = sf.when(is_counted, sf.col("failed_calls").cast("decimal(38,0)")).otherwise(0)
    shortened = sf.substring(sf.col("queue_arn"), 1, MAXIMUM_NAME_CHARACTERS)
    queue = sf.when(sf.col("fits"), shortened).alias("queue")
    return placed.groupBy("of_account", "of_region", queue).agg(
        *counts,
        sf.sum(failed_calls).alias("failed_calls"),
        sf.min(sf.when(is_waiting, worst)).alias("worst"),
    )
