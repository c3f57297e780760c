"""The nightly job's tables, by the contract's sentences: no Spark, no code of the nightly job's."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

from mendq.catalogue import match
from mendq.model.failed_call import FailedCall
from tests.analytics.outsider.plain_cases import Case, cases
from tests.analytics.outsider.plain_scans import Round, announced, scans
from tests.analytics.outsider.plain_trail import failed_calls

LONGEST_GAP = timedelta(seconds=900)
AROUND = timedelta(days=7)
Key = tuple[str, str, str, str]
Row = dict[str, Any]


@dataclass(frozen=True)
class Count:
    """`incidents` without their identifiers, and how many failed calls, of each day."""

    incidents: dict[date, list[Row]]
    failed_calls: dict[date, int]


@dataclass(frozen=True)
class Known:
    """What Mendq wrote down."""

    cases: list[Case]
    scans: list[Round]


def count(trail: Path, case_bucket: Path) -> Count:
    calls = failed_calls(trail)
    known = Known(cases(case_bucket), scans(case_bucket.parent / "findings"))
    rows: dict[date, list[Row]] = defaultdict(list)
    for key, burst in bursts(calls):
        row = incident(key, burst, known)
        rows[row["first_failure"].date()].append(row)
    return Count(dict(rows), dict(Counter(each.event_time.date() for each in calls)))


def bursts(calls: list[FailedCall]) -> list[tuple[Key, list[FailedCall]]]:
    """Calls of one account, region, queue and symptom, each at most 900 s after the one before."""
    found: list[tuple[Key, list[FailedCall]]] = []
    for call in sorted(calls, key=lambda each: (key_of(each), each.event_time)):
        key = key_of(call)
        if found and found[-1][0] == key and goes_on(found[-1][1], call):
            found[-1][1].append(call)
        else:
            found.append((key, [call]))
    return found


def goes_on(burst: list[FailedCall], call: FailedCall) -> bool:
    return call.event_time - burst[-1].event_time <= LONGEST_GAP


def key_of(call: FailedCall) -> Key:
    found = match(call)
    symptom = found.name if found else f"unknown:{call.error_code}"
    return call.account, call.region, call.queue_arn or "unresolved", symptom


def incident(key: Key, burst: list[FailedCall], known: Known) -> Row:
    account, region, queue, symptom = key
    first, last = burst[0].event_time, burst[-1].event_time
    joined = [
        each
        for each in known.cases
        if each.about == (queue, symptom) and each.overlaps(first, last)
    ]
    case = max(joined, key=lambda each: each.opened_at, default=None)
    return {
        "account": account,
        "region": region,
        "queue_arn": queue,
        "symptom": symptom,
        "error_codes": sorted({each.error_code for each in burst}),
        "first_failure": first,
        "last_failure": last,
        "failed_calls": len(burst),
        "principals": sorted({each.principal_arn for each in burst}),
        "outcome": case.outcome if case else "not_seen",
        "why": None if case else why(key, burst, known),
        "case_id": case.case_id if case else None,
        "seconds_to_heal": case.seconds_to_heal if case else None,
        "notified": any(each.notified for each in joined),
    }


def why(key: Key, burst: list[FailedCall], known: Known) -> str:
    """Why there is no case, in the order of the table in docs/summary.md."""
    _, _, queue, symptom = key
    if symptom.startswith("unknown:"):
        return "unknown_code"
    if symptom == "invalid_request":
        return "count_only"
    if queue == "unresolved":
        return "unresolved_queue"
    if any(each.about == (queue, symptom) and was_open(each, burst) for each in known.cases):
        return "case_open"
    return why_unseen(queue, burst, known)


def why_unseen(queue: str, burst: list[FailedCall], known: Known) -> str:
    """Why nothing opened a case though one might have been opened."""
    first, last = burst[0].event_time, burst[-1].event_time
    seen = announced(known.scans, queue, first, last)
    if seen in {"not_managed", "not_tagged_in_time"}:
        return seen
    if not enough_evidence(burst):
        return "too_little_evidence"
    was_managed = seen == "managed" or cases_around(queue, first, last, known.cases)
    return "event_lost" if was_managed else "unknown"


def was_open(case: Case, burst: list[FailedCall]) -> bool:
    """Opened at most 7 days before it or while it lasted, and not ended when it began."""
    first, last = burst[0].event_time, burst[-1].event_time
    has_not_ended = case.ended_at is None or case.ended_at >= first
    return first - AROUND <= case.opened_at <= last and has_not_ended


def enough_evidence(burst: list[FailedCall]) -> bool:
    assert match(burst[0]) is not None
    times = [each.event_time for each in burst]
    return any(
        later - earlier <= timedelta(seconds=600)
        for earlier, later in zip(times, times[2:], strict=False)
    )


def cases_around(queue: str, first: datetime, last: datetime, opened: list[Case]) -> bool:
    """Cases of the queue at most 7 days before, and at most 7 days after."""
    times = [each.opened_at for each in opened if each.about[0] == queue]
    before = any(first - AROUND <= each <= last for each in times)
    return before and any(last < each <= last + AROUND for each in times)
