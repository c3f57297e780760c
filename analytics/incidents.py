"""Group failed calls into bursts, and make incidents from bursts, cases and scans.

A *burst* is a group of failed calls of one account, region, queue and symptom, without a gap of
more than 15 minutes (MAXIMUM_GAP_SECONDS) between two calls. An *incident* is a burst with its
case, or with the reason why it has none. A case that a scan opened is also an incident, unless a
burst joins it.

Spark removes duplicates and finds the bursts (`select_failed_calls`, `group_into_bursts`). Plain
Python does the rest with a few rows: `join_cases` adds to each burst the outcome of its case.

docs/incidents.md explains every column, outcome and reason.
"""

from __future__ import annotations

import json
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from hashlib import sha256
from typing import Any, NamedTuple

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sf

from analytics.cases import NOT_SEEN_OUTCOME, WEEK_MICROSECONDS, CaseTimeline
from analytics.days import microseconds_to_time, to_microseconds
from analytics.own_incidents import OPERATOR_CALLS_REASON
from mendq.model.account_and_region import AccountAndRegion
from mendq.model.evidence import (
    EVENTS_SUFFICIENT_FOR_CASE,
    MAXIMUM_PRINCIPALS,
    SUFFICIENT_EVENTS_PERIOD_SECONDS,
    Sighting,
)
from mendq.model.mute_rule import has_ended, is_queue_named
from mendq.model.queue import parse_queue_arn, queue_arn_or_none

# The number of unreadable records of a file, by reason.
UNREADABLE_RECORDS_TYPE = "array<struct<reason:string,records:bigint>>"
# The columns of the tables, in order, with their Spark types. Every reader and writer of the tables
# uses this declaration. docs/incidents.md explains the columns to users.
COLUMN_TYPES_BY_TABLE: Mapping[str, Mapping[str, str]] = {
    "incidents": {
        "incident_id": "string",  # the same in every night that finds the incident
        "account": "string",
        "region": "string",
        "queue_arn": "string",
        "symptom": "string",
        "found_by": "string",  # failed_calls or scan
        "error_codes": "array<string>",
        "first_failure": "timestamp",
        "last_failure": "timestamp",
        "failed_calls": "bigint",
        "principals": "array<string>",
        "outcome": "string",
        "why": "string",  # why no case handled it, or own_look; else null
        "case_id": "string",
        "seconds_to_heal": "double",
        "notified": "boolean",
        "urgent": "boolean",
    },
    "failed_calls": {
        "event_id": "string",
        "event_time": "timestamp",
        "event_name": "string",
        "error_code": "string",
        "queue_arn": "string",
        "account": "string",
        "region": "string",
        "principal_arn": "string",
        "request_id": "string",
        "symptom": "string",
        "file": "string",
    },
    "quality": {
        "file": "string",
        "account": "string",
        "region": "string",
        "bytes": "bigint",
        "reason": "string",  # why the file could not be read; null if it was
        "records": "bigint",
        "failed_calls": "bigint",
        "unreadable_records": UNREADABLE_RECORDS_TYPE,
    },
}


def format_schema(type_by_column: Mapping[str, str]) -> str:
    """Return columns as a schema in Spark's notation, such as `file string, bytes bigint`."""
    return ", ".join(f"{name} {spark_type}" for name, spark_type in type_by_column.items())


# The longest gap between two calls of a burst. It must be longer than the time within which heal
# needs enough evidence (SUFFICIENT_EVENTS_PERIOD_SECONDS).
MAXIMUM_GAP_SECONDS = 900
# The columns that all calls of a burst have in common.
_BURST_KEY_COLUMNS = ("account", "region", "queue_arn", "symptom")
_FAILURE_TIME_COLUMNS = ("first_failure", "last_failure")
# The longest time between an incident and a scan that says something about it. Scans run every
# hour.
_MAXIMUM_SCAN_DISTANCE_MICROSECONDS = 2 * 3_600 * 1_000_000
# The values of the column `found_by`.
FOUND_BY_FAILED_CALLS = "failed_calls"
FOUND_BY_SCAN = "scan"
# The states of an incident's queue, by the scans before and after the incident.
_MANAGED_STATE = "managed"
_NOT_MANAGED_STATE = "not_managed"
_TAGGED_LATER_STATE = "not_tagged_in_time"
# The fields of a `Sighting`, in its order.
_SIGHTING_COLUMNS = (
    "at",
    "event_id",
    "request_id",
    "principal_arn",
    "event_name",
    "requested_visibility_seconds",
    "refused_by",
)


