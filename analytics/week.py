"""Make summary.json: the incidents and cases of a week, for the weekly report.

`make_summary` is pure: it makes the document from the rows and cases that `analytics/weekly.py` has
read. docs/summary.md explains each field.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, tzinfo
from typing import Any

from analytics.cases import CaseFiles, CaseTimeline, shorten
from analytics.days import Days, list_weeks_before, parse_week_days
from analytics.incidents import FOUND_BY_FAILED_CALLS, FOUND_BY_SCAN
from analytics.own_incidents import is_own_queue, remove_own_incidents
from analytics.recommendations import (
    make_fields_of_values_still_set,
    make_to_do_fields,
    recommend_for_callers,
    recommend_for_cases,
    recommend_for_findings,
)
from analytics.week_cases import (
    compare_fixed_and_untouched,
    count_urgent_notifications,
    find_candidates_for_heal,
    make_notified_case_fields,
    make_open_case_fields,
    make_picture_data,
    sum_harmed_messages,
)
from analytics.week_parts import (
    MAXIMUM_CASES,
    MAXIMUM_SYMPTOMS,
    Row,
    RowsByDay,
    count_incidents_and_calls_by,
    count_named_queues,
    count_texts,
    count_totals,
    format_time,
    limit_symptoms,
    list_most_frequent_values,
    list_rows,
    list_times_to_heal,
    list_worst_incidents,
    make_day_rows,
    make_queue_days,
    select_rows_of_days,
    split_largest_counts,
)
from mendq.catalogue import CATALOGUE, UNKNOWN_PREFIX
from mendq.catalogue.symptom import NotifiedSymptom
from mendq.nightly.verdict import NightlyCounts, is_week_over, judge_nightly_run

SUMMARY_SCHEMA = 2
MAXIMUM_UNREADABLE_FILES = 20


def _collect_habit_texts() -> dict[str, str]:
    """Return the `habit` texts of symptoms, by the symptom's name.

    The weekly report shows this text after the name of a queue that has the symptom again and
    again.
    """
    habit_text_by_symptom: dict[str, str] = {}
    for symptom in CATALOGUE:
        if isinstance(symptom, NotifiedSymptom) and symptom.habit:
            habit_text_by_symptom[symptom.name] = symptom.habit
    return habit_text_by_symptom


_HABIT_TEXT_BY_SYMPTOM = _collect_habit_texts()


@dataclass(frozen=True)
class WeekInput:
    """Everything from which the summary of a week is made. It includes the weeks before.

    Attributes:
        incidents_by_day: The rows of the table `incidents`, by day.
        quality_by_day: The rows of the table `quality`, by day, for the same days.
        case_files: The cases of the case bucket. None if they were not read; the summary then has
            no fields about cases.
        nightly_counts_by_day: The counts that nightly runs wrote to `nightly.json`, by day.
        first_day: The first day for which a nightly run wrote something; None if there is none.
    """

    incidents_by_day: RowsByDay = field(default_factory=dict)
    quality_by_day: RowsByDay = field(default_factory=dict)
    case_files: CaseFiles | None = None
    nightly_counts_by_day: Mapping[date, NightlyCounts] = field(default_factory=dict)
    first_day: date | None = None

    def is_day_whole(self, day: date) -> bool:
        """Return True if a day has tables, and they were written after the day was over.

        Tables without a `nightly.json` count as written after the day.
        """
        return day in self.quality_by_day and (
            day not in self.nightly_counts_by_day or self.nightly_counts_by_day[day].was_day_over
        )


def make_summary(
    week: str,
    week_input: WeekInput,
    made_at: datetime,
    scheduled_at: datetime | None = None,
    zone: tzinfo = UTC,
) -> dict[str, Any]:
    """Return the summary of a week.

    The same input gives the same document, except for `made_at`. The order of rows and cases in the
    input does not matter.

    Args:
        week: The week, such as `2026-W46`.
        week_input: The rows and cases of the week and of the weeks before.
        made_at: The present time.
        scheduled_at: The time for which the schedule started this run; None if a person started it.
            If it is given, it decides if the week is over, and not `made_at`. A scheduled run does
            not wait for a late nightly run, because it comes only once.
        zone: The time zone that decides which notifications were out of hours.
    """
    days = parse_week_days(week)
    all_incidents_by_day = select_rows_of_days(days, week_input.incidents_by_day)
    incidents_by_day = remove_own_incidents(all_incidents_by_day)
    incidents = list_rows(incidents_by_day)
    limited_incidents_by_day, left_out_symptom_count = limit_symptoms(incidents_by_day)
    limited_incidents = list_rows(limited_incidents_by_day)
    may_last_run_still_come = scheduled_at is None and not week_input.is_day_whole(days.last_day)
    has_week_ended = is_week_over(
        days.last_day, scheduled_at or made_at, may_last_run_still_come=may_last_run_still_come
    )
    day_rows: list[dict[str, Any]] = []
    for day, rows in limited_incidents_by_day.items():
        day_rows.extend(make_day_rows(day, rows))
    timeline_by_case_id = _index_timelines(week_input.case_files)

    def describe_case(case_id: str | None) -> dict[str, Any]:
        return _describe_case(timeline_by_case_id.get(case_id))

    return {
        "schema": SUMMARY_SCHEMA,
        "week": week,
        "from": str(days.first_day),
        "to": str(days.last_day),
        "made_at": format_time(made_at),
        "time_zone": str(zone),
        **_make_account_and_region_fields(
            [*incidents, *list_rows(select_rows_of_days(days, week_input.quality_by_day))]
        ),
        "totals": {
            **_make_week_sums(days, incidents, week_input.case_files, zone),
            "queues": count_named_queues(incidents),
        },
        **_make_incident_counts(incidents, limited_incidents),
        "symptoms_left_out": left_out_symptom_count,
        "per_day": day_rows,
        "queue_days": make_queue_days(incidents_by_day),
        "times_to_heal": list_times_to_heal(limited_incidents),
        "previous_weeks": _make_previous_weeks(week, week_input, zone),
        "does_it_help": compare_fixed_and_untouched(
            limited_incidents, remove_own_incidents(week_input.incidents_by_day)
        ),
        "cases": list_worst_incidents(incidents, describe_case),
        "cases_left_out": max(0, len(incidents) - MAXIMUM_CASES),
        **_make_case_fields(days, incidents, week_input.case_files),
        "not_seen": {
            **make_not_seen_fields(days, week_input),
            **_make_unknown_codes(incidents),
            "week_is_over": has_week_ended,
            "own_incidents": len(list_rows(all_incidents_by_day)) - len(incidents),
        },
    }


def _make_incident_counts(
    incidents: Sequence[Row], limited_incidents: Sequence[Row]
) -> dict[str, Any]:
    """Count the incidents by the column `found_by`, by outcome and by symptom.

    `limited_incidents` has the same incidents, with at most MAXIMUM_SYMPTOMS different symptoms.
    """
    found_by_values = [row["found_by"] for row in incidents]
    count_by_symptom = count_texts(row["symptom"] for row in limited_incidents)
    return {
        "by_found_by": {
            found_by_value: found_by_values.count(found_by_value)
            for found_by_value in (FOUND_BY_FAILED_CALLS, FOUND_BY_SCAN)
        },
        "by_outcome": count_texts(row["outcome"] for row in incidents),
        "by_symptom": count_by_symptom,
        "habits": {
            symptom: _HABIT_TEXT_BY_SYMPTOM[symptom]
            for symptom in count_by_symptom
            if symptom in _HABIT_TEXT_BY_SYMPTOM
        },
    }


def _make_account_and_region_fields(rows: Sequence[Row]) -> dict[str, Any]:
    """Return the accounts and regions of these rows, and the numbers of those left out."""
    accounts, accounts_left_out = list_most_frequent_values(rows, "account")
    regions, regions_left_out = list_most_frequent_values(rows, "region")
    return {
        "accounts": accounts,
        "accounts_left_out": accounts_left_out,
        "regions": regions,
        "regions_left_out": regions_left_out,
    }


def _make_week_sums(
    days: Days, incidents: Sequence[Row], case_files: CaseFiles | None, zone: tzinfo
) -> dict[str, Any]:
    """Return the sums over a week's incidents.

    If cases were read, the numbers of urgent notifications of the week are added.
    """
    week_sums = count_totals(incidents)
    if case_files:
        week_sums.update(
            count_urgent_notifications(days, _remove_own_cases(case_files.timelines), zone)
        )
    return week_sums


def _remove_own_cases(timelines: Iterable[CaseTimeline]) -> list[CaseTimeline]:
    """Return the cases without those of queues that Mendq made for drills or for the probe."""
    return [
        timeline for timeline in timelines if not is_own_queue(timeline.newest_transition.queue_arn)
    ]


def _make_previous_weeks(week: str, week_input: WeekInput, zone: tzinfo) -> list[dict[str, Any]]:
    """Return the sums of each previous week that has a table for at least one day, oldest first."""
    previous_weeks: list[dict[str, Any]] = []
    for earlier_week in list_weeks_before(week):
        days = parse_week_days(earlier_week)
        days_with_tables = [day for day in days if day in week_input.incidents_by_day]
        if not days_with_tables:
            continue
        incidents_by_day = select_rows_of_days(days_with_tables, week_input.incidents_by_day)
        incidents = list_rows(remove_own_incidents(incidents_by_day))
        whole_day_count = sum(week_input.is_day_whole(day) for day in days_with_tables)
        week_sums = _make_week_sums(days, incidents, week_input.case_files, zone)
        previous_weeks.append({"week": earlier_week, "nightly_runs": whole_day_count, **week_sums})
    return previous_weeks


def _index_timelines(case_files: CaseFiles | None) -> dict[str | None, CaseTimeline]:
    """Return the cases by case id; empty if cases were not read."""
    timelines = case_files.timelines if case_files else []
    return {timeline.newest_transition.case_id: timeline for timeline in timelines}


def _describe_case(timeline: CaseTimeline | None) -> dict[str, Any]:
    """Return the reason, code and pictures of a case, all empty if `timeline` is None."""
    reason = ""
    code = ""
    if timeline:
        reason = timeline.transition_with_reported_reason.reason
        code = timeline.transition_with_reported_reason.code
    return {"reason": shorten(reason), "code": shorten(code), **make_picture_data(timeline)}


def _make_case_fields(
    days: Days, incidents: Sequence[Row], case_files: CaseFiles | None
) -> dict[str, Any]:
    """Return the summary's fields about cases. Return an empty dict if cases were not read."""
    if case_files is None:
        return {}
    timelines = _remove_own_cases(case_files.timelines)
    case_recommendations = recommend_for_cases(days, timelines)
    recommendations = [
        *case_recommendations,
        *recommend_for_callers(incidents),
        *recommend_for_findings(case_files.findings),
    ]
    case_ids = {row["case_id"] for row in incidents}
    return {
        "reached_a_person": make_notified_case_fields(days, timelines),
        **make_open_case_fields(timelines, case_files.measured_figures_by_queue),
        "impact": sum_harmed_messages(case_ids, timelines),
        "earned": find_candidates_for_heal(days, timelines),
        **make_to_do_fields(recommendations, incidents),
        **make_fields_of_values_still_set(case_recommendations, timelines),
    }


