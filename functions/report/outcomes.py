"""What became of an incident, and why, in a reader's words."""

from __future__ import annotations

from functions.report.summary import COUNT_ONLY, HEALED, Incident
from functions.report.visible import MOST_SENTENCE, visible

# How each outcome stands out on the page; one that is not here stands out not at all.
_TONES = {
    HEALED: "good",
    "approved": "good",
    "proposed": "waiting",
    "escalated": "waiting",
    "contested": "waiting",
    "ineffective": "waiting",
}

_WHY = {
    "not_managed": "Mendq does not manage this queue",
    "not_tagged_in_time": "the queue was tagged only after it failed",
    "event_lost": "CloudTrail recorded the calls, and no event reached Mendq",
    "unlabelled": "no entry of the catalogue knows this error code",
    COUNT_ONLY: "a caller's mistake, counted only",
}


def tone(outcome: str) -> str:
    """`good`, `waiting` (for a person) or `plain`."""
    return _TONES.get(outcome, "plain")


def why_in_words(incident: Incident) -> str:
    """The night's own reasons in words; a case's as the case gave it."""
    return _WHY.get(incident.why) or visible(incident.why, MOST_SENTENCE)
