"""The tiles of the report: figures of the week, compared with the median of earlier weeks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from statistics import median

from msgspec import Struct
from msgspec.structs import replace

from mendq.report.summary import Summary
from mendq.report.summary_parts import DAYS, MOST_PREVIOUS_WEEKS, EarlierWeek, Totals
from mendq.report.words import duration, join_names, number, share

# With fewer incidents, a share or a median says less than the figures themselves.
SMALLEST_N = 5
NO_WEEK = "no whole week before it to compare with"
NOT_KNOWN = "\N{EN DASH}"
# A figure of each week, the newest last. None if the week was not read whole, or has no figure.
Series = tuple[float | None, ...]
Format = Callable[[float], str]
# The direction of a change ("rise", "fall" or "level"), and the text that compares.
Change = tuple[str, str]


class Tile(Struct, frozen=True):
    """One figure of the week, with its sentence."""

    title: str
    figure: str
    # What the figure is a part of, such as "of 120". May be empty.
    of: str
    note: str
    # "rise", "fall" or "level".
    direction: str = "level"
    # "good", "bad" or "plain".
    tone: str = "plain"
    # The figures of eight weeks, this week's last. Empty if nothing is known of earlier weeks.
    weeks: Series = ()
    # A part of each week's figure that is drawn in another colour, or empty.
    part: Series = ()

    @property
    def text(self) -> str:
        """The tile as plain text."""
        return f"{self.figure} {self.of}".strip() + f", {self.note}"


def make_tiles(summary: Summary) -> tuple[Tile, ...]:
    """Return the tiles of the week. Empty if nothing was read.

    They are: incidents, healed, paged, time to fix, failed calls. In a backtest they are:
    incidents; would have changed, proposed and paged; failed calls.
    """
    if summary.nothing_was_read:
        return ()
    failed_calls = _count_tile(summary, "Failed calls", lambda week: week.failed_calls)
    if summary.had_mendq_in:
        return (_incidents_tile(summary), *_backtest_tiles(summary), failed_calls)
    return (
        _incidents_tile(summary),
        _healed_tile(summary),
        _paged_tile(summary),
        _time_to_fix_tile(summary),
        failed_calls,
    )


def _backtest_tiles(summary: Summary) -> tuple[Tile, ...]:
    """Return how many incidents Mendq would have changed, proposed to change, or paged about."""
    of = f"of {summary.totals.incidents:,}"
    note = "each decided for itself"
    figures = {
        "changed": summary.by_outcome.get("applied", 0),
        "proposed": summary.by_outcome.get("proposed", 0),
        "paged": summary.totals.urgent,
    }
    return tuple(
        Tile(f"Would have {verb}", f"{count:,}", of, note) for verb, count in figures.items()
    )


def compare_with_weeks(
    now: float,
    before: Sequence[float],
    format_figure: Format = number,
    format_difference: Format | None = None,
) -> Change:
    """Compare this week's figure with the median of earlier weeks. Return direction and text.

    Args:
        now: this week's figure.
        before: the figures of the earlier weeks.
        format_figure: returns a figure as text.
        format_difference: returns a difference of two figures as text, if that is another form.
    """
    if not before:
        return "level", NO_WEEK
    usual = median(before)
    basis = f"the {len(before)}-week median of {format_figure(usual)}"
    if len(before) == 1:
        basis = f"the {format_figure(usual)} of the one earlier week"
    if now == usual:
        return "level", f"equal to {basis}"
    difference = (format_difference or format_figure)(abs(now - usual))
    if now > usual:
        return "rise", f"{difference} above {basis}"
    return "fall", f"{difference} below {basis}"


def _whole_weeks(summary: Summary) -> list[EarlierWeek]:
    """Return the earlier weeks that were read whole. In others, incidents may be missing."""
    return [week for week in summary.previous_weeks if week.is_whole]


def _with_tone(summary: Summary, tile: Tile, direction: str, *, rise: str) -> Tile:
    """Return the tile with its direction and tone. `rise` is the tone of a rise, "good" or "bad".

    A week with missing days has no tone, because it cannot be compared with whole weeks.
    """
    if not summary.is_whole:
        return tile
    fall = {"good": "bad", "bad": "good"}[rise]
    tone = {"rise": rise, "fall": fall}.get(direction, "plain")
    return replace(tile, direction=direction, tone=tone)


def _count_tile(
    summary: Summary, title: str, figure_of: Callable[[Totals | EarlierWeek], int]
) -> Tile:
    """Return the tile of a count. A rise of the count is bad news."""
    now = figure_of(summary.totals)
    direction, note = compare_with_weeks(now, [figure_of(week) for week in _whole_weeks(summary)])
    tile = Tile(title, f"{now:,}", "", note, weeks=_weekly_figures(summary, figure_of))
    return _with_tone(summary, tile, direction, rise="bad")


def _weekly_figures(
    summary: Summary, figure_of: Callable[[Totals | EarlierWeek], float | None]
) -> Series:
    """Return the figure of each week, this week's last. Empty if no earlier week has one."""
    before = [None if week is None else figure_of(week) for week in list_weeks_before(summary)]
    if all(figure is None for figure in before):
        return ()
    return (*before, figure_of(summary.totals))