def make_not_seen_fields(days: Days, week_input: WeekInput) -> dict[str, Any]:
    """Return the summary's fields that say how much of the week was read.

    They include a verdict about each day. A verdict compares the day's number of records with those
    of the 14 days before.
    """
    quality_rows = list_rows(select_rows_of_days(days, week_input.quality_by_day))
    readable_file_rows = [row for row in quality_rows if not row["reason"]]
    unreadable_file_rows = [row for row in quality_rows if row["reason"]]
    not_seen_fields = {
        "nightly_runs_missing": [str(day) for day in days if day not in week_input.quality_by_day],
        "files_read": len(readable_file_rows),
        "files_unreadable": len(unreadable_file_rows),
        "bytes_read": sum(row["bytes"] for row in readable_file_rows),
        "bytes_unreadable": sum(row["bytes"] for row in unreadable_file_rows),
        "records_read": sum(row["records"] for row in quality_rows),
        "unreadable_files": _list_largest_files(unreadable_file_rows),
        "nightly_runs": [_judge_night(day, week_input) for day in days],
    }
    if week_input.case_files:
        not_seen_fields["case_files_unreadable"] = week_input.case_files.unreadable_file_count
    not_seen_fields["began"] = str(week_input.first_day) if week_input.first_day else None
    return not_seen_fields


