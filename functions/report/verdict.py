"""What a tired reader needs first; every sentence is computed."""

from __future__ import annotations

from functions.report.not_seen import not_seen_in_short
from functions.report.standout import standout
from functions.report.summary import HEALED, Summary
from functions.report.tiles import tiles
from functions.report.visible import unlinked, visible
from functions.report.words import counted, days_of, week_name

_OUTCOMES = {
    "approved": "healed after approval",
    "applied": "changed but not verified yet",
    "observed": "only observed (mode observe)",
    "proposed": "waiting for approval",
    "refused": "refused",
    "declined": "declined",
    "expired": "expired without an answer",
    "ineffective": "changed without effect",
    "contested": "left to whoever changed it back",
    "rolled_back": "rolled back",
    "escalated": "left to a person",
    "not_seen": "without a case",
}


def headline(summary: Summary) -> str:
    """How many incidents, how many healed without a page, how many reached a person."""
    if summary.nothing_was_read:
        return "Nothing was read this week: whether there were incidents is not known."
    where = "" if summary.is_whole else f" in the {_days_read(summary)}"
    if not summary.totals.incidents:
        return f"No incidents{where or ' this week'}."
    clauses = [_healed(summary), *_not_healed(summary), _paged(summary)]
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


def _not_healed(summary: Summary) -> list[str]:
    """What became of the others, so that the clauses add up; an unknown outcome keeps its word."""
    told = {HEALED} | ({"escalated"} if _all_paged(summary) else set())
    others = ((outcome, n) for outcome, n in summary.by_outcome if outcome not in told and n)
    said = {outcome: f"{n:,} {_OUTCOMES.get(outcome, visible(outcome))}" for outcome, n in others}
    first = [each for each in _OUTCOMES if each in said]
    return [said[each] for each in (*first, *sorted(said.keys() - _OUTCOMES.keys()))]


def _all_paged(summary: Summary) -> bool:
    """Whether the pages say of every escalation that it reached a person."""
    return dict(summary.by_outcome).get("escalated", 0) <= summary.totals.paged


def _paged(summary: Summary) -> str:
    return f"{summary.totals.paged:,} paged a person" if summary.totals.paged else ""
