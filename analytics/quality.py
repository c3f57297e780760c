"""What the night could and could not read, file by file; a file belongs to its publish day."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from analytics.trail_file import MAXIMUM_BYTES

SPARK_LISTED = (
    "file string, bytes bigint, account string, region string, published date, is_file boolean"
)
SUFFIX = ".json.gz"


def quality(listed: DataFrame, readings: DataFrame) -> DataFrame:
    """A row per file that lies in a publish folder, whether Spark read it or not.

    What only bears the name of one has no `is_file`, and a row all the same.
    """
    return listed.join(readings, on="file", how="left").select(
        "published",
        "file",
        "account",
        "region",
        "bytes",
        sf.when(sf.col("records").isNull(), _why_not_read())
        .when(sf.col("reason").isNotNull(), sf.col("reason"))
        .alias("reason"),
        sf.coalesce("records", sf.lit(0)).cast("bigint").alias("records"),
        sf.greatest(sf.size("calls"), sf.lit(0)).cast("bigint").alias("failed_calls"),
        sf.coalesce("unreadable_records", sf.array()).alias("unreadable_records"),
    )


def _why_not_read() -> Column:
    """Spark's binaryFile leaves out empty files and hidden names; the size is capped here."""
    return sf.coalesce(
        sf.when(~sf.col("is_file"), sf.lit("no_file")),
        sf.when(sf.col("bytes") == 0, sf.lit("empty")),
        sf.when(~sf.col("file").endswith(SUFFIX), sf.lit("not_json_gz")),
        sf.when(sf.col("bytes") > MAXIMUM_BYTES, sf.lit("too_large")),
        sf.lit("not_read"),
    )
