"""Group failed calls into bursts, and make incidents from bursts, cases and scans.

A *burst* is the failed calls of one account, region, queue and symptom in which no call comes more
than 15 minutes (GAP_SECONDS) after the one before. An *incident* is a burst with its case, or with
the reason why it has none. A case that a scan opened is an incident too, unless a burst joins it.

Spark removes duplicates and finds the bursts (`select_failed_calls`, `group_into_bursts`). The rest
is plain Python on a few rows: `join_cases` adds to each burst the outcome of its case.

docs/incidents.md explains every column, outcome and reason.
"""

from __future__ import annotations

import json
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, NamedTuple

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sf

from analytics.cases import NOT_SEEN, WEEK_MICROSECONDS, CaseTimeline
from analytics.days import time_of, to_microseconds
from mendq.model.account_and_region import AccountAndRegion
from mendq.model.evidence import (
    MAXIMUM_PRINCIPALS,
    SUFFICIENT_EVENTS,
    SUFFICIENT_WITHIN_SECONDS,
    Sighting,
)
from mendq.model.queue import arn_of, parts_of

# The number of unreadable records of a file, by reason.
FAULTS = "array<struct<reason:string,records:bigint>>"
# The columns of the tables in their order, with their Spark types. Every reader and writer of the
# tables uses this declaration. docs/incidents.md explains the columns to users.
COLUMNS: Mapping[str, Mapping[str, str]] = {
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
        "unreadable_records": FAULTS,
    },
}


def schema_of(columns: Mapping[str, str]) -> str:
    """Return columns as a schema in Spark's own notation, such as `file string, bytes bigint`."""
    return ", ".join(f"{name} {kind}" for name, kind in columns.items())


# Calls of one burst are at most this far apart. It must be longer than the time within which heal
# asks for enough evidence (SUFFICIENT_WITHIN_SECONDS).
GAP_SECONDS = 900
# The columns that all calls of a burst have in common.
_KEY = ("account", "region", "queue_arn", "symptom")
_TIMES = ("first_failure", "last_failure")
# Scans run every hour. A scan further away from an incident than this says nothing about it.
_NEAR_MICROSECONDS = 2 * 3_600 * 1_000_000
# The values of the column `found_by`.
FAILED_CALLS = "failed_calls"
SCAN = "scan"
# The value of the column `why` if operators made all calls of the incident with the mendq command.
OWN_LOOK = "own_look"
# Words for what the scans around an incident say about its queue.
_MANAGED = "managed"
_NOT_MANAGED = "not_managed"
_TAGGED_LATER = "not_tagged_in_time"
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


def select_failed_calls(readings: DataFrame, place: AccountAndRegion | None = None) -> DataFrame:
    """Return a row for each failed call in trail files, without duplicates and Mendq's own calls.

    The rows have the columns of the table `failed_calls` and those that `group_into_bursts` needs.

    Args:
        readings: A row for each file, with the columns of `READING_COLUMNS` (analytics/trail.py).
        place: Only calls of this account and region are returned. None: all calls.
    """
    calls = readings.transform(_split_into_calls)
    if place:
        is_in_place = (sf.col("account") == place.account) & (sf.col("region") == place.region)
        calls = calls.where(is_in_place)
    return calls.transform(_remove_duplicates).transform(_remove_own_calls)


def _split_into_calls(readings: DataFrame) -> DataFrame:
    """Return a row for each failed call, from a row for each file."""
    return (
        readings.select("file", sf.explode("calls").alias("call"))
        .select("call.*", "file", sf.element_at(sf.split("file", "/"), -1).alias("file_name"))
        .withColumn("event_time", sf.timestamp_micros("event_time"))
    )


def _remove_duplicates(calls: DataFrame) -> DataFrame:
    """Return one row for each event id. CloudTrail may deliver a call more than once.

    The row from the first file is kept, by the name of the file without its folders.
    """
    copies = Window.partitionBy("event_id").orderBy("file_name", "file", "position")
    return calls.withColumn("copy", sf.row_number().over(copies)).where(sf.col("copy") == 1)


