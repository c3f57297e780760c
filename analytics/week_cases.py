"""Make the parts of the weekly summary that come from cases.

They are: the cases that wait for a person or notified people, urgent notifications, harm to
messages, candidates for the mode `heal`, and a comparison of the incidents that Mendq fixed with
the incidents that it left untouched. docs/summary.md explains each field.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import date, datetime, tzinfo
from typing import Any

from analytics.cases import (
    FIXED_OUTCOMES,
    MAXIMUM_NAME_CHARACTERS,
    QUARTER_DAYS,
    CaseTimeline,
    Transition,
    is_valid_count,
    read_steps,
    shorten,
)
from analytics.days import ONE_DAY, Days
from analytics.incidents import FOUND_BY_FAILED_CALLS
from analytics.week_parts import (
    MAXIMUM_CASES,
    OTHER_CODES_SYMPTOM,
    WAITING_STATES,
    Row,
    RowsByDay,
    find_percentile,
    format_time,
    list_rows,
)
from mendq.catalogue.visibility.needed_timeout import list_need_spans
from mendq.model.state import STATES_WITH_FIX_IN_PLACE, State
from mendq.model.timeline import build_timeline

MAXIMUM_NOTIFIED_CASES = 50
_NEXT_STEP_FIELDS = ("sentence", "command", "runbook")
# The figures that scans measure of each queue.
_FIGURE_NAMES = ("backlog", "oldest_age_seconds")
# The kinds of harm to messages.
_HARM_KINDS = ("delayed", "handled_twice", "dead", "lost")
# A queue and symptom is a candidate for the mode `heal` after this number of approvals.
MINIMUM_APPROVALS = 5
MAXIMUM_HEAL_CANDIDATES = 10
_STATES_OF_ANSWERED_PROPOSALS = (State.APPROVED, State.DECLINED)
# The states of a case whose fix has not failed and was not undone, or is not written yet.
_SUCCESSFUL_STATES = frozenset(
    {State.PROPOSED, State.APPROVED, State.CLOSED, *STATES_WITH_FIX_IN_PLACE}
) - {State.INEFFECTIVE}
# Outcomes of incidents in which Mendq changed nothing.
_UNTOUCHED_OUTCOMES = frozenset({"observed", "proposed", "expired", "refused", "declined"})
# A notification is out of hours if it is sent before MORNING_HOUR, at or after EVENING_HOUR, or at
# the weekend.
MORNING_HOUR = 7
EVENING_HOUR = 22
SATURDAY_WEEKDAY = 5


def count_urgent_notifications(
    days: Days, timelines: Iterable[CaseTimeline], zone: tzinfo
) -> dict[str, int]:
    """Count the urgent notifications about cases on `days`, and how many were out of hours.

    Out of hours is from 22:00 to 07:00, and on Saturday and Sunday, in `zone`.
    """
    urgent_count = 0
    out_of_hours_count = 0
    for timeline in timelines:
        for notification in timeline.list_notifications(days):
            if notification.urgent is True:
                urgent_count += 1
                if _is_out_of_hours(notification.at.astimezone(zone)):
                    out_of_hours_count += 1
    return {"urgent_notifications": urgent_count, "out_of_hours": out_of_hours_count}


def _is_out_of_hours(local_time: datetime) -> bool:
    return (
        local_time.weekday() >= SATURDAY_WEEKDAY
        or not MORNING_HOUR <= local_time.hour < EVENING_HOUR
    )


def make_open_case_fields(
    timelines: Iterable[CaseTimeline], measured_figures_by_queue: Mapping[str, Mapping[str, int]]
) -> dict[str, Any]:
    """Return the summary's fields about cases that wait for a person.

    `open_now` has at most MAXIMUM_CASES of these cases, the most pressing state first. Within a
    state, urgent escalated cases come first, then the oldest cases. `open_now_left_out` is the
    number of the others.

    Args:
        timelines: All cases.
        measured_figures_by_queue: The last measured figures of each queue, by queue ARN.
    """
    waiting_timelines = [
        timeline for timeline in timelines if timeline.newest_transition.state in WAITING_STATES
    ]
    waiting_timelines.sort(key=_rank_timeline_by_pressure)
    open_cases: list[dict[str, Any]] = []
    for timeline in waiting_timelines[:MAXIMUM_CASES]:
        figure_by_name = measured_figures_by_queue.get(timeline.newest_transition.queue_arn, {})
        open_cases.append(_make_open_case(timeline, figure_by_name))
    return {"open_now": open_cases, "open_now_left_out": len(waiting_timelines[MAXIMUM_CASES:])}


def _rank_timeline_by_pressure(timeline: CaseTimeline) -> tuple[int, bool, datetime, str]:
    """Return a sorting key: by state, then urgent escalated cases first, then older cases first."""
    case = timeline.newest_transition
    is_not_urgent = case.state is State.ESCALATED and not timeline.is_urgent
    return WAITING_STATES.index(case.state), is_not_urgent, timeline.opened_at, case.case_id


def _make_open_case(timeline: CaseTimeline, figure_by_name: Mapping[str, int]) -> dict[str, Any]:
    case = timeline.newest_transition
    return {
        **_make_case_names(case),
        "urgent": timeline.is_urgent,
        "opened_at": format_time(timeline.opened_at),
        "since": format_time(timeline.state_began_at),
        "reason": shorten(case.reason),
        "next_step": {name: shorten(case.next_step.get(name)) for name in _NEXT_STEP_FIELDS},
        **{name: figure_by_name.get(name) for name in _FIGURE_NAMES},
        **make_picture_data(timeline),
    }


def make_picture_data(timeline: CaseTimeline | None) -> dict[str, Any]:
    """Return the data for a case's two pictures in the report; empty if `timeline` is None.

    The field `timeline` has the events of the case with their times. The field `visibility` has the
    seconds that consumers need, and the visibility timeouts before and after the change.
    """
    if timeline is None:
        return {"timeline": [], "visibility": []}
    timeline_points: list[dict[str, Any]] = []
    for timeline_point in build_timeline(timeline.transitions):
        event_text = shorten(timeline_point.details, MAXIMUM_NAME_CHARACTERS)
        timeline_points.append(
            {"at": format_time(timeline_point.at), "state": timeline_point.what, "says": event_text}
        )
    need_spans: list[dict[str, Any]] = []
    for span_name, seconds in list_need_spans(timeline.transitions):
        need_spans.append({"what": shorten(span_name, MAXIMUM_NAME_CHARACTERS), "seconds": seconds})
    return {"timeline": timeline_points, "visibility": need_spans}


def _make_case_names(case: Transition) -> dict[str, str]:
    """Return a case's id, queue, symptom, code and state. Long texts are shortened."""
    return {
        "case_id": shorten(case.case_id, MAXIMUM_NAME_CHARACTERS),
        "queue_arn": shorten(case.queue_arn, MAXIMUM_NAME_CHARACTERS),
        "symptom": shorten(case.symptom, MAXIMUM_NAME_CHARACTERS),
        "code": shorten(case.code, MAXIMUM_NAME_CHARACTERS),
        "state": str(case.state),
    }


