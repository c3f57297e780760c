"""The rows of the tables: incidents, cases that paged somebody, and queues by day."""

from __future__ import annotations

from collections import Counter
from datetime import date, datetime
from math import ceil, log
from typing import Any

from mendq.report.days import NOT_READ
from mendq.report.outcomes import OUTCOMES, tone, why_in_words
from mendq.report.summary import Incident, NotifiedCase, QueueWeek, Summary
from mendq.report.words import (
    MOST_SENTENCE,
    clock,
    counted,
    duration,
    listed,
    marked,
    marked_queue,
    most_first,
    place_in,
    principal_name,
    queue_name,
    short_day,
    span,
    visible,
)

MOST_CODES = 3
# What a template prints of one row, or of a table.
Row = dict[str, Any]


def incident_rows(summary: Summary) -> list[Row]:
    """The summary's cases in its order, worst first."""
    return [
        {
            "symptom": visible(each.symptom),
            "calls": _calls(each),
            "caller": _caller(each),
            "queue": queue_name(each.queue_arn),
            "place": place_in(summary, each.queue_arn),
            "when": span(each.first_failure, each.last_failure),
            "outcome": visible(each.outcome.replace("_", " ")),
            "tone": tone(each.outcome),
            "is_fixed": each.is_fixed,
            "notified": each.notified,
            "case_id": visible(each.case_id or ""),
            "why": why_in_words(each),
            "healed_in": "" if each.seconds_to_heal is None else duration(each.seconds_to_heal),
        }
        for each in summary.cases
    ]


def _calls(incident: Incident) -> str:
    codes = [visible(each) for each in incident.error_codes[:MOST_CODES]]
    if len(incident.error_codes) > MOST_CODES:
        codes.append(f"{len(incident.error_codes) - MOST_CODES} more")
    return ", ".join([counted(incident.failed_calls, "failed call"), *codes])


def _caller(incident: Incident) -> str:
    """The first principal of at most ten, and how many more."""
    if not incident.principals:
        return ""
    more = len(incident.principals) - 1
    return principal_name(incident.principals[0]) + (f" and {more} more" if more else "")


MOST_SYMPTOMS = 6
WHAT_A_PAGE_IS = "A page is any message to a person, urgent or not."
# What became of the queue, by the state of the case.
STATES = OUTCOMES | {
    "observed": "Mendq only observed and left it as it was",
    "refused": "Mendq left it as it was",
    "approved": "approved, not carried out yet",
    "declined": "declined, left as it was",
    "expired": "nobody answered, left as it was",
    "unverified": "changed, without a proof yet",
    "verified": "changed and verified",
    "watching": "changed, verified and watched",
    "closed": "closed",
}
_AS_IT_WAS = frozenset({"observed", "refused", "declined", "expired"})
_ENDS = _OPEN, _LEFT, _CLOSED, _ROLLED_BACK = (
    "still open",
    "left as it was",
    "closed",
    "rolled back",
)


def people(summary: Summary) -> list[Row]:
    """The cases that paged, the first page first: what it means for the queue, and for the case."""
    return [
        {
            "when": f"{short_day(each.notified_at.date())} {clock(each.notified_at)}",
            "queue": queue_name(each.queue_arn),
            "place": place_in(summary, each.queue_arn),
            "symptom": visible(each.symptom),
            "how": ", ".join(
                [counted(each.pages, "page")] * (each.pages > 1)
                + ["found by a scan"] * each.is_scanned
            ),
            "why": visible(each.reason, MOST_SENTENCE),
            "state": STATES.get(each.state) or visible(each.state.replace("_", " ")),
            "lasted": _lasted(each, summary.made_at),
            "case_id": visible(each.case_id),
        }
        for each in summary.reached_a_person.cases
    ]


def people_caption(summary: Summary) -> str:
    """How many cases and pages, and how many are not listed."""
    if not summary.cases_were_read:
        return "Mendq's cases were not read, so who was paged is not known."
    reached = summary.reached_a_person
    if not reached.total:
        return "Nobody was paged."
    cases = counted(reached.total, "case")
    if reached.cases_left_out:
        first = f"these are the first {len(reached.cases)}"
        return f"{cases} paged a person; {first}. {WHAT_A_PAGE_IS}"
    pages = counted(sum(each.pages for each in reached.cases), "page")
    ended = Counter(_end(each) for each in reached.cases)
    said = listed([f"{ended[each]:,} {each}" for each in _ENDS if ended[each]])
    return f"{cases}, {pages}: {said}. {WHAT_A_PAGE_IS}"


