"""Incidents with what Mendq did about them, or why no case of it is there."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from analytics.columns import INCIDENTS
from analytics.labels import COUNT_ONLY, UNLABELLED
from analytics.managed import Managed, seen_by_sweeps
from analytics.outcomes import NOT_SEEN
from analytics.readings import UNRESOLVED

# Cases older than this say nothing about an incident any more.
MEMORY_DAYS = 7
_MEMORY_MICROSECONDS = MEMORY_DAYS * 86_400 * 1_000_000


def joined(incidents: DataFrame, cases: DataFrame, managed: Managed) -> DataFrame:
    """A case joins when queue and symptom agree and its evidence overlaps; the last one tells."""
    known = incidents.transform(lambda each: _known_of_each(each, cases))
    with_cases = incidents.join(known, on="incident_id", how="left")
    told = {
        "outcome": sf.coalesce("case.case_outcome", sf.lit(NOT_SEEN)),
        "why": _why(),
        "case_id": sf.col("case.case_id"),
        "seconds_to_heal": sf.col("case.case_seconds_to_heal"),
        "paged": sf.coalesce("was_paged", sf.lit(False)),
    }
    seen = with_cases.transform(lambda each: seen_by_sweeps(each, managed))
    return seen.withColumns(told).select(*INCIDENTS)


def _known_of_each(incidents: DataFrame, cases: DataFrame) -> DataFrame:
    """What the cases of its queue tell about each incident."""
    same_queue = sf.col("queue_arn") == sf.col("case_queue_arn")
    case = sf.struct("opened_at", "case_id", "case_outcome", "case_seconds_to_heal")
    return (
        incidents.join(cases, on=same_queue, how="inner")
        .withColumn("first", sf.unix_micros("first_failure"))
        .withColumn("last", sf.unix_micros("last_failure"))
        .withColumn("joins", _same_symptom() & _evidence_overlaps())
        .groupBy("incident_id")
        .agg(
            sf.max(sf.when(sf.col("joins"), case)).alias("case"),
            sf.max(sf.when(sf.col("joins"), sf.col("case_paged"))).alias("was_paged"),
            sf.max(_same_symptom() & _was_open()).alias("case_was_open"),
            sf.max(_opened_before()).alias("case_before"),
            sf.max(_opened_after()).alias("case_after"),
        )
    )


def _same_symptom() -> Column:
    return sf.col("label") == sf.col("symptom")


def _evidence_overlaps() -> Column:
    return sf.exists(
        "evidence",
        lambda each: (each["first_at"] <= sf.col("last")) & (each["last_at"] >= sf.col("first")),
    )


def _was_open() -> Column:
    has_not_ended = sf.col("ended_at").isNull() | (sf.col("ended_at") >= sf.col("first"))
    return _opened_before() & has_not_ended


def _opened_before() -> Column:
    return sf.col("opened_at").between(sf.col("first") - _MEMORY_MICROSECONDS, sf.col("last"))


def _opened_after() -> Column:
    is_later = sf.col("opened_at") > sf.col("last")
    return is_later & (sf.col("opened_at") <= sf.col("last") + _MEMORY_MICROSECONDS)


def _why() -> Column:
    """Only what the logs and the cases can prove; docs/summary.md explains each word."""
    had_cases = sf.coalesce(sf.col("case_before") & sf.col("case_after"), sf.lit(False))
    known = sf.coalesce(
        sf.when(sf.col("label").startswith(UNLABELLED), sf.lit("unlabelled")),
        sf.when(sf.col("label").isin(*COUNT_ONLY), sf.lit("count_only")),
        sf.when(sf.col("queue_arn") == UNRESOLVED, sf.lit("unresolved_queue")),
        sf.when(sf.col("case_was_open"), sf.lit("case_open")),
        sf.when(sf.col("was_unmanaged") & sf.col("managed_later"), sf.lit("not_tagged_in_time")),
        sf.when(sf.col("was_unmanaged"), sf.lit("not_managed")),
        sf.when(~sf.col("enough_evidence"), sf.lit("too_little_evidence")),
        sf.when(sf.col("was_managed") | had_cases, sf.lit("event_lost")),
        sf.lit("unknown"),
    )
    return sf.when(sf.col("case").isNull(), known)