def select_failed_calls(
    file_readings: DataFrame, account_and_region: AccountAndRegion | None = None
) -> DataFrame:
    """Return a row for each failed call in trail files.

    Duplicates and calls by Mendq's own roles are left out. The rows have the columns of the table
    `failed_calls` and the columns that `group_into_bursts` needs.

    Args:
        file_readings: A row for each file, with the columns of `READING_COLUMNS`
            (analytics/trail.py).
        account_and_region: The account and region whose calls are returned; None for all calls.
    """
    calls = file_readings.transform(_split_into_calls)
    if account_and_region:
        is_of_account_and_region = (sf.col("account") == account_and_region.account) & (
            sf.col("region") == account_and_region.region
        )
        calls = calls.where(is_of_account_and_region)
    return calls.transform(_remove_duplicates).transform(_remove_calls_of_mendq)


def _split_into_calls(file_readings: DataFrame) -> DataFrame:
    """Return a row for each failed call, from a row for each file."""
    return (
        file_readings.select("file", sf.explode("calls").alias("call"))
        .select("call.*", "file", sf.element_at(sf.split("file", "/"), -1).alias("file_name"))
        .withColumn("event_time", sf.timestamp_micros("event_time"))
    )


def _remove_duplicates(calls: DataFrame) -> DataFrame:
    """Return one row for each event id. CloudTrail may deliver a call more than once.

    Of several rows, keep the one whose file name, without folders, comes first.
    """
    event_id_window = Window.partitionBy("event_id").orderBy("file_name", "file", "position")
    return calls.withColumn("copy", sf.row_number().over(event_id_window)).where(
        sf.col("copy") == 1
    )


def _remove_calls_of_mendq(calls: DataFrame) -> DataFrame:
    """Return the calls without those that Mendq's own roles made.

    The result has the columns of the table `failed_calls`, and four more: `ignored` (why heal does
    not handle the call; null if it does), `is_own_look` (true if an operator made the call with the
    mendq command), `requested_visibility_seconds` and `refused_by`.
    """
    is_mendq_call = sf.col("ignored").eqNullSafe("own_call")
    columns_for_bursts = ("ignored", "is_own_look", "requested_visibility_seconds", "refused_by")
    return calls.where(~is_mendq_call).select(
        *COLUMN_TYPES_BY_TABLE["failed_calls"], *columns_for_bursts
    )


def group_into_bursts(calls: DataFrame) -> DataFrame:
    """Group failed calls into bursts and return a row for each burst.

    In a burst, each call comes at most MAXIMUM_GAP_SECONDS after the one before. Besides columns of
    the table `incidents`, a row has these columns:

    - `enough_evidence`: true if heal would have had enough failed calls.
    - `ignored`: why heal handles none of the calls (the first reason by name); null if heal handles
      a call.
    - `is_own_look`: true if operators made all calls with the mendq command.
    """
    principals = sf.sort_array(sf.collect_set("principal_arn"))
    is_ignored_call = sf.isnotnull("ignored")
    return (
        calls.transform(_add_burst_numbers)
        .groupBy(*_BURST_KEY_COLUMNS, "burst")
        .agg(
            sf.min("event_time").alias("first_failure"),
            sf.max("event_time").alias("last_failure"),
            sf.count("event_id").alias("failed_calls"),
            sf.sort_array(sf.collect_set("error_code")).alias("error_codes"),
            sf.slice(principals, 1, MAXIMUM_PRINCIPALS).alias("principals"),
            sf.max("completes_evidence").alias("enough_evidence"),
            sf.when(sf.min(is_ignored_call), sf.min("ignored")).alias("ignored"),
            sf.min("is_own_look").alias("is_own_look"),
        )
        .withColumn("incident_id", _make_incident_id_column())
    )