def scanned(summary: Summary) -> str:
    """What scans found without a failed call, which is no incident; empty where nothing."""
    found = summary.scanned
    if not found.cases:
        return ""
    symptoms = most_first(found.by_symptom)
    names = [f"{marked(name)} ({count:,})" for name, count in symptoms[:MOST_SYMPTOMS]]
    more = len(symptoms) - MOST_SYMPTOMS
    rest = [f"{more} more"] if more > 0 else []
    what = f": {listed([*names, *rest])}" if names else ""
    ended = [f"{found.healed:,} healed"] + (
        [f"{found.notified:,} paged a person"] if found.notified else []
    )
    opened = f"Scans opened {counted(found.cases, 'case')} where no call failed{what}"
    return f"{opened}; {', '.join(ended)}."


def _end(case: NotifiedCase) -> str:
    """One of `_ENDS`: a case that ended with the queue as it was is not closed."""
    if case.ended_at is None:
        return _OPEN
    if case.state in _AS_IT_WAS:
        return _LEFT
    return _ROLLED_BACK if case.state == "rolled_back" else _CLOSED


def _lasted(case: NotifiedCase, made_at: datetime) -> str:
    """How long it was open, or, where it is, has been; empty where it ended as it began."""
    end = _end(case)
    if end == _LEFT:
        return ""
    until = case.ended_at or made_at
    seconds = case.seconds_open
    if seconds is None:
        seconds = max(0.0, (until - case.opened_at).total_seconds())
    return f"open for {duration(seconds)}" if end == _OPEN else f"after {duration(seconds)}"


LEVELS = 5


def heat(summary: Summary) -> Row | None:
    """The queues' days, each cell a figure and how dark it is; None where none had an incident."""
    queues = [each for each in summary.queue_days.queues if sum(each.incidents)]
    if not queues:
        return None
    most = max(max(each.incidents) for each in queues)
    rows = [
        {
            "queue": queue_name(each.queue_arn),
            "place": place_in(summary, each.queue_arn),
            "cells": [
                (_figure(summary, day, count), level(count, most))
                for day, count in zip(summary.days, each.incidents, strict=True)
            ],
            "total": f"{sum(each.incidents):,}",
            "calls": counted(each.failed_calls, "failed call"),
            "not_healed": f"{each.not_healed:,} not healed" if each.not_healed else "all healed",
        }
        for each in queues
    ]
    return {
        "caption": _heat_caption(summary, queues),
        "days": [short_day(each) for each in summary.days],
        "rows": rows,
        "beyond": _beyond(summary),
        "has_unread": any(figure == NOT_READ for row in rows for figure, _ in row["cells"]),
    }


def _figure(summary: Summary, day: date, count: int) -> str:
    return f"{count:,}" if count or day not in summary.not_seen.nightly_runs_missing else NOT_READ


def level(count: int, most: int) -> int:
    """By orders of size, because one bad day must not make all the others look like none."""
    if not count:
        return 0
    return max(1, ceil(LEVELS * log(count + 1) / log(most + 1) - 1e-9))


def _heat_caption(summary: Summary, queues: list[QueueWeek]) -> str:
    counts = [sum(each.incidents) for each in queues]
    most = max(counts)
    leaders = [each for each, count in zip(queues, counts, strict=True) if count == most]
    total = counted(summary.totals.incidents, "incident")
    if len(leaders) > 1 and most == 1:
        return "No queue had more than one incident."
    if len(leaders) > 1:
        return f"{counted(len(leaders), 'queue')} had the most: {most:,} of {total} each."
    if most == summary.totals.incidents:
        had = "the one incident" if most == 1 else f"all {total}"
        return f"{marked_queue(leaders[0].queue_arn)} had {had}."
    return f"{marked_queue(leaders[0].queue_arn)} had the most: {most:,} of {total}."


def _beyond(summary: Summary) -> str:
    days = summary.queue_days
    if not days.queues_left_out:
        return ""
    had = f"{counted(days.queues_left_out, 'more queue')} had"
    together = " together" if days.queues_left_out > 1 else ""
    return f"{had} {counted(days.incidents_left_out, 'incident')}{together}."
