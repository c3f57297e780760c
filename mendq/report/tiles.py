"""The tiles of the report. Each shows one number of the week.

Most tiles compare the number with the median of the earlier weeks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from statistics import median

from msgspec import Struct
from msgspec.structs import replace

from mendq.report.summary import Summary
from mendq.report.summary_parts import DAYS_PER_WEEK, MAXIMUM_PREVIOUS_WEEKS, EarlierWeek, Totals
from mendq.report.words import format_duration, format_number, format_percent, join_names

# With fewer incidents, a share or a median says less than the figures themselves.
LEAST_INCIDENTS_TO_COMPARE = 5
NO_EARLIER_WEEK_NOTE = "no whole week before it to compare with"
UNKNOWN_FIGURE_TEXT = "\N{EN DASH}"
# A figure of each week, this week's last. None for an earlier week that was not read whole, and for
# a week without a figure.
WeeklyFigures = tuple[float | None, ...]
FigureFormat = Callable[[float], str]
# The direction of a change ("rise", "fall" or "level"), and the text that compares.
DirectionAndText = tuple[str, str]


class Tile(Struct, frozen=True):
    """A box of the report with one number of the week and a sentence about it."""

    title: str
    figure: str
    # What the figure is a part of, such as "of 120". May be empty.
    whole_text: str
    note: str
    # "rise", "fall" or "level".
    direction: str = "level"
    # "good", "bad" or "plain".
    tone: str = "plain"
    # The figures of eight weeks, this week's last. Empty if nothing is known of earlier weeks.
    weekly_figures: WeeklyFigures = ()
    # A part of each week's figure that is drawn in another colour, or empty.
    weekly_part: WeeklyFigures = ()

    @property
    def text(self) -> str:
        """The tile as plain text."""
        return f"{self.figure} {self.whole_text}".strip() + f", {self.note}"


def make_tiles(summary: Summary) -> tuple[Tile, ...]:
    """Return the tiles of the week. Empty if nothing was read.

    The tiles are: incidents, healed, urgent notifications, time to fix, and failed calls. A
    backtest has the tiles incidents, changed, proposed, paged and failed calls.
    """
    if summary.nothing_was_read:
        return ()
    failed_calls_tile = _make_count_tile(summary, "Failed calls", lambda week: week.failed_calls)
    if summary.had_mendq_in:
        return (_make_incidents_tile(summary), *_make_backtest_tiles(summary), failed_calls_tile)
    return (
        _make_incidents_tile(summary),
        _make_healed_tile(summary),
        _make_urgent_notifications_tile(summary),
        _make_time_to_fix_tile(summary),
        failed_calls_tile,
    )


def _make_backtest_tiles(summary: Summary) -> tuple[Tile, ...]:
    """Return the tiles of a backtest: for how many incidents Mendq would have acted.

    There are three tiles: would have changed the queue, proposed a change, or paged people.
    """
    whole_text = f"of {summary.totals.incidents:,}"
    note = "each decided for itself"
    incident_count_by_action = {
        "changed": summary.by_outcome.get("applied", 0),
        "proposed": summary.by_outcome.get("proposed", 0),
        "paged": summary.totals.urgent,
    }
    return tuple(
        Tile(f"Would have {action}", f"{incident_count:,}", whole_text, note)
        for action, incident_count in incident_count_by_action.items()
    )


def compare_with_earlier_weeks(
    figure: float,
    earlier_figures: Sequence[float],
    format_figure: FigureFormat = format_number,
    format_difference: FigureFormat | None = None,
) -> DirectionAndText:
    """Compare this week's number with the median of the earlier weeks.

    Args:
        figure: This week's number.
        earlier_figures: The numbers of the earlier weeks.
        format_figure: Formats a number.
        format_difference: Formats a difference of two numbers. By default `format_figure` does it.

    Returns:
        The direction (`rise`, `fall` or `level`), and a text such as `3 above the 7-week median of
        9`.
    """
    if not earlier_figures:
        return "level", NO_EARLIER_WEEK_NOTE
    median_figure = median(earlier_figures)
    earlier_median_text = (
        f"the {len(earlier_figures)}-week median of {format_figure(median_figure)}"
    )
    if len(earlier_figures) == 1:
        earlier_median_text = f"the {format_figure(median_figure)} of the one earlier week"
    if figure == median_figure:
        return "level", f"equal to {earlier_median_text}"
    difference_text = (format_difference or format_figure)(abs(figure - median_figure))
    if figure > median_figure:
        return "rise", f"{difference_text} above {earlier_median_text}"
    return "fall", f"{difference_text} below {earlier_median_text}"


def _list_completely_read_weeks(summary: Summary) -> list[EarlierWeek]:
    """Return the earlier weeks of which every day was read. The sums of others may be too low."""
    return [earlier_week for earlier_week in summary.previous_weeks if earlier_week.is_whole]


def _add_tone(summary: Summary, tile: Tile, direction: str, *, rise_tone: str) -> Tile:
    """Return the tile with its direction, and with the tone (colour) of that direction.

    `rise_tone` is `good` or `bad`: the tone if the number rises. A fall has the opposite tone. The
    tile is unchanged if this week is not whole, because the week cannot be compared then.
    """
    if not summary.is_whole:
        return tile
    fall_tone = {"good": "bad", "bad": "good"}[rise_tone]
    tile_tone = {"rise": rise_tone, "fall": fall_tone}.get(direction, "plain")
    return replace(tile, direction=direction, tone=tile_tone)


def _make_count_tile(
    summary: Summary, title: str, get_figure: Callable[[Totals | EarlierWeek], int]
) -> Tile:
    """Return the tile of a count that is bad news if it rises."""
    figure = get_figure(summary.totals)
    direction, note = compare_with_earlier_weeks(
        figure, [get_figure(earlier_week) for earlier_week in _list_completely_read_weeks(summary)]
    )
    tile = Tile(
        title, f"{figure:,}", "", note, weekly_figures=_list_weekly_figures(summary, get_figure)
    )
    return _add_tone(summary, tile, direction, rise_tone="bad")


def _list_weekly_figures(
    summary: Summary, get_figure: Callable[[Totals | EarlierWeek], float | None]
) -> WeeklyFigures:
    """Return the number of each of the last eight weeks, this week's last.

    None stands for an earlier week that was not read completely, and for a week without a number.
    Empty if no earlier week has a number.
    """
    earlier_figures = [
        None if earlier_week is None else get_figure(earlier_week)
        for earlier_week in list_earlier_weeks(summary)
    ]
    if all(figure is None for figure in earlier_figures):
        return ()
    return (*earlier_figures, get_figure(summary.totals))


def describe_weeks(tile: Tile) -> str:
    """List the numbers of a tile's weeks in a text, for people who cannot see the chart."""
    figure_texts = [
        "not known" if figure is None else format_number(figure) for figure in tile.weekly_figures
    ]
    return "Week by week to this one: " + ", ".join(figure_texts)


