"""Incidents: bursts of failed calls of one account, region, queue and label."""

from __future__ import annotations

from functools import reduce

from pyspark.sql import Column, DataFrame, Window, WindowSpec
from pyspark.sql import functions as sf

from functions.catalogue import CATALOGUE
from functions.healing.evidence import MAXIMUM_PRINCIPALS

GAP_SECONDS = 900
_KEY = ("account", "region", "queue_arn", "label")


def incidents(calls: DataFrame) -> DataFrame:
    """A row per burst; a call joins the one before it up to GAP_SECONDS later, inclusive.

    `enough_evidence` tells whether heal would have believed it.
    """
    return (
        calls.transform(_numbered)
        .groupBy(*_KEY, "burst")
        .agg(
            sf.min("event_time").alias("first_failure"),
            sf.max("event_time").alias("last_failure"),
            sf.count("event_id").alias("failed_calls"),
            sf.sort_array(sf.collect_set("error_code")).alias("error_codes"),
            sf.sort_array(sf.collect_set("principal_arn")).alias("all_principals"),
            sf.max("completes_evidence").alias("enough_evidence"),
        )
        .select(
            _incident_id().alias("incident_id"),
            *_KEY,
            "error_codes",
            "first_failure",
            "last_failure",
            "failed_calls",
            sf.slice("all_principals", 1, MAXIMUM_PRINCIPALS).alias("principals"),
            "enough_evidence",
        )
    )


def _numbered(calls: DataFrame) -> DataFrame:
    """Each call with the number of its burst: one more wherever the gap before it is too long."""
    in_time = Window.partitionBy(*_KEY).orderBy("event_time", "event_id")
    until_here = in_time.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    gap = sf.unix_micros("event_time") - sf.lag(sf.unix_micros("event_time")).over(in_time)
    starts = sf.coalesce(gap > GAP_SECONDS * 1_000_000, sf.lit(True))
    return (
        calls.withColumn("completes_evidence", _completes_evidence(in_time))
        .withColumn("starts", starts.cast("int"))
        .withColumn("burst", sf.sum("starts").over(until_here))
    )


def _completes_evidence(in_time: WindowSpec) -> Column:
    """Whether this call is the last of as many, as close together, as its symptom asks for.

    Calls of an earlier burst are no closer than GAP_SECONDS, longer than any window of evidence.
    """
    completes = (
        (sf.col("label") == symptom.name)
        & _is_within(symptom.evidence.distinct_events, symptom.evidence.within_seconds, in_time)
        for symptom in CATALOGUE
    )
    return reduce(lambda one, other: one | other, completes, sf.lit(False))


def _is_within(events: int, seconds: int, in_time: WindowSpec) -> Column:
    moment = sf.unix_micros("event_time")
    earlier = sf.lag(moment, events - 1).over(in_time)
    return sf.coalesce(moment - earlier <= seconds * 1_000_000, sf.lit(False))


def _incident_id() -> Column:
    """The same burst has the same id in every night that finds it."""
    identity = sf.struct(*_KEY, sf.unix_micros("first_failure").alias("first_failure"))
    return sf.substring(sf.sha2(sf.to_json(identity), 256), 1, 32)
