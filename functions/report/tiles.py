"""The week in figures, each against the median of up to four weeks before."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import median

from functions.report.summary import EarlierWeek, Summary, Totals
from functions.report.words import counted, duration, listed, number, share

# Below this many, a share or a median says less than the figures themselves.
SMALLEST_N = 5


@dataclass(frozen=True)
class Change:
    """`direction` is rise, fall or level; `sentence` says against what."""

    direction: str
    sentence: str


@dataclass(frozen=True)
class Tile:
    """A figure, what it is a part of, and its sentence.

    `direction` is rise, fall or level; `tone`, whether that is good, bad or plain.
    """

    title: str
    figure: str
    of: str
    note: str
    direction: str = "level"
    tone: str = "plain"

    @property
    def in_words(self) -> str:
        return f"{self.figure} {self.of}".strip() + f", {self.note}"


def tiles(summary: Summary) -> tuple[Tile, ...]:
    """Incidents, healed, paged, failed calls, time to heal; none where nothing was read."""
    if summary.nothing_was_read:
        return ()
    return (
        _counted(summary, "Incidents", lambda week: week.incidents),
        _healed(summary),
        _counted(summary, "Reached a person", lambda week: week.paged),
        _counted(summary, "Failed calls", lambda week: week.failed_calls),
        _time_to_heal(summary),
    )


def against(now: float, before: Sequence[float], unit: str = "") -> Change:
    """`now` against the median of the weeks `before`; says how many those are."""
    if not before:
        return Change("level", "no earlier week to compare with")
    usual = median(before)
    basis = f"the {len(before)}-week median of {number(usual)}{unit}"
    if len(before) == 1:
        basis = f"the {number(usual)}{unit} of the one earlier week"
    if now == usual:
        return Change("level", f"equal to {basis}")
    size = f"{number(abs(now - usual))}{' points' if unit else ''}"
    if now > usual:
        return Change("rise", f"{size} above {basis}")
    return Change("fall", f"{size} below {basis}")


def _counted(
    summary: Summary, title: str, figure_of: Callable[[Totals | EarlierWeek], int]
) -> Tile:
    now = figure_of(summary.totals)
    change = against(now, [figure_of(each) for each in summary.previous_weeks])
    return _judged(summary, Tile(title, f"{now:,}", "", change.sentence), change, rise="bad")


def _healed(summary: Summary) -> Tile:
    incidents, healed = summary.totals.incidents, summary.totals.healed
    title = "Healed without a page"
    if not incidents:
        return Tile(title, "0", "", "there was nothing to heal")
    tile = Tile(title, f"{healed:,}", f"of {incidents:,}", "too few for a share")
    if incidents < SMALLEST_N:
        return _judged(summary, tile, Change("level", ""), rise="good")
    weeks = [each for each in summary.previous_weeks if each.incidents >= SMALLEST_N]
    percents = [round(100 * each.healed / each.incidents) for each in weeks]
    change = against(round(100 * healed / incidents), percents, " %")
    tile = replace(tile, note=f"{share(healed, incidents)}, {change.sentence}")
    return _judged(summary, tile, change, rise="good")


def _judged(summary: Summary, tile: Tile, change: Change, *, rise: str) -> Tile:
    """A week with days missing is not judged against whole ones."""
    if not summary.is_whole:
        read = f"{summary.days_read} of {len(summary.days)} days read"
        return replace(tile, note=f"{tile.note}; {read}")
    fall = {"good": "bad", "bad": "good"}[rise]
    tone = {"rise": rise, "fall": fall}.get(change.direction, "plain")
    return replace(tile, direction=change.direction, tone=tone)


def _time_to_heal(summary: Summary) -> Tile:
    """Of the listed incidents alone: the summary holds no others."""
    title = "Time to heal"
    known = [each.seconds_to_heal for each in summary.cases]
    seconds = sorted(each for each in known if each is not None)
    if not seconds:
        return Tile(title, "\N{EN DASH}", "", "nothing was healed")
    of = counted(len(seconds), "listed incident" if summary.cases_left_out else "incident")
    if len(seconds) == 1:
        return Tile(title, duration(seconds[0]), "", of)
    if len(seconds) < SMALLEST_N:
        every = listed([duration(each) for each in seconds])
        return Tile(title, duration(seconds[-1]), "", f"the longest of {of}: {every}")
    between = f"from {duration(seconds[0])} to {duration(seconds[-1])}"
    return Tile(title, duration(median(seconds)), "", f"median of {of}, {between}")
