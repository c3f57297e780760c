"""The nightly job's tables, by the contract's sentences: no Spark, no code of the nightly job's."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Any

from mendq.catalogue import find_symptom_of
from mendq.model.failed_call import FailedCall
from tests.analytics.recount.plain_cases import Case, read_cases
from tests.analytics.recount.plain_scans import ScanList, judge_management, read_scans
from tests.analytics.recount.plain_trail import read_failed_calls

LONGEST_GAP = timedelta(seconds=900)
AROUND = timedelta(days=7)
# In the catalogue's words.
OF_MESSAGES = {"access_denied", "queue_missing", "empty_receives", "fifo_throttled"}
TRAFFIC = {
    "ReceiveMessage",
    *("SendMessage", "SendMessageBatch", "DeleteMessage", "DeleteMessageBatch"),
    *("ChangeMessageVisibility", "ChangeMessageVisibilityBatch"),
}
Key = tuple[str, str, str, str]
Row = dict[str, Any]


@dataclass(frozen=True)
class IncidentCount:
    """`incidents` without their identifiers, and how many failed calls, of each day."""

    incidents: dict[date, list[Row]]
    failed_calls: dict[date, int]


@dataclass(frozen=True)
class MendqRecords:
    """What Mendq wrote down."""

    cases: list[Case]
    scans: list[ScanList]
    home: tuple[str, str] | None

    def looks_at(self, account: str, region: str) -> bool:
        """Scans look where they are from, or wherever a queue that one lists is."""
        if self.home:
            return (account, region) == self.home
        start = f":{region}:{account}:"
        return any(start in arn for scan in self.scans for arn in scan.managed)


def count_incidents(
    trail: Path, case_bucket: Path, home: tuple[str, str] | None = None
) -> IncidentCount:
    calls = read_failed_calls(trail, home)
    known = MendqRecords(read_cases(case_bucket), read_scans(case_bucket.parent / "findings"), home)
    rows: dict[date, list[Row]] = defaultdict(list)
    for key, burst in group_bursts(calls):
        row = make_incident_row(key, burst, known)
        rows[row["first_failure"].date()].append(row)
    for case in known.cases:
        if case.is_opened_by_scan and not any(
            joins_scan_case(burst, case) for burst in group_bursts(calls)
        ):
            rows[case.opened_at.date()].append(make_scan_row(case))
    return IncidentCount(dict(rows), dict(Counter(call.event_time.date() for call in calls)))


def group_bursts(calls: list[FailedCall]) -> list[tuple[Key, list[FailedCall]]]:
    """Calls of one account, region, queue and symptom, each at most 900 s after the one before."""
    found: list[tuple[Key, list[FailedCall]]] = []
    for call in sorted(calls, key=lambda call: (make_key(call), call.event_time)):
        key = make_key(call)
        if found and found[-1][0] == key and continues_burst(found[-1][1], call):
            found[-1][1].append(call)
        else:
            found.append((key, [call]))
    return found


def continues_burst(burst: list[FailedCall], call: FailedCall) -> bool:
    return call.event_time - burst[-1].event_time <= LONGEST_GAP


def make_key(call: FailedCall) -> Key:
    found = find_symptom_of(call)
    symptom = found.name if found else f"unknown:{call.error_code}"
    return call.account, call.region, call.queue_arn or "unresolved", symptom


def make_incident_row(key: Key, burst: list[FailedCall], known: MendqRecords) -> Row:
    account, region, queue, symptom = key
    first = burst[0].event_time
    last = burst[-1].event_time
    joined = [
        case
        for case in known.cases
        if case.about == (queue, symptom) and case.overlaps(first, last)
    ]
    case = max(joined, key=lambda case: case.opened_at, default=None)
    return {
        "account": account,
        "region": region,
        "queue_arn": queue,
        "symptom": symptom,
        "found_by": "failed_calls",
        "error_codes": sorted({call.error_code for call in burst}),
        "first_failure": first,
        "last_failure": last,
        "failed_calls": len(burst),
        "principals": sorted({call.principal_arn for call in burst}),
        "outcome": case.outcome if case else "not_seen",
        "why": None if case else explain_missing_case(key, burst, known),
        "case_id": case.case_id if case else None,
        "seconds_to_heal": case.seconds_to_heal if case else None,
        "notified": any(case.is_notified for case in joined),
        "urgent": any(case.is_urgent for case in joined),
    }


def joins_scan_case(keyed: tuple[Key, list[FailedCall]], case: Case) -> bool:
    """Whether a burst joins a scan's case, within seven days of its opening."""
    (_, _, *about), burst = keyed
    first = burst[0].event_time
    last = burst[-1].event_time
    near = case.opened_at - AROUND, case.opened_at + AROUND
    spans = ((max(since, near[0]), min(until, near[1])) for since, until in case.evidence)
    overlap = any(since <= min(last, until) and first <= until for since, until in spans)
    return tuple(about) == case.about and overlap


