"""Failed calls into incidents, and incidents with what Mendq did about them."""

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

from analytics.cases import NOT_SEEN, WEEK_MICROSECONDS, Life
from analytics.days import microseconds, time_of
from mendq.model.account_and_region import AccountAndRegion
from mendq.model.evidence import DISTINCT_EVENTS, MAXIMUM_PRINCIPALS, WITHIN_SECONDS, Sighting
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
    """Return columns as one line in Spark's schema language."""
    return ", ".join(f"{name} {kind}" for name, kind in columns.items())


GAP_SECONDS = 900
_KEY = ("account", "region", "queue_arn", "symptom")
_TIMES = ("first_failure", "last_failure")
# Twice as far apart as they come: further away, a scan says nothing of the incident.
_NEAR_MICROSECONDS = 2 * 3_600 * 1_000_000
# What found an incident.
FAILED_CALLS, SCAN = "failed_calls", "scan"
# Why of an incident that is nobody's but the operators' own.
OWN_LOOK = "own_look"


def failed_calls(readings: DataFrame, home: AccountAndRegion | None = None) -> DataFrame:
    """One row per call of anybody else, whenever it happened; where `home` is given, there."""
    calls = readings.transform(_exploded)
    if home:
        calls = calls.where((sf.col("account") == home.account) & (sf.col("region") == home.region))
    return calls.transform(_one_per_event).transform(_without_own)


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
    """The columns of the table, why heal does not take a call up, null where it does, whether it is
    an operator's own look, and what else it says of itself.
    """
    is_own = sf.col("ignored").eqNullSafe("own_call")
    more = ("ignored", "is_own_look", "requested_visibility_seconds", "refused_by")
    return calls.where(~is_own).select(*COLUMNS["failed_calls"], *more)


