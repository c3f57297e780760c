"""Incidents per day and symptom, for a chart with few colours."""

from __future__ import annotations

from collections import Counter
from datetime import date

from msgspec import Struct

from mendq.report.summary import Summary
from mendq.report.summary_parts import OTHER_CODES_SYMPTOM
from mendq.report.words import (
    describe_leaders,
    format_count,
    format_day,
    format_short_day,
    format_symptom,
)

# The chart has at most this many series, because more colours are hard to tell apart.
MOST_CHART_SERIES = 5
# Text of a day that was not read.
NOT_READ_FIGURE = "?"
_DAY_NOT_READ_TEXT = "not read"
_DAY_TO_COME_TEXT = "still to come"
NOTIFIED_CASE_MARK = "\N{BLACK DIAMOND}"


class Day(Struct, frozen=True):
    """The incidents of one day of the week."""

    day: date
    # Number of incidents of each series, in the order of `IncidentsPerDay.series_titles`.
    incident_counts: tuple[int, ...]
    failed_calls: int
    # Why the day was not read: "not read" or "still to come". Empty if the day was read.
    unread_reason: str
    # Listed cases whose first notification of this week was on this day.
    notified_cases: int = 0

    @property
    def total(self) -> int:
        """Number of incidents of this day."""
        return sum(self.incident_counts)

    @property
    def name(self) -> str:
        """Name of the day in the chart, such as `Thu 12`."""
        return format_short_day(self.day)

    @property
    def is_known(self) -> bool:
        """True if the report shows a number for this day.

        That is if the day was read, or if it was not read but incidents of it are known: an
        incident that ends on a later day is found when that day is read.
        """
        return not self.unread_reason or self.total > 0

    @property
    def figure(self) -> str:
        """Text above the day's bar: the number of incidents if it is known (`is_known`).

        Otherwise `?` if the day was not read, or empty if the day is still to come.
        """
        if self.is_known:
            return f"{self.total:,}"
        return NOT_READ_FIGURE if self.unread_reason == _DAY_NOT_READ_TEXT else ""


class IncidentsPerDay(Struct, frozen=True):
    """The incidents of each day of a week, divided into the series of the chart."""

    # Titles of the series: the most frequent symptoms. The last one may stand for all others.
    series_titles: tuple[str, ...]
    days: tuple[Day, ...]

    @property
    def total(self) -> int:
        """Number of incidents in the week."""
        return sum(day.total for day in self.days)

    @property
    def notified_cases(self) -> int:
        """Number of listed cases that notified a person in this week."""
        return sum(day.notified_cases for day in self.days)


def make_incidents_per_day(summary: Summary) -> IncidentsPerDay:
    """Count the incidents of each day of the week, by the chart's series.

    Days that have no row in the summary are included.
    """
    incident_count_by_symptom = Counter[str]()
    count_by_day_and_symptom = Counter[tuple[date, str]]()
    failed_calls_by_day = Counter[date]()
    for symptom_and_day_count in summary.per_day:
        symptom = symptom_and_day_count.symptom or ""
        incident_count_by_symptom[symptom] += symptom_and_day_count.incidents
        count_by_day_and_symptom[symptom_and_day_count.day, symptom] += (
            symptom_and_day_count.incidents
        )
        failed_calls_by_day[symptom_and_day_count.day] += symptom_and_day_count.failed_calls
    sorted_symptoms = _sort_symptoms(incident_count_by_symptom)
    symptoms_with_own_series = (
        sorted_symptoms
        if len(sorted_symptoms) <= MOST_CHART_SERIES
        else sorted_symptoms[: MOST_CHART_SERIES - 1]
    )
    symptoms_of_last_series = sorted_symptoms[len(symptoms_with_own_series) :]
    symptoms_of_each_series = [[symptom] for symptom in symptoms_with_own_series]
    series_titles = [format_symptom(symptom) for symptom in symptoms_with_own_series]
    if symptoms_of_last_series:
        symptoms_of_each_series.append(symptoms_of_last_series)
        other_symptom_count = len(symptoms_of_last_series)
        if OTHER_CODES_SYMPTOM in symptoms_of_last_series:
            # This symptom stands for all symptoms that the summary has no row for.
            other_symptom_count += max(0, summary.symptoms_left_out - 1)
        series_titles.append(format_count(other_symptom_count, "other symptom"))
    notified_case_count_by_day = Counter(
        case.notified_at.date() for case in summary.reached_a_person.cases
    )
    unread_reason_by_day = dict.fromkeys(summary.not_seen.nightly_runs_missing, _DAY_NOT_READ_TEXT)
    unread_reason_by_day |= dict.fromkeys(summary.days_to_come, _DAY_TO_COME_TEXT)
    days = []
    for day in summary.days:
        incident_counts = [
            sum(count_by_day_and_symptom[day, symptom] for symptom in symptom_group)
            for symptom_group in symptoms_of_each_series
        ]
        days.append(
            Day(
                day=day,
                incident_counts=tuple(incident_counts),
                failed_calls=failed_calls_by_day[day],
                unread_reason=unread_reason_by_day.get(day, ""),
                notified_cases=notified_case_count_by_day[day],
            )
        )
    return IncidentsPerDay(tuple(series_titles), tuple(days))


def _sort_symptoms(incident_count_by_symptom: Counter[str]) -> list[str]:
    """Return the symptoms that have incidents, the most frequent first.

    OTHER_CODES_SYMPTOM comes last, because it stands for several unknown error codes.
    """
    symptoms = [symptom for symptom, count in incident_count_by_symptom.items() if count > 0]
    return sorted(
        symptoms,
        key=lambda symptom: (
            symptom == OTHER_CODES_SYMPTOM,
            -incident_count_by_symptom[symptom],
            symptom,
        ),
    )


def make_caption(incidents_per_day: IncidentsPerDay) -> str:
    """Return the caption of the chart: a sentence about the days with most incidents.

    If no incident is known, the caption says that instead. If only one day was read and no other
    day has a known incident, it says that.
    """
    if not incidents_per_day.total:
        return "No day that was read had an incident."
    days_that_were_read = [day for day in incidents_per_day.days if not day.unread_reason]
    if len(days_that_were_read) == 1 and days_that_were_read[0].total == incidents_per_day.total:
        return f"{format_day(days_that_were_read[0].day)} is the only day that was read."
    days_and_counts = [(format_day(day.day), day.total) for day in incidents_per_day.days]
    return describe_leaders(days_and_counts, "day", incidents_per_day.total)


def describe_days(incidents_per_day: IncidentsPerDay) -> str:
    """Describe the chart in a sentence for each day, for people who cannot see it."""
    return "Incidents per day. " + " ".join(
        _describe_day(incidents_per_day, day) for day in incidents_per_day.days
    )


def _describe_day(incidents_per_day: IncidentsPerDay, day: Day) -> str:
    """Return a sentence about one day for `describe_days`.

    It has the number of incidents (or why the day was not read), the number in each series that has
    incidents, and the number of cases that notified a person, if there are any.
    """
    series_texts = []
    for series_title, incident_count in zip(
        incidents_per_day.series_titles, day.incident_counts, strict=True
    ):
        if incident_count:
            series_texts.append(f"{series_title} {incident_count:,}")
    incidents_text = f"{day.total:,}" if day.is_known else day.unread_reason
    series_in_brackets = f" ({', '.join(series_texts)})" if series_texts else ""
    notified_cases_text = ""
    if day.notified_cases:
        notified_cases_text = f", {format_count(day.notified_cases, 'case')} reached a person"
    return f"{day.name}: {incidents_text}{series_in_brackets}{notified_cases_text}."
