"""Failed calls out of readings: one per eventID, our own roles' left out."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as sf

from analytics.columns import FAILED_CALLS
from analytics.days import Days
from functions.healing.own_roles import EVERY, role_name

# A role of ours, with its account and its region: it makes calls in these alone. The role decides,
# never the session's name, which is its caller's text.
_PURPOSES = "|".join(EVERY)
OWN_ROLE = (
    rf"^arn:aws[a-z-]*:iam::([0-9]{{12}}):role/{role_name(f'(?:{_PURPOSES})', '([a-z0-9-]+)')}\z"
)


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
    account, region = (sf.regexp_extract("principal_arn", OWN_ROLE, part) for part in (1, 2))
    is_here = (account == sf.col("account")) & (region == sf.col("region"))
    is_own = sf.col("principal_arn").rlike(OWN_ROLE) & is_here
    return calls.where(~is_own).select(*FAILED_CALLS)


def within(frame: DataFrame, column: str, days: Days) -> DataFrame:
    """The rows whose timestamp `column` lies in `days`."""
    moment = sf.unix_micros(column)
    return frame.where((moment >= days.from_microseconds) & (moment < days.before_microseconds))