def incidents(calls: DataFrame) -> DataFrame:
    """A row per burst; a call joins the one before it up to GAP_SECONDS later, inclusive.

    `enough_evidence` tells whether heal would have believed it; `ignored`, why it takes up none of
    the calls, null where it takes up any; `is_own_look`, whether all are operators' own.
    """
    principals, is_ignored = sf.sort_array(sf.collect_set("principal_arn")), sf.isnotnull("ignored")
    return (
        calls.transform(_numbered)
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


def _numbered(calls: DataFrame) -> DataFrame:
    """Each call with the number of its burst: one more wherever the gap before it is too long."""
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
    """Whether this call is the last of as many that heal takes up, as close together, as it asks.

    Calls of an earlier burst are no closer than GAP_SECONDS, longer than any window of evidence.
    """
    moment, is_taken_up = sf.unix_micros("event_time"), sf.isnull("ignored")
    in_time = Window.partitionBy(*_KEY, is_taken_up).orderBy("event_time", "event_id")
    earlier = sf.lag(moment, DISTINCT_EVENTS - 1).over(in_time)
    is_within = sf.coalesce(moment - earlier <= WITHIN_SECONDS * 1_000_000, sf.lit(False))
    return is_taken_up & is_within


def first_evidence(calls: DataFrame) -> dict[str, list[str]]:
    """By incident that heal would have believed, the calls with which it first would have.

    Each as `Sighting` spells it.
    """
    in_time = Window.partitionBy(*_KEY, sf.isnull("ignored")).orderBy("event_time", "event_id")
    said, moment = sf.struct(*_SAID.split()), sf.unix_micros("event_time")
    latest = sf.array(*(sf.lag(said, n).over(in_time) for n in reversed(range(DISTINCT_EVENTS))))
    completed_at = sf.when(sf.col("completes_evidence"), moment)
    first = sf.min_by("latest", "completed_at").alias("evidence")
    numbered = calls.transform(_numbered).withColumn("at", moment)
    bursts = numbered.withColumns({"latest": latest, "completed_at": completed_at})
    found = bursts.groupBy(*_KEY, "burst").agg(sf.min("event_time").alias("first_failure"), first)
    rows = found.where(sf.isnotnull("evidence")).select(_incident_id(), "evidence").collect()
    return {
        incident_id: [Sighting(time_of(at), *said).to_text() for at, *said in evidence]
        for incident_id, evidence in rows
    }


# As `Sighting` has them in a row.
_SAID = "at event_id request_id principal_arn event_name requested_visibility_seconds refused_by"


def _incident_id() -> Column:
    """The same burst has the same id in every night that finds it."""
    identity = sf.struct(*_KEY, sf.unix_micros("first_failure").alias("first_failure"))
    return sf.substring(sf.sha2(sf.to_json(identity), 256), 1, 32)


class Round(NamedTuple):
    """One scan's list; `whole` where every managed queue is on it."""

    at: int
    queue_arns: tuple[str, ...]
    whole: bool


class Burst(NamedTuple):
    """Queue, symptom and times of an incident of failed calls, in microseconds since 1970."""

    queue_arn: str
    symptom: str
    first: int
    last: int

    def joins_what_a_scan_opened(self, life: Life) -> bool:
        about = life.newest.queue_arn, life.newest.symptom
        evidence = life.near_evidence
        return about == self[:2] and any(a <= self.last and b >= self.first for a, b in evidence)


def collected(incidents: DataFrame) -> list[dict[str, Any]]:
    """Their rows: Spark would take Python's times through the local zone."""
    asked = incidents.withColumns({each: sf.unix_micros(each) for each in _TIMES})
    return [row.asDict() for row in asked.collect()]


def bursts_about(incidents: Iterable[Mapping[str, Any]], lives: Iterable[Life]) -> list[Burst]:
    """The incidents on the queues of those of `lives` that a scan opened."""
    arns = {each.newest.queue_arn for each in lives if each.is_opened_by_scan}
    of_queues = (each for each in incidents if each["queue_arn"] in arns)
    return [
        Burst(*(each[name] for name in ("queue_arn", "symptom", *_TIMES))) for each in of_queues
    ]


def joined(
    incidents: Sequence[Mapping[str, Any]],
    lives: Sequence[Life],
    rounds: Iterable[Round],
    home: AccountAndRegion | None,
) -> list[dict[str, Any]]:
    """The incidents with what cases and scans tell of them, in whatever order those come.

    And those that scans alone found. The cases and scans are of `home`, or else of wherever a scan
    listed a queue.
    """
    known = Known.of(lives, rounds, home)
    scanned = found_by_scans(lives, bursts_about(incidents, lives))
    return [*map(known.with_outcome, incidents), *scanned]


def found_by_scans(lives: Iterable[Life], bursts: Sequence[Burst]) -> list[dict[str, Any]]:
    """A row for each case that a scan opened and that none of `bursts` joins."""
    about = defaultdict[str, list[Burst]](list)
    for burst in bursts:
        about[burst.queue_arn].append(burst)
    return [
        _found_by_scan(life)
        for life in lives
        if life.is_opened_by_scan
        and not any(each.joins_what_a_scan_opened(life) for each in about[life.newest.queue_arn])
    ]


def _found_by_scan(life: Life) -> dict[str, Any]:
    case = life.newest
    queue = parts_of(case.queue_arn)
    about = queue.account, queue.region, case.queue_arn, case.symptom
    identity = json.dumps([*about, case.case_id])
    return {
        **dict(zip(_KEY, about, strict=True)),
        "incident_id": sha256(identity.encode()).hexdigest()[:32],
        "found_by": SCAN,
        "error_codes": [],
        "principals": [],
        "failed_calls": 0,
        **dict.fromkeys(_TIMES, life.begins),
        **_became(life, [life]),
        "why": None,
    }


def _became(case: Life | None, joins: Sequence[Life]) -> dict[str, Any]:
    return {
        "outcome": case.outcome if case else NOT_SEEN,
        "case_id": case.newest.case_id if case else None,
        "seconds_to_heal": case.seconds_to_heal if case else None,
        "notified": any(each.is_notified for each in joins),
        "urgent": any(each.is_urgent for each in joins),
    }


@dataclass(frozen=True)
class Known:
    """The cases of each queue, when scans listed it, and when they listed every managed queue.

    `homes` are where the scans look; they tell nothing of other accounts and regions. All times are
    microseconds since 1970, sorted.
    """

    lives: Mapping[str, Sequence[Life]]
    listed: Mapping[str, Sequence[int]]
    whole: Sequence[int]
    homes: frozenset[AccountAndRegion]

    @classmethod
    def of(
        cls, lives: Iterable[Life], rounds: Iterable[Round], home: AccountAndRegion | None = None
    ) -> Known:
        """The same of the same cases and rounds in any order."""
        of_queue, listed = defaultdict[str, list[Life]](list), defaultdict[str, list[int]](list)
        for life in lives:
            of_queue[life.newest.queue_arn].append(life)
        by_time = sorted(rounds)
        for each in by_time:
            for arn in each.queue_arns:
                listed[arn].append(each.at)
        whole = [each.at for each in by_time if each.whole]
        named = (parts_of(each) for each in listed if arn_of(each))
        homes = {home} if home else {AccountAndRegion(each.account, each.region) for each in named}
        return cls(dict(of_queue), dict(listed), whole, frozenset(homes))

    def with_outcome(self, incident: Mapping[str, Any]) -> dict[str, Any]:
        """What became of an incident: the case opened last tells, of those that join.

        One joins when queue and symptom agree and its evidence overlaps.
        """
        first, last = (incident[each] for each in _TIMES)
        of_queue = self.lives.get(incident["queue_arn"], ())
        of_symptom = [each for each in of_queue if each.newest.symptom == incident["symptom"]]
        joins = [each for each in of_symptom if each.overlaps(first, last)]
        case = max(joins, key=lambda each: (each.begins, each.newest.case_id), default=None)
        why = None if case else incident["ignored"] or self._why(incident, of_symptom)
        own = OWN_LOOK if incident["is_own_look"] else why
        return {**incident, "found_by": FAILED_CALLS, **_became(case, joins), "why": own}

    def _why(self, incident: Mapping[str, Any], of_symptom: Sequence[Life]) -> str:
        """Only what the logs, the scans and the cases prove; docs/incidents.md explains each word.

        A case of the week before, ended or not, may be why heal says nothing again.
        """
        first, last = (incident[each] for each in _TIMES)
        since = first - WEEK_MICROSECONDS
        of_then = [each.ended_at for each in of_symptom if since <= each.begins <= last]
        was_open = any(each is None or microseconds(each) >= first for each in of_then)
        scanned = self._scanned(incident, first, last)
        whys = {
            "case_open": was_open,
            "not_tagged_in_time": scanned == "not_tagged_in_time",
            "not_managed": scanned == "not_managed",
            "too_little_evidence": not incident["enough_evidence"],
            "event_lost": scanned == "managed" and not of_then,
        }
        return next((why for why, holds in whys.items() if holds), "unknown")

    def _scanned(self, incident: Mapping[str, Any], first: int, last: int) -> str | None:
        """What the scan before an incident, the one after it and those between say of a queue.

        None where one of the two is not near, the queue came or went between them, or they do not
        look where it is.
        """
        if AccountAndRegion(incident["account"], incident["region"]) not in self.homes:
            return None
        listed = self.listed.get(incident["queue_arn"], ())
        before = _between(self.whole, first - _NEAR_MICROSECONDS, first)[-1:]
        after = _between(self.whole, last, last + _NEAR_MICROSECONDS)[:1]
        if not before or not after:
            return None
        if then := _between(listed, before[0], after[0]):
            return "managed" if (then[0], then[-1]) == (before[0], after[0]) else None
        later = _between(listed, last + 1, last + WEEK_MICROSECONDS)
        return "not_tagged_in_time" if later else "not_managed"


def _between(moments: Sequence[int], since: int, until: int) -> Sequence[int]:
    """Those of sorted moments."""
    return moments[bisect_left(moments, since) : bisect_right(moments, until)]
