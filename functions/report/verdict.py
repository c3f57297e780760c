"""What a tired reader needs first; every sentence is computed."""

from __future__ import annotations

from functions.report.names import marked, plain
from functions.report.not_seen import not_seen_in_short
from functions.report.standout import standout
from functions.report.summary import HEALED, Summary
from functions.report.tiles import HEALED_TITLE, INCIDENTS_TITLE, PAGED_TITLE, tiles
from functions.report.to_do import to_do
from functions.report.visible import unlinked
from functions.report.words import counted, days_of, week_name

_IN_A_MAIL = (INCIDENTS_TITLE, HEALED_TITLE, PAGED_TITLE)
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
    """How many incidents there were, and how many healed before anyone was paged."""
    if summary.nothing_was_read:
        return "Nothing was read this week: whether there were incidents is not known."
    where = "" if summary.is_whole else f" in the {_days_read(summary)}"
    if not summary.totals.incidents:
        return f"No incidents{where or ' this week'}."
    count = counted(summary.totals.incidents, "incident")
    return f"{count}{where}, {_healed(summary)} before anyone was paged."


def others(summary: Summary) -> str:
    """What became of the incidents that did not heal by themselves; empty where all did."""
    rest = summary.totals.incidents - summary.totals.healed
    clauses = [*_not_healed(summary), _paged(summary)]
    said = ", ".join(each for each in clauses if each)
    if rest <= 0 or not said:
        return ""
    if rest == summary.totals.incidents:
        return f"What became of {'it' if rest == 1 else 'them'}: {said}."
    return f"The other{'' if rest == 1 else f' {rest:,}'}: {said}."


def verdict_text(summary: Summary) -> str:
    """The verdict for a plain-text mail: at most 9 lines."""
    outstanding = standout(summary)
    first = next(iter(to_do(summary)), None)
    figures = {each.title: each for each in tiles(summary)}
    lines = [
        f"Mendq, {week_name(summary.week)} ({days_of(summary.first_day, summary.last_day)}, UTC)",
        f"{headline(summary)} {others(summary)}".strip(),
        outstanding.sentence if outstanding else "",
        f"Why: {outstanding.because}" if outstanding else "",
        f"Do first: {first.what} {first.effect}" if first else "",
        *(f"{title}: {figures[title].in_words}" for title in _IN_A_MAIL if title in figures),
        f"Read: {not_seen_in_short(summary)}",
    ]
    return "\n".join(unlinked(plain(each)) for each in lines if each)


def _days_read(summary: Summary) -> str:
    return f"{counted(summary.days_read, 'day')} that {_was(summary.days_read)} read"


def _was(number: int) -> str:
    return "was" if number == 1 else "were"


def _healed(summary: Summary) -> str:
    incidents, healed = summary.totals.incidents, summary.totals.healed
    if not healed:
        return "not healed" if incidents == 1 else "none healed"
    if healed < incidents:
        return f"{healed:,} healed"
    return {1: "healed", 2: "both healed"}.get(incidents, "all healed")


def _not_healed(summary: Summary) -> list[str]:
    """What became of the others, so that the clauses add up; an unknown outcome keeps its word."""
    told = {HEALED} | ({"escalated"} if _all_paged(summary) else set())
    counts = ((outcome, n) for outcome, n in summary.by_outcome if outcome not in told and n)
    said = {outcome: f"{n:,} {_OUTCOMES.get(outcome) or marked(outcome)}" for outcome, n in counts}
    first = [each for each in _OUTCOMES if each in said]
    return [said[each] for each in (*first, *sorted(said.keys() - _OUTCOMES.keys()))]


def _all_paged(summary: Summary) -> bool:
    """Whether the pages say of every escalation that it reached a person."""
    return dict(summary.by_outcome).get("escalated", 0) <= summary.totals.paged


def _paged(summary: Summary) -> str:
    return f"{summary.totals.paged:,} paged a person" if summary.totals.paged else ""