def _add_burst_numbers(calls: DataFrame) -> DataFrame:
    """Return the failed calls with the column `burst`, the number of each call's burst.

    The bursts of each account, region, queue and symptom are numbered by time. The result has two
    more columns: `completes_evidence` is true for calls with which heal has enough evidence, and
    `starts` is 1 for the first call of a burst, else 0.
    """
    ordered_calls_window = Window.partitionBy(*_BURST_KEY_COLUMNS).orderBy("event_time", "event_id")
    window_until_call = ordered_calls_window.rowsBetween(
        Window.unboundedPreceding, Window.currentRow
    )
    gap_microseconds = sf.unix_micros("event_time") - sf.lag(sf.unix_micros("event_time")).over(
        ordered_calls_window
    )
    is_first_call_of_burst = sf.coalesce(
        gap_microseconds > MAXIMUM_GAP_SECONDS * 1_000_000, sf.lit(True)
    )
    return (
        calls.withColumn("completes_evidence", _make_evidence_column())
        .withColumn("starts", is_first_call_of_burst.cast("int"))
        .withColumn("burst", sf.sum("starts").over(window_until_call))
    )


def _make_evidence_column() -> Column:
    """Return a column that is true for a failed call with which heal has enough evidence to act.

    Heal needs EVENTS_SUFFICIENT_FOR_CASE calls within SUFFICIENT_EVENTS_PERIOD_SECONDS, without the
    calls that it ignores. All of them are in one burst, because calls of different bursts are
    further apart.
    """
    call_microseconds = sf.unix_micros("event_time")
    is_handled_call = sf.isnull("ignored")
    ordered_calls_window = Window.partitionBy(*_BURST_KEY_COLUMNS, is_handled_call).orderBy(
        "event_time", "event_id"
    )
    earlier_call_microseconds = sf.lag(call_microseconds, EVENTS_SUFFICIENT_FOR_CASE - 1).over(
        ordered_calls_window
    )
    has_enough_calls = sf.coalesce(
        call_microseconds - earlier_call_microseconds
        <= SUFFICIENT_EVENTS_PERIOD_SECONDS * 1_000_000,
        sf.lit(False),
    )
    return is_handled_call & has_enough_calls


def collect_first_evidence(calls: DataFrame) -> dict[str, list[str]]:
    """Return the first failed calls that were enough evidence for heal to act, by incident id.

    Incidents without enough evidence are left out. Each call is the text of a `Sighting`.
    """
    ordered_calls_window = Window.partitionBy(*_BURST_KEY_COLUMNS, sf.isnull("ignored")).orderBy(
        "event_time", "event_id"
    )
    sighting = sf.struct(*_SIGHTING_COLUMNS)
    lag_distances = reversed(range(EVENTS_SUFFICIENT_FOR_CASE))
    latest_sightings = sf.array(
        *(
            sf.lag(sighting, lag_distance).over(ordered_calls_window)
            for lag_distance in lag_distances
        )
    )
    call_microseconds = sf.unix_micros("event_time")
    evidence_completed_at = sf.when(sf.col("completes_evidence"), call_microseconds)
    calls_with_burst_numbers = calls.transform(_add_burst_numbers).withColumn(
        "at", call_microseconds
    )
    calls_with_evidence = calls_with_burst_numbers.withColumns(
        {"latest": latest_sightings, "completed_at": evidence_completed_at}
    )
    bursts = calls_with_evidence.groupBy(*_BURST_KEY_COLUMNS, "burst").agg(
        sf.min("event_time").alias("first_failure"),
        sf.min_by("latest", "completed_at").alias("evidence"),
    )
    rows = (
        bursts.where(sf.isnotnull("evidence"))
        .select(_make_incident_id_column(), "evidence")
        .collect()
    )
    evidence_by_incident: dict[str, list[str]] = {}
    for incident_id, sighting_rows in rows:
        sightings = [
            Sighting(microseconds_to_time(call_microseconds_of_sighting), *other_sighting_columns)
            for call_microseconds_of_sighting, *other_sighting_columns in sighting_rows
        ]
        evidence_by_incident[incident_id] = [sighting.to_text() for sighting in sightings]
    return evidence_by_incident


