"""The week in figures, each against the median of up to four weeks before."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from statistics import median

from msgspec import Struct
from msgspec.structs import replace

from mendq.report.summary import Summary
from mendq.report.summary_parts import DAYS, MOST_PREVIOUS_WEEKS, EarlierWeek, Totals
from mendq.report.words import duration, listed, number, share

# Below this many, a share or a median says less than the figures themselves.
SMALLEST_N = 5
NO_WEEK = "no whole week before it to compare with"
NOT_KNOWN = "\N{EN DASH}"
# None where the week was not read whole, or has no such figure.
Series = tuple[float | None, ...]
Written = Callable[[float], str]
# Rise, fall or level, and a sentence against what.
Change = tuple[str, str]


class Tile(Struct, frozen=True):
    """A figure, what it is a part of, and its sentence.

    `direction` is rise, fall or level; `tone`, whether that is good, bad or plain. `weeks` are the
    figures of eight weeks, this one's last, or none; `part` is a part of each that is set apart.
    """

    title: str
    figure: str
    of: str
    note: str
    direction: str = "level"
    tone: str = "plain"
    weeks: Series = ()
    part: Series = ()

    @property
    def in_words(self) -> str:
        return f"{self.figure} {self.of}".strip() + f", {self.note}"


def tiles(summary: Summary) -> tuple[Tile, ...]:
    """Incidents, healed, paged, time to fix, failed calls; none where nothing was read."""
    if summary.nothing_was_read:
        return ()
    failed_calls = _counted(summary, "Failed calls", lambda week: week.failed_calls)
    if summary.had_mendq_in:
        return (_incidents(summary), *_would_have_been(summary), failed_calls)
    return (
        _incidents(summary),
        _healed(summary),
        _paged(summary),
        _time_to_heal(summary),
        failed_calls,
    )


def _would_have_been(summary: Summary) -> tuple[Tile, ...]:
    """Had Mendq been there: of so many incidents."""
    changed, proposed = (summary.by_outcome.get(each, 0) for each in ("applied", "proposed"))
    figures = {"changed": changed, "proposed": proposed, "paged": summary.totals.urgent}
    of, note = f"of {summary.totals.incidents:,}", "each decided for itself"
    return tuple(Tile(f"Would have {it}", f"{n:,}", of, note) for it, n in figures.items())


def against(
    now: float, before: Sequence[float], written: Written = number, apart: Written | None = None
) -> Change:
    """`now` against the median of the weeks `before`; says how many those are.

    `written` says a figure, `apart` the difference of two where that is said otherwise.
    """
    if not before:
        return "level", NO_WEEK
    usual = median(before)
    basis = f"the {len(before)}-week median of {written(usual)}"
    if len(before) == 1:
        basis = f"the {written(usual)} of the one earlier week"
    if now == usual:
        return "level", f"equal to {basis}"
    size = (apart or written)(abs(now - usual))
    return ("rise", f"{size} above {basis}") if now > usual else ("fall", f"{size} below {basis}")


def _whole_weeks(summary: Summary) -> list[EarlierWeek]:
    """A week of few nightly runs had few incidents, which says nothing."""
    return [each for each in summary.previous_weeks if each.is_whole]


def _judged(summary: Summary, tile: Tile, direction: str, *, rise: str) -> Tile:
    """A week with days missing is not judged against whole ones."""
    if not summary.is_whole:
        return tile
    fall = {"good": "bad", "bad": "good"}[rise]
    tone = {"rise": rise, "fall": fall}.get(direction, "plain")
    return replace(tile, direction=direction, tone=tone)


def _counted(
    summary: Summary, title: str, figure_of: Callable[[Totals | EarlierWeek], int]
) -> Tile:
    now = figure_of(summary.totals)
    direction, note = against(now, [figure_of(each) for each in _whole_weeks(summary)])
    tile = Tile(title, f"{now:,}", "", note, weeks=_weeks(summary, figure_of))
    return _judged(summary, tile, direction, rise="bad")


def _weeks(summary: Summary, figure_of: Callable[[Totals | EarlierWeek], float | None]) -> Series:
    """None at all where this week has nothing before it to stand beside."""
    before = [None if each is None else figure_of(each) for each in weeks_before(summary)]
    known = any(each is not None for each in before)
    return (*before, figure_of(summary.totals)) if known else ()


def in_words(tile: Tile) -> str:
    """The tile's weeks for who cannot see them."""
    return "Week by week to this one: " + ", ".join(
        "not known" if each is None else number(each) for each in tile.weeks
    )


