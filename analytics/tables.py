"""The tables of the night: a day of one is one Parquet object with a fixed name.

S3 cannot replace a folder at once, but it can replace one object; so a day is collected and put
whole. Tried with 200,000 failed calls a day, of 385 bytes each; spark.driver.maxResultSize, 1 GB,
would end it at some 2.5 million. Where the driver has no pyarrow, Spark writes the object.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from importlib import import_module
from typing import Any, Protocol

from pyspark.sql import DataFrame

from analytics.storage import Storage

ARROW, SPARK = "analytics.arrow_tables", "analytics.spark_tables"
_ORDERS: Mapping[str, tuple[str, ...]] = {
    "incidents": ("first_failure", "incident_id"),
    "failed_calls": ("event_time", "event_id"),
    "quality": ("file",),
}


# Of the tables that are read back; every other column of a row has a value.
_MAY_BE_EMPTY = frozenset({"reason", "why", "case_id", "seconds_to_heal"})


class TableUnreadable(Exception):
    """An object in a table's place that is none of ours; the text says which."""


class Table(Protocol):
    """A day of a table, on the driver."""

    @property
    def num_rows(self) -> int: ...

    def to_pylist(self) -> list[dict[str, Any]]: ...


class Tables:
    """How tables are collected, written and read; by default as this driver can."""

    def __init__(self, way: str | None = None) -> None:
        self._way: Any = import_module(way or _first_way())

    def collected(self, frame: DataFrame, name: str) -> Table:
        """The rows of `frame`, in a fixed order, in exactly the columns of the table."""
        table: Table = self._way.collected(frame, name, _ORDERS[name])
        return table

    def put(self, out: Storage, name: str, day: date, table: Table) -> None:
        """Replace the day's object; the same rows give the same bytes."""
        self._way.put(out, path_of(name, day), table)

    def rows(self, out: Storage, name: str, day: date) -> list[dict[str, Any]] | None:
        """A day's incidents or quality; None where the night did not write them.

        Raise TableUnreadable.
        """
        path = path_of(name, day)
        found: list[dict[str, Any]] | None = self._way.rows(out, path)
        for row in found or ():
            if any(row[each] is None for each in row.keys() - _MAY_BE_EMPTY):
                raise TableUnreadable(f"{path} has rows without a value")
        return found

    def files(self, out: Storage, name: str, day: date) -> set[str] | None:
        """The trail files that a day's failed_calls or quality name; None where there is none.

        Raise TableUnreadable.
        """
        found: set[str] | None = self._way.files(out, path_of(name, day))
        return found


def path_of(table: str, day: date) -> str:
    """The one object that holds a day of a table."""
    return f"{table}/dt={day}/{table}.parquet"


def _first_way() -> str:
    try:
        import_module("pyarrow.parquet")
    except Exception:  # noqa: BLE001 - a wheel for another machine raises more than ImportError
        return SPARK
    return ARROW