def sum_harmed_messages(
    case_ids: Collection[str | None], timelines: Iterable[CaseTimeline]
) -> dict[str, int | None]:
    """Return the numbers of messages `delayed`, `handled_twice`, `dead` (in a DLQ) and `lost`.

    Each number is the sum over the evidence of the cases with these ids. It is None if none of
    these cases has the number.
    """
    message_counts_by_harm: dict[str, list[int]] = {harm: [] for harm in _HARM_KINDS}
    for timeline in timelines:
        message_count_by_harm = timeline.newest_transition.evidence.get("messages")
        if timeline.newest_transition.case_id not in case_ids or not isinstance(
            message_count_by_harm, Mapping
        ):
            continue
        for harm in _HARM_KINDS:
            if is_valid_count(message_count_by_harm.get(harm)):
                message_counts_by_harm[harm].append(message_count_by_harm[harm])
    return {
        harm: sum(message_counts) if message_counts else None
        for harm, message_counts in message_counts_by_harm.items()
    }


def find_candidates_for_heal(days: Days, timelines: Iterable[CaseTimeline]) -> list[dict[str, Any]]:
    """Return pairs of queue and symptom for which the weekly report suggests the mode `heal`.

    A pair is suggested if people approved all its proposals, at least MINIMUM_APPROVALS, and none
    of the fixes failed (`_has_successful_fix`). Only proposals that were answered in the 13 weeks
    up to `days.last_day` count. At most MAXIMUM_HEAL_CANDIDATES pairs are returned.
    """
    quarter_days = Days(days.last_day - (QUARTER_DAYS - 1) * ONE_DAY, days.last_day)
    success_flags_by_queue_and_symptom = defaultdict[tuple[str, str], list[bool]](list)
    for timeline in timelines:
        if _has_answered_proposal(timeline, quarter_days):
            queue_and_symptom = (
                timeline.newest_transition.queue_arn,
                timeline.newest_transition.symptom,
            )
            success_flags_by_queue_and_symptom[queue_and_symptom].append(
                _has_successful_fix(timeline)
            )
    ranked_candidates: list[tuple[int, str, str]] = []
    for (queue_arn, symptom), success_flags in success_flags_by_queue_and_symptom.items():
        if all(success_flags) and len(success_flags) >= MINIMUM_APPROVALS:
            ranked_candidates.append((len(success_flags), queue_arn, symptom))
    ranked_candidates.sort(key=lambda candidate: (-candidate[0], candidate[1], candidate[2]))
    return [
        {
            "queue_arn": shorten(queue_arn, MAXIMUM_NAME_CHARACTERS),
            "symptom": shorten(symptom, MAXIMUM_NAME_CHARACTERS),
            "approved": approval_count,
            "asked": approval_count,
            "kind": "consider_heal",
        }
        for approval_count, queue_arn, symptom in ranked_candidates[:MAXIMUM_HEAL_CANDIDATES]
    ]


