"""The tables of the report's page: incidents, symptoms, notified cases, and queues by day."""

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
    OUTCOMES_NEEDING_A_PERSON,
    WORDS_BY_OUTCOME,
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

MAXIMUM_LISTED_CODES = 3


def describe_row_calls(incident_row: IncidentRow) -> str:
    """Return a text with a row's failed calls and codes, such as `12 failed calls, AccessDenied`.

    If the row has several incidents, the text begins with their number. If no call failed, the text
    says that a scan found the incidents.
    """
    description_parts = []
    if len(incident_row.incidents) > 1:
        description_parts.append(format_count(len(incident_row.incidents), "incident"))
    description_parts.append(
        format_calls(sum(incident.failed_calls for incident in incident_row.incidents))
    )
    error_codes = incident_row.first_incident.error_codes
    description_parts.extend(make_visible(code) for code in error_codes[:MAXIMUM_LISTED_CODES])
    if len(error_codes) > MAXIMUM_LISTED_CODES:
        description_parts.append(f"{len(error_codes) - MAXIMUM_LISTED_CODES} more")
    return ", ".join(description_parts)


def describe_callers(incident_row: IncidentRow) -> str:
    """Return the name of a row's first caller, and the number of other callers.

    Empty if no caller is known.
    """
    principals: list[str] = []
    for incident in incident_row.incidents:
        for principal in incident.principals:
            if principal not in principals:
                principals.append(principal)
    if not principals:
        return ""
    other_callers_text = f" and {len(principals) - 1} more" if len(principals) > 1 else ""
    return format_principal(principals[0]) + other_callers_text


# What the state of a case means for the queue.
WORDS_BY_STATE = WORDS_BY_OUTCOME | {
    "approved": "approved, not carried out yet",
    "unverified": "fixed, not verified yet",
    "verified": "fixed and verified",
    "watching": "fixed and being watched",
    "closed": "closed",
}
# States of cases that ended without a change of the queue.
_STATES_WITHOUT_CHANGE = frozenset({"observed", "refused", "declined", "expired"})
_STILL_OPEN_TEXT = "still open"
_LEFT_UNCHANGED_TEXT = "left as it was"
_CLOSED_TEXT = "closed"
_ROLLED_BACK_TEXT = "rolled back"


def describe_notifications(case: NotifiedCase) -> str:
    """Return a text with the number of notifications about a case, if there were several.

    If a scan found the case, the text says so. Empty if neither applies.
    """
    description_parts = []
    if case.pages > 1:
        description_parts.append(format_count(case.pages, "notification"))
    if case.is_scanned:
        description_parts.append("found by a scan")
    return ", ".join(description_parts)


def describe_state(case: NotifiedCase | OpenCaseSummary) -> str:
    """Return the state of a case in words, such as `fixed and verified`."""
    return WORDS_BY_STATE.get(case.state) or make_visible(case.state.replace("_", " "))


def describe_duration(summary: Summary, case: NotifiedCase) -> str:
    """Return how long a case was or is open: `after 4 min 10 s` or `open for 3 d 4 h`.

    Empty if the case ended in a state of _STATES_WITHOUT_CHANGE.
    """
    end_text = _describe_case_end(case)
    if end_text == _LEFT_UNCHANGED_TEXT:
        return ""
    ended_at = case.ended_at or summary.made_at
    open_seconds = max(0.0, (ended_at - case.opened_at).total_seconds())
    return (
        f"{'open for' if end_text == _STILL_OPEN_TEXT else 'after'} {format_duration(open_seconds)}"
    )


def _describe_case_end(case: NotifiedCase) -> str:
    """Return how a case ended: `closed`, `rolled back`, `left as it was` or `still open`.

    `left as it was` means that the case ended in a state of _STATES_WITHOUT_CHANGE.
    """
    if case.ended_at is None:
        return _STILL_OPEN_TEXT
    if case.state in _STATES_WITHOUT_CHANGE:
        return _LEFT_UNCHANGED_TEXT
    return _ROLLED_BACK_TEXT if case.state == "rolled_back" else _CLOSED_TEXT


