"""Who was paged and why: cases, not incidents, since some began without a failed call."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import datetime

from functions.report.names import marked
from functions.report.outcomes import OUTCOMES
from functions.report.places import place_in
from functions.report.summary import PagedCase, Summary
from functions.report.visible import MOST_SENTENCE, visible
from functions.report.words import clock, counted, duration, listed, queue_name, short_day

MOST_SYMPTOMS = 6
WHAT_A_PAGE_IS = "A page is any message to a person, urgent or not."
# What became of the queue, by the state of the case.
STATES = OUTCOMES | {
    "observed": "Mendq only observed and left it as it was",
    "refused": "Mendq left it as it was",
    "approved": "approved, not carried out yet",
    "declined": "declined, left as it was",
    "expired": "nobody answered, left as it was",
    "applied_unproven": "changed, without a proof yet",
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


@dataclass(frozen=True)
class PersonRow:
    """What the template prints; `state` is what it means for the queue, `lasted` for the case."""

    when: str
    queue: str
    place: str
    symptom: str
    how: str
    why: str
    state: str
    lasted: str
    case_id: str


def people(summary: Summary) -> tuple[PersonRow, ...]:
    """The cases that paged, the first page first."""
    return tuple(_row(summary, each) for each in summary.reached_a_person.cases)


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


def swept(summary: Summary) -> str:
    """What sweeps found without a failed call, which is no incident; empty where nothing."""
    found = summary.swept
    if not found.cases:
        return ""
    most_first = sorted(found.by_symptom.items(), key=lambda item: (-item[1], item[0]))
    names = [f"{marked(name)} ({count:,})" for name, count in most_first[:MOST_SYMPTOMS]]
    more = len(most_first) - MOST_SYMPTOMS
    rest = [f"{more} more"] if more > 0 else []
    what = f": {listed([*names, *rest])}" if names else ""
    ended = [f"{found.healed:,} healed"] + (
        [f"{found.paged:,} paged a person"] if found.paged else []
    )
    opened = f"Sweeps opened {counted(found.cases, 'case')} where no call failed{what}"
    return f"{opened}; {', '.join(ended)}."


def _row(summary: Summary, case: PagedCase) -> PersonRow:
    pages = [counted(case.pages, "page")] if case.pages > 1 else []
    found = ["found by a sweep"] if case.is_swept else []
    return PersonRow(
        when=f"{short_day(case.paged_at.date())} {clock(case.paged_at)}",
        queue=queue_name(case.queue_arn),
        place=place_in(summary, case.queue_arn),
        symptom=visible(case.symptom),
        how=", ".join([*pages, *found]),
        why=visible(case.reason, MOST_SENTENCE),
        state=STATES.get(case.state) or visible(case.state.replace("_", " ")),
        lasted=_lasted(case, summary.made_at),
        case_id=visible(case.case_id),
    )


def _end(case: PagedCase) -> str:
    """One of `_ENDS`: a case that ended with the queue as it was is not closed."""
    if case.ended_at is None:
        return _OPEN
    if case.state in _AS_IT_WAS:
        return _LEFT
    return _ROLLED_BACK if case.state == "rolled_back" else _CLOSED


def _lasted(case: PagedCase, made_at: datetime) -> str:
    """How long it was open, or, where it is, has been; empty where it ended as it began."""
    end = _end(case)
    if end == _LEFT:
        return ""
    until = case.ended_at or made_at
    seconds = case.seconds_open
    if seconds is None:
        seconds = max(0.0, (until - case.opened_at).total_seconds())
    return f"open for {duration(seconds)}" if end == _OPEN else f"after {duration(seconds)}"
