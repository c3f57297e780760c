"""Incidents per day by symptom, folded to what one picture can show."""

from __future__ import annotations

from collections import Counter
from datetime import date

from msgspec import Struct

from mendq.report.summary import Summary
from mendq.report.summary_parts import FURTHER
from mendq.report.words import counted, day, had_most, short_day, title

MOST_SERIES = 5
NOT_READ = "?"
_NOT_READ, _TO_COME = "not read", "still to come"
REACHED = "\N{BLACK DIAMOND}"


class Day(Struct, frozen=True):
    """`incidents` of each series, in the order of `PerDay.series`.

    `reached` counts the cases that paged somebody for the first time in this week; `unread` says
    why a day has no figure of its own, empty where it was read.
    """

    day: date
    incidents: tuple[int, ...]
    failed_calls: int
    unread: str
    reached: int = 0

    @property
    def total(self) -> int:
        return sum(self.incidents)

    @property
    def name(self) -> str:
        return short_day(self.day)

    @property
    def is_known(self) -> bool:
        """Whether its figure is: an unread day may have had a burst that began on one read."""
        return not self.unread or self.total > 0

    @property
    def figure(self) -> str:
        """Blank where nobody could know it yet."""
        return f"{self.total:,}" if self.is_known else {_NOT_READ: NOT_READ}.get(self.unread, "")


class PerDay(Struct, frozen=True):
    """The week's days and the names of the series: the commonest symptoms, then the others."""

    series: tuple[str, ...]
    days: tuple[Day, ...]

    @property
    def total(self) -> int:
        return sum(each.total for each in self.days)

    @property
    def reached(self) -> int:
        return sum(each.reached for each in self.days)


def per_day(summary: Summary) -> PerDay:
    """Every day of the week, also one without a row."""
    totals = Counter[str]()
    counts = Counter[tuple[date, str]]()
    failed_calls = Counter[date]()
    for row in summary.per_day:
        totals[row.symptom or ""] += row.incidents
        counts[row.day, row.symptom or ""] += row.incidents
        failed_calls[row.day] += row.failed_calls
    # The commonest first; what stands for many is none of them.
    order = sorted(+totals, key=lambda it: (it == FURTHER, -totals[it], it))
    named = order if len(order) <= MOST_SERIES else order[: MOST_SERIES - 1]
    folded = order[len(named) :]
    folded_symptoms = len(folded) + max(0, summary.symptoms_left_out - 1) * (FURTHER in folded)
    reached = Counter(each.notified_at.date() for each in summary.reached_a_person.cases)
    groups = [[symptom] for symptom in named] + ([folded] if folded else [])
    unread = dict.fromkeys(summary.not_seen.nightly_runs_missing, _NOT_READ)
    unread |= dict.fromkeys(summary.to_come, _TO_COME)
    days = tuple(
        Day(
            day=each,
            incidents=tuple(sum(counts[each, symptom] for symptom in group) for group in groups),
            failed_calls=failed_calls[each],
            unread=unread.get(each, ""),
            reached=reached[each],
        )
        for each in summary.days
    )
    others = [counted(folded_symptoms, "other symptom")] if folded else []
    return PerDay((*(title(symptom) for symptom in named), *others), days)


def caption(week: PerDay) -> str:
    """The day or days with most incidents."""
    if not week.total:
        return "No day that was read had an incident."
    read = [each for each in week.days if not each.unread]
    if len(read) == 1 and read[0].total == week.total:
        return f"{day(read[0].day)} is the only day that was read."
    return had_most([(day(each.day), each.total) for each in week.days], "day", week.total)


def in_words(week: PerDay) -> str:
    """The picture for who cannot see it."""
    return "Incidents per day. " + " ".join(_day_in_words(week, each) for each in week.days)


def _day_in_words(week: PerDay, each: Day) -> str:
    some = [
        f"{name} {count:,}"
        for name, count in zip(week.series, each.incidents, strict=True)
        if count
    ]
    total = f"{each.total:,}" if each.is_known else each.unread
    reached = f", {counted(each.reached, 'case')} reached a person" if each.reached else ""
    of = f" ({', '.join(some)})" if some else ""
    return f"{each.name}: {total}{of}{reached}."
