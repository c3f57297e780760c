"""Failed calls into incidents, and incidents with what Mendq did about them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import NamedTuple

from pyspark.sql import Column, DataFrame, SparkSession, Window, WindowSpec
from pyspark.sql import functions as sf

from analytics.cases import NOT_SEEN
from analytics.days import Days
from analytics.trail_file import COUNT_ONLY, UNRESOLVED
from mendq.catalogue import CATALOGUE, UNKNOWN
from mendq.model.evidence import MAXIMUM_PRINCIPALS
from mendq.model.names import EVERY, role_name

FAULTS = "array<struct<reason:string,records:bigint>>"
# The columns of the tables, in their order, with Spark's word for each: THE place that says them.
COLUMNS: Mapping[str, Mapping[str, str]] = {
    table: dict(each.split(" ") for each in columns.split(", "))
    for table, columns in {
        "incidents": "incident_id string, account string, region string, queue_arn string, "
        "symptom string, error_codes array<string>, first_failure timestamp, "
        "last_failure timestamp, failed_calls bigint, principals array<string>, outcome string, "
        "why string, case_id string, seconds_to_heal double, notified boolean",
        "failed_calls": "event_id string, event_time timestamp, event_name string, "
        "error_code string, queue_arn string, account string, region string, "
        "principal_arn string, request_id string, symptom string, file string",
        "quality": "file string, account string, region string, bytes bigint, reason string, "
        f"records bigint, failed_calls bigint, unreadable_records {FAULTS}",
    }.items()
}
GAP_SECONDS = 900
_KEY = ("account", "region", "queue_arn", "symptom")
SPARK_MANAGED = "managed_arn string, managed_at array<bigint>"
SPARK_WHOLE = "whole_at array<bigint>"
# Twice as far apart as they come: further away, a scan says nothing of the incident.
_NEAR_MICROSECONDS = 2 * 3_600 * 1_000_000
LATER_DAYS = 7
_LATER_MICROSECONDS = LATER_DAYS * 86_400 * 1_000_000

# Cases older than this say nothing about an incident any more.
MEMORY_DAYS = 7
_MEMORY_MICROSECONDS = MEMORY_DAYS * 86_400 * 1_000_000

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
    return (
        readings.select("file", sf.explode("calls").alias("call"))
        .select("call.*", "file", sf.element_at(sf.split("file", "/"), -1).alias("file_name"))
        .withColumn("event_time", sf.timestamp_micros("event_time"))
    )


def _one_per_event(calls: DataFrame) -> DataFrame:
    """The first by file name, where CloudTrail delivered a call more than once."""
    copies = Window.partitionBy("event_id").orderBy("file_name", "file", "position")
    return calls.withColumn("copy", sf.row_number().over(copies)).where(sf.col("copy") == 1)


def _without_own(calls: DataFrame) -> DataFrame:
    account, region = (sf.regexp_extract("principal_arn", OWN_ROLE, part) for part in (1, 2))
    is_here = (account == sf.col("account")) & (region == sf.col("region"))
    is_own = sf.col("principal_arn").rlike(OWN_ROLE) & is_here
    return calls.where(~is_own).select(*COLUMNS["failed_calls"])


def within(frame: DataFrame, column: str, days: Days) -> DataFrame:
    """The rows whose timestamp `column` lies in `days`."""
    moment = sf.unix_micros(column)
    return frame.where((moment >= days.from_microseconds) & (moment < days.before_microseconds))


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
    asking: dict[tuple[int, int], list[str]] = defaultdict(list)
    for symptom in CATALOGUE:
        needed = symptom.evidence.distinct_events, symptom.evidence.within_seconds
        asking[needed].append(symptom.name)
    completes = (
        sf.col("symptom").isin(names) & _is_within(*needed, in_time)
        for needed, names in asking.items()
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


class Round(NamedTuple):
    """One scan's list; `whole` where every managed queue is on it."""

    at: int
    queue_arns: tuple[str, ...]
    whole: bool


@dataclass(frozen=True)
class Managed:
    """By queue when it was listed; and, one row, when a scan listed them all."""

    queues: DataFrame
    whole: DataFrame


