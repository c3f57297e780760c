"""Times to heal by label, as the rows of a table whose middle is a strip of dots."""

from __future__ import annotations

from dataclasses import dataclass

from functions.report.drawing import Look, Picture, as_picture
from functions.report.per_day import PerDay
from functions.report.summary import Summary, TimesToHeal
from functions.report.times_chart import Scale, Strip, axis_chart, scale_of, strip_chart
from functions.report.visible import visible
from functions.report.words import counted, duration

MOST_LABELS = 6
TOO_FEW = "n<5"


@dataclass(frozen=True)
class TimesRow:
    """A label's figures; `in_words` is the strip for who cannot see it."""

    label: str
    count: str
    median: str
    p90: str
    in_words: str
    strip: Strip
    series: int


@dataclass(frozen=True)
class Times:
    """The labels with most healed incidents; `beyond` says what the others had."""

    rows: tuple[TimesRow, ...]
    scale: Scale
    caption: str
    beyond: str


def times(summary: Summary, week: PerDay) -> Times | None:
    """None where no healing was timed."""
    timed = [each for each in summary.times_to_heal if each.seconds]
    if not timed:
        return None
    shown, others = timed[:MOST_LABELS], timed[MOST_LABELS:]
    count = sum(each.incidents for each in others)
    beyond = f"{counted(len(others), 'more label')}: {counted(count, 'healed incident')}."
    return Times(
        rows=tuple(_row(each, week) for each in shown),
        scale=scale_of([second for each in shown for second in each.seconds]),
        caption=_caption(shown),
        beyond=beyond if others else "",
    )


def strips(found: Times, look: Look) -> tuple[Picture, ...]:
    """A picture for each row and, last, their axis."""
    drawn = [
        as_picture(strip_chart(each.strip, found.scale, look, _colour(each.series, look)))
        for each in found.rows
    ]
    return (*drawn, as_picture(axis_chart(found.scale, look)))


def _colour(series: int, look: Look) -> str:
    return look.series[series] if series < len(look.series) else look.muted


def _row(times_of: TimesToHeal, week: PerDay) -> TimesRow:
    """In the colour that the label has in the days' picture."""
    label, seconds = visible(times_of.label), times_of.seconds
    middle = times_of.median_seconds
    median = seconds[(len(seconds) - 1) // 2] if middle is None else middle
    return TimesRow(
        label=label,
        count=f"{times_of.incidents:,}",
        median=duration(median),
        p90=TOO_FEW if times_of.p90_seconds is None else duration(times_of.p90_seconds),
        in_words=_in_words(times_of),
        strip=Strip(seconds, median, times_of.p90_seconds),
        series=week.series.index(label) if label in week.series else max(len(week.series) - 1, 0),
    )


def _in_words(times_of: TimesToHeal) -> str:
    """The figures stand beside it, so the least and the most are what the dots add."""
    seconds = times_of.seconds
    count = counted(times_of.incidents, "healed incident")
    if seconds[0] == seconds[-1]:
        return f"{count}, {duration(seconds[0])}"
    return f"{count}, from {duration(seconds[0])} to {duration(seconds[-1])}"


def _caption(shown: list[TimesToHeal]) -> str:
    """What a dot, the bar and the ring are; the ring only where there is one."""
    every = all(len(each.seconds) >= each.incidents for each in shown)
    dots = (
        "A dot for each healed incident" if every else "Dots for a sample of the healed incidents"
    )
    ring = (
        ", the ring the 90th percentile"
        if any(each.p90_seconds is not None for each in shown)
        else ""
    )
    return f"{dots}, on a log scale. The bar is the median{ring}."