def _remove_own_calls(calls: DataFrame) -> DataFrame:
    """Return the calls, without calls that Mendq's own roles made.

    The result has the columns of the table `failed_calls`, and four more: `ignored` (why heal does
    not handle the call, null if it does), `is_own_look` (an operator made it with the mendq
    command), `requested_visibility_seconds` and `refused_by`.
    """
    is_own = sf.col("ignored").eqNullSafe("own_call")
    more = ("ignored", "is_own_look", "requested_visibility_seconds", "refused_by")
    return calls.where(~is_own).select(*COLUMNS["failed_calls"], *more)


def group_into_bursts(calls: DataFrame) -> DataFrame:
    """Group failed calls into bursts and return a row for each burst.

    In a burst, each call comes at most GAP_SECONDS after the one before. Besides columns of the
    table `incidents`, a row has `enough_evidence` (heal would have had enough failed calls),
    `ignored` (why heal handles none of the calls; null if it handles any) and `is_own_look`
    (operators made all calls with the mendq command).
    """
    principals = sf.sort_array(sf.collect_set("principal_arn"))
    is_ignored = sf.isnotnull("ignored")
    return (
        calls.transform(_number_bursts)
        .groupBy(*_KEY, "burst")
        .agg(
            sf.min("event_time").alias("first_failure"),
            sf.max("event_time").alias("last_failure"),
            sf.count("event_id").alias("failed_calls"),
            sf.sort_array(sf.collect_set("error_code")).alias("error_codes"),
            sf.slice(principals, 1, MAXIMUM_PRINCIPALS).alias("principals"),
            sf.max("completes_evidence").alias("enough_evidence"),
            sf.when(sf.min(is_ignored), sf.min("ignored")).alias("ignored"),
            sf.min("is_own_look").alias("is_own_look"),
        )
        .withColumn("incident_id", _incident_id())
    )


def _number_bursts(calls: DataFrame) -> DataFrame:
    """Add to each failed call the column `burst`, the number of its burst.

    The bursts of each account, region, queue and symptom are numbered by time. A second column,
    `completes_evidence`, is true for calls with which heal has enough evidence.
    """
    in_time = Window.partitionBy(*_KEY).orderBy("event_time", "event_id")
    until_here = in_time.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    gap = sf.unix_micros("event_time") - sf.lag(sf.unix_micros("event_time")).over(in_time)
    starts = sf.coalesce(gap > GAP_SECONDS * 1_000_000, sf.lit(True))
    return (
        calls.withColumn("completes_evidence", _completes_evidence())
        .withColumn("starts", starts.cast("int"))
        .withColumn("burst", sf.sum("starts").over(until_here))
    )


def _completes_evidence() -> Column:
    """Return a column that is true for a failed call with which heal has enough evidence to act.

    Heal needs SUFFICIENT_EVENTS calls within SUFFICIENT_WITHIN_SECONDS, not counting calls that it
    ignores. All of them are in one burst, because calls of different bursts are further apart.
    """
    moment = sf.unix_micros("event_time")
    is_handled = sf.isnull("ignored")
    in_time = Window.partitionBy(*_KEY, is_handled).orderBy("event_time", "event_id")
    earlier = sf.lag(moment, SUFFICIENT_EVENTS - 1).over(in_time)
    is_close = sf.coalesce(moment - earlier <= SUFFICIENT_WITHIN_SECONDS * 1_000_000, sf.lit(False))
    return is_handled & is_close


def collect_first_evidence(calls: DataFrame) -> dict[str, list[str]]:
    """Return the first failed calls that were enough evidence for heal to act, by incident id.

    Incidents without enough evidence are left out. Each call is the text of a `Sighting`.
    """
    in_time = Window.partitionBy(*_KEY, sf.isnull("ignored")).orderBy("event_time", "event_id")
    sighting = sf.struct(*_SIGHTING_COLUMNS)
    distances = reversed(range(SUFFICIENT_EVENTS))
    latest = sf.array(*(sf.lag(sighting, distance).over(in_time) for distance in distances))
    moment = sf.unix_micros("event_time")
    completed_at = sf.when(sf.col("completes_evidence"), moment)
    numbered = calls.transform(_number_bursts).withColumn("at", moment)
    completed = numbered.withColumns({"latest": latest, "completed_at": completed_at})
    bursts = completed.groupBy(*_KEY, "burst").agg(
        sf.min("event_time").alias("first_failure"),
        sf.min_by("latest", "completed_at").alias("evidence"),
    )
    rows = bursts.where(sf.isnotnull("evidence")).select(_incident_id(), "evidence").collect()
    evidence_of_incident: dict[str, list[str]] = {}
    for incident_id, evidence in rows:
        sightings = [Sighting(time_of(at), *columns) for at, *columns in evidence]
        evidence_of_incident[incident_id] = [sighting.to_text() for sighting in sightings]
    return evidence_of_incident


