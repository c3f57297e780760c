"""What a tired reader needs first; every sentence is computed."""

from __future__ import annotations

from functions.report.names import marked, plain
from functions.report.not_seen import not_seen_in_short
from functions.report.outcomes import OUTCOMES
from functions.report.standout import standout
from functions.report.summary import MENDED, Summary
from functions.report.tiles import HEALED_TITLE, INCIDENTS_TITLE, PAGED_TITLE, tiles
from functions.report.to_do import to_do
from functions.report.visible import unlinked
from functions.report.words import counted, days_of, week_name

_IN_A_MAIL = (INCIDENTS_TITLE, HEALED_TITLE, PAGED_TITLE)


def headline(summary: Summary) -> str:
    """How many incidents there were, how many were healed, and whether anyone was paged first."""
    so_far = "" if summary.not_seen.week_is_over else " so far"
    if summary.nothing_was_read:
        return f"Nothing was read this week{so_far}: whether there were incidents is not known."
    where = "" if summary.every_day_was_read else f" in the {_days_read(summary)}"
    if not summary.totals.incidents:
        return f"No incidents{so_far}{where or ' this week'}."
    count = counted(summary.totals.incidents, "incident")
    return f"{count}{so_far}{where}, {_healed(summary)}."


def others(summary: Summary) -> str:
    """What became of the incidents that were not healed, and, told apart from it, who was paged."""
    counts, paged = _not_healed(summary), _paged(summary)
    rest = sum(count for _, count in counts)
    if not rest:
        return f"{paged[0].upper()}{paged[1:]}." if paged else ""
    said = ", ".join(f"{count:,} {words}" for words, count in counts)
    said = f"{said}; {paged}" if paged else said
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
        f"Do first: {first.what} {first.effect}".rstrip() if first else "",
        *(f"{title}: {figures[title].in_words}" for title in _IN_A_MAIL if title in figures),
        f"Read: {not_seen_in_short(summary)}",
    ]
    return "\n".join(unlinked(plain(each)) for each in lines if each)


def _days_read(summary: Summary) -> str:
    return f"{counted(summary.days_read, 'day')} that {_was(summary.days_read)} read"


def _was(number: int) -> str:
    return "was" if number == 1 else "were"


def _healed(summary: Summary) -> str:
    """Healed after approval is healed, and said; a page may have come to one healed later on."""
    healed, approved = _how_many_healed(summary), summary.approved
    if not summary.mended:
        return healed
    if approved == summary.mended:
        return f"{healed} after approval"
    if approved:
        return f"{healed}, {approved:,} of them after approval"
    if not summary.totals.paged:
        return f"{healed}, and nobody was paged"
    others_count = summary.totals.incidents - summary.mended
    return healed if summary.totals.paged > others_count else f"{healed} before anyone was paged"


def _how_many_healed(summary: Summary) -> str:
    incidents, mended = summary.totals.incidents, summary.mended
    if not mended:
        return "not healed" if incidents == 1 else "none healed"
    if mended < incidents:
        return f"{mended:,} healed"
    return {1: "healed", 2: "both healed"}.get(incidents, "all healed")


def _not_healed(summary: Summary) -> list[tuple[str, int]]:
    """In what words how many ended; they add up, and an unknown outcome keeps its word."""
    counts = {
        outcome: n for outcome, n in summary.by_outcome.items() if outcome not in MENDED and n
    }
    known = [each for each in OUTCOMES if each in counts]
    unknown = sorted(counts.keys() - OUTCOMES.keys())
    return [(OUTCOMES.get(each) or marked(each), counts[each]) for each in (*known, *unknown)]


def _paged(summary: Summary) -> str:
    paged, incidents = summary.totals.paged, summary.totals.incidents
    if not paged:
        return ""
    if incidents == 1:
        return "it paged a person"
    of = f"{paged:,} of the {incidents:,}"
    if paged == incidents:
        of = "both" if incidents == 2 else f"all {incidents:,}"
    return f"{of} paged a person"
