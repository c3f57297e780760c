"""Who was paged and why: cases, not incidents, since some began without a failed call."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from functions.report.names import marked
from functions.report.places import place_in
from functions.report.summary import Summary
from functions.report.summary_parts import PagedCase
from functions.report.visible import MOST_SENTENCE, visible
from functions.report.words import clock, counted, duration, listed, queue_name, short_day

MOST_SYMPTOMS = 6


@dataclass(frozen=True)
class PersonRow:
    """What the template prints; `is_open` where nobody has ended the case."""

    when: str
    queue: str
    place: str
    symptom: str
    how: str
    why: str
    state: str
    how_long: str
    case_id: str
    is_open: bool


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
    still_open = sum(each.ended_at is None for each in reached.cases)
    cases = counted(reached.total, "case")
    if reached.cases_left_out:
        return f"{cases} paged a person; these are the first {len(reached.cases)}."
    pages = counted(sum(each.pages for each in reached.cases), "page")
    opened = {0: "none is open", 1: "1 is still open"}
    are = opened.get(still_open, f"{still_open} are still open")
    return f"{cases}, {pages}; {are}."


def swept(summary: Summary) -> str:
    """What sweeps found without a failed call, which is no incident; empty where nothing."""
    found = summary.swept
    if not found.cases:
        return ""
    most_first = sorted(found.by_symptom, key=lambda item: (-item[1], item[0]))
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
        state=visible(case.state.replace("_", " ")),
        how_long=_how_long(case, summary.made_at),
        case_id=visible(case.case_id),
        is_open=case.ended_at is None,
    )


def _how_long(case: PagedCase, made_at: datetime) -> str:
    """From the opening to the end, or, of one that is open, to when the report was made."""
    if case.seconds_open is not None:
        return duration(case.seconds_open)
    until = case.ended_at or made_at
    return duration(max(0.0, (until - case.opened_at).total_seconds()))