def _incident_id() -> Column:
    """Return a column with the incident's id, a hash of the _KEY columns and the first failure.

    So each run that finds the incident gives it the same id.
    """
    identity = sf.struct(*_KEY, sf.unix_micros("first_failure").alias("first_failure"))
    return sf.substring(sf.sha2(sf.to_json(identity), 256), 1, 32)


class QueueListing(NamedTuple):
    """The managed queues that one scan listed."""

    at: int  # when the scan ran, in microseconds since 1970
    queue_arns: tuple[str, ...]
    is_complete: bool  # every managed queue of the account and region is listed


class Burst(NamedTuple):
    """A burst: failed calls of one queue and symptom with no gap of more than GAP_SECONDS."""

    queue_arn: str
    symptom: str
    first: int  # in microseconds since 1970
    last: int

    def joins_scan_case(self, timeline: CaseTimeline) -> bool:
        """Return True if these failed calls belong to a case that a scan opened.

        Queue and symptom must be equal, and the calls must overlap evidence near the opening.
        """
        case = timeline.newest
        if (case.queue_arn, case.symptom) != (self.queue_arn, self.symptom):
            return False
        spans = timeline.evidence_near_opening
        return any(since <= self.last and until >= self.first for since, until in spans)


def collect_bursts(bursts: DataFrame) -> list[dict[str, Any]]:
    """Load the rows of `group_into_bursts` from Spark, with times in microseconds since 1970.

    Spark would return its timestamps as Python times in the local zone.
    """
    with_numbers = bursts.withColumns({name: sf.unix_micros(name) for name in _TIMES})
    return [row.asDict() for row in with_numbers.collect()]


def select_bursts_of_scan_cases(
    bursts: Iterable[Mapping[str, Any]], timelines: Iterable[CaseTimeline]
) -> list[Burst]:
    """Return the bursts of failed calls on queues for which a scan opened a case.

    Args:
        bursts: The rows of `collect_bursts`.
        timelines: All cases.
    """
    arns: set[str] = set()
    for timeline in timelines:
        if timeline.is_opened_by_scan:
            arns.add(timeline.newest.queue_arn)
    selected: list[Burst] = []
    for row in bursts:
        if row["queue_arn"] in arns:
            burst = Burst(
                row["queue_arn"], row["symptom"], row["first_failure"], row["last_failure"]
            )
            selected.append(burst)
    return selected


def join_cases(
    bursts: Sequence[Mapping[str, Any]],
    timelines: Sequence[CaseTimeline],
    listings: Iterable[QueueListing],
    place: AccountAndRegion | None,
) -> list[dict[str, Any]]:
    """Return the rows of the table `incidents`.

    First come the bursts of failed calls, with their cases, then the cases that only scans found.
    The order of `timelines` and `listings` does not matter.

    Args:
        bursts: The rows of `collect_bursts`.
        timelines: All cases.
        listings: The managed queues that each scan listed.
        place: The account and region that the scans looked at. None: those of the listed queues.
    """
    index = CaseIndex.build(timelines, listings, place)
    scan_incidents = list_scan_incidents(timelines, select_bursts_of_scan_cases(bursts, timelines))
    return [*(index.add_outcome(burst) for burst in bursts), *scan_incidents]