def _make_incident_id_column() -> Column:
    """Return a column with the incident's id: a hash of _BURST_KEY_COLUMNS and the first failure.

    So each run that finds the incident gives it the same id.
    """
    identity_columns = sf.struct(
        *_BURST_KEY_COLUMNS, sf.unix_micros("first_failure").alias("first_failure")
    )
    return sf.substring(sf.sha2(sf.to_json(identity_columns), 256), 1, 32)


class ListedMute(NamedTuple):
    """A mute of the settings, as one scan listed it. `Mute` explains the fields."""

    queue: str
    symptom: str
    until: date

    def holds_for(self, queue_name: str, symptom: str, day: date) -> bool:
        """Return True if the mute holds on a day for a symptom of a queue."""
        return (
            self.symptom == symptom
            and is_queue_named(self.queue, queue_name)
            and not has_ended(self.until, day)
        )


class ScanListing(NamedTuple):
    """The managed queues and the mutes that one scan listed."""

    scan_microseconds: int  # when the scan ran, in microseconds since 1970
    queue_arns: tuple[str, ...]
    is_complete: bool  # every managed queue of the account and region is listed
    mutes: tuple[ListedMute, ...] = ()


class Burst(NamedTuple):
    """Failed calls of one queue and symptom, without a gap of more than MAXIMUM_GAP_SECONDS."""

    queue_arn: str
    symptom: str
    first_call_microseconds: int  # time of the first call, in microseconds since 1970
    last_call_microseconds: int

    def joins_scan_case(self, timeline: CaseTimeline) -> bool:
        """Return True if these failed calls belong to the case `timeline`, which a scan opened.

        The case must have the same queue and symptom, and the calls must overlap one of its
        `evidence_spans_near_opening`.
        """
        case = timeline.newest_transition
        if (case.queue_arn, case.symptom) != (self.queue_arn, self.symptom):
            return False
        evidence_spans = timeline.evidence_spans_near_opening
        return any(
            span_begin <= self.last_call_microseconds and span_end >= self.first_call_microseconds
            for span_begin, span_end in evidence_spans
        )


def collect_bursts(bursts: DataFrame) -> list[dict[str, Any]]:
    """Load the rows of `group_into_bursts` from Spark, with times in microseconds since 1970.

    Without this conversion, Spark would return the times in the local time zone.
    """
    bursts_with_numeric_times = bursts.withColumns(
        {name: sf.unix_micros(name) for name in _FAILURE_TIME_COLUMNS}
    )
    return [row.asDict() for row in bursts_with_numeric_times.collect()]


def select_bursts_of_scan_cases(
    bursts: Iterable[Mapping[str, Any]], timelines: Iterable[CaseTimeline]
) -> list[Burst]:
    """Return the bursts of failed calls on queues for which a scan opened a case.

    Args:
        bursts: The rows of `collect_bursts`.
        timelines: All cases.
    """
    queue_arns_with_scan_cases: set[str] = set()
    for timeline in timelines:
        if timeline.is_opened_by_scan:
            queue_arns_with_scan_cases.add(timeline.newest_transition.queue_arn)
    selected_bursts: list[Burst] = []
    for row in bursts:
        if row["queue_arn"] in queue_arns_with_scan_cases:
            burst = Burst(
                row["queue_arn"], row["symptom"], row["first_failure"], row["last_failure"]
            )
            selected_bursts.append(burst)
    return selected_bursts


def join_cases(
    bursts: Sequence[Mapping[str, Any]],
    timelines: Sequence[CaseTimeline],
    scan_listings: Iterable[ScanListing],
    account_and_region: AccountAndRegion | None,
) -> list[dict[str, Any]]:
    """Return the rows of the table `incidents`.

    The bursts of failed calls with their cases come first, then the cases that only scans found.
    The order of `timelines` and `scan_listings` does not matter.

    Args:
        bursts: The rows of `collect_bursts`.
        timelines: All cases.
        scan_listings: The managed queues that each scan listed.
        account_and_region: The account and region that the scans looked at; None for those of the
            listed queues.
    """
    case_index = CaseIndex.build(timelines, scan_listings, account_and_region)
    scan_incidents = list_scan_incidents(timelines, select_bursts_of_scan_cases(bursts, timelines))
    return [*(case_index.make_incident_of_burst(burst) for burst in bursts), *scan_incidents]


