"""The tables: a day of one is one Parquet object with a fixed name.

S3 cannot replace a folder at once, but it can replace one object; so Spark writes beside, where
nobody reads, and what it wrote is put whole. That needs nothing compiled on the driver.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from analytics.cases import HEALED, MOST_COUNTED, MOST_NAME
from analytics.days import time_of
from analytics.incidents import COLUMNS, FAILED_CALLS, OWN_LOOK, schema_of
from analytics.storage import Storage
from analytics.week_parts import PRESSING, ByDay, Row
from mendq.model.limits import DRILL_QUEUE
from mendq.model.names import PROBE_QUEUE

_ORDERS: Mapping[str, tuple[str, ...]] = {
    "incidents": ("first_failure", "incident_id"),
    "failed_calls": ("event_time", "event_id"),
    "quality": ("file",),
}
# Of the tables that are read back; every other column of a row has a value.
_MAY_BE_EMPTY = frozenset({"reason", "why", "case_id", "seconds_to_heal"})
# What older tables do not say.
_OLDER = {"found_by": FAILED_CALLS, "urgent": False}
Rows = list[dict[str, Any]]


@dataclass(frozen=True)
class Tables:
    """The tables below one root; `say` is told of an object in a table's place that is not ours."""

    spark: SparkSession
    out: Storage
    say: Callable[[str], None]

    def write(self, calls: DataFrame, rows: Mapping[str, ByDay], days: Collection[date]) -> None:
        """Replace each day's objects by the `calls` of that `day`, and by its `rows`, by table.

        In a fixed order and in exactly the table's columns: the same rows give the same bytes.
        """
        if not days:
            return
        with self.out.staging() as stage:
            frames = {name: self._frame(stage, name, of) for name, of in rows.items()}
            frames["failed_calls"] = calls
            for name, frame in frames.items():
                typed = [sf.col(each).cast(kind) for each, kind in COLUMNS[name].items()]
                asked = frame.where(sf.col("day").isin(*days)).select(*typed, "day").coalesce(1)
                ordered = asked.sortWithinPartitions("day", *_ORDERS[name])
                ordered.write.partitionBy("day").parquet(f"{stage.spark_root([])}{name}")
            for day in sorted(days):
                for name in frames:
                    content = _part(stage, f"{name}/day={day}") or self._empty(stage, name)
                    self.out.put(path_of(name, day), content)

    def _frame(self, stage: Storage, name: str, by_day: ByDay) -> DataFrame:
        """Rows of a table with their `day`; Spark would take Python's times as the local zone's."""
        times = [each for each, kind in COLUMNS[name].items() if kind == "timestamp"]
        kinds = {**COLUMNS[name], **dict.fromkeys(times, "bigint"), "day": "date"}
        dated = ({**row, "day": day} for day, rows in by_day.items() for row in rows)
        frame = stage.frame(f"rows/{name}.json", dated, schema_of(kinds), self.spark)
        return frame.withColumns({each: sf.timestamp_micros(each) for each in times})

    def _empty(self, stage: Storage, name: str) -> bytes:
        """A day's object without rows: of such a day Spark writes nothing."""
        place = f"empty/{name}"
        if not stage.files(place):
            none = self.spark.createDataFrame([], schema_of(COLUMNS[name])).coalesce(1)
            none.write.parquet(f"{stage.spark_root([])}{place}")
        return _part(stage, place)

    def rows(self, name: str, days: Iterable[date]) -> dict[date, Rows]:
        """Those of `days` of incidents or quality that a run wrote; the others are said."""
        found = self._read(name, days, COLUMNS[name])
        older = _OLDER.items() if name == "incidents" else ()
        for day in [*found]:
            for row in found[day]:
                row.update({each: value for each, value in older if row[each] is None})
            needed = COLUMNS[name].keys() - _MAY_BE_EMPTY
            if any(row[each] is None for row in found[day] for each in needed):
                self.say(f"{path_of(name, day)} has rows without a value: {day} is left out")
                del found[day]
        return found

    def files(self, name: str, days: Iterable[date]) -> dict[date, set[str]]:
        """The trail files that failed_calls or quality name, of the days that a run wrote."""
        found = self._read(name, days, {"file": "string"}, distinct=True)
        return {day: {row["file"] for row in rows} for day, rows in found.items()}

    def _read(
        self, name: str, days: Iterable[date], columns: Mapping[str, str], *, distinct: bool = False
    ) -> dict[date, Rows]:
        sizes = {day: self.out.files(_folder(name, day)).get(path_of(name, day)) for day in days}
        # An empty object is to Spark a table without rows.
        there = [day for day, size in sizes.items() if size]
        found = self._collected(name, there, columns, distinct=distinct)
        if found is None:
            alone = (self._collected(name, [day], columns, distinct=distinct) for day in there)
            found = {day: rows for one in alone if one for day, rows in one.items()}
        for day, size in sizes.items():
            if size is not None and day not in found:
                path = path_of(name, day)
                self.say(f"{path} is no table of the nightly job's: {day} is left out")
        return found

    def _collected(
        self, name: str, days: Collection[date], columns: Mapping[str, str], *, distinct: bool
    ) -> dict[date, Rows] | None:
        """The rows of each day; None where anything there cannot be read."""
        if not days:
            return {}
        root = self.out.spark_root([_folder(name, day) for day in days])
        found: dict[str, Rows] = {str(day): [] for day in days}
        times = [each for each, kind in columns.items() if kind == "timestamp"]
        paths = [f"{root}{path_of(name, day)}" for day in days]
        of_day = sf.regexp_extract(sf.input_file_name(), r"/dt=([0-9-]{10})/[^/]*\z", 1)
        try:
            frame = self.spark.read.schema(schema_of(columns)).parquet(*paths)
            dated = frame.withColumn("day", of_day)
            # Spark would give times without a zone.
            plain = dated.withColumns({each: sf.unix_micros(each) for each in times})
            collected = (plain.distinct() if distinct else plain).collect()
            for row in (each.asDict(recursive=True) for each in collected):
                row.update({each: time_of(row[each]) for each in times if row[each] is not None})
                found[row.pop("day")].append(row)
        except (Py4JJavaError, PySparkException, OverflowError):
            return None
        return {day: found[str(day)] for day in days}


