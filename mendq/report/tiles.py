"""The week in figures, each against the median of up to four weeks before."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import median

from msgspec import Struct
from msgspec.structs import replace

from mendq.report.summary import EarlierWeek, Summary, Totals
from mendq.report.words import duration, listed, number, share

# Below this many, a share or a median says less than the figures themselves.
SMALLEST_N = 5
NO_WEEK = "no whole week before it to compare with"
Written = Callable[[float], str]
# Rise, fall or level, and a sentence against what.
Change = tuple[str, str]


class Tile(Struct, frozen=True):
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
    """Incidents, healed, paged, time to heal, failed calls; none where nothing was read."""
    if summary.nothing_was_read:
        return ()
    return (
        _incidents(summary),
        _healed(summary),
        _notified(summary),
        _time_to_heal(summary),
        _counted(summary, "Failed calls", lambda week: week.failed_calls),
    )


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
    return _judged(summary, Tile(title, f"{now:,}", "", note), direction, rise="bad")


def _incidents(summary: Summary) -> Tile:
    """The first tile says for all of them how many days they are of."""
    tile = _counted(summary, "Incidents", lambda week: week.incidents)
    if summary.every_day_was_read:
        return tile
    return replace(tile, note=f"{tile.note}; {summary.days_read} of {len(summary.days)} days read")


def _healed(summary: Summary) -> Tile:
    title, totals = "Healed without a page", summary.totals
    incidents, healed = totals.incidents, totals.healed
    if not incidents:
        return Tile(title, "0", "", "there was nothing to heal")
    tile = Tile(title, f"{healed:,}", f"of {incidents:,}", "too few for a share")
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


def _notified(summary: Summary) -> Tile:
    tile = _counted(summary, "Reached a person", lambda week: week.notified)
    incidents = summary.totals.incidents
    return replace(tile, of=f"of {incidents:,}") if incidents else tile


def _time_to_heal(summary: Summary) -> Tile:
    """The median of all that were timed; of few, each of them."""
    title, totals = "Time to heal", summary.totals
    count, middle = totals.healed_with_time, totals.median_seconds_to_heal
    if not count or middle is None:
        return Tile(title, "\N{EN DASH}", "", "no healing was timed")
    seconds = sorted(each for symptom in summary.times_to_heal for each in symptom.seconds)
    if count < SMALLEST_N and len(seconds) == count:
        every = listed([duration(each) for each in seconds])
        note = f"the longest of {count}: {every}" if count > 1 else "1 incident"
        return Tile(title, duration(seconds[-1]), "", note)
    weeks = [each for each in _whole_weeks(summary) if each.healed_with_time >= SMALLEST_N]
    before = [it for each in weeks if (it := each.median_seconds_to_heal) is not None]
    direction, said = against(middle, before, duration)
    tile = Tile(title, duration(middle), "", f"median of {count:,}, {said}")
    return _judged(summary, tile, direction, rise="bad")
