"""Incidents per day and symptom, for a chart with few colours."""

from __future__ import annotations

from collections import Counter
from datetime import date

from msgspec import Struct

from mendq.report.summary import Summary
from mendq.report.summary_parts import FURTHER
from mendq.report.words import day, describe_leaders, format_count, short_day, title

MOST_SERIES = 5
NOT_READ = "?"
_NOT_READ = "not read"
_TO_COME = "still to come"
REACHED = "\N{BLACK DIAMOND}"


class Day(Struct, frozen=True):
    """The incidents of one day of the week."""

    day: date
    # Number of incidents of each series, in the order of `PerDay.series`.
    incidents: tuple[int, ...]
    failed_calls: int
    # Why the day has no figure: "not read" or "still to come". Empty if the day was read.
    unread: str
    # Cases that notified a person for the first time on this day.
    reached: int = 0

    @property
    def total(self) -> int:
        """Number of incidents of all series."""
        return sum(self.incidents)

    @property
    def name(self) -> str:
        """Name of the day in the chart, such as `Thu 12`."""
        return short_day(self.day)

    @property
    def is_known(self) -> bool:
        """True if the day's number of incidents is known.

        A day that was not read may still have incidents, which ended on a day that was read.
        """
        return not self.unread or self.total > 0

    @property
    def figure(self) -> str:
        """Text above the day's bar: the number, `?` if it was not read, empty if still to come."""
        if self.is_known:
            return f"{self.total:,}"
        return NOT_READ if self.unread == _NOT_READ else ""


class PerDay(Struct, frozen=True):
    """The days of a week, and the names of the series that the chart shows."""

    # The most frequent symptoms; the last series may stand for all others.
    series: tuple[str, ...]
    days: tuple[Day, ...]

    @property
    def total(self) -> int:
        """Number of incidents in the week."""
        return sum(day.total for day in self.days)

    @property
    def reached(self) -> int:
        """Number of cases that notified a person for the first time in this week."""
        return sum(day.reached for day in self.days)


def make_per_day(summary: Summary) -> PerDay:
    """Return all days of the week with their incidents, also days without a row in the summary."""
    totals = Counter[str]()
    counts = Counter[tuple[date, str]]()
    failed_calls = Counter[date]()
    for row in summary.per_day:
        symptom = row.symptom or ""
        totals[symptom] += row.incidents
        counts[row.day, symptom] += row.incidents
        failed_calls[row.day] += row.failed_calls
    order = _sort_symptoms(totals)
    named = order if len(order) <= MOST_SERIES else order[: MOST_SERIES - 1]
    folded = order[len(named) :]
    groups = [[symptom] for symptom in named]
    series = [title(symptom) for symptom in named]
    if folded:
        groups.append(folded)
        folded_count = len(folded)
        if FURTHER in folded:
            # This symptom stands for all symptoms that the summary has no row for.
            folded_count += max(0, summary.symptoms_left_out - 1)
        series.append(format_count(folded_count, "other symptom"))
    reached = Counter(case.notified_at.date() for case in summary.reached_a_person.cases)
    unread = dict.fromkeys(summary.not_seen.nightly_runs_missing, _NOT_READ)
    unread |= dict.fromkeys(summary.to_come, _TO_COME)
    days = []
    for at in summary.days:
        incidents = [sum(counts[at, symptom] for symptom in group) for group in groups]
        days.append(
            Day(
                day=at,
                incidents=tuple(incidents),
                failed_calls=failed_calls[at],
                unread=unread.get(at, ""),
                reached=reached[at],
            )
        )
    return PerDay(tuple(series), tuple(days))


def _sort_symptoms(totals: Counter[str]) -> list[str]:
    """Return the symptoms that have incidents, the most frequent first.

    `FURTHER` comes last, because it stands for several symptoms.
    """
    symptoms = [symptom for symptom, count in totals.items() if count > 0]
    return sorted(symptoms, key=lambda symptom: (symptom == FURTHER, -totals[symptom], symptom))


def caption(week: PerDay) -> str:
    """Return a sentence that names the day or days with most incidents."""
    if not week.total:
        return "No day that was read had an incident."
    read_days = [at for at in week.days if not at.unread]
    if len(read_days) == 1 and read_days[0].total == week.total:
        return f"{day(read_days[0].day)} is the only day that was read."
    counts = [(day(at.day), at.total) for at in week.days]
    return describe_leaders(counts, "day", week.total)


def describe_days(week: PerDay) -> str:
    """Return the chart in words, for people who cannot see it."""
    return "Incidents per day. " + " ".join(_describe_day(week, at) for at in week.days)


def _describe_day(week: PerDay, at: Day) -> str:
    """Return a sentence: the day's incidents in all and by series, and the cases that reached a
    person.
    """
    counts = []
    for name, count in zip(week.series, at.incidents, strict=True):
        if count:
            counts.append(f"{name} {count:,}")
    total = f"{at.total:,}" if at.is_known else at.unread
    by_series = f" ({', '.join(counts)})" if counts else ""
    reached = ""
    if at.reached:
        reached = f", {format_count(at.reached, 'case')} reached a person"
    return f"{at.name}: {total}{by_series}{reached}."