def list_scan_incidents(
    timelines: Iterable[CaseTimeline], bursts: Sequence[Burst]
) -> list[dict[str, Any]]:
    """Return an incident for each case that a scan opened and that no burst joins."""
    bursts_by_queue = defaultdict[str, list[Burst]](list)
    for burst in bursts:
        bursts_by_queue[burst.queue_arn].append(burst)
    incidents: list[dict[str, Any]] = []
    for timeline in timelines:
        if not timeline.is_opened_by_scan:
            continue
        bursts_on_queue = bursts_by_queue[timeline.newest_transition.queue_arn]
        if not any(burst.joins_scan_case(timeline) for burst in bursts_on_queue):
            incidents.append(_make_scan_incident(timeline))
    return incidents


def _make_scan_incident(timeline: CaseTimeline) -> dict[str, Any]:
    """Return the incident of a case that a scan opened. It begins and ends when the case opened."""
    case = timeline.newest_transition
    queue = parse_queue_arn(case.queue_arn)
    identity_text = json.dumps(
        [queue.account, queue.region, case.queue_arn, case.symptom, case.case_id]
    )
    return {
        "account": queue.account,
        "region": queue.region,
        "queue_arn": case.queue_arn,
        "symptom": case.symptom,
        "incident_id": sha256(identity_text.encode()).hexdigest()[:32],
        "found_by": FOUND_BY_SCAN,
        "error_codes": [],
        "principals": [],
        "failed_calls": 0,
        **dict.fromkeys(_FAILURE_TIME_COLUMNS, timeline.first_transition_microseconds),
        **_make_outcome_columns(timeline, [timeline]),
        "why": None,
    }


def _make_outcome_columns(
    timeline: CaseTimeline | None, joined_timelines: Sequence[CaseTimeline]
) -> dict[str, Any]:
    """Return the columns that an incident takes from its cases.

    Args:
        timeline: The case that decides the outcome, or None if the incident has no case.
        joined_timelines: All cases that belong to the incident.
    """
    return {
        "outcome": timeline.outcome if timeline else NOT_SEEN_OUTCOME,
        "case_id": timeline.newest_transition.case_id if timeline else None,
        "seconds_to_heal": timeline.seconds_to_heal if timeline else None,
        "notified": any(case.has_notified_people for case in joined_timelines),
        "urgent": any(case.is_urgent for case in joined_timelines),
    }


