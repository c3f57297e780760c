"""What the tables say: of incidents, of cases that reached a person, of queues by day."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from datetime import date
from math import ceil, log
from typing import Any

from msgspec import Struct

from mendq.report.days import NOT_READ
from mendq.report.summary import Summary
from mendq.report.summary_parts import Incident, NotifiedCase, OpenCase
from mendq.report.words import (
    NEEDS_A_PERSON,
    OUTCOMES,
    counted,
    duration,
    had_most,
    listed,
    marked_queue,
    principal_name,
    said_calls,
    span,
    title,
    visible,
    why_in_words,
)

MOST_CODES = 3


def calls(row: Row) -> str:
    """How many incidents, how many calls failed, and with which codes; or that scans found them."""
    known = row.first.error_codes
    codes = [visible(each) for each in known[:MOST_CODES]]
    if len(known) > MOST_CODES:
        codes.append(f"{len(known) - MOST_CODES} more")
    several = [counted(len(row.incidents), "incident")] * (len(row.incidents) > 1)
    return ", ".join([*several, said_calls(sum(it.failed_calls for it in row.incidents)), *codes])


def called_by(row: Row) -> str:
    """The first principal and how many more; empty where none is known."""
    known = dict.fromkeys(it for each in row.incidents for it in each.principals)
    if not known:
        return ""
    more = f" and {len(known) - 1} more" if len(known) > 1 else ""
    return principal_name(next(iter(known))) + more


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
    """What is particular about a case that reached a person; empty where nothing is."""
    pages = [counted(case.pages, "notification")] if case.pages > 1 else []
    return ", ".join([*pages, *["found by a scan"] * case.is_scanned])


def state(case: NotifiedCase | OpenCase) -> str:
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
    """How many cases and notifications, and how many are not listed."""
    if not summary.cases_were_read:
        return "Mendq's cases were not read, so who was notified is not known."
    reached = summary.reached_a_person
    if not reached.total:
        return "Nobody was notified."
    cases = counted(reached.total, "case")
    if reached.cases_left_out:
        first = f"these are the first {len(reached.cases)}"
        return f"{cases} reached a person; {first}."
    sent = counted(sum(each.pages for each in reached.cases), "notification")
    ended = Counter(_end(each) for each in reached.cases)
    ends = (_OPEN, _LEFT, _CLOSED, _ROLLED_BACK)
    said = listed([f"{ended[each]:,} {each}" for each in ends if ended[each]])
    return f"{cases}, {sent}: {said}."


def helped(summary: Summary, most: int) -> list[dict[str, str]]:
    """Of the symptoms with most incidents of either kind, what was fixed and what recovered."""
    ranked = sorted(summary.does_it_help, key=lambda it: (-it.fixed - it.untouched, it.symptom))
    return [
        {
            "title": title(each.symptom),
            "fixed": _in(f"{each.fixed:,}", each.fixed_median_seconds),
            "untouched": _in(
                f"{each.recovered:,} of {each.untouched:,}", each.recovered_median_seconds
            ),
        }
        for each in ranked[:most]
    ]


def _in(count: str, seconds: float | None) -> str:
    return count if seconds is None else f"{count}, in {duration(seconds)}"


class Row(Struct, frozen=True):
    """Incidents that a row of the page is about: what they say is the same, their queues differ."""

    incidents: tuple[Incident, ...]

    @property
    def first(self) -> Incident:
        return self.incidents[0]

    @property
    def queues(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(each.queue_arn for each in self.incidents))

    @property
    def cases(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(each.case_id for each in self.incidents if each.case_id))

    @property
    def when(self) -> str:
        first = min(each.first_failure for each in self.incidents)
        return span(first, max(each.last_failure for each in self.incidents))

    @property
    def healed_in(self) -> str:
        """The shortest and the longest time; empty where none was timed."""
        timed = [it for each in self.incidents if (it := each.seconds_to_heal) is not None]
        ends = dict.fromkeys((duration(min(timed)), duration(max(timed)))) if timed else ()
        return " to ".join(ends)


def rows(incidents: Iterable[Incident]) -> list[Row]:
    """In their order, each where its first incident stands."""
    found = defaultdict[tuple[object, ...], list[Incident]](list)
    for each in incidents:
        said = (each.symptom, each.error_codes, each.outcome, each.code, why_in_words(each))
        found[*said, each.found_by, each.notified, each.urgent].append(each)
    return [Row(tuple(each)) for each in found.values()]


def homes(summary: Summary) -> dict[str, Incident]:
    """The incident at which each case has its place, but for those that wait: theirs is above."""
    waiting = {each.case_id for each in summary.open_now}
    listed = [(each.case_id, each) for each in reversed(summary.cases) if each.case_id]
    return {case_id: each for case_id, each in listed if case_id not in waiting}


def open_first(summary: Summary) -> list[NotifiedCase]:
    """The cases that reached a person, those that are still open before the others."""
    return sorted(summary.reached_a_person.cases, key=lambda it: it.ended_at is not None)


def still_open(cases: Sequence[NotifiedCase], most: int) -> int:
    """How many of them are never folded away."""
    return max(most, sum(each.ended_at is None for each in cases))


def first_rows(listed: Sequence[Row], most: int) -> int:
    """How many of the rows are never folded away: those that need a person, whatever `most`."""
    return max(most, sum(each.first.outcome in NEEDS_A_PERSON for each in listed))


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
    """Blank where there was none, and where nobody could know it yet."""
    if count:
        return f"{count:,}"
    return NOT_READ * (day in {*summary.not_seen.nightly_runs_missing} - {*summary.to_come})


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
