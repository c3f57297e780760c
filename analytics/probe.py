"""Which reader this Spark can run: driver and executors are asked before one is chosen."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Iterator

from pyspark.sql import SparkSession

from analytics.readings import Reader
from functions.healing.nightly import FALLBACK, NATIVE

# What the native reader imports, and pandas, which Spark 3.5 wants before it lets Arrow run.
WHEELS = ("pyarrow", "pandas", "numpy", "msgspec", "isal.isal_zlib")


def chosen(spark: SparkSession) -> Reader:
    """The native reader where its wheels import everywhere, else Spark's own JSON reader."""
    lacks = missing()
    if lacks:
        return Reader(FALLBACK, f"the driver cannot import {', '.join(lacks)}")
    context = spark.sparkContext
    places = max(2, context.defaultParallelism)
    lacks = sorted(set(context.parallelize(range(places), places).mapPartitions(_asked).collect()))
    if lacks:
        return Reader(FALLBACK, f"an executor cannot import {', '.join(lacks)}")
    return Reader(NATIVE)


def missing() -> list[str]:
    """The wheels that do not import here."""
    return [each for each in WHEELS if not _imports(each)]


def _asked(numbers: Iterable[int]) -> Iterator[str]:
    del numbers
    return iter(missing())


def _imports(name: str) -> bool:
    """A wheel for another machine raises more than ImportError."""
    try:
        importlib.import_module(name)
    except Exception:  # noqa: BLE001 - whatever it is, the native reader would meet it too
        return False
    return True
