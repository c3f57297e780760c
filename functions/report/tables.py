"""The rows of the tables: incidents, cases that paged somebody, and queues by day."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from math import ceil, log

from functions.report.days import NOT_READ
from functions.report.outcomes import OUTCOMES, tone, why_in_words
from functions.report.summary import Incident, PagedCase, QueueWeek, Summary
from functions.report.words import (
    MOST_SENTENCE,
    clock,
    counted,
    duration,
    listed,
    marked,
    marked_queue,
    place_in,
    principal_name,
    queue_name,
    short_day,
    span,
    visible,
)

MOST_CODES = 3


@dataclass(frozen=True)
class Row:
    """What the template prints; `tone` is one of `outcomes.tone`, everything else is text."""

    label: str
    calls: str
    caller: str
    queue: str
    place: str
    when: str
    outcome: str
    tone: str
    is_mended: bool
    paged: bool
    case_id: str
    why: str
    healed_in: str


def rows(summary: Summary) -> tuple[Row, ...]:
    """The summary's cases in its order, worst first."""
    return tuple(_incident_row(summary, each) for each in summary.cases)


def healed_count(every: Sequence[Row]) -> str:
    """What the page folds away."""
    return counted(sum(each.is_mended for each in every), "healed incident")


def _incident_row(summary: Summary, incident: Incident) -> Row:
    seconds = incident.seconds_to_heal
    return Row(
        label=visible(incident.label),
        calls=_calls(incident),
        caller=_caller(incident),
        queue=queue_name(incident.queue_arn),
        place=place_in(summary, incident.queue_arn),
        when=span(incident.first_failure, incident.last_failure),
        outcome=visible(incident.outcome.replace("_", " ")),
        tone=tone(incident.outcome),
        is_mended=incident.is_mended,
        paged=incident.paged,
        case_id=visible(incident.case_id or ""),
        why=why_in_words(incident),
        healed_in="" if seconds is None else duration(seconds),
    )


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
    return tuple(_person_row(summary, each) for each in summary.reached_a_person.cases)


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


def _person_row(summary: Summary, case: PagedCase) -> PersonRow:
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


LEVELS = 5


@dataclass(frozen=True)
class Cell:
    """`figure` is what it says, `level` how dark it is: from 0, nothing, to LEVELS."""

    figure: str
    level: int


@dataclass(frozen=True)
class HeatRow:
    """A queue's days; `place` only where there are several."""

    queue: str
    place: str
    cells: tuple[Cell, ...]
    total: str
    calls: str
    not_healed: str


@dataclass(frozen=True)
class Heat:
    """`days` head the columns; `beyond` says what other queues had."""

    caption: str
    days: tuple[str, ...]
    rows: tuple[HeatRow, ...]
    beyond: str

    @property
    def has_unread(self) -> bool:
        return any(cell.figure == NOT_READ for row in self.rows for cell in row.cells)


def heat(summary: Summary) -> Heat | None:
    """None where no queue had an incident."""
    queues = [each for each in summary.queue_days.queues if sum(each.incidents)]
    if not queues:
        return None
    most = max(max(each.incidents) for each in queues)
    days = tuple(short_day(each) for each in summary.days)
    rows_of_queues = tuple(_heat_row(summary, each, most) for each in queues)
    return Heat(_heat_caption(summary, queues), days, rows_of_queues, _beyond(summary))


def _heat_row(summary: Summary, queue: QueueWeek, most: int) -> HeatRow:
    unread = summary.not_seen.nights_missing
    cells = (
        Cell(NOT_READ if day in unread and not count else f"{count:,}", level(count, most))
        for day, count in zip(summary.days, queue.incidents, strict=True)
    )
    return HeatRow(
        queue=queue_name(queue.queue_arn),
        place=place_in(summary, queue.queue_arn),
        cells=tuple(cells),
        total=f"{sum(queue.incidents):,}",
        calls=counted(queue.failed_calls, "failed call"),
        not_healed=f"{queue.not_healed:,} not healed" if queue.not_healed else "all healed",
    )


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
