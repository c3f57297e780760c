"""What a tired reader needs first, and the queue that stands out; every sentence is computed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from msgspec import Struct

from mendq.report.not_seen import not_seen_in_short
from mendq.report.open_now import in_short
from mendq.report.summary import Summary
from mendq.report.summary_parts import (
    COUNT_ONLY,
    FIXED,
    RACE,
    UNRESOLVED,
    Incident,
    Member,
    NeedyQueue,
    Organization,
)
from mendq.report.tiles import tiles
from mendq.report.to_do import to_do
from mendq.report.words import (
    OUTCOMES,
    counted,
    day,
    days_of,
    listed,
    marked,
    marked_queue,
    most_first,
    plain,
    queue_name,
    quoted,
    said_calls,
    title,
    unlinked,
    was,
    week_name,
    why_in_words,
)

# Incidents, healed, paged.
_IN_A_MAIL = 3


def headline(summary: Summary) -> str:
    """How many incidents there were, how many were healed, and whether anyone was paged first."""
    so_far = "" if summary.is_over else " so far"
    if summary.nothing_was_read:
        return f"Nothing was read this week{so_far}: whether there were incidents is not known."
    read = f" in the {counted(summary.days_read, 'day')} that {was(summary.days_read)} read"
    where = "" if summary.every_day_was_read else read
    if not summary.totals.incidents:
        new = "new " * summary.has_other_news
        return f"No {new}incidents{so_far}{where or ' this week'}."
    count = counted(summary.totals.incidents, "incident")
    if summary.had_mendq_in:
        return f"Had Mendq been there in mode {summary.had_mendq_in}: {count}{so_far}{where}."
    return f"{count}{so_far}{where}{_found(summary)}, {_healed(summary)}."


def calm(summary: Summary) -> str:
    """How much was read of a week without incidents, and when the last one was."""
    weeks = [each.week for each in summary.previous_weeks if each.incidents]
    before = f"none in the {counted(len(summary.previous_weeks), 'week')} before"
    last = f"last incident in {week_name(weeks[-1])}" if weeks else before
    read = f"{summary.days_read} of {len(summary.days)} days read"
    return " · ".join((read, last) if summary.previous_weeks else (read,))


def others(summary: Summary) -> str:
    """What became of the incidents that were not healed, and, told apart from it, who was paged."""
    counts, notified = _not_healed(summary), _notified(summary)
    rest = sum(count for _, count in counts)
    if not rest:
        return f"{notified[0].upper()}{notified[1:]}." if notified else ""
    ended = ", ".join(f"{count:,} {words}" for words, count in counts)
    said = f"{ended}; {notified}" if notified else ended
    if rest == summary.totals.incidents:
        became = "would have become" if summary.had_mendq_in else "became"
        return f"What {became} of {'it' if rest == 1 else 'them'}: {said}."
    return f"The other{'' if rest == 1 else f' {rest:,}'}: {said}."


def impact(summary: Summary) -> str:
    """What this week's incidents did to messages, where a case knows it; empty where none does."""
    known = [
        f"{count:,} {words}"
        for name, words in _IMPACT.items()
        if (count := getattr(summary.impact, name)) is not None
    ]
    return f"Messages: {', '.join(known)}." if known else ""


_IMPACT = {
    "delayed": "delayed",
    "handled_twice": "handled twice (estimated)",
    "dead": "moved to a dead-letter queue",
    "lost": "lost to retention",
}


SILENT, LATE = "silent", "late"
_MOST_NAMED = 3
_NO_ROWS = "of another account, region or queue, or not as Mendq writes them"
_STATES = {**OUTCOMES, "escalated": "escalated"}


def of_accounts(found: Organization) -> str:
    """`40 accounts: 3 of 120 incidents need somebody; 100 healed, 4 paged.`"""
    names = "waiting", "incidents", "healed", "urgent"
    waiting, incidents, healed, urgent = (found.totals.get(each, 0) for each in names)
    figures = f"{healed:,} healed" + f", {urgent:,} paged" * bool(urgent)
    of = counted(incidents, "incident")
    needs = f"{waiting:,} of {of} need{'s' * (waiting == 1)} somebody; " if waiting else f"{of}, "
    return f"{counted(found.totals.get('accounts', 0), 'account')}: {needs}{figures}."


