"""One pass over the trail files, as a DataFrame: a row per file with its failed calls in it.

`readings(binary_files(spark, root, folders), root, reader)` reads with the Reader that it is given;
`analytics.probe.chosen(spark)` says which one this Spark can run. Both give the same rows, because
reading and labelling are `functions.healing` and `functions.catalogue` themselves, in Python on the
executors: a label is what heal would have said.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from analytics.quality import SUFFIX
from analytics.trail_file import MAXIMUM_BYTES

UNRESOLVED = "unresolved"
CALLS = (
    "array<struct<position: bigint, event_id: string, event_time: timestamp, event_name: string, "
    "error_code: string, queue_arn: string, account: string, region: string, "
    "principal_arn: string, request_id: string, label: string>>"
)
FAULTS = "array<struct<reason: string, records: bigint>>"
SPARK_READING = (
    f"file string, reason string, records bigint, unreadable_records {FAULTS}, calls {CALLS}"
)


@dataclass(frozen=True)
class Reader:
    """NATIVE or FALLBACK; `why` says what the native one lacks here, empty where it runs."""

    name: str
    why: str = ""


def readings(trail_files: DataFrame, root: str, reader: Reader) -> DataFrame:
    """`trail_files` as Spark's binaryFile gives them; `root` is what their paths begin with."""
    files = trail_files.where(sf.col("length") <= MAXIMUM_BYTES).select("path", "content")
    # The other one is not imported: its wheels may be missing.
    way = import_module(f"analytics.{reader.name}_readings")
    found: DataFrame = way.readings(files, root)
    return found


def binary_files(spark: SparkSession, root: str, folders: Sequence[str]) -> DataFrame:
    """The log files in `folders` of `root`, with what is in them; not what lies deeper.

    Spark looks deeper all the same, because else it takes folders for columns.
    """
    here = [f"{root}{folder}" for folder in folders]
    found = (
        spark.read.format("binaryFile")
        .option("pathGlobFilter", f"*{SUFFIX}")
        .option("recursiveFileLookup", value=True)
        .load([_literal(each) for each in here])
    )
    return found.where(sf.regexp_replace("path", r"/[^/]*\z", "").isin(here))


def _literal(path: str) -> str:
    """Hadoop reads these characters as a pattern; here they are a folder's name."""
    return "".join(f"\\{each}" if each in "{}[]*?\\" else each for each in path)
