"""What the tables say: of incidents, of cases that paged somebody, of queues by day."""

from __future__ import annotations

from collections import Counter
from datetime import date
from math import ceil, log
from typing import Any

from mendq.report.days import NOT_READ
from mendq.report.outcomes import OUTCOMES
from mendq.report.summary import Incident, NotifiedCase, Summary
from mendq.report.words import (
    counted,
    duration,
    had_most,
    listed,
    listed_most,
    marked,
    marked_queue,
    principal_name,
    visible,
)

MOST_CODES = 3


def calls(incident: Incident) -> str:
    """How many calls failed, and with which codes."""
    codes = [visible(each) for each in incident.error_codes[:MOST_CODES]]
    if len(incident.error_codes) > MOST_CODES:
        codes.append(f"{len(incident.error_codes) - MOST_CODES} more")
    return ", ".join([counted(incident.failed_calls, "failed call"), *codes])


def called_by(incident: Incident) -> str:
    """The first principal of at most ten, and how many more."""
    more = len(incident.principals) - 1
    return principal_name(incident.principals[0]) + (f" and {more} more" if more else "")


WHAT_A_PAGE_IS = "A page is any message to a person, urgent or not."
# What became of the queue, by the state of the case.
STATES = OUTCOMES | {
    "approved": "approved, not carried out yet",
    "unverified": "changed, without a proof yet",
    "verified": "changed and verified",
    "watching": "changed, verified and watched",
    "closed": "closed",
}
_AS_IT_WAS = frozenset({"observed", "refused", "declined", "expired"})
_OPEN, _LEFT, _CLOSED, _ROLLED_BACK = "still open", "left as it was", "closed", "rolled back"


def how(case: NotifiedCase) -> str:
    """What is particular about a case that paged; empty where nothing is."""
    pages = [counted(case.pages, "page")] if case.pages > 1 else []
    return ", ".join([*pages, *["found by a scan"] * case.is_scanned])


def state(case: NotifiedCase) -> str:
    """What it means for the queue."""
    return STATES.get(case.state) or visible(case.state.replace("_", " "))


def lasted(summary: Summary, case: NotifiedCase) -> str:
    """How long it was open, or, where it is, has been; empty where it ended as it began."""
    end, until = _end(case), case.ended_at or summary.made_at
    if end == _LEFT:
        return ""
    seconds = max(0.0, (until - case.opened_at).total_seconds())
    return f"{'open for' if end == _OPEN else 'after'} {duration(seconds)}"


def _end(case: NotifiedCase) -> str:
    """A case that ended with the queue as it was is not closed."""
    if case.ended_at is None:
        return _OPEN
    if case.state in _AS_IT_WAS:
        return _LEFT
    return _ROLLED_BACK if case.state == "rolled_back" else _CLOSED


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
    ends = (_OPEN, _LEFT, _CLOSED, _ROLLED_BACK)
    said = listed([f"{ended[each]:,} {each}" for each in ends if ended[each]])
    return f"{cases}, {pages}: {said}. {WHAT_A_PAGE_IS}"


MOST_SYMPTOMS = 6


def scanned(summary: Summary) -> str:
    """What scans found without a failed call, which is no incident; empty where nothing."""
    found = summary.scanned
    if not found.cases:
        return ""
    symptoms = {marked(name): count for name, count in found.by_symptom.items()}
    what = f": {listed_most(symptoms, MOST_SYMPTOMS)}" if symptoms else ""
    paged = f", {found.notified:,} paged a person" if found.notified else ""
    opened = f"Scans opened {counted(found.cases, 'case')} where no call failed{what}"
    return f"{opened}; {found.healed:,} healed{paged}."


LEVELS = 5


def heat(summary: Summary) -> dict[str, Any] | None:
    """The queues' days, each cell a figure and how dark it is; None where none had an incident."""
    queues = [each for each in summary.queue_days.queues if sum(each.incidents)]
    if not queues:
        return None
    most = max(max(each.incidents) for each in queues)
    cells = [
        [
            (_figure(summary, *of_day), level(of_day[1], most))
            for of_day in zip(summary.days, each.incidents, strict=True)
        ]
        for each in queues
    ]
    totals = [(marked_queue(each.queue_arn), sum(each.incidents)) for each in queues]
    return {
        "caption": had_most(totals, "queue", summary.totals.incidents),
        "rows": list(zip(queues, cells, strict=True)),
        "beyond": _beyond(summary),
        "has_unread": any(figure == NOT_READ for row in cells for figure, _ in row),
    }


def _figure(summary: Summary, day: date, count: int) -> str:
    return f"{count:,}" if count or day not in summary.not_seen.nightly_runs_missing else NOT_READ


def level(count: int, most: int) -> int:
    """By orders of size, because one bad day must not make all the others look like none."""
    if not count:
        return 0
    return max(1, ceil(LEVELS * log(count + 1) / log(most + 1) - 1e-9))


def _beyond(summary: Summary) -> str:
    days = summary.queue_days
    if not days.queues_left_out:
        return ""
    had = f"{counted(days.queues_left_out, 'more queue')} had"
    together = " together" if days.queues_left_out > 1 else ""
    return f"{had} {counted(days.incidents_left_out, 'incident')}{together}."
