"""The night's own readers and sessions, in the one warm SparkSession of a bench."""

from __future__ import annotations

import sys
from datetime import timedelta

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from analytics.days import Days
from analytics.incidents import incidents
from analytics.session import session
from analytics.storage import open_root
from analytics.trail import Reader, TrailReader
from analytics.trail_file import SQS
from bench.trail_files import Trail
from bench.trail_records import DAY
from functions.healing.nightly import FALLBACK, NATIVE

# The last files of a day are published on the next.
PUBLISHED = Days(DAY.date(), DAY.date() + timedelta(days=1))
READERS = {"native": Reader(NATIVE), "standard library": Reader(FALLBACK)}
# Failed calls of a key: so many, so far apart, then an hour's silence.
KEYS, BURST_CALLS, APART_SECONDS, SILENCE_SECONDS = 2_000, 20, 10, 3_600


def read_trail(spark: SparkSession, trail: Trail, name: str) -> None:
    """List, read and label as a night does; raise RuntimeError where anything is missing."""
    reader = TrailReader(spark, open_root(str(trail.root), spark), READERS[name])
    try:
        reader.read(PUBLISHED)
        found = reader.readings().agg(sf.sum(sf.size("calls")), sf.sum("records")).collect()[0]
    finally:
        reader.close()
    expected = (trail.truth.failed_sqs_calls, trail.truth.records)
    if tuple(found) != expected:
        raise RuntimeError(f"(failed calls, records) were {tuple(found)}, not {expected}")


def count_by_read_json(spark: SparkSession, trail: Trail) -> None:
    """What one would write first: Spark's own source of JSON, told the two fields that tell."""
    record = "struct<eventSource: string, errorCode: string>"
    source = spark.read.schema(f"Records array<{record}>").option("recursiveFileLookup", value=True)
    files = source.json(f"file:{trail.root}/AWSLogs", multiLine=True)
    records = files.select(sf.explode("Records").alias("record"))
    is_sqs = sf.col("record.eventSource") == SQS
    found = records.where(is_sqs & sf.col("record.errorCode").isNotNull()).count()
    if found != trail.truth.failed_sqs_calls:
        raise RuntimeError(f"failed calls were {found}, not {trail.truth.failed_sqs_calls}")


def find_sessions(spark: SparkSession, calls: int) -> None:
    """Incidents of made-up failed calls; raise RuntimeError where they are too many or too few."""
    counts = sf.count("*"), sf.sum("failed_calls")
    found = incidents(failed_calls(spark, calls)).agg(*counts).collect()[0]
    of_each_key = -(-(calls // KEYS) // BURST_CALLS)
    expected = (KEYS * of_each_key, calls)
    if tuple(found) != expected:
        raise RuntimeError(f"(incidents, calls) were {tuple(found)}, not {expected}")


def failed_calls(spark: SparkSession, calls: int) -> DataFrame:
    """Computed where they are needed, so that no disk is measured; `calls` of KEYS each alike."""
    key, number = sf.col("id") % KEYS, sf.floor(sf.col("id") / KEYS)
    burst, place = sf.floor(number / BURST_CALLS), number % BURST_CALLS
    every = BURST_CALLS * APART_SECONDS + SILENCE_SECONDS
    second = sf.lit(int(DAY.timestamp())) + burst * every + place * APART_SECONDS
    return spark.range(calls).select(
        sf.concat(sf.lit("event-"), "id").alias("event_id"),
        sf.timestamp_seconds(second).alias("event_time"),
        sf.lit("123456789012").alias("account"),
        sf.lit("us-east-1").alias("region"),
        sf.concat(sf.lit("arn:aws:sqs:us-east-1:123456789012:queue-"), key).alias("queue_arn"),
        sf.lit("lease_expired").alias("label"),
        sf.lit("MessageNotInflight").alias("error_code"),
        sf.lit("arn:aws:iam::123456789012:role/orders-worker").alias("principal_arn"),
    )


def main(words: list[str]) -> int:
    find_sessions(session(), *map(int, words))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
