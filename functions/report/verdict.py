"""What a tired reader needs first; every sentence is computed."""

from __future__ import annotations

from functions.report.not_seen import not_seen_in_short
from functions.report.standout import standout
from functions.report.summary import APPLIED, OBSERVED, Summary
from functions.report.tiles import tiles
from functions.report.visible import unlinked
from functions.report.words import counted, days_of, week_name


def headline(summary: Summary) -> str:
    """How many incidents, how many healed without a page, how many reached a person."""
    if summary.nothing_was_read:
        return "Nothing was read this week: whether there were incidents is not known."
    where = "" if summary.is_whole else f" in the {_days_read(summary)}"
    if not summary.totals.incidents:
        return f"No incidents{where or ' this week'}."
    clauses = [_healed(summary), _applied(summary), _paged(summary), _observed(summary)]
    counts = ", ".join(each for each in clauses if each)
    return f"{counted(summary.totals.incidents, 'incident')}{where}: {counts}."


def verdict_text(summary: Summary) -> str:
    """The verdict for a plain-text mail: at most 9 lines."""
    outstanding = standout(summary)
    lines = [
        f"Mendq, {week_name(summary.week)} ({days_of(summary.first_day, summary.last_day)}, UTC)",
        headline(summary),
        outstanding.sentence if outstanding else "",
        f"Why: {outstanding.because}" if outstanding else "",
        *(f"{each.title}: {each.in_words}" for each in tiles(summary)[:4]),
        f"Read: {not_seen_in_short(summary)}",
    ]
    return "\n".join(unlinked(each) for each in lines if each)


def _days_read(summary: Summary) -> str:
    return f"{counted(summary.days_read, 'day')} that {_was(summary.days_read)} read"


def _was(number: int) -> str:
    return "was" if number == 1 else "were"


def _healed(summary: Summary) -> str:
    incidents, healed = summary.totals.incidents, summary.totals.healed
    if not healed:
        return "not healed" if incidents == 1 else "none healed"
    if healed < incidents:
        return f"{healed:,} healed without a page"
    return {1: "healed", 2: "both healed"}.get(incidents, "all healed") + " without a page"


def _applied(summary: Summary) -> str:
    """Changed, and nobody has seen yet whether it helped."""
    applied = dict(summary.by_outcome).get(APPLIED, 0)
    return f"{applied:,} changed but not verified yet" if applied else ""


def _paged(summary: Summary) -> str:
    return f"{summary.totals.paged:,} paged a person" if summary.totals.paged else ""


def _observed(summary: Summary) -> str:
    """The default mode: nothing is changed until somebody allows it."""
    observed = dict(summary.by_outcome).get(OBSERVED, 0)
    return f"{observed:,} only observed (mode observe)" if observed else ""
