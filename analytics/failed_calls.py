"""Failed calls out of readings: one per eventID, our own roles' left out."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as sf

from analytics.days import Days

# As infra names our roles: mendq-<purpose>-<region>, without a path. The role decides, never the
# session's name, which is its caller's text.
OWN_ROLE = r"^arn:aws[a-z-]*:iam::[0-9]{12}:role/mendq-[a-z_-]+-[a-z]{2,4}(-[a-z]+)+-[0-9]$"


def failed_calls(readings: DataFrame) -> DataFrame:
    """One row per call of anybody else, whenever it happened."""
    return readings.transform(_exploded).transform(_one_per_event).transform(_without_own)


def _exploded(readings: DataFrame) -> DataFrame:
    return readings.select("file", sf.explode("calls").alias("call")).select(
        "call.*", "file", sf.element_at(sf.split("file", "/"), -1).alias("file_name")
    )


def _one_per_event(calls: DataFrame) -> DataFrame:
    """The first by file name, where CloudTrail delivered a call more than once."""
    copies = Window.partitionBy("event_id").orderBy("file_name", "file", "position")
    return calls.withColumn("copy", sf.row_number().over(copies)).where(sf.col("copy") == 1)


def _without_own(calls: DataFrame) -> DataFrame:
    issuer_account = sf.element_at(sf.split("principal_arn", ":"), 5)
    is_own = sf.col("principal_arn").rlike(OWN_ROLE) & (issuer_account == sf.col("account"))
    return calls.where(~is_own).select(
        "event_id",
        "event_time",
        "event_name",
        "error_code",
        "queue_arn",
        "account",
        "region",
        "principal_arn",
        "request_id",
        "label",
        "file",
    )


def within(frame: DataFrame, column: str, days: Days) -> DataFrame:
    """The rows whose timestamp `column` lies in `days`."""
    moment = sf.unix_micros(column)
    return frame.where((moment >= days.from_microseconds) & (moment < days.before_microseconds))