def not_whole(found: Organization) -> list[str]:
    """Whose week is missing, late, or not to be believed as it stands; a sentence each."""
    rows = counted(found.totals.get("rows_left_out", 0), "row")
    faults = {
        "reported nothing": [it for it in found.members if it.state == SILENT],
        "reported some days only": [it for it in found.members if it.state == LATE],
        f"shared {rows}, left out: {_NO_ROWS}": [it for it in found.members if it.rows_left_out],
        "had tables that could not be read": [it for it in found.members if it.files_unreadable],
    }
    totals = (found.totals.get(SILENT, 0), found.totals.get(LATE, 0), 0, 0)
    said = [
        (fault, each, all_of) for (fault, each), all_of in zip(faults.items(), totals, strict=True)
    ]
    return [f"{_named(each, all_of)} {fault}." for fault, each, all_of in said if each or all_of]


def _named(members: Sequence[Member], total: int) -> str:
    names = [member_name(each) for each in members[:_MOST_NAMED]]
    more = max(total, len(members)) - len(names)
    return listed([*names, *[f"{more:,} more"] * bool(more)])


def member_name(each: Member) -> str:
    """`orders-prod (123456789012), eu-west-1`, marked: all of it is the account's own word."""
    return marked(_name_in(each.alias, each.account, each.region))


def _name_in(alias: str, account: str, region: str) -> str:
    return ", ".join(filter(None, (f"{alias} ({account})" if alias else account, region)))


def place_of(found: Organization, queue: NeedyQueue) -> str:
    """The same of a queue's account."""
    aliases = {each.account: each.alias for each in found.members}
    return marked(_name_in(aliases.get(queue.account, ""), queue.account, queue.region))


def needy(found: Organization) -> list[str]:
    """The queues that need somebody most, a line each."""
    return [
        f"{marked_queue(each.queue_arn)} of {place_of(found, each)}: "
        f"{quoted(title(each.symptom))}, {became(each)}"
        for each in found.queues[:_MOST_NAMED]
    ]


def became(each: NeedyQueue) -> str:
    """What the worst of its incidents became, marked where the word is not known."""
    return "paged" if each.urgent else _STATES.get(each.outcome, quoted(each.outcome))


def days_reported(each: Member) -> str:
    """What of its week is there."""
    if each.state == SILENT:
        return "nothing"
    last = f"until {day(each.last_day)}" if each.last_day else ""
    return f"some days, {last}" if each.state == LATE else "every day"


def verdict_text(summary: Summary) -> str:
    """The verdict for a plain-text mail: at most 9 lines, and of an organization some more."""
    every = summary.organization
    lines = [
        f"Mendq, {week_name(summary.week)} ({days_of(summary.first_day, summary.last_day)}, UTC)",
        *([of_accounts(every), *not_whole(every), *needy(every)] if every else ()),
        *(["", "The hub's own account:"] if every else ()),
        f"{headline(summary)} {others(summary)} {impact(summary)}".strip(),
    ]
    if found := standout(summary):
        lines += [f"{found.queue} {found.says}", f"Why: {found.because}"]
    if waiting := in_short(summary):
        lines.append(waiting)
    elif first := to_do(summary)[:1]:
        lines.append(f"Do first: {first[0].what} {first[0].effect}".rstrip())
    lines += [f"{each.title}: {each.in_words}" for each in tiles(summary)[:_IN_A_MAIL]]
    lines.append(f"Read: {not_seen_in_short(summary)}")
    return "\n".join(unlinked(plain(each)) for each in lines)


def _found(summary: Summary) -> str:
    """How many incidents no failed call shows; empty where each has one."""
    scans, incidents = summary.by_found_by.scan, summary.totals.incidents
    if not scans:
        return ""
    every = {1: "", 2: "both "}.get(incidents, "all ")
    of_them = every if scans == incidents else f"{scans:,} of them "
    return f", {of_them}found by {'a scan' if scans == 1 else 'scans'}"


def _healed(summary: Summary) -> str:
    """Healed after approval is healed, and said; a page may have come to one healed later on."""
    incidents, fixed, approved = summary.totals.incidents, summary.fixed, summary.approved
    if not fixed:
        none = "not healed" if incidents == 1 else "none healed"
        changed = summary.by_outcome.get("applied", 0)
        return f"{none} yet, {changed:,} changed" if changed else none
    every = {1: "healed", 2: "both healed"}.get(incidents, "all healed")
    healed = f"{fixed:,} healed" if fixed < incidents else every
    if approved:
        of_them = "" if approved == fixed else f", {approved:,} of them"
        return f"{healed}{of_them} after approval"
    if not (summary.totals.urgent or summary.totals.urgent_notifications):
        return f"{healed}, and nobody was paged"
    return healed + " before anyone was paged" * (summary.totals.urgent <= incidents - fixed)


def _not_healed(summary: Summary) -> list[tuple[str, int]]:
    """In what words how many ended; they add up, and an unknown outcome keeps its word."""
    counts = {outcome: n for outcome, n in summary.by_outcome.items() if outcome not in FIXED and n}
    known = [each for each in OUTCOMES if each in counts]
    unknown = sorted(counts.keys() - OUTCOMES.keys())
    return [(OUTCOMES.get(each) or marked(each), counts[each]) for each in (*known, *unknown)]