def path_of(table: str, day: date) -> str:
    """The one object that holds a day of a table."""
    return f"{_folder(table, day)}/{table}.parquet"


def _folder(table: str, day: date) -> str:
    return f"{table}/dt={day}"


def _part(stage: Storage, folder: str) -> bytes:
    """The one file that Spark wrote there; empty where it wrote none."""
    parts = [each for each in stage.files(folder) if each.endswith(".parquet")]
    return (stage.read(parts[0]) or b"") if parts else b""


SUMS = ("incidents", "failed_calls", "healed", "urgent", "waiting", "rows_left_out")
MOST_NEEDY = 10
_OF_PATH = r"/account=([0-9]{12})/region=([a-z0-9-]+)/incidents/week=[0-9W-]+/[0-9-]+\.parquet\z"
_OF_ARN = "^arn:[a-z-]+:sqs:([a-z0-9-]+):([0-9]{12}):"


def read_members(
    spark: SparkSession, central: Storage, paths: Sequence[str]
) -> tuple[tuple[list[Row], list[Row]], set[str]]:
    """What `_read_some` gives of those that Spark can read, and the others, found by halves."""
    try:
        return _read_some(spark, central, paths), set()
    except (Py4JJavaError, PySparkException):
        bad = _unreadable(spark, central, paths)
        return _read_some(spark, central, [each for each in paths if each not in bad]), bad


def _unreadable(spark: SparkSession, central: Storage, paths: Sequence[str]) -> set[str]:
    try:
        _read_some(spark, central, paths)
    except (Py4JJavaError, PySparkException):
        if len(paths) == 1:
            return {*paths}
        half = len(paths) // 2
        halves = (paths[:half], paths[half:])
        return set[str]().union(*(_unreadable(spark, central, each) for each in halves))
    return set()


