"""What becomes of a case: by itself, at each state and sight of its queue, and by people."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from mendq.catalogue import examples
from mendq.model.case import FINAL, Case, State, longest_in, opened
from mendq.model.evidence import Evidence, Sighting
from mendq.model.lifecycle import (
    MANUAL_TRANSITIONS,
    Stands,
    VerificationEvidence,
    advance,
    due_at,
    may_transition,
)
from mendq.model.limits import Timing
from mendq.model.steps import (
    HELD,
    RedriveMessages,
    SetKmsDataKeyReusePeriod,
    SetVisibilityTimeout,
)

NOW = datetime(2026, 11, 16, 9, 30, tzinfo=UTC)
HOUR = timedelta(hours=1)
TIMING = Timing()
_STEPS = {
    "visibility": SetVisibilityTimeout(30, 45),
    "kms": SetKmsDataKeyReusePeriod(300, 600),
    "redrive": RedriveMessages(HELD, examples.STANDARD_ARN),
}
_FOUND_BY = {
    "calls": Evidence(
        tuple(Sighting(NOW - timedelta(seconds=each), f"e{each}", "r", "p") for each in (3, 2, 1))
    ),
    "scan": Evidence((Sighting.of_measurement(NOW - timedelta(minutes=5)),)),
}
_AGES = (
    timedelta(minutes=1),
    timedelta(minutes=17),
    7.1 * HOUR,
    23.9 * HOUR,
    24 * HOUR,
    48 * HOUR,
    7 * 24 * HOUR,
    16 * 24 * HOUR,
)
# How long before now a call failed, how many of them, and whether a scan measured it.
_FAILURES = {
    "quiet": (),
    "one call lately": (timedelta(minutes=1),),
    "three calls lately": (timedelta(seconds=3), timedelta(seconds=2), timedelta(seconds=1)),
    "one call a day ago": (timedelta(hours=24, seconds=1),),
}


def record() -> Any:
    """All of it, each part by state."""
    return {
        "advance": {str(state): _in_short(dict(_advance(state))) for state in State},
        "stands": {str(state): _in_short(dict(_by_what_stands(state))) for state in State},
        "due": {str(state): dict(_due(state)) for state in State if state not in FINAL},
        "longest": {str(state): longest_in(state, TIMING) for state in State},
        "open": {str(state): _is_open(state) for state in State},
        "moves": {
            str(state or "opens"): {str(into): _moves(state, into) for into in State}
            for state in (None, *State)
        },
        "moved_by": [
            {
                "out_of": sorted(str(each) for each in move.out_of),
                "into": move.into,
                "who": move.who,
                "because": move.because,
            }
            for move in MANUAL_TRANSITIONS
        ],
        "final": FINAL,
    }


def _in_short(ways: dict[str, str]) -> dict[str, str]:
    """The ways in which it moves; all others are alike."""
    usual = max(sorted({*ways.values()}), key=[*ways.values()].count)
    others = {way: became for way, became in ways.items() if became != usual}
    return {f"{len(ways)} ways, else": usual, **others}


def _case(state: State, step: str = "visibility", found_by: str = "calls") -> Case:
    return opened(
        state,
        queue_arn=examples.STANDARD_ARN,
        symptom="made_up",
        reason="because",
        evidence=_FOUND_BY[found_by],
        steps=(_STEPS[step],),
        now=NOW,
        actor="heal",
    )


def _seen(failures: str, now: datetime) -> Evidence:
    ago = _FAILURES[failures]
    return Evidence.of(Sighting(now - each, f"again-{n}", "r", "p") for n, each in enumerate(ago))


def _advance(state: State) -> Iterator[tuple[str, str]]:
    """By what was found, step, age, calls since, and messages deleted."""
    for step, found_by in (("visibility", "calls"), ("visibility", "scan"), ("kms", "calls")):
        for age in _AGES:
            for failures in _FAILURES:
                for deletes in (None, 0, 5):
                    now = NOW + age
                    evidence_since = VerificationEvidence(
                        TIMING, failures=_seen(failures, now), deletes=deletes
                    )
                    key = f"{step}, {found_by}, {_hours(age)}, {failures}, {deletes} deleted"
                    yield key, _became(_case(state, step, found_by), evidence_since, now)


def _by_what_stands(state: State) -> Iterator[tuple[str, str]]:
    """By what became of the queue and the value written there."""
    measured = Evidence((Sighting.of_measurement(NOW + 20 * 24 * HOUR),))
    for step in _STEPS:
        for age in (timedelta(minutes=17), 7.1 * HOUR, 16 * 24 * HOUR):
            for stands in (None, *Stands):
                for of_configuration in (False, True):
                    now = NOW + age
                    evidence_since = VerificationEvidence(
                        TIMING, stands=stands, of_configuration=of_configuration
                    )
                    kind = "configuration" if of_configuration else "traffic"
                    words = stands.value if stands else "not looked at"
                    key = f"{step}, {_hours(age)}, {words}, of {kind}"
                    yield key, _became(_case(state, step, "scan"), evidence_since, now)
        again = VerificationEvidence(TIMING, failures=measured, deletes=5)
        late = NOW + 20 * 24 * HOUR
        yield f"{step}, a scan finds it again", _became(_case(state, step, "scan"), again, late)


def _became(case: Case, evidence_since: VerificationEvidence, now: datetime) -> str:
    moved = advance(case, evidence_since, now)
    return f"{moved.state}: {moved.reason}" if moved else "stays"


def _due(state: State) -> Iterator[tuple[str, Any]]:
    """How long after it came into the state it is looked at next."""
    for step in _STEPS:
        for found_by in _FOUND_BY:
            for age in (timedelta(), timedelta(minutes=17), 30 * HOUR):
                at = due_at(_case(state, step, found_by), VerificationEvidence(TIMING), NOW + age)
                yield f"{step}, {found_by}, at {_hours(age)}", _hours(at - NOW)


def _is_open(state: State) -> dict[str, bool]:
    ages = (timedelta(), 24 * HOUR, 25.1 * HOUR, 49.1 * HOUR, 170 * HOUR)
    return {
        f"{step} at {_hours(age)}": _case(state, step).is_open(NOW + age, TIMING)
        for step in ("visibility", "redrive")
        for age in ages
    }


def _moves(out_of: State | None, into: State) -> list[str] | str:
    """Who moves a case so, beside what it becomes by itself."""
    if not may_transition(out_of, into):
        return "never"
    by = [
        str(move.who)
        for move in MANUAL_TRANSITIONS
        if move.into is into and (out_of in move.out_of if out_of else not move.out_of)
    ]
    return sorted(by) or "by itself"


def _hours(length: timedelta) -> str:
    return f"{length / HOUR:.4g} h"