def _notified(summary: Summary) -> str:
    """A page is urgent; of what is not, people were told."""
    paged, informed, incidents = summary.totals.urgent, summary.informed, summary.totals.incidents
    if not (count := paged or informed):
        return ""
    of = f"{count:,} of the {incidents:,}"
    if count >= incidents:
        of = {1: "it", 2: "both"}.get(incidents, f"all {incidents:,}")
    if not paged:
        return f"{of} told a person"
    return f"{of} paged a person" + (f" and {informed:,} told one" if informed else "")


# Below this many, nothing is a habit.
FEWEST = 3


class Standout(Struct, frozen=True):
    """`queue` `says` and, in sentences of their own, `because`; both hold marked names."""

    queue: str
    says: str
    because: str


def standout(summary: Summary) -> Standout | None:
    """The queue with most incidents not healed, or, all healed, with most of all incidents.

    What says nothing of the queue does not count; a tie in incidents and failed calls names nobody.
    """
    named = [each for each in summary.cases if each.queue_arn != UNRESOLVED]
    open_ones = [each for each in named if not each.is_fixed and each.why not in (COUNT_ONLY, RACE)]
    among = open_ones or [each for each in named if each.is_fixed]
    queue_arn = _leader(among)
    mine = [each for each in among if each.queue_arn == queue_arn]
    all_mine = [each for each in named if each.queue_arn == queue_arn] if open_ones else mine
    if open_ones:
        is_enough = len(mine) > 1 or len(open_ones) == 1
    else:
        is_enough = len(mine) >= FEWEST and 2 * len(mine) > len(among)
    if queue_arn is None or not is_enough:
        return None
    queue, because = queue_name(queue_arn), _because(mine)
    if summary.cases_left_out:  # a list that was cut cannot say of how many
        listed = f"{len(among)} incidents listed as {'not ' * bool(open_ones)}healed"
        return Standout(queue, f"stands out: {len(mine)} of the {listed} came from it.", because)
    how_many = f"it had {len(mine)} of the {len(among)}, all healed"
    said = "All healed"
    if open_ones:
        how_many = _how_many(len(mine), len(all_mine))
        said = f"{how_many[0].upper()}{how_many[1:]}"
    if habit := _habit(summary, all_mine):
        return Standout(queue, habit, f"{said}. {because}")
    return Standout(queue, f"stands out: {how_many}.", because)


def _how_many(open_count: int, count: int) -> str:
    if count == 1:
        return "its one incident was not healed"
    if open_count == count:
        return f"none of its {count} incidents was healed"
    return f"{open_count} of its {count} incidents {was(open_count)} not healed"


def _habit(summary: Summary, mine: list[Incident]) -> str:
    """What the queue keeps doing, where one symptom came often; empty where none did."""
    symptom, count = _commonest(each.symptom for each in mine)
    if count < FEWEST or symptom not in summary.habits:
        return ""
    total = max(summary.by_symptom.get(symptom, 0), count)
    share = f"all {count:,}" if count == total else f"{count:,} of {total:,}"
    of_symptom = f'{share} "{quoted(title(symptom))}" incidents'
    return f"{quoted(summary.habits[symptom])}: {of_symptom} came from it."


def _leader(incidents: Iterable[Incident]) -> str | None:
    """Most incidents, then most failed calls; None where two have the same of both."""
    counts, failed_calls = Counter[str](), Counter[str]()
    for each in incidents:
        counts[each.queue_arn] += 1
        failed_calls[each.queue_arn] += each.failed_calls
    ranked = sorted(((counts[it], failed_calls[it], it) for it in counts), reverse=True)
    return ranked[0][2] if ranked and ranked[0][:2] not in [it[:2] for it in ranked[1:]] else None


def _because(mine: list[Incident]) -> str:
    """The commonest symptom and, where it was not healed, the commonest reason for that symptom."""
    symptom, count = _commonest(each.symptom for each in mine)
    often = "" if count == len(mine) else f" ({count} of {len(mine)})"
    reasons = [why_in_words(each) for each in mine if each.symptom == symptom and not each.is_fixed]
    calls = said_calls(sum(each.failed_calls for each in mine))
    reason, _ = _commonest(each for each in reasons if each)
    said = f": {quoted(reason)}" if reason else ""
    return f"{quoted(title(symptom))}{often}, {calls}{said}."


def _commonest(texts: Iterable[str]) -> tuple[str, int]:
    """The text that occurs most, the first in the alphabet of several; empty where none is."""
    return next(iter(most_first(Counter(texts))), ("", 0))