def managed(spark: SparkSession, rounds: Iterable[Round]) -> Managed:
    """The same rounds in any order give the same."""
    listed_at: dict[str, set[int]] = defaultdict(set)
    whole: set[int] = set()
    for each in rounds:
        whole |= {each.at} if each.whole else set()
        for arn in each.queue_arns:
            listed_at[arn].add(each.at)
    rows = [(arn, sorted(listed_at[arn])) for arn in sorted(listed_at)]
    return Managed(
        spark.createDataFrame(rows, SPARK_MANAGED),
        spark.createDataFrame([(sorted(whole),)], SPARK_WHOLE),
    )


def seen_by_scans(incidents: DataFrame, known: Managed) -> DataFrame:
    """`was_managed`, `was_unmanaged` from the scan before an incident to the one after it.

    Neither where one of the two is not near; `managed_later` within seven days.
    """
    listed = sf.coalesce("managed_at", sf.array())
    first, last = sf.unix_micros("first_failure"), sf.unix_micros("last_failure")
    return (
        incidents.join(known.queues, on=sf.col("queue_arn") == sf.col("managed_arn"), how="left")
        .crossJoin(sf.broadcast(known.whole))
        .withColumn("scan_before", _newest(sf.col("whole_at"), first))
        .withColumn("scan_after", _oldest(sf.col("whole_at"), last))
        .withColumn("was_unmanaged", _unlisted(listed))
        .withColumn("was_managed", _listed(listed))
        .withColumn("managed_later", _within(listed, last + 1, last + _LATER_MICROSECONDS))
    )


def _newest(moments: Column, until: Column) -> Column:
    near = sf.filter(moments, lambda each: each.between(until - _NEAR_MICROSECONDS, until))
    return sf.array_max(near)


def _oldest(moments: Column, since: Column) -> Column:
    near = sf.filter(moments, lambda each: each.between(since, since + _NEAR_MICROSECONDS))
    return sf.array_min(near)


def _unlisted(listed: Column) -> Column:
    before, after = sf.col("scan_before"), sf.col("scan_after")
    known = before.isNotNull() & after.isNotNull()
    return known & ~sf.coalesce(_within(listed, before, after), sf.lit(False))


def _listed(listed: Column) -> Column:
    both = sf.array_contains(listed, sf.col("scan_before")) & sf.array_contains(
        listed, sf.col("scan_after")
    )
    return sf.coalesce(both, sf.lit(False))


def _within(moments: Column, since: Column, until: Column) -> Column:
    return sf.exists(moments, lambda each: each.between(since, until))


def joined(incidents: DataFrame, cases: DataFrame, managed: Managed) -> DataFrame:
    """A case joins when queue and symptom agree and its evidence overlaps; the last one tells."""
    known = incidents.transform(lambda each: _known_of_each(each, cases))
    with_cases = incidents.join(known, on="incident_id", how="left")
    announced = {
        "outcome": sf.coalesce("case.case_outcome", sf.lit(NOT_SEEN)),
        "why": _why(),
        "case_id": sf.col("case.case_id"),
        "seconds_to_heal": sf.col("case.case_seconds_to_heal"),
        "notified": sf.coalesce("was_notified", sf.lit(False)),
    }
    seen = with_cases.transform(lambda each: seen_by_scans(each, managed))
    return seen.withColumns(announced).select(*COLUMNS["incidents"])


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
            sf.max(sf.when(sf.col("joins"), sf.col("case_notified"))).alias("was_notified"),
            sf.max(_same_symptom() & _was_open()).alias("case_was_open"),
            sf.max(_opened_before()).alias("case_before"),
            sf.max(_opened_after()).alias("case_after"),
        )
    )


def _same_symptom() -> Column:
    return sf.col("symptom") == sf.col("case_symptom")


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
        sf.when(sf.col("symptom").startswith(UNKNOWN), sf.lit("unknown_code")),
        sf.when(sf.col("symptom").isin(*COUNT_ONLY), sf.lit("count_only")),
        sf.when(sf.col("queue_arn") == UNRESOLVED, sf.lit("unresolved_queue")),
        sf.when(sf.col("case_was_open"), sf.lit("case_open")),
        sf.when(sf.col("was_unmanaged") & sf.col("managed_later"), sf.lit("not_tagged_in_time")),
        sf.when(sf.col("was_unmanaged"), sf.lit("not_managed")),
        sf.when(~sf.col("enough_evidence"), sf.lit("too_little_evidence")),
        sf.when(sf.col("was_managed") | had_cases, sf.lit("event_lost")),
        sf.lit("unknown"),
    )
    return sf.when(sf.col("case").isNull(), known)
