"""Incidents per day by symptom, folded to what one picture can show, and that picture."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import date
from typing import Any

import altair as alt
from msgspec import Struct

from mendq.report.drawing import FONT, Look
from mendq.report.summary import FURTHER, Summary
from mendq.report.words import counted, day, had_most, short_day, visible

MOST_SERIES = 5
NOT_READ = "?"


class Day(Struct, frozen=True):
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

    @property
    def is_known(self) -> bool:
        """Whether its figure is: an unread day may have had a burst that began on one read."""
        return self.is_read or self.total > 0


class PerDay(Struct, frozen=True):
    """The week's days and the names of the series: the commonest symptoms, then the others."""

    series: tuple[str, ...]
    days: tuple[Day, ...]

    @property
    def total(self) -> int:
        return sum(each.total for each in self.days)

    @property
    def has_unknown(self) -> bool:
        return not all(each.is_known for each in self.days)

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
    days = tuple(
        Day(
            day=each,
            incidents=tuple(sum(counts[each, symptom] for symptom in group) for group in groups),
            failed_calls=failed_calls[each],
            is_read=each not in summary.not_seen.nightly_runs_missing,
            reached=reached[each],
        )
        for each in summary.days
    )
    others = [counted(folded_symptoms, "other symptom")] if folded else []
    return PerDay((*(visible(symptom) for symptom in named), *others), days)


def caption(week: PerDay) -> str:
    """The day or days with most incidents."""
    if not week.total:
        return "No day that was read had an incident."
    read = [each for each in week.days if each.is_read]
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
    total = f"{each.total:,}" if each.is_known else "not read"
    reached = f", {counted(each.reached, 'case')} reached a person" if each.reached else ""
    of = f" ({', '.join(some)})" if some else ""
    return f"{each.name}: {total}{of}{reached}."


REACHED = "\N{BLACK DIAMOND}"
FEW_TICKS = 4


class Size(Struct, frozen=True):
    """The plot's size; `symptom` is a Vega expression for the name of a day.

    The page stretches the picture to its column, and the text in it with it.
    """

    width: int
    height: int
    symptom: str
    font_size: int


WIDE = Size(width=480, height=210, symptom="datum.label", font_size=11)
# A mail has but one, which a phone shrinks and a desktop stretches.
IN_A_MAIL = Size(width=370, height=190, symptom="split(datum.label, ' ')", font_size=13)
NARROW = Size(width=272, height=180, symptom="split(datum.label, ' ')", font_size=11)


def days_chart(week: PerDay, size: Size, look: Look) -> alt.LayerChart:
    """A bar for each day of the week, also for one without incidents or that was not read.

    The mark of cases stands above the figure, because beside it there is no room on a phone.
    """
    figures = [f"{each.total:,}" if each.is_known else NOT_READ for each in week.days]
    above: dict[str, Any] = {"baseline": "bottom", "fontSize": size.font_size}
    layers = [
        _bars(week, look),
        _texts(week, figures).mark_text(**above, dy=-4, color=look.ink, fontWeight="bold"),
        _texts(
            week, [f"{REACHED} {each.reached:,}" * (each.reached > 0) for each in week.days]
        ).mark_text(**above, dy=-6 - size.font_size, color=look.bad),
    ]
    days = alt.X(
        "day:N",
        scale=alt.Scale(domain=[each.name for each in week.days], paddingInner=0.4),
        axis=alt.Axis(labelAngle=0, labelExpr=size.symptom, labelPadding=6, domainColor=look.line),
    )
    chart: alt.LayerChart = (
        alt.layer(*layers)
        .encode(x=days)
        .properties(width=size.width, height=size.height, background=look.paper)
        .configure(font=FONT, padding=4, view=alt.ViewConfig(stroke=None))
        .configure_axis(
            title=None, labelFontSize=size.font_size, labelColor=look.muted, ticks=False
        )
    )
    return chart


def _bars(week: PerDay, look: Look) -> alt.Chart:
    """On an axis of whole numbers alone: Vega would write a half as 1."""
    rows = [
        {"day": each.name, "series": f"{n}", "incidents": count}
        for each in week.days
        for n, count in enumerate(each.incidents)
        if count
    ]
    names = [f"{n}" for n in range(len(week.series))]
    colours = alt.Scale(domain=names, range=list(look.series[: len(names)]))
    most = max(each.total for each in week.days)
    whole = list(range(most + 1)) if most < FEW_TICKS else alt.Undefined
    counts = alt.Axis(
        format=",d", values=whole, tickCount=FEW_TICKS, gridColor=look.line, domain=False
    )
    chart: alt.Chart = (
        alt.Chart(alt.InlineData(values=rows))
        .mark_bar(stroke=look.paper, strokeWidth=1)
        .encode(
            y=alt.Y("incidents:Q", stack="zero", axis=counts),
            color=alt.Color("series:N", scale=colours, legend=None),
            order=alt.Order("series:N"),
        )
    )
    return chart


def _texts(week: PerDay, texts: Sequence[str]) -> alt.Chart:
    rows = [
        {"day": each.name, "incidents": each.total, "text": text}
        for each, text in zip(week.days, texts, strict=True)
    ]
    chart: alt.Chart = alt.Chart(alt.InlineData(values=rows)).encode(y="incidents:Q", text="text:N")
    return chart