def list_scan_incidents(
    timelines: Iterable[CaseTimeline], bursts: Sequence[Burst]
) -> list[dict[str, Any]]:
    """Return an incident for each case that a scan opened and to which none of `bursts` belongs."""
    bursts_of_queue = defaultdict[str, list[Burst]](list)
    for burst in bursts:
        bursts_of_queue[burst.queue_arn].append(burst)
    incidents: list[dict[str, Any]] = []
    for timeline in timelines:
        if not timeline.is_opened_by_scan:
            continue
        candidates = bursts_of_queue[timeline.newest.queue_arn]
        if not any(burst.joins_scan_case(timeline) for burst in candidates):
            incidents.append(_make_scan_incident(timeline))
    return incidents


def _make_scan_incident(timeline: CaseTimeline) -> dict[str, Any]:
    """Return the incident of a case that a scan opened. Both its times are those of the opening."""
    case = timeline.newest
    queue = parts_of(case.queue_arn)
    identity = json.dumps([queue.account, queue.region, case.queue_arn, case.symptom, case.case_id])
    return {
        "account": queue.account,
        "region": queue.region,
        "queue_arn": case.queue_arn,
        "symptom": case.symptom,
        "incident_id": sha256(identity.encode()).hexdigest()[:32],
        "found_by": SCAN,
        "error_codes": [],
        "principals": [],
        "failed_calls": 0,
        **dict.fromkeys(_TIMES, timeline.begin_microseconds),
        **_outcome_columns(timeline, [timeline]),
        "why": None,
    }


def _outcome_columns(
    timeline: CaseTimeline | None, joining: Sequence[CaseTimeline]
) -> dict[str, Any]:
    """Return the columns that an incident takes from its cases.

    Args:
        timeline: The case that decides the outcome, or None if the incident has no case.
        joining: All cases that belong to the incident.
    """
    return {
        "outcome": timeline.outcome if timeline else NOT_SEEN,
        "case_id": timeline.newest.case_id if timeline else None,
        "seconds_to_heal": timeline.seconds_to_heal if timeline else None,
        "notified": any(case.is_notified for case in joining),
        "urgent": any(case.is_urgent for case in joining),
    }