def _read_some(
    spark: SparkSession, central: Storage, paths: Sequence[str]
) -> tuple[list[Row], list[Row]]:
    """A row for each member, and for each of the MOST_NEEDY queues.

    A row that names another place than its path does, or what no nightly job writes, is none: it
    is counted as left out. Practice and the probe's queue are nobody's incidents. Of a table of
    the hub's own each row is its account's.
    """
    if not paths:
        return [], []
    root = central.spark_root(sorted({each.rpartition("/")[0] for each in paths}))
    frame = spark.read.schema(schema_of(COLUMNS["incidents"]))
    rows = frame.parquet(*(f"{root}{each}" for each in paths))
    by_queue = _by_queue(rows, is_shared=paths[0].startswith("account=")).persist()
    try:
        sums = [sf.sum(each).alias(each) for each in SUMS]
        of_members = by_queue.groupBy("of_account", "of_region").agg(*sums).collect()
        ranked = by_queue.where("waiting > 0").orderBy(
            sf.col("worst.rank"), sf.col("pages").desc(), sf.col("failed_calls").desc(), "queue"
        )
        needy = ranked.limit(MOST_NEEDY).collect()
    finally:
        by_queue.unpersist()
    return [each.asDict() for each in of_members], [each.asDict(recursive=True) for each in needy]


def _by_queue(rows: DataFrame, *, is_shared: bool) -> DataFrame:
    path, queue, outcome = sf.input_file_name(), sf.col("queue_arn"), sf.col("outcome")
    account = sf.regexp_extract(path, _OF_PATH, 1) if is_shared else sf.col("account")
    region = sf.regexp_extract(path, _OF_PATH, 2) if is_shared else sf.col("region")
    of_arn = [sf.regexp_extract(queue, _OF_ARN, each) for each in (1, 2)]
    name = sf.substring_index(queue, ":", -1)
    is_own = name.startswith(DRILL_QUEUE) | (name == PROBE_QUEUE) | (sf.col("why") == OWN_LOOK)
    calls, no = sf.col("failed_calls"), sf.lit(False)
    # A failed call may name another account's queue; a case is always about one's own.
    is_there = ~outcome.isin(*PRESSING) | ((of_arn[0] == region) & (of_arn[1] == account))
    fits = (sf.col("account") == account) & (sf.col("region") == region) & is_there
    placed = rows.select(
        account.alias("of_account"),
        region.alias("of_region"),
        sf.coalesce(fits & calls.between(0, MOST_COUNTED) & outcome.isNotNull(), no).alias("fits"),
        sf.coalesce(is_own, no).alias("is_own"),
        *("queue_arn", "symptom", "outcome", "failed_calls"),
        sf.coalesce("urgent", no).alias("is_urgent"),
    )
    return _summed(placed)


def _summed(placed: DataFrame) -> DataFrame:
    """By member and queue, where a row fits; lies have none."""
    queue, outcome, calls = sf.col("queue_arn"), sf.col("outcome"), sf.col("failed_calls")
    counts = sf.col("fits") & ~sf.col("is_own")
    ranks = (sf.when(outcome == each, n) for n, each in enumerate(PRESSING))
    waits = counts & outcome.isin(*PRESSING)
    worst = sf.struct(sf.coalesce(*ranks).alias("rank"), "symptom", "outcome")
    ones = {
        "incidents": counts,
        "healed": counts & (outcome == HEALED),
        "urgent": counts & sf.col("is_urgent"),
        "waiting": waits,
        "pages": waits & sf.col("is_urgent"),
        "rows_left_out": ~sf.col("fits"),
    }
    # Decimal, since no sum of what others wrote may run over.
    in_full = sf.when(counts, calls.cast("decimal(38,0)")).otherwise(0)
    shown = sf.when(sf.col("fits"), sf.substring(queue, 1, MOST_NAME)).alias("queue")
    return placed.groupBy("of_account", "of_region", shown).agg(
        *(sf.sum(each.cast("int")).alias(name) for name, each in ones.items()),
        sf.sum(in_full).alias("failed_calls"),
        sf.min(sf.when(waits, worst)).alias("worst"),
    )
