"""Which failed calls are kept beside an open case, to tell later whether it was mended."""

from __future__ import annotations

from datetime import timedelta

from functions.healing.case import Case
from functions.healing.evidence import Evidence, EvidenceNeeded, Sighting
from functions.healing.limits import Timing
from functions.healing.signs import counts_from
from functions.healing.states import State

NOTED_EVERY = timedelta(minutes=5)


def with_failures(
    case: Case, known: Evidence, calls: Evidence, needed: EvidenceNeeded, timing: Timing
) -> Evidence | None:
    """What is to be known of failed calls since; None where that is known well enough.

    As many as the symptom needs as evidence; more than that are noted every five minutes, so that
    a storm of failed calls is a trickle of writes.
    """
    after = Evidence.of([*known.sightings, *calls.since(counts_from(case, timing)).sightings])
    newest = _worth_noting(case, after, needed)
    if newest == known:
        return None
    if not known.suffices(needed):
        return newest
    later = newest.sightings[-1].event_time - known.sightings[-1].event_time
    return newest if later >= NOTED_EVERY else None


def _worth_noting(case: Case, after: Evidence, needed: EvidenceNeeded) -> Evidence:
    """The newest, and where a person has been called, those of callers that the case knows not."""
    strangers: tuple[Sighting, ...] = ()
    if case.state is State.ESCALATED:
        known = case.evidence["principals"]
        strangers = tuple(
            each
            for each in after.sightings
            if not each.measured and each.principal_arn not in known
        )
    most = needed.distinct_events
    return Evidence.of([*strangers[-most:], *after.sightings[-(1 if strangers else most) :]])