def _has_answered_proposal(timeline: CaseTimeline, days: Days) -> bool:
    """Return True if a person approved or declined the case's proposal on these days."""
    for transition in timeline.list_transitions(days):
        if (
            transition.came_from is State.PROPOSED
            and transition.state in _STATES_OF_ANSWERED_PROPOSALS
        ):
            return True
    return False


def _has_successful_fix(timeline: CaseTimeline) -> bool:
    """Return True if nothing in the case shows that its fix failed, was changed or was undone.

    The case must have at most one plan, and only states of _SUCCESSFUL_STATES. An approved fix that
    is not written or verified yet counts as successful.
    """
    plans = {tuple(read_steps(case)) for case in timeline.transitions if case.steps}
    if len(plans) > 1:
        return False
    return all(case.state in _SUCCESSFUL_STATES for case in timeline.transitions)


def compare_fixed_and_untouched(
    incidents: Iterable[Row], all_incidents_by_day: RowsByDay
) -> list[dict[str, Any]]:
    """Compare the incidents that Mendq fixed with those that it left untouched, by symptom.

    Return a row for each symptom with a fixed or an untouched incident, sorted by name, with the
    counts and the median times in seconds.

    Only incidents of failed calls count, without those of OTHER_CODES_SYMPTOM. The end of an
    untouched incident must be known, so it counts only if the day of its last failed call and the
    next day were read.

    Args:
        incidents: The incidents of the week.
        all_incidents_by_day: The incidents of all days that were read.
    """
    failure_times_by_queue_and_symptom = defaultdict[tuple[str, str], list[datetime]](list)
    for row in list_rows(all_incidents_by_day):
        failure_times_by_queue_and_symptom[row["queue_arn"], row["symptom"]].append(
            row["first_failure"]
        )
    rows_by_symptom = defaultdict[str, list[Row]](list)
    for row in incidents:
        if row["found_by"] == FOUND_BY_FAILED_CALLS and row["symptom"] != OTHER_CODES_SYMPTOM:
            rows_by_symptom[row["symptom"]].append(row)
    comparisons: list[dict[str, Any]] = []
    for symptom, rows in sorted(rows_by_symptom.items()):
        comparison = _compare_symptom(
            symptom, rows, failure_times_by_queue_and_symptom, all_incidents_by_day
        )
        if comparison["fixed"] or comparison["untouched"]:
            comparisons.append(comparison)
    return comparisons


