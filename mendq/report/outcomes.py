"""What became of an incident and why, in a reader's words."""

from __future__ import annotations

from mendq.report.summary import COUNT_ONLY, FIXED, RACE, Incident
from mendq.report.words import quote

# What stands out on the page, beside what is fixed.
_WAITING = frozenset({"proposed", "escalated", "overridden", "ineffective"})

# After a number of incidents that were not healed, in the order in which they are said.
OUTCOMES = {
    "applied": "changed but not verified yet",
    "observed": "only observed (mode observe)",
    "proposed": "waiting for approval",
    "refused": "refused",
    "declined": "declined",
    "expired": "expired without an answer",
    "ineffective": "changed without effect",
    "overridden": "left to whoever set another value",
    "rolled_back": "rolled back",
    "escalated": "left to a person",
    "not_seen": "without a case",
}

# The words of the nightly job, and those that only Mendq itself could know.
WHY = {
    "not_managed": "Mendq does not manage this queue",
    "not_tagged_in_time": "the queue was tagged only after it failed",
    "event_lost": "CloudTrail recorded the calls, and probably no event reached Mendq",
    "no_evidence": "the calls carry no messages, or come from new sessions: Mendq ignores them",
    "elsewhere": "the queue is of another account or region",
    "case_open": "an earlier case of the queue was still open",
    "too_little_evidence": "too few failed calls, or too far apart, for Mendq to believe them",
    "unresolved_queue": "the calls do not say which queue they were about",
    "unknown": "neither the logs nor the cases say why",
    "unknown_code": "no entry of the catalogue knows this error code",
    COUNT_ONLY: "a caller's mistake, counted only",
    RACE: "the message may just have been deleted, so Mendq measures a queue that it manages",
}


def tone(outcome: str) -> str:
    """`good`, `waiting` (for a person) or `plain`."""
    if outcome in FIXED:
        return "good"
    return "waiting" if outcome in _WAITING else "plain"


def why_in_words(incident: Incident) -> str:
    """The nightly job's reasons in words, another's as they came; of a case, what it said last."""
    return WHY.get(incident.why or "") or quote(incident.why or incident.reason)