def make_scan_row(case: Case) -> Row:
    queue, symptom = case.about
    *_, region, account, _ = queue.split(":")
    return {
        "account": account,
        "region": region,
        "queue_arn": queue,
        "symptom": symptom,
        "found_by": "scan",
        "error_codes": [],
        "first_failure": case.opened_at,
        "last_failure": case.opened_at,
        "failed_calls": 0,
        "principals": [],
        "outcome": case.outcome,
        "why": None,
        "case_id": case.case_id,
        "seconds_to_heal": case.seconds_to_heal,
        "notified": case.is_notified,
        "urgent": case.is_urgent,
    }


def explain_missing_case(key: Key, burst: list[FailedCall], known: MendqRecords) -> str:
    """Why there is no case, in the order of the table in docs/incidents.md."""
    _, _, queue, symptom = key
    if symptom.startswith("unknown:"):
        return "unknown_code"
    if symptom == "invalid_request":
        return "count_only"
    if not is_in_own_region(key):
        return "unresolved_queue" if queue == "unresolved" else "elsewhere"
    counting = [call for call in burst if is_evidence(call, symptom)]
    if not counting:
        return "no_evidence"
    if any(case.about == (queue, symptom) and was_open(case, burst) for case in known.cases):
        return "case_open"
    return explain_unseen(key, burst, counting, known)


def is_in_own_region(key: Key) -> bool:
    """In the account and region of the record."""
    account, region, queue, _ = key
    partition = "aws-us-gov" if region.startswith("us-gov") else "aws"
    return queue.startswith(f"arn:{partition}:sqs:{region}:{account}:")


def is_evidence(call: FailedCall, symptom: str) -> bool:
    """Looking at a queue is no evidence of these, nor is a session's first minute of one."""
    if symptom not in OF_MESSAGES:
        return True
    created = call.session_created_at
    at = call.event_time
    is_new = created is not None and at - created <= timedelta(seconds=60)
    return call.event_name in TRAFFIC and not (symptom == "access_denied" and is_new)


def explain_unseen(
    key: Key, burst: list[FailedCall], counting: list[FailedCall], known: MendqRecords
) -> str:
    """Why nothing opened a case though one might have been opened."""
    account, region, queue, symptom = key
    first = burst[0].event_time
    last = burst[-1].event_time
    here = known.looks_at(account, region)
    seen = judge_management(known.scans, queue, first, last) if here else None
    if seen in {"not_managed", "not_tagged_in_time"}:
        return str(seen)
    if not has_enough_evidence(counting):
        return "too_little_evidence"
    opened = [case.opened_at for case in known.cases if case.about == (queue, symptom)]
    is_new = not any(first - AROUND <= opened_at <= last for opened_at in opened)
    return "event_lost" if seen == "managed" and is_new else "unknown"


def was_open(case: Case, burst: list[FailedCall]) -> bool:
    """Opened at most 7 days before it or while it lasted, and not ended when it began."""
    first = burst[0].event_time
    last = burst[-1].event_time
    has_not_ended = case.ended_at is None or case.ended_at >= first
    return first - AROUND <= case.opened_at <= last and has_not_ended


def has_enough_evidence(burst: list[FailedCall]) -> bool:
    assert find_symptom_of(burst[0]) is not None
    times = [call.event_time for call in burst]
    return any(
        later - earlier <= timedelta(seconds=600)
        for earlier, later in zip(times, times[2:], strict=False)
    )
