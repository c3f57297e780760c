"""The tables of the page: incidents, symptoms, cases that reached a person, and queues by day."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from datetime import date
from math import ceil, log
from typing import Any

from msgspec import Struct

from mendq.report.days import NOT_READ_FIGURE
from mendq.report.summary import Summary
from mendq.report.summary_parts import Incident, NotifiedCase, OpenCaseSummary
from mendq.report.words import (
    OUTCOME_WORDS,
    OUTCOMES_NEEDING_A_PERSON,
    describe_leaders,
    describe_reason,
    format_calls,
    format_count,
    format_duration,
    format_principal,
    format_symptom,
    format_time_span,
    join_names,
    make_visible,
    mark_queue,
)

MOST_LISTED_CODES = 3


def describe_row_calls(row: IncidentRow) -> str:
    """Return a row's number of failed calls and its error codes, and its incidents if several.

    If no call failed, the text says that a scan found the incidents.
    """
    texts = []
    if len(row.incidents) > 1:
        texts.append(format_count(len(row.incidents), "incident"))
    texts.append(format_calls(sum(incident.failed_calls for incident in row.incidents)))
    error_codes = row.first.error_codes
    texts.extend(make_visible(code) for code in error_codes[:MOST_LISTED_CODES])
    if len(error_codes) > MOST_LISTED_CODES:
        texts.append(f"{len(error_codes) - MOST_LISTED_CODES} more")
    return ", ".join(texts)


def describe_callers(row: IncidentRow) -> str:
    """Return the first caller and the number of the others. Empty if none is known."""
    principals: list[str] = []
    for incident in row.incidents:
        for principal in incident.principals:
            if principal not in principals:
                principals.append(principal)
    if not principals:
        return ""
    more_text = f" and {len(principals) - 1} more" if len(principals) > 1 else ""
    return format_principal(principals[0]) + more_text


# What the state of a case means for the queue.
STATE_WORDS = OUTCOME_WORDS | {
    "approved": "approved, not carried out yet",
    "unverified": "changed, without a proof yet",
    "verified": "changed and verified",
    "watching": "changed, verified and watched",
    "closed": "closed",
}
# States of cases that ended without a change of the queue.
_STATES_WITHOUT_CHANGE = frozenset({"observed", "refused", "declined", "expired"})
_OPEN_TEXT = "still open"
_LEFT_TEXT = "left as it was"
_CLOSED_TEXT = "closed"
_ROLLED_BACK_TEXT = "rolled back"


def describe_notifications(case: NotifiedCase) -> str:
    """Return if people were notified several times, and if a scan found the case. May be empty."""
    texts = []
    if case.pages > 1:
        texts.append(format_count(case.pages, "notification"))
    if case.is_scanned:
        texts.append("found by a scan")
    return ", ".join(texts)


def describe_state(case: NotifiedCase | OpenCaseSummary) -> str:
    """Return what the state of the case means for the queue."""
    return STATE_WORDS.get(case.state) or make_visible(case.state.replace("_", " "))


def describe_duration(summary: Summary, case: NotifiedCase) -> str:
    """Return how long the case was or is open. Empty if it ended without a change of the queue."""
    end_text = _describe_end(case)
    if end_text == _LEFT_TEXT:
        return ""
    ended_at = case.ended_at or summary.made_at
    seconds = max(0.0, (ended_at - case.opened_at).total_seconds())
    return f"{'open for' if end_text == _OPEN_TEXT else 'after'} {format_duration(seconds)}"


def _describe_end(case: NotifiedCase) -> str:
    """Return how the case ended, in words.

    A case that ended without a change of the queue is `left as it was`, not `closed`.
    """
    if case.ended_at is None:
        return _OPEN_TEXT
    if case.state in _STATES_WITHOUT_CHANGE:
        return _LEFT_TEXT
    return _ROLLED_BACK_TEXT if case.state == "rolled_back" else _CLOSED_TEXT


def make_people_caption(summary: Summary) -> str:
    """Return a sentence: how many cases reached a person, and how they ended.

    If the summary does not list all cases, the sentence has the number of listed cases instead.
    """
    if not summary.cases_were_read:
        return "Mendq's cases were not read, so who was notified is not known."
    reached = summary.reached_a_person
    if not reached.total:
        return "Nobody was notified."
    cases_text = format_count(reached.total, "case")
    if reached.cases_left_out:
        return f"{cases_text} reached a person; these are the first {len(reached.cases)}."
    notifications_text = format_count(sum(case.pages for case in reached.cases), "notification")
    count_by_end = Counter(_describe_end(case) for case in reached.cases)
    all_end_texts = (_OPEN_TEXT, _LEFT_TEXT, _CLOSED_TEXT, _ROLLED_BACK_TEXT)
    end_counts = [
        f"{count_by_end[end_text]:,} {end_text}"
        for end_text in all_end_texts
        if count_by_end[end_text]
    ]
    return f"{cases_text}, {notifications_text}: {join_names(end_counts)}."


def compare_symptoms(summary: Summary, most_rows: int) -> list[dict[str, str]]:
    """Return table rows that compare, by symptom, fixed incidents with those left untouched.

    The symptoms with most incidents come first, at most `most_rows` of them. The keys of a row are
    `title`; `fixed`, the number of incidents that Mendq fixed; and `untouched`, how many of the
    untouched incidents recovered (`2 of 5`). Both have the median time if it is known.
    """
    ranked_comparisons = sorted(
        summary.does_it_help,
        key=lambda comparison: (-comparison.fixed - comparison.untouched, comparison.symptom),
    )
    rows = []
    for comparison in ranked_comparisons[:most_rows]:
        recovered_text = f"{comparison.recovered:,} of {comparison.untouched:,}"
        row = {
            "title": format_symptom(comparison.symptom),
            "fixed": _format_count_and_time(
                f"{comparison.fixed:,}", comparison.fixed_median_seconds
            ),
            "untouched": _format_count_and_time(
                recovered_text, comparison.recovered_median_seconds
            ),
        }
        rows.append(row)
    return rows


def _format_count_and_time(count: str, seconds: float | None) -> str:
    return count if seconds is None else f"{count}, in {format_duration(seconds)}"


class IncidentRow(Struct, frozen=True):
    """A row of the page: incidents with the same text, perhaps on different queues."""

    incidents: tuple[Incident, ...]

    @property
    def first(self) -> Incident:
        """The first incident, whose texts stand for all."""
        return self.incidents[0]

    @property
    def queues(self) -> tuple[str, ...]:
        """ARNs of the queues, each once."""
        return tuple(dict.fromkeys(incident.queue_arn for incident in self.incidents))

    @property
    def cases(self) -> tuple[str, ...]:
        """Ids of the cases, each once."""
        return tuple(
            dict.fromkeys(incident.case_id for incident in self.incidents if incident.case_id)
        )

    @property
    def when(self) -> str:
        """The time from the first to the last failure, in words."""
        first_failure = min(incident.first_failure for incident in self.incidents)
        last_failure = max(incident.last_failure for incident in self.incidents)
        return format_time_span(first_failure, last_failure)

    @property
    def times_to_heal(self) -> str:
        """The shortest and the longest time to heal, in words. Empty if none was timed."""
        times = [
            incident.seconds_to_heal
            for incident in self.incidents
            if incident.seconds_to_heal is not None
        ]
        if not times:
            return ""
        shortest = format_duration(min(times))
        longest = format_duration(max(times))
        return shortest if shortest == longest else f"{shortest} to {longest}"


def group_rows(incidents: Iterable[Incident]) -> list[IncidentRow]:
    """Group incidents with the same text into rows. A row is at the place of its first incident."""
    incidents_by_text = defaultdict[tuple[object, ...], list[Incident]](list)
    for incident in incidents:
        row_text = (
            incident.symptom,
            incident.error_codes,
            incident.outcome,
            incident.code,
            describe_reason(incident),
            incident.found_by,
            incident.notified,
            incident.urgent,
        )
        incidents_by_text[row_text].append(incident)
    return [IncidentRow(tuple(group)) for group in incidents_by_text.values()]


def find_first_incidents(summary: Summary) -> dict[str, Incident]:
    """Return the first incident of each case, by case id. Links to the case lead to this incident.

    Cases that wait for a person are left out: links to them lead to a section of their own.
    """
    waiting_case_ids = {case.case_id for case in summary.open_now}
    incident_by_case_id: dict[str, Incident] = {}
    for incident in summary.cases:
        if incident.case_id and incident.case_id not in waiting_case_ids:
            incident_by_case_id.setdefault(incident.case_id, incident)
    return incident_by_case_id


def sort_cases_open_first(summary: Summary) -> list[NotifiedCase]:
    """Return the cases that reached a person, first those that are still open."""
    return sorted(summary.reached_a_person.cases, key=lambda case: case.ended_at is not None)


def count_unfolded_cases(cases: Sequence[NotifiedCase], usual_count: int) -> int:
    """Return how many cases the page shows unfolded: `usual_count`, or all open ones if more."""
    return max(usual_count, sum(case.ended_at is None for case in cases))


def count_unfolded_rows(rows: Sequence[IncidentRow], usual_count: int) -> int:
    """Return how many rows the page shows unfolded.

    This is `usual_count`, or the number of rows that need a person if that is larger.
    """
    return max(usual_count, sum(row.first.outcome in OUTCOMES_NEEDING_A_PERSON for row in rows))


SHADE_LEVELS = 5


def make_heat_map(summary: Summary) -> dict[str, Any] | None:
    """Return the table of queues by day for the page's template. None without incidents.

    The keys are `caption`; `rows`: a queue and its cells, each a figure and its shade; `beyond`: a
    sentence about the other queues; and `has_unread`: True if a day was not read.
    """
    queues = [queue for queue in summary.queue_days.queues if sum(queue.incidents)]
    if not queues:
        return None
    highest_count = max(max(queue.incidents) for queue in queues)
    rows = []
    has_unread = False
    for queue in queues:
        cells = []
        for day, count in zip(summary.days, queue.incidents, strict=True):
            figure = _format_heat_cell(summary, day, count)
            has_unread = has_unread or figure == NOT_READ_FIGURE
            cells.append((figure, compute_shade(count, highest_count)))
        rows.append((queue, cells))
    total_by_queue = [(mark_queue(queue.queue_arn), sum(queue.incidents)) for queue in queues]
    return {
        "caption": describe_leaders(total_by_queue, "queue", summary.totals.incidents),
        "rows": rows,
        "beyond": _describe_other_queues(summary),
        "has_unread": has_unread,
    }


def _format_heat_cell(summary: Summary, day: date, count: int) -> str:
    """Return the text of a cell: the number of incidents, or `?` if the day was not read.

    Empty if the day had no incident or is still to come.
    """
    if count:
        return f"{count:,}"
    is_missing = day in summary.not_seen.nightly_runs_missing and day not in summary.to_come
    return NOT_READ_FIGURE if is_missing else ""


def compute_shade(count: int, highest_count: int) -> int:
    """Return the shade of a cell, from 0 (no incident) to LEVELS.

    The scale is logarithmic, so that one bad day does not make all others look empty.
    """
    if not count:
        return 0
    return max(1, ceil(SHADE_LEVELS * log(count + 1) / log(highest_count + 1) - 1e-9))


def _describe_other_queues(summary: Summary) -> str:
    """Return a sentence with the sums of the queues that are not listed, or an empty text."""
    queue_days = summary.queue_days
    if not queue_days.queues_left_out:
        return ""
    queues_text = format_count(queue_days.queues_left_out, "more queue")
    incidents_text = format_count(queue_days.incidents_left_out, "incident")
    together_word = " together" if queue_days.queues_left_out > 1 else ""
    return f"{queues_text} had {incidents_text}{together_word}."
