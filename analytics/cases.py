"""Cases out of their transitions: one row each, as incidents look for them."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

from analytics.days import microseconds
from analytics.outcomes import ended_at, in_order, outcome
from functions.healing.case import Case
from functions.healing.states import State

# Times are microseconds since 1970.
SPARK_CASE = (
    "case_id string, case_queue_arn string, symptom string, case_outcome string, "
    "case_seconds_to_heal double, case_paged boolean, opened_at bigint, ended_at bigint, "
    "evidence array<struct<first_at: bigint, last_at: bigint>>"
)
MAXIMUM_BYTES = 1_000_000


def read_transition(content: bytes) -> Case | None:
    """None where `content` is no transition of ours; nothing is raised."""
    if len(content) > MAXIMUM_BYTES:
        return None
    try:
        case = Case.from_document(json.loads(content))
        _evidence(case)
        microseconds(_aware(case.at))
        _require_text(case)
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError, OverflowError):
        return None
    return case


def by_case(transitions: Iterable[Case]) -> list[tuple[Case, ...]]:
    """Each case's transitions in order; the cases by their ids."""
    found: dict[str, list[Case]] = defaultdict(list)
    for each in transitions:
        found[each.case_id].append(each)
    return [in_order(found[case_id]) for case_id in sorted(found)]


def case_rows(transitions: Iterable[Case]) -> list[dict[str, Any]]:
    """One row per case, by its id."""
    return [_row(each) for each in by_case(transitions)]


def _row(transitions: Sequence[Case]) -> dict[str, Any]:
    last, ended = transitions[-1], ended_at(transitions)
    return {
        "case_id": last.case_id,
        "case_queue_arn": last.queue_arn,
        "symptom": last.symptom,
        "case_outcome": outcome(transitions),
        "case_seconds_to_heal": seconds_to_heal(transitions),
        "case_paged": any(each.paged is True for each in transitions),
        "opened_at": microseconds(transitions[0].at),
        "ended_at": microseconds(ended) if ended else None,
        "evidence": [_evidence(each) for each in transitions],
    }


def seconds_to_heal(transitions: Sequence[Case]) -> float | None:
    """From the first failed call to the first time that the mend was seen to hold.

    None as well where a case contradicts itself: nothing is mended before it fails.
    """
    verified = [each for each in transitions if each.state is State.VERIFIED]
    if not verified:
        return None
    first_at = _evidence(verified[0])["first_at"]
    seconds = (microseconds(verified[0].at) - first_at) / 1_000_000
    return seconds if seconds >= 0 else None


def _evidence(case: Case) -> dict[str, int]:
    return {name: microseconds(_time(case.evidence[name])) for name in ("first_at", "last_at")}


def _time(text: str) -> datetime:
    return _aware(datetime.fromisoformat(text))


def _aware(moment: datetime) -> datetime:
    if moment.tzinfo is None:
        raise ValueError(f"{moment} does not say where its clock hangs")
    return moment.astimezone(UTC)


def _require_text(case: Case) -> None:
    """Spark's rows hold the names, and no half of a character; the reason is compared alone."""
    for each in (case.case_id, case.queue_arn, case.symptom):
        each.encode()
    if not isinstance(case.reason, str):
        raise TypeError(f"{case.reason!r} is no text")