def make_people_caption(summary: Summary) -> str:
    """Return the caption of the table of notified cases: their number, and how they ended.

    If there are no such cases, or if the cases were not read, the caption says that. If the summary
    does not list all cases, the caption says how many it lists, and not how they ended.
    """
    if not summary.cases_were_read:
        return "Mendq's cases were not read, so who was notified is not known."
    reached_a_person = summary.reached_a_person
    if not reached_a_person.total:
        return "Nobody was notified."
    cases_text = format_count(reached_a_person.total, "case")
    if reached_a_person.cases_left_out:
        return f"{cases_text} reached a person; these are the first {len(reached_a_person.cases)}."
    notifications_text = format_count(
        sum(case.pages for case in reached_a_person.cases), "notification"
    )
    case_count_by_end_text = Counter(_describe_case_end(case) for case in reached_a_person.cases)
    all_end_texts = (_STILL_OPEN_TEXT, _LEFT_UNCHANGED_TEXT, _CLOSED_TEXT, _ROLLED_BACK_TEXT)
    count_texts = [
        f"{case_count_by_end_text[end_text]:,} {end_text}"
        for end_text in all_end_texts
        if case_count_by_end_text[end_text]
    ]
    return f"{cases_text}, {notifications_text}: {join_names(count_texts)}."


def compare_symptoms(summary: Summary, maximum_rows: int) -> list[dict[str, str]]:
    """Compare, for each symptom, the incidents that Mendq fixed with those it left untouched.

    Returns:
        At most `maximum_rows` rows, the symptoms with most incidents first. Each row has the keys
        `title`; `fixed`, the number of fixed incidents; and `untouched`, the number of untouched
        incidents that recovered (`2 of 5`). The median time is added to both if it is known.
    """
    ranked_comparisons = sorted(
        summary.does_it_help,
        key=lambda comparison: (-comparison.fixed - comparison.untouched, comparison.symptom),
    )
    table_rows = []
    for comparison in ranked_comparisons[:maximum_rows]:
        recovered_text = f"{comparison.recovered:,} of {comparison.untouched:,}"
        table_row = {
            "title": format_symptom(comparison.symptom),
            "fixed": _format_count_and_time(
                f"{comparison.fixed:,}", comparison.fixed_median_seconds
            ),
            "untouched": _format_count_and_time(
                recovered_text, comparison.recovered_median_seconds
            ),
        }
        table_rows.append(table_row)
    return table_rows


def _format_count_and_time(count_text: str, seconds: float | None) -> str:
    return count_text if seconds is None else f"{count_text}, in {format_duration(seconds)}"


class IncidentRow(Struct, frozen=True):
    """One row of the table of incidents.

    The incidents of a row have the same texts and may be on different queues.
    """

    incidents: tuple[Incident, ...]

    @property
    def first_incident(self) -> Incident:
        """The first incident of the row. The page shows its texts for all incidents of the row."""
        return self.incidents[0]

    @property
    def queue_arns(self) -> tuple[str, ...]:
        """ARNs of the row's queues, without repeats."""
        return tuple(dict.fromkeys(incident.queue_arn for incident in self.incidents))

    @property
    def case_ids(self) -> tuple[str, ...]:
        """Ids of the row's cases, without repeats."""
        return tuple(
            dict.fromkeys(incident.case_id for incident in self.incidents if incident.case_id)
        )

    @property
    def time_text(self) -> str:
        """Text with the times of the first and the last failure in the row."""
        first_failure = min(incident.first_failure for incident in self.incidents)
        last_failure = max(incident.last_failure for incident in self.incidents)
        return format_time_span(first_failure, last_failure)

    @property
    def heal_times_text(self) -> str:
        """Text with the shortest and the longest time to heal, or with one if they look equal.

        Empty if no time is known.
        """
        heal_seconds = [
            incident.seconds_to_heal
            for incident in self.incidents
            if incident.seconds_to_heal is not None
        ]
        if not heal_seconds:
            return ""
        shortest_text = format_duration(min(heal_seconds))
        longest_text = format_duration(max(heal_seconds))
        return (
            shortest_text if shortest_text == longest_text else f"{shortest_text} to {longest_text}"
        )


def group_rows(incidents: Iterable[Incident]) -> list[IncidentRow]:
    """Group the incidents that have the same texts into rows.

    The rows are in the order of their first incidents.
    """
    incidents_by_row_texts = defaultdict[tuple[object, ...], list[Incident]](list)
    for incident in incidents:
        row_texts = (
            incident.symptom,
            incident.error_codes,
            incident.outcome,
            incident.code,
            describe_reason(incident),
            incident.found_by,
            incident.notified,
            incident.urgent,
        )
        incidents_by_row_texts[row_texts].append(incident)
    return [
        IncidentRow(tuple(incidents_of_row)) for incidents_of_row in incidents_by_row_texts.values()
    ]