def _incidents(summary: Summary) -> Tile:
    """The first tile says for all of them how many days they are of."""
    tile = _counted(summary, "Incidents", lambda week: week.incidents)
    if scans := summary.by_found_by.scan:
        calls = summary.by_found_by.failed_calls
        tile = replace(tile, note=f"{calls:,} by failed calls, {scans:,} by scans; {tile.note}")
    if summary.every_day_was_read:
        return tile
    return replace(tile, note=f"{tile.note}; {summary.days_read} of {len(summary.days)} days read")


def _healed(summary: Summary) -> Tile:
    title, totals = "Healed without a person", summary.totals
    incidents, healed = totals.incidents, totals.healed
    if not incidents:
        return Tile(title, "0", "", "there was nothing to heal")
    by_week = _weeks(summary, lambda week: week.healed)
    tile = Tile(title, f"{healed:,}", f"of {incidents:,}", "too few for a share", weeks=by_week)
    if incidents < SMALLEST_N:
        return tile
    weeks = [each for each in _whole_weeks(summary) if each.incidents >= SMALLEST_N]
    percents = [round(100 * each.healed / each.incidents) for each in weeks]
    percent = round(100 * healed / incidents)
    direction, note = against(
        percent, percents, lambda it: f"{number(it)} %", lambda it: f"{number(it)} points"
    )
    tile = replace(tile, note=f"{share(healed, incidents)}, {note}")
    return _judged(summary, tile, direction, rise="good")


def _paged(summary: Summary) -> Tile:
    """Whatever the age of their cases; how many were sent when people sleep or are off."""
    title, outside = "Urgent notifications", summary.totals.out_of_hours
    if not summary.cases_were_read:
        return Tile(title, NOT_KNOWN, "", "the cases were not read")
    tile = _counted(summary, title, lambda week: week.urgent_notifications)
    hours = f"{outside:,} at night or at the weekend; " * bool(summary.totals.urgent_notifications)
    part = _weeks(summary, lambda week: week.out_of_hours)
    return replace(tile, note=f"{hours}{tile.note}", part=part)


def _time_to_heal(summary: Summary) -> Tile:
    """The median of all that were timed; of few, each of them."""
    title, totals = "Time to fix", summary.totals
    count, middle = totals.healed_with_time, totals.median_seconds_to_heal
    if not count or middle is None:
        return Tile(title, NOT_KNOWN, "", "no fix was timed")
    seconds = sorted(each for symptom in summary.times_to_heal for each in symptom.seconds)
    if count < SMALLEST_N and len(seconds) == count:
        every = listed([duration(each) for each in seconds])
        note = f"the longest of {count}: {every}" if count > 1 else "1 incident"
        return Tile(title, duration(seconds[-1]), "", note)
    weeks = [each for each in _whole_weeks(summary) if each.healed_with_time >= SMALLEST_N]
    before = [it for each in weeks if (it := each.median_seconds_to_heal) is not None]
    direction, said = against(middle, before, duration)
    by_week = _weeks(summary, lambda week: week.median_seconds_to_heal)
    tile = Tile(title, duration(middle), "", f"median of {count:,}, {said}", weeks=by_week)
    return _judged(summary, tile, direction, rise="bad")


# A bar for each week, this one's last, and a gap for what is not known.


def weeks_before(summary: Summary) -> tuple[EarlierWeek | None, ...]:
    """The seven weeks before this one, oldest first; None for one that was not read whole."""
    known = {each.week: each for each in summary.previous_weeks if each.is_whole}
    back = range(MOST_PREVIOUS_WEEKS, 0, -1)
    mondays = (summary.first_day - timedelta(days=DAYS * each) for each in back)
    return tuple(known.get(f"{each:%G-W%V}") for each in mondays)