def _compare_symptom(
    symptom: str,
    symptom_incidents: Iterable[Row],
    failure_times_by_queue_and_symptom: Mapping[tuple[str, str], Sequence[datetime]],
    days_with_tables: Collection[date],
) -> dict[str, Any]:
    """Return the row of one symptom for `compare_fixed_and_untouched`.

    Args:
        symptom: The symptom.
        symptom_incidents: The incidents of the symptom.
        failure_times_by_queue_and_symptom: The times of the first failures of all incidents.
        days_with_tables: The days that were read.
    """
    fixed_count = 0
    untouched_count = 0
    seconds_to_heal: list[float] = []
    seconds_to_recover: list[float] = []
    for incident in symptom_incidents:
        if incident["outcome"] in FIXED_OUTCOMES:
            fixed_count += 1
            if incident["seconds_to_heal"] is not None:
                seconds_to_heal.append(incident["seconds_to_heal"])
        elif incident["outcome"] in _UNTOUCHED_OUTCOMES and _is_next_day_read(
            incident, days_with_tables
        ):
            untouched_count += 1
            if not _has_failed_again(
                incident,
                failure_times_by_queue_and_symptom[incident["queue_arn"], incident["symptom"]],
            ):
                failing_duration = incident["last_failure"] - incident["first_failure"]
                seconds_to_recover.append(failing_duration.total_seconds())
    return {
        "symptom": symptom,
        "fixed": fixed_count,
        "fixed_median_seconds": _find_median(seconds_to_heal),
        "untouched": untouched_count,
        "recovered": len(seconds_to_recover),
        "recovered_median_seconds": _find_median(seconds_to_recover),
    }


def _is_next_day_read(incident: Row, days_with_tables: Collection[date]) -> bool:
    """Return True if the day of an incident's last failure and the day after that were read."""
    last_failure = incident["last_failure"]
    return (
        last_failure.date() in days_with_tables
        and (last_failure + ONE_DAY).date() in days_with_tables
    )


def _has_failed_again(incident: Row, failure_times: Iterable[datetime]) -> bool:
    """Return True if any of `failure_times` is within a day after the incident's last failure."""
    last_failure = incident["last_failure"]
    return any(
        last_failure < failure_time <= last_failure + ONE_DAY for failure_time in failure_times
    )


def _find_median(durations_in_seconds: Iterable[float]) -> float | None:
    """Return the median duration, or None if there are no durations."""
    sorted_durations = sorted(durations_in_seconds)
    return find_percentile(sorted_durations, 50) if sorted_durations else None


def make_notified_case_fields(days: Days, timelines: Sequence[CaseTimeline]) -> dict[str, Any]:
    """Return the summary's fields about cases that notified people on `days`.

    `cases` has at most MAXIMUM_NOTIFIED_CASES of them, sorted by their first notification on
    `days`. `cases_left_out` is the number of the others, `total` the number of all.
    """
    notified_timelines = [timeline for timeline in timelines if timeline.list_notifications(days)]
    notified_timelines.sort(
        key=lambda timeline: (
            timeline.list_notifications(days)[0].at,
            timeline.newest_transition.case_id,
        )
    )
    return {
        "cases": [
            _make_notified_case(timeline, days)
            for timeline in notified_timelines[:MAXIMUM_NOTIFIED_CASES]
        ],
        "cases_left_out": len(notified_timelines[MAXIMUM_NOTIFIED_CASES:]),
        "total": len(notified_timelines),
    }


def _make_notified_case(timeline: CaseTimeline, days: Days) -> dict[str, Any]:
    notifications = timeline.list_notifications(days)
    ended_at = timeline.ended_at
    return {
        **_make_case_names(timeline.newest_transition),
        "opened_at": format_time(timeline.opened_at),
        "notified_at": format_time(notifications[0].at),
        "pages": len(notifications),
        "reason": shorten(notifications[0].reason),
        "ended_at": format_time(ended_at) if ended_at else None,
        "scanned": timeline.is_opened_without_calls,
    }