def find_first_incidents(summary: Summary) -> dict[str, Incident]:
    """Return the first incident of each case, by case id. The page links a case to this incident.

    Cases that wait for a person are left out, because the page has a separate section for them.
    """
    waiting_case_ids = {case.case_id for case in summary.open_now}
    incident_by_case_id: dict[str, Incident] = {}
    for incident in summary.cases:
        if incident.case_id and incident.case_id not in waiting_case_ids:
            incident_by_case_id.setdefault(incident.case_id, incident)
    return incident_by_case_id


def sort_cases_open_first(summary: Summary) -> list[NotifiedCase]:
    """Return the cases about which people were notified, the open cases first."""
    return sorted(summary.reached_a_person.cases, key=lambda case: case.ended_at is not None)


def count_unfolded_cases(cases: Sequence[NotifiedCase], usual_case_count: int) -> int:
    """Return how many cases the page shows without a click.

    This is `usual_case_count`, or the number of open cases if that is larger.
    """
    return max(usual_case_count, sum(case.ended_at is None for case in cases))


def count_unfolded_rows(incident_rows: Sequence[IncidentRow], usual_row_count: int) -> int:
    """Return how many rows of incidents the page shows without a click.

    This is `usual_row_count`, or the number of rows that need a person if that is larger.
    """
    return max(
        usual_row_count,
        sum(
            incident_row.first_incident.outcome in OUTCOMES_NEEDING_A_PERSON
            for incident_row in incident_rows
        ),
    )


SHADE_LEVELS = 5


def make_heat_map(summary: Summary) -> dict[str, Any] | None:
    """Return the data of the table that shows each queue's incidents by day, for the template.

    Returns:
        A dict, or None if no listed queue had an incident. Its keys are `caption`; `rows`, pairs of
        a queue and its cells, each cell a text and a shade; `beyond`, a sentence about the queues
        that are not listed; and `has_unread`, True if a cell shows `?`.
    """
    queues_with_incidents = [queue for queue in summary.queue_days.queues if sum(queue.incidents)]
    if not queues_with_incidents:
        return None
    highest_count = max(max(queue.incidents) for queue in queues_with_incidents)
    heat_map_rows = []
    has_unread_day = False
    for queue in queues_with_incidents:
        cell_texts_and_shades = []
        for day, incident_count in zip(summary.days, queue.incidents, strict=True):
            cell_text = _format_heat_cell(summary, day, incident_count)
            has_unread_day = has_unread_day or cell_text == NOT_READ_FIGURE
            cell_texts_and_shades.append((cell_text, compute_shade(incident_count, highest_count)))
        heat_map_rows.append((queue, cell_texts_and_shades))
    queue_names_and_incident_counts = [
        (mark_queue(queue.queue_arn), sum(queue.incidents)) for queue in queues_with_incidents
    ]
    return {
        "caption": describe_leaders(
            queue_names_and_incident_counts, "queue", summary.totals.incidents
        ),
        "rows": heat_map_rows,
        "beyond": _describe_other_queues(summary),
        "has_unread": has_unread_day,
    }


def _format_heat_cell(summary: Summary, day: date, incident_count: int) -> str:
    """Return the text of one cell: the number of incidents, if there are any.

    Otherwise `?` if the day was not read. Empty if the day was read or is still to come.
    """
    if incident_count:
        return f"{incident_count:,}"
    is_day_unread = day in summary.not_seen.nightly_runs_missing and day not in summary.days_to_come
    return NOT_READ_FIGURE if is_day_unread else ""


def compute_shade(incident_count: int, highest_count: int) -> int:
    """Return the shade of a cell: 0 for no incident, otherwise 1 to SHADE_LEVELS.

    `highest_count` is the count of the darkest cell. The scale is logarithmic, so that one bad day
    does not make all other days look empty.
    """
    if not incident_count:
        return 0
    return max(1, ceil(SHADE_LEVELS * log(incident_count + 1) / log(highest_count + 1) - 1e-9))


def _describe_other_queues(summary: Summary) -> str:
    """Return a sentence with the incidents of the queues that the table does not list.

    Empty if it lists all queues.
    """
    queue_days = summary.queue_days
    if not queue_days.queues_left_out:
        return ""
    queues_text = format_count(queue_days.queues_left_out, "more queue")
    incidents_text = format_count(queue_days.incidents_left_out, "incident")
    together_word = " together" if queue_days.queues_left_out > 1 else ""
    return f"{queues_text} had {incidents_text}{together_word}."