@dataclass(frozen=True)
class CaseIndex:
    """An index of cases and scans, to find the case of an incident or the reason why it has none.

    All times are sorted, and in microseconds since 1970.

    Attributes:
        timelines_by_queue: The cases of each queue, by queue ARN.
        scan_times_by_listed_queue: The times of the scans that listed a queue, by queue ARN.
        complete_scan_times: The times of the scans that listed every managed queue.
        scanned_accounts_and_regions: The accounts and regions that the scans look at. The scans say
            nothing about queues elsewhere.
        mutes_by_scan_time: The mutes that a scan listed, by the scan's time. Times of scans without
            mutes are left out.
    """

    timelines_by_queue: Mapping[str, Sequence[CaseTimeline]]
    scan_times_by_listed_queue: Mapping[str, Sequence[int]]
    complete_scan_times: Sequence[int]
    scanned_accounts_and_regions: frozenset[AccountAndRegion]
    mutes_by_scan_time: Mapping[int, Sequence[ListedMute]] = field(default_factory=dict)

    @classmethod
    def build(
        cls,
        timelines: Iterable[CaseTimeline],
        scan_listings: Iterable[ScanListing],
        account_and_region: AccountAndRegion | None = None,
    ) -> CaseIndex:
        """Build the index. The order of `timelines` and `scan_listings` does not matter.

        The scans look at `account_and_region`, or at the accounts and regions of the listed queues
        if it is None.
        """
        timelines_by_queue = defaultdict[str, list[CaseTimeline]](list)
        for timeline in timelines:
            timelines_by_queue[timeline.newest_transition.queue_arn].append(timeline)
        scan_times_by_listed_queue = defaultdict[str, list[int]](list)
        complete_scan_times: list[int] = []
        mutes_by_scan_time: dict[int, Sequence[ListedMute]] = {}
        for scan_listing in sorted(scan_listings):
            for queue_arn in scan_listing.queue_arns:
                scan_times_by_listed_queue[queue_arn].append(scan_listing.scan_microseconds)
            if scan_listing.mutes:
                mutes_by_scan_time[scan_listing.scan_microseconds] = scan_listing.mutes
            if scan_listing.is_complete:
                complete_scan_times.append(scan_listing.scan_microseconds)
        scanned_accounts_and_regions = (
            {account_and_region}
            if account_and_region
            else _find_accounts_and_regions(scan_times_by_listed_queue)
        )
        return cls(
            dict(timelines_by_queue),
            dict(scan_times_by_listed_queue),
            complete_scan_times,
            frozenset(scanned_accounts_and_regions),
            mutes_by_scan_time,
        )

    def make_incident_of_burst(self, burst: Mapping[str, Any]) -> dict[str, Any]:
        """Return the incident of a burst, with its case or the reason why it has none.

        A case belongs to the incident if it has the same queue and symptom, and its evidence
        overlaps the burst. Of several cases, the one that opened last decides the outcome. If
        operators made all the calls, `why` is OPERATOR_CALLS_REASON even if there is a case.
        """
        first_call_microseconds = burst["first_failure"]
        last_call_microseconds = burst["last_failure"]
        queue_timelines = self.timelines_by_queue.get(burst["queue_arn"], ())
        symptom_timelines = [
            timeline
            for timeline in queue_timelines
            if timeline.newest_transition.symptom == burst["symptom"]
        ]
        joined_timelines = [
            timeline
            for timeline in symptom_timelines
            if timeline.has_evidence_between(first_call_microseconds, last_call_microseconds)
        ]
        deciding_timeline = max(joined_timelines, key=_rank_by_opening, default=None)
        missing_case_reason: str | None = None
        if burst["is_own_look"]:
            missing_case_reason = OPERATOR_CALLS_REASON
        elif deciding_timeline is None:
            missing_case_reason = burst["ignored"] or self._explain_missing_case(
                burst, symptom_timelines
            )
        return {
            **burst,
            "found_by": FOUND_BY_FAILED_CALLS,
            **_make_outcome_columns(deciding_timeline, joined_timelines),
            "why": missing_case_reason,
        }

    def _explain_missing_case(
        self, burst: Mapping[str, Any], symptom_timelines: Sequence[CaseTimeline]
    ) -> str:
        """Return the reason why a burst has no case, in the words of docs/incidents.md.

        Return `unknown` if logs, scans and cases do not show the reason.

        Args:
            burst: A row of `collect_bursts`.
            symptom_timelines: All cases of the burst's queue and symptom.
        """
        first_call_microseconds = burst["first_failure"]
        last_call_microseconds = burst["last_failure"]
        # A case that began in the week before, even if it has ended, may be why heal opened no new
        # case.
        earliest_begin_microseconds = first_call_microseconds - WEEK_MICROSECONDS
        recent_timelines = [
            timeline
            for timeline in symptom_timelines
            if earliest_begin_microseconds
            <= timeline.first_transition_microseconds
            <= last_call_microseconds
        ]
        if any(_is_open_at(timeline, first_call_microseconds) for timeline in recent_timelines):
            return "case_open"
        state_in_scans = self._find_state_in_scans(burst)
        if state_in_scans == _TAGGED_LATER_STATE:
            return "not_tagged_in_time"
        if state_in_scans == _NOT_MANAGED_STATE:
            return "not_managed"
        if state_in_scans == _MANAGED_STATE and self._is_muted(burst):
            return "muted"
        if not burst["enough_evidence"]:
            return "too_little_evidence"
        if state_in_scans == _MANAGED_STATE and not recent_timelines:
            return "event_lost"
        return "unknown"

    def _find_state_in_scans(self, burst: Mapping[str, Any]) -> str | None:
        """Return the state of a burst's queue by the scans around the burst; None if not known.

        Two scans decide: the last complete scan before the failed calls, and the first complete
        scan after them.

        - `managed`: both scans listed the queue.
        - `not_managed`: no scan from the first to the second listed it.
        - `not_tagged_in_time`: the same, but a scan within a week after the calls listed it.

        Return None in all other cases, for example if one of the two scans is more than two hours
        away from the calls, or if no scan looks at the queue's account and region.
        """
        if (
            AccountAndRegion(burst["account"], burst["region"])
            not in self.scanned_accounts_and_regions
        ):
            return None
        scan_times_around = self._find_scan_times_around(burst)
        if scan_times_around is None:
            return None
        last_scan_time_before, first_scan_time_after = scan_times_around
        listing_times = self.scan_times_by_listed_queue.get(burst["queue_arn"], ())
        listing_times_between_scans = _select_times_between(
            listing_times, last_scan_time_before, first_scan_time_after
        )
        if listing_times_between_scans:
            is_in_both_scans = (
                listing_times_between_scans[0] == last_scan_time_before
                and listing_times_between_scans[-1] == first_scan_time_after
            )
            return _MANAGED_STATE if is_in_both_scans else None
        last_call_microseconds = burst["last_failure"]
        later_listing_times = _select_times_between(
            listing_times, last_call_microseconds + 1, last_call_microseconds + WEEK_MICROSECONDS
        )
        return _TAGGED_LATER_STATE if later_listing_times else _NOT_MANAGED_STATE

    def _is_muted(self, burst: Mapping[str, Any]) -> bool:
        """Return True if the scans before and after a burst both list a mute that held for it.

        A mute that only one of them lists may have been added or removed after the failed calls.
        """
        scan_times_around = self._find_scan_times_around(burst)
        if scan_times_around is None:
            return False
        queue_name = parse_queue_arn(burst["queue_arn"]).name
        last_day = microseconds_to_time(burst["last_failure"]).date()
        for scan_time in scan_times_around:
            mutes = self.mutes_by_scan_time.get(scan_time, ())
            if not any(mute.holds_for(queue_name, burst["symptom"], last_day) for mute in mutes):
                return False
        return True

    def _find_scan_times_around(self, burst: Mapping[str, Any]) -> tuple[int, int] | None:
        """Return the times of the last complete scan before a burst and of the first one after it.

        Return None if one of them is more than two hours away from the failed calls.
        """
        first_call_microseconds = burst["first_failure"]
        last_call_microseconds = burst["last_failure"]
        scan_times_before = _select_times_between(
            self.complete_scan_times,
            first_call_microseconds - _MAXIMUM_SCAN_DISTANCE_MICROSECONDS,
            first_call_microseconds,
        )
        scan_times_after = _select_times_between(
            self.complete_scan_times,
            last_call_microseconds,
            last_call_microseconds + _MAXIMUM_SCAN_DISTANCE_MICROSECONDS,
        )
        if not scan_times_before or not scan_times_after:
            return None
        return scan_times_before[-1], scan_times_after[0]


def _find_accounts_and_regions(queue_arns: Iterable[str]) -> set[AccountAndRegion]:
    """Return the accounts and regions of queues. Texts that are not queue ARNs are left out."""
    accounts_and_regions: set[AccountAndRegion] = set()
    for queue_arn in queue_arns:
        if queue_arn_or_none(queue_arn):
            queue = parse_queue_arn(queue_arn)
            accounts_and_regions.add(AccountAndRegion(queue.account, queue.region))
    return accounts_and_regions


def _rank_by_opening(timeline: CaseTimeline) -> tuple[int, str]:
    return timeline.first_transition_microseconds, timeline.newest_transition.case_id


def _is_open_at(timeline: CaseTimeline, time_microseconds: int) -> bool:
    """Return True if a case had not ended before a time, given in microseconds since 1970."""
    return timeline.ended_at is None or to_microseconds(timeline.ended_at) >= time_microseconds


def _select_times_between(
    sorted_times: Sequence[int], earliest_time: int, latest_time: int
) -> Sequence[int]:
    """Return the times from `earliest_time` to `latest_time`, both included."""
    return sorted_times[
        bisect_left(sorted_times, earliest_time) : bisect_right(sorted_times, latest_time)
    ]