def _make_incidents_tile(summary: Summary) -> Tile:
    """Return the tile with the number of incidents.

    The note adds what found them if scans found some, and the number of days read if days are
    missing.
    """
    tile = _make_count_tile(summary, "Incidents", lambda week: week.incidents)
    incidents_found_by_scans = summary.by_found_by.scan
    if incidents_found_by_scans:
        incidents_found_by_calls = summary.by_found_by.failed_calls
        found_by_text = (
            f"{incidents_found_by_calls:,} by failed calls, {incidents_found_by_scans:,} by scans"
        )
        tile = replace(tile, note=f"{found_by_text}; {tile.note}")
    if summary.every_day_was_read:
        return tile
    return replace(
        tile, note=f"{tile.note}; {summary.read_day_count} of {len(summary.days)} days read"
    )


def _make_healed_tile(summary: Summary) -> Tile:
    """Return the tile with the number of incidents that were healed without a person.

    A rise of their share of all incidents is good. With fewer than LEAST_INCIDENTS_TO_COMPARE
    incidents, the share is not compared.
    """
    title = "Healed without a person"
    incident_count = summary.totals.incidents
    healed_count = summary.totals.healed
    if not incident_count:
        return Tile(title, "0", "", "there was nothing to heal")
    weekly_figures = _list_weekly_figures(summary, lambda week: week.healed)
    tile = Tile(
        title,
        f"{healed_count:,}",
        f"of {incident_count:,}",
        "too few for a share",
        weekly_figures=weekly_figures,
    )
    if incident_count < LEAST_INCIDENTS_TO_COMPARE:
        return tile
    earlier_healed_percents = [
        round(100 * week.healed / week.incidents)
        for week in _list_completely_read_weeks(summary)
        if week.incidents >= LEAST_INCIDENTS_TO_COMPARE
    ]
    healed_percent = round(100 * healed_count / incident_count)
    direction, note = compare_with_earlier_weeks(
        healed_percent,
        earlier_healed_percents,
        lambda value: f"{format_number(value)} %",
        lambda difference: f"{format_number(difference)} points",
    )
    tile = replace(tile, note=f"{format_percent(healed_count, incident_count)}, {note}")
    return _add_tone(summary, tile, direction, rise_tone="good")