def describe_weeks(tile: Tile) -> str:
    """Return the figures of the weeks in words, for people who cannot see the chart."""
    figures = ["not known" if figure is None else number(figure) for figure in tile.weeks]
    return "Week by week to this one: " + ", ".join(figures)


def _incidents_tile(summary: Summary) -> Tile:
    """Return the tile of the incidents. If days are missing, it says how many days were read."""
    tile = _count_tile(summary, "Incidents", lambda week: week.incidents)
    by_scans = summary.by_found_by.scan
    if by_scans:
        by_calls = summary.by_found_by.failed_calls
        note = f"{by_calls:,} by failed calls, {by_scans:,} by scans; {tile.note}"
        tile = replace(tile, note=note)
    if summary.every_day_was_read:
        return tile
    return replace(tile, note=f"{tile.note}; {summary.days_read} of {len(summary.days)} days read")


def _healed_tile(summary: Summary) -> Tile:
    """Return the tile of the incidents healed without a person. A rise of their share is good."""
    title = "Healed without a person"
    incidents = summary.totals.incidents
    healed = summary.totals.healed
    if not incidents:
        return Tile(title, "0", "", "there was nothing to heal")
    weekly = _weekly_figures(summary, lambda week: week.healed)
    tile = Tile(title, f"{healed:,}", f"of {incidents:,}", "too few for a share", weeks=weekly)
    if incidents < SMALLEST_N:
        return tile
    percents = [
        round(100 * week.healed / week.incidents)
        for week in _whole_weeks(summary)
        if week.incidents >= SMALLEST_N
    ]
    percent = round(100 * healed / incidents)
    direction, note = compare_with_weeks(
        percent,
        percents,
        lambda value: f"{number(value)} %",
        lambda difference: f"{number(difference)} points",
    )
    tile = replace(tile, note=f"{share(healed, incidents)}, {note}")
    return _with_tone(summary, tile, direction, rise="good")


def _paged_tile(summary: Summary) -> Tile:
    """Return the tile of the urgent notifications of this week, also about older cases.

    The note says how many were sent at night or at the weekend.
    """
    title = "Urgent notifications"
    if not summary.cases_were_read:
        return Tile(title, NOT_KNOWN, "", "the cases were not read")
    tile = _count_tile(summary, title, lambda week: week.urgent_notifications)
    note = tile.note
    if summary.totals.urgent_notifications:
        note = f"{summary.totals.out_of_hours:,} at night or at the weekend; {note}"
    part = _weekly_figures(summary, lambda week: week.out_of_hours)
    return replace(tile, note=note, part=part)


def _time_to_fix_tile(summary: Summary) -> Tile:
    """Return the tile of the median time to fix. If only few were timed, it lists all times."""
    title = "Time to fix"
    count = summary.totals.healed_with_time
    median_seconds = summary.totals.median_seconds_to_heal
    if not count or median_seconds is None:
        return Tile(title, NOT_KNOWN, "", "no fix was timed")
    seconds: list[float] = []
    for symptom in summary.times_to_heal:
        seconds.extend(symptom.seconds)
    seconds.sort()
    if count < SMALLEST_N and len(seconds) == count:
        times = join_names([duration(value) for value in seconds])
        note = f"the longest of {count}: {times}" if count > 1 else "1 incident"
        return Tile(title, duration(seconds[-1]), "", note)
    before = [
        week.median_seconds_to_heal
        for week in _whole_weeks(summary)
        if week.healed_with_time >= SMALLEST_N and week.median_seconds_to_heal is not None
    ]
    direction, comparison = compare_with_weeks(median_seconds, before, duration)
    weekly = _weekly_figures(summary, lambda week: week.median_seconds_to_heal)
    note = f"median of {count:,}, {comparison}"
    tile = Tile(title, duration(median_seconds), "", note, weeks=weekly)
    return _with_tone(summary, tile, direction, rise="bad")


def list_weeks_before(summary: Summary) -> tuple[EarlierWeek | None, ...]:
    """Return the seven weeks before this one, oldest first. None for a week not read whole."""
    week_by_name = {week.week: week for week in _whole_weeks(summary)}
    weeks = []
    for weeks_ago in range(MOST_PREVIOUS_WEEKS, 0, -1):
        monday = summary.first_day - timedelta(days=DAYS * weeks_ago)
        weeks.append(week_by_name.get(f"{monday:%G-W%V}"))
    return tuple(weeks)