def _make_unknown_codes(incidents: Sequence[Row]) -> dict[str, Any]:
    """Count the failed calls of each error code that the catalogue does not know."""
    unknown_code_rows = [row for row in incidents if row["symptom"].startswith(UNKNOWN_PREFIX)]
    counts_by_symptom = count_incidents_and_calls_by(unknown_code_rows, "symptom")
    call_count_by_symptom = {
        symptom: counts.failed_calls for symptom, counts in counts_by_symptom.items()
    }
    call_count_by_listed_code, call_count_by_left_out_code = split_largest_counts(
        call_count_by_symptom, MAXIMUM_SYMPTOMS
    )
    return {
        "unknown_code": call_count_by_listed_code,
        "unknown_codes_left_out": len(call_count_by_left_out_code),
        "unknown_calls_left_out": sum(call_count_by_left_out_code.values()),
    }


def _list_largest_files(unreadable_rows: Sequence[Row]) -> list[dict[str, str]]:
    """Return the name and reason of at most MAXIMUM_UNREADABLE_FILES unreadable files.

    The largest files come first, and files of equal size are sorted by name.
    """
    ranked_rows = sorted(unreadable_rows, key=lambda row: (-row["bytes"], row["file"]))
    return [
        {"file": shorten(row["file"]), "reason": shorten(row["reason"])}
        for row in ranked_rows[:MAXIMUM_UNREADABLE_FILES]
    ]


def _judge_night(day: date, week_input: WeekInput) -> dict[str, Any]:
    """Return the verdict about a day, with the day's number of records.

    Older versions of Mendq wrote no counts. The verdict about such a day is `read` if its tables
    have records.
    """
    quality_rows = week_input.quality_by_day.get(day, ())
    incidents = week_input.incidents_by_day.get(day, ())
    listed_bytes = sum(row["bytes"] for row in quality_rows)
    number_of_records = sum(row["records"] for row in quality_rows)
    nightly_counts = week_input.nightly_counts_by_day.get(day)
    has_wrong_counts = nightly_counts is not None and (
        nightly_counts.files != len(quality_rows)
        or nightly_counts.bytes != listed_bytes
        or nightly_counts.records != number_of_records
        or nightly_counts.incident_row_count != len(incidents)
    )
    judgement = judge_nightly_run(
        nightly_counts, week_input.nightly_counts_by_day.values(), has_wrong_counts=has_wrong_counts
    )
    verdict = str(judgement.verdict)
    if nightly_counts is None and number_of_records:
        verdict = "read"
    return {
        "day": str(day),
        "records": nightly_counts.records if nightly_counts else number_of_records,
        "usual_records": judgement.usual_records,
        "verdict": verdict,
    }