def _make_urgent_notifications_tile(summary: Summary) -> Tile:
    """Return the tile with the number of urgent notifications that cases sent this week.

    Notifications about older cases count too. If the cases were not read, the number is not known.
    The note says how many were sent at night or at the weekend.
    """
    title = "Urgent notifications"
    if not summary.cases_were_read:
        return Tile(title, UNKNOWN_FIGURE_TEXT, "", "the cases were not read")
    tile = _make_count_tile(summary, title, lambda week: week.urgent_notifications)
    note = tile.note
    if summary.totals.urgent_notifications:
        note = f"{summary.totals.out_of_hours:,} at night or at the weekend; {note}"
    weekly_part = _list_weekly_figures(summary, lambda week: week.out_of_hours)
    return replace(tile, note=note, weekly_part=weekly_part)


def _make_time_to_fix_tile(summary: Summary) -> Tile:
    """Return the tile with the median time to fix.

    If fewer than LEAST_INCIDENTS_TO_COMPARE times are known, and the summary contains all of them,
    the tile shows the longest time and lists all times.
    """
    title = "Time to fix"
    timed_fix_count = summary.totals.healed_with_time
    median_seconds = summary.totals.median_seconds_to_heal
    if not timed_fix_count or median_seconds is None:
        return Tile(title, UNKNOWN_FIGURE_TEXT, "", "no fix was timed")
    fix_seconds: list[float] = []
    for symptom_times in summary.times_to_heal:
        fix_seconds.extend(symptom_times.seconds)
    fix_seconds.sort()
    if timed_fix_count < LEAST_INCIDENTS_TO_COMPARE and len(fix_seconds) == timed_fix_count:
        fix_times_text = join_names([format_duration(seconds) for seconds in fix_seconds])
        note = (
            f"the longest of {timed_fix_count}: {fix_times_text}"
            if timed_fix_count > 1
            else "1 incident"
        )
        return Tile(title, format_duration(fix_seconds[-1]), "", note)
    earlier_median_seconds = [
        week.median_seconds_to_heal
        for week in _list_completely_read_weeks(summary)
        if week.healed_with_time >= LEAST_INCIDENTS_TO_COMPARE
        and week.median_seconds_to_heal is not None
    ]
    direction, comparison_text = compare_with_earlier_weeks(
        median_seconds, earlier_median_seconds, format_duration
    )
    weekly_figures = _list_weekly_figures(summary, lambda week: week.median_seconds_to_heal)
    note = f"median of {timed_fix_count:,}, {comparison_text}"
    tile = Tile(title, format_duration(median_seconds), "", note, weekly_figures=weekly_figures)
    return _add_tone(summary, tile, direction, rise_tone="bad")


def list_earlier_weeks(summary: Summary) -> tuple[EarlierWeek | None, ...]:
    """Return the sums of the seven weeks before this one, the oldest first.

    None stands for a week that was not read completely, or that the summary does not contain.
    """
    week_by_name = {
        earlier_week.week: earlier_week for earlier_week in _list_completely_read_weeks(summary)
    }
    earlier_weeks = []
    for weeks_ago in range(MAXIMUM_PREVIOUS_WEEKS, 0, -1):
        monday = summary.first_day - timedelta(days=DAYS_PER_WEEK * weeks_ago)
        earlier_weeks.append(week_by_name.get(f"{monday:%G-W%V}"))
    return tuple(earlier_weeks)