@dataclass(frozen=True)
class CaseIndex:
    """Index of cases and scans, to find the case of an incident or the reason why it has none.

    All times are in microseconds since 1970, and sorted.

    Attributes:
        timelines: The cases of each queue, by queue ARN.
        listed_at: The times of the scans that listed a queue, by queue ARN.
        complete_at: The times of the scans that listed every managed queue.
        places: The accounts and regions that the scans look at. Of others they say nothing.
    """

    timelines: Mapping[str, Sequence[CaseTimeline]]
    listed_at: Mapping[str, Sequence[int]]
    complete_at: Sequence[int]
    places: frozenset[AccountAndRegion]

    @classmethod
    def build(
        cls,
        timelines: Iterable[CaseTimeline],
        listings: Iterable[QueueListing],
        place: AccountAndRegion | None = None,
    ) -> CaseIndex:
        """Build the index. The order of `timelines` and `listings` does not matter.

        If `place` is None, the accounts and regions of the listed queues are taken.
        """
        timelines_of_queue = defaultdict[str, list[CaseTimeline]](list)
        for timeline in timelines:
            timelines_of_queue[timeline.newest.queue_arn].append(timeline)
        listed_at = defaultdict[str, list[int]](list)
        complete_at: list[int] = []
        for listing in sorted(listings):
            for arn in listing.queue_arns:
                listed_at[arn].append(listing.at)
            if listing.is_complete:
                complete_at.append(listing.at)
        places = {place} if place else _find_places(listed_at)
        return cls(dict(timelines_of_queue), dict(listed_at), complete_at, frozenset(places))

    def add_outcome(self, burst: Mapping[str, Any]) -> dict[str, Any]:
        """Return the incident of a burst of failed calls: with its case, or the reason for none.

        A case belongs to the incident if queue and symptom are equal and its evidence overlaps the
        burst. If there are several, the one that opened last decides the outcome.
        """
        first = burst["first_failure"]
        last = burst["last_failure"]
        of_queue = self.timelines.get(burst["queue_arn"], ())
        of_symptom = [
            timeline for timeline in of_queue if timeline.newest.symptom == burst["symptom"]
        ]
        joining = [timeline for timeline in of_symptom if timeline.overlaps(first, last)]
        newest = max(joining, key=_rank_by_opening, default=None)
        why: str | None = None
        if burst["is_own_look"]:
            why = OWN_LOOK
        elif newest is None:
            why = burst["ignored"] or self._explain_missing_case(burst, of_symptom)
        return {
            **burst,
            "found_by": FAILED_CALLS,
            **_outcome_columns(newest, joining),
            "why": why,
        }

    def _explain_missing_case(
        self, burst: Mapping[str, Any], of_symptom: Sequence[CaseTimeline]
    ) -> str:
        """Return the reason why a burst of failed calls has no case (docs/incidents.md).

        Return `unknown` unless the logs, the scans and the cases prove a reason.

        Args:
            burst: A row of `collect_bursts`.
            of_symptom: All cases of the burst's queue and symptom.
        """
        first = burst["first_failure"]
        last = burst["last_failure"]
        # A case that began in the week before, even an ended one, may be why heal opened no other.
        earliest = first - WEEK_MICROSECONDS
        recent = [
            timeline for timeline in of_symptom if earliest <= timeline.begin_microseconds <= last
        ]
        if any(_is_open_at(timeline, first) for timeline in recent):
            return "case_open"
        scanned_as = self._find_state_in_scans(burst)
        if scanned_as == _TAGGED_LATER:
            return "not_tagged_in_time"
        if scanned_as == _NOT_MANAGED:
            return "not_managed"
        if not burst["enough_evidence"]:
            return "too_little_evidence"
        if scanned_as == _MANAGED and not recent:
            return "event_lost"
        return "unknown"

    def _find_state_in_scans(self, burst: Mapping[str, Any]) -> str | None:
        """Return `managed`, `not_managed` or `not_tagged_in_time` for the queue of a burst.

        Two scans decide: the last complete scan before the failed calls, and the first complete
        scan after them. `managed` means that both listed the queue. `not_managed` means that no
        scan from the first to the second listed it. `not_tagged_in_time` means the same, but a scan
        in the following week listed it. Return None in all other cases, also if one of the two
        scans is more than two hours away, or if scans look at another account or region.
        """
        if AccountAndRegion(burst["account"], burst["region"]) not in self.places:
            return None
        first = burst["first_failure"]
        last = burst["last_failure"]
        before = _select_between(self.complete_at, first - _NEAR_MICROSECONDS, first)
        after = _select_between(self.complete_at, last, last + _NEAR_MICROSECONDS)
        if not before or not after:
            return None
        scan_before = before[-1]
        scan_after = after[0]
        listed_at = self.listed_at.get(burst["queue_arn"], ())
        listed_around = _select_between(listed_at, scan_before, scan_after)
        if listed_around:
            is_in_both = listed_around[0] == scan_before and listed_around[-1] == scan_after
            return _MANAGED if is_in_both else None
        listed_later = _select_between(listed_at, last + 1, last + WEEK_MICROSECONDS)
        return _TAGGED_LATER if listed_later else _NOT_MANAGED


def _find_places(queue_arns: Iterable[str]) -> set[AccountAndRegion]:
    """Return the accounts and regions of queues. Texts that are not queue ARNs are left out."""
    places: set[AccountAndRegion] = set()
    for text in queue_arns:
        if arn_of(text):
            queue = parts_of(text)
            places.add(AccountAndRegion(queue.account, queue.region))
    return places


def _rank_by_opening(timeline: CaseTimeline) -> tuple[int, str]:
    return timeline.begin_microseconds, timeline.newest.case_id


def _is_open_at(timeline: CaseTimeline, moment: int) -> bool:
    """Return True if a case had not ended before a time, in microseconds since 1970."""
    return timeline.ended_at is None or to_microseconds(timeline.ended_at) >= moment


def _select_between(moments: Sequence[int], since: int, until: int) -> Sequence[int]:
    """Return the moments from `since` to `until`, both included. `moments` must be sorted."""
    return moments[bisect_left(moments, since) : bisect_right(moments, until)]
