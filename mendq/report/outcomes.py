"""What became of an incident, why, and what a queue keeps doing, in a reader's words."""

from __future__ import annotations

from mendq.report.summary import APPROVED, COUNT_ONLY, HEALED, Incident
from mendq.report.words import MOST_SENTENCE, visible

# How each outcome stands out on the page; one that is not here stands out not at all.
_TONES = {
    HEALED: "good",
    APPROVED: "good",
    "proposed": "waiting",
    "escalated": "waiting",
    "overridden": "waiting",
    "ineffective": "waiting",
}

# After a number of incidents that were not healed, in the order in which they are said.
OUTCOMES = {
    "applied": "changed but not verified yet",
    "observed": "only observed (mode observe)",
    "proposed": "waiting for approval",
    "refused": "refused",
    "declined": "declined",
    "expired": "expired without an answer",
    "ineffective": "changed without effect",
    "overridden": "left to whoever changed it back",
    "rolled_back": "rolled back",
    "escalated": "left to a person",
    "not_seen": "without a case",
}

# The words of the nightly job, and those that only Mendq itself could know.
WHY = {
    "not_managed": "Mendq does not manage this queue",
    "not_tagged_in_time": "the queue was tagged only after it failed",
    "event_lost": "CloudTrail recorded the calls, and probably no event reached Mendq",
    "case_open": "an earlier case of the queue was still open",
    "too_little_evidence": "too few failed calls, or too far apart, for Mendq to believe them",
    "unresolved_queue": "the calls do not say which queue they were about",
    "unknown": "neither the logs nor the cases say why",
    "unknown_code": "no entry of the catalogue knows this error code",
    COUNT_ONLY: "a caller's mistake, counted only",
}


def tone(outcome: str) -> str:
    """`good`, `waiting` (for a person) or `plain`."""
    return _TONES.get(outcome, "plain")


def why_in_words(incident: Incident) -> str:
    """The nightly job's reasons in words, another's as they came; of a case, what it said last."""
    return WHY.get(incident.why or "") or visible(incident.why or incident.reason, MOST_SENTENCE)


# After the queue's name, before `: 7 of 17 visibility_timeout_too_short incidents came from it.`
HABITS = {
    "visibility_timeout_too_short": "keeps outrunning its visibility timeout",
    "message_too_long": "keeps being sent messages that are too long for it",
    "dedup_id_missing": "keeps being sent messages without a deduplication ID",
    "fifo_throttled": "keeps outrunning its FIFO quota",
    "empty_receives": "keeps being polled faster than its messages come",
    "kms_throttled": "keeps exhausting the KMS quota",
    "kms_denied": "keeps being called without a grant on its key",
    "kms_key_unusable": "keeps a key that cannot be used",
    "access_denied": "keeps turning callers away",
    "queue_missing": "keeps being called although it is not there",
    "in_flight_limit": "keeps reaching its in-flight limit",
}
