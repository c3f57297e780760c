"""Incidents per day by label, folded to what one picture can show."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date

from functions.report.summary import FURTHER, Summary
from functions.report.visible import visible
from functions.report.words import counted, day, listed, short_day

MOST_SERIES = 5
MOST_NAMED_DAYS = 2


@dataclass(frozen=True)
class Day:
    """`incidents` of each series, in the order of `PerDay.series`.

    `reached` counts the cases that paged somebody for the first time in this week.
    """

    day: date
    incidents: tuple[int, ...]
    failed_calls: int
    is_read: bool
    reached: int = 0

    @property
    def total(self) -> int:
        return sum(self.incidents)

    @property
    def name(self) -> str:
        return short_day(self.day)


@dataclass(frozen=True)
class PerDay:
    """The week's days and the names of the series: the commonest labels, then the others."""

    series: tuple[str, ...]
    days: tuple[Day, ...]

    @property
    def has_incidents(self) -> bool:
        return any(each.total for each in self.days)

    @property
    def total(self) -> int:
        return sum(each.total for each in self.days)

    @property
    def has_unknown(self) -> bool:
        """Whether any day's figure is not known: an unread day may have had a burst that began."""
        return any(not each.is_read and not each.total for each in self.days)

    @property
    def reached(self) -> int:
        return sum(each.reached for each in self.days)


def per_day(summary: Summary) -> PerDay:
    """Every day of the week, also one without a row."""
    totals = Counter[str]()
    counts = Counter[tuple[date, str]]()
    for row in summary.per_day:
        totals[row.label or ""] += row.incidents
        counts[row.day, row.label or ""] += row.incidents
    order = sorted((label for label in totals if totals[label]), key=lambda it: _rank(it, totals))
    named = order if len(order) <= MOST_SERIES else order[: MOST_SERIES - 1]
    folded = order[len(named) :]
    folded_labels = len(folded) + max(0, summary.labels_left_out - 1) * (FURTHER in folded)
    reached = Counter(each.paged_at.date() for each in summary.reached_a_person.cases)
    groups = [[label] for label in named] + ([folded] if folded else [])
    days = tuple(
        Day(
            day=each,
            incidents=tuple(sum(counts[each, label] for label in group) for group in groups),
            failed_calls=sum(row.failed_calls for row in summary.per_day if row.day == each),
            is_read=each not in summary.not_seen.nights_missing,
            reached=reached[each],
        )
        for each in summary.days
    )
    others = [counted(folded_labels, "other label")] if folded else []
    return PerDay((*(visible(label) for label in named), *others), days)


def _rank(label: str, totals: Mapping[str, int]) -> tuple[bool, int, str]:
    """The commonest first; what stands for many is none of them."""
    return label == FURTHER, -totals[label], label


def caption(week: PerDay) -> str:
    """The day or days with most incidents."""
    if not week.has_incidents:
        return "No day that was read had an incident."
    read = [each for each in week.days if each.is_read]
    if len(read) == 1 and read[0].total == week.total:
        return f"{day(read[0].day)} is the only day that was read."
    most = max(each.total for each in week.days)
    if most == 1 < week.total:
        return "No day had more than one incident."
    busiest = [each for each in week.days if each.total == most]
    if most == week.total:
        return f"{day(busiest[0].day)} had {'the one incident' if most == 1 else f'all {most:,}'}."
    if len(busiest) == 1:
        return f"{day(busiest[0].day)} had the most: {most:,}."
    names = listed([day(each.day) for each in busiest])
    if len(busiest) > MOST_NAMED_DAYS:
        names = f"{len(busiest)} days"
    return f"{names} had the most: {most:,} each."


def in_words(week: PerDay) -> str:
    """The picture for who cannot see it."""
    return "Incidents per day. " + " ".join(_day_in_words(week, each) for each in week.days)


def _day_in_words(week: PerDay, each: Day) -> str:
    parts = [f"{name} {count:,}" for name, count in zip(week.series, each.incidents, strict=True)]
    some = [part for part, count in zip(parts, each.incidents, strict=True) if count]
    total = f"{each.total:,}" if each.total or each.is_read else "not read"
    reached = f", {counted(each.reached, 'case')} reached a person" if each.reached else ""
    of = f" ({', '.join(some)})" if some else ""
    return f"{each.name}: {total}{of}{reached}."
