"""The verdict: the first sentences of the report, and the queue that stands out.

Every sentence is computed from the summary. Names in it are marked (see `words`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from msgspec import Struct

from mendq.report.not_seen import summarize_not_seen
from mendq.report.open_now import describe_most_pressing
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
from mendq.report.tiles import make_tiles
from mendq.report.to_do import list_to_do
from mendq.report.words import (
    OUTCOMES,
    break_links,
    day,
    describe_reason,
    format_calls,
    format_count,
    format_days,
    join_names,
    mark_name,
    mark_queue,
    mark_quote,
    queue_name,
    remove_marks,
    sort_by_count,
    title,
    was_or_were,
    week_name,
)

# Number of tiles in the mail's verdict: incidents, healed, paged.
_IN_A_MAIL = 3


def headline(summary: Summary) -> str:
    """Return how many incidents there were, how many were healed, and if people were paged."""
    so_far = "" if summary.is_over else " so far"
    if summary.nothing_was_read:
        return f"Nothing was read this week{so_far}: whether there were incidents is not known."
    days = format_count(summary.days_read, "day")
    read = f" in the {days} that {was_or_were(summary.days_read)} read"
    where = "" if summary.every_day_was_read else read
    if not summary.totals.incidents:
        new = "new " if summary.has_other_news else ""
        return f"No {new}incidents{so_far}{where or ' this week'}."
    count = format_count(summary.totals.incidents, "incident")
    if summary.had_mendq_in:
        return f"Had Mendq been there in mode {summary.had_mendq_in}: {count}{so_far}{where}."
    return f"{count}{so_far}{where}{_describe_scans(summary)}, {_describe_healed(summary)}."


def describe_quiet_week(summary: Summary) -> str:
    """Return how many days of a quiet week were read, and when the last incident was."""
    read = f"{summary.days_read} of {len(summary.days)} days read"
    if not summary.previous_weeks:
        return read
    weeks = [week.week for week in summary.previous_weeks if week.incidents]
    if weeks:
        return f"{read} · last incident in {week_name(weeks[-1])}"
    return f"{read} · none in the {format_count(len(summary.previous_weeks), 'week')} before"


def describe_others(summary: Summary) -> str:
    """Return the outcomes of the incidents that were not healed, and how many notified people."""
    counts = _count_not_healed(summary)
    notified = _describe_notified(summary)
    rest = sum(count for _, count in counts)
    if not rest:
        return f"{notified[0].upper()}{notified[1:]}." if notified else ""
    outcomes = ", ".join(f"{count:,} {words}" for words, count in counts)
    if notified:
        outcomes += f"; {notified}"
    if rest == summary.totals.incidents:
        verb = "would have become" if summary.had_mendq_in else "became"
        return f"What {verb} of {'it' if rest == 1 else 'them'}: {outcomes}."
    return f"The other{'' if rest == 1 else f' {rest:,}'}: {outcomes}."


def describe_impact(summary: Summary) -> str:
    """Return what this week's incidents did to messages. Empty if no case has such numbers."""
    impact = summary.impact
    count_by_words = {
        "delayed": impact.delayed,
        "handled twice (estimated)": impact.handled_twice,
        "moved to a dead-letter queue": impact.dead,
        "lost to retention": impact.lost,
    }
    known = [f"{count:,} {words}" for words, count in count_by_words.items() if count is not None]
    return f"Messages: {', '.join(known)}." if known else ""


SILENT = "silent"
LATE = "late"
_MOST_NAMED = 3
_NO_ROWS = "of another account, region or queue, or not as Mendq writes them"
_STATES = {**OUTCOMES, "escalated": "escalated"}


def describe_accounts(organization: Organization) -> str:
    """Return one sentence about all accounts.

    For example: `40 accounts: 3 of 120 incidents need somebody; 100 healed, 4 paged.`
    """
    totals = organization.totals
    incidents = format_count(totals.get("incidents", 0), "incident")
    waiting = totals.get("waiting", 0)
    needs = f"{incidents}, "
    if waiting:
        verb = "needs" if waiting == 1 else "need"
        needs = f"{waiting:,} of {incidents} {verb} somebody; "
    figures = f"{totals.get('healed', 0):,} healed"
    urgent = totals.get("urgent", 0)
    if urgent:
        figures += f", {urgent:,} paged"
    return f"{format_count(totals.get('accounts', 0), 'account')}: {needs}{figures}."


def describe_incomplete(organization: Organization) -> list[str]:
    """Return a sentence for each fault in the accounts' reports, with the accounts that have it.

    A report may be missing, late, or not fully credible.
    """
    members = organization.members
    totals = organization.totals
    silent = [member for member in members if member.state == SILENT]
    late = [member for member in members if member.state == LATE]
    with_odd_rows = [member for member in members if member.rows_left_out]
    with_unreadable_files = [member for member in members if member.files_unreadable]
    rows = format_count(totals.get("rows_left_out", 0), "row")
    faults = (
        (silent, totals.get(SILENT, 0), "reported nothing"),
        (late, totals.get(LATE, 0), "reported some days only"),
        (with_odd_rows, 0, f"shared {rows}, left out: {_NO_ROWS}"),
        (with_unreadable_files, 0, "had tables that could not be read"),
    )
    sentences = []
    for faulty_members, total, fault in faults:
        if faulty_members or total:
            sentences.append(f"{_join_members(faulty_members, total)} {fault}.")
    return sentences


def _join_members(members: Sequence[Member], total: int) -> str:
    """Return the first names and the number of the others. `total` counts unlisted accounts too."""
    names = [member_name(member) for member in members[:_MOST_NAMED]]
    more = max(total, len(members)) - len(names)
    if more:
        names.append(f"{more:,} more")
    return join_names(names)


def member_name(member: Member) -> str:
    """Return `orders-prod (123456789012), eu-west-1`, marked: the account chose its own words."""
    return mark_name(_account_name(member.alias, member.account, member.region))


def _account_name(alias: str, account: str, region: str) -> str:
    name = f"{alias} ({account})" if alias else account
    return ", ".join(part for part in (name, region) if part)


def queue_place(organization: Organization, queue: NeedyQueue) -> str:
    """Return the account and region of a queue, in the form of `member_name`."""
    aliases = {member.account: member.alias for member in organization.members}
    return mark_name(_account_name(aliases.get(queue.account, ""), queue.account, queue.region))


def describe_needy_queues(organization: Organization) -> list[str]:
    """Return a line for each of the queues that need somebody most."""
    lines = []
    for queue in organization.queues[:_MOST_NAMED]:
        place = queue_place(organization, queue)
        symptom = mark_quote(title(queue.symptom))
        outcome = describe_outcome(queue)
        lines.append(f"{mark_queue(queue.queue_arn)} of {place}: {symptom}, {outcome}")
    return lines


def describe_outcome(queue: NeedyQueue) -> str:
    """Return the outcome of the queue's worst incident. An unknown outcome is marked as a quote."""
    if queue.urgent:
        return "paged"
    return _STATES.get(queue.outcome, mark_quote(queue.outcome))


def describe_days_reported(member: Member) -> str:
    """Return which days the account has reported."""
    if member.state == SILENT:
        return "nothing"
    last = f"until {day(member.last_day)}" if member.last_day else ""
    return f"some days, {last}" if member.state == LATE else "every day"


def verdict_text(summary: Summary) -> str:
    """Return the verdict as plain text: at most 9 lines, some more for an organization."""
    organization = summary.organization
    days = format_days(summary.first_day, summary.last_day)
    lines = [f"Mendq, {week_name(summary.week)} ({days}, UTC)"]
    if organization:
        lines.append(describe_accounts(organization))
        lines.extend(describe_incomplete(organization))
        lines.extend(describe_needy_queues(organization))
        lines.extend(["", "The hub's own account:"])
    lines.append(
        f"{headline(summary)} {describe_others(summary)} {describe_impact(summary)}".strip()
    )
    standout = find_standout(summary)
    if standout:
        lines.append(f"{standout.queue} {standout.says}")
        lines.append(f"Why: {standout.because}")
    waiting = describe_most_pressing(summary)
    things_to_do = list_to_do(summary)
    if waiting:
        lines.append(waiting)
    elif things_to_do:
        lines.append(f"Do first: {things_to_do[0].what} {things_to_do[0].effect}".rstrip())
    lines.extend(f"{tile.title}: {tile.text}" for tile in make_tiles(summary)[:_IN_A_MAIL])
    lines.append(f"Read: {summarize_not_seen(summary)}")
    return "\n".join(break_links(remove_marks(line)) for line in lines)


def _describe_scans(summary: Summary) -> str:
    """Return how many incidents scans found without a failed call. Empty if there are none."""
    by_scans = summary.by_found_by.scan
    incidents = summary.totals.incidents
    if not by_scans:
        return ""
    of_them = f"{by_scans:,} of them "
    if by_scans == incidents:
        of_them = {1: "", 2: "both "}.get(incidents, "all ")
    return f", {of_them}found by {'a scan' if by_scans == 1 else 'scans'}"


def _describe_healed(summary: Summary) -> str:
    """Return how many incidents were healed, and if it was before anyone was paged.

    Incidents that were healed after an approval count as healed, and the text says so. If more
    incidents paged people than were not healed, at least one incident paged before it was healed.
    """
    incidents = summary.totals.incidents
    fixed = summary.fixed_count
    approved = summary.approved_count
    if not fixed:
        none = "not healed" if incidents == 1 else "none healed"
        changed = summary.by_outcome.get("applied", 0)
        return f"{none} yet, {changed:,} changed" if changed else none
    healed = f"{fixed:,} healed"
    if fixed >= incidents:
        healed = {1: "healed", 2: "both healed"}.get(incidents, "all healed")
    if approved:
        of_them = "" if approved == fixed else f", {approved:,} of them"
        return f"{healed}{of_them} after approval"
    if not (summary.totals.urgent or summary.totals.urgent_notifications):
        return f"{healed}, and nobody was paged"
    if summary.totals.urgent <= incidents - fixed:
        return f"{healed} before anyone was paged"
    return healed


def _count_not_healed(summary: Summary) -> list[tuple[str, int]]:
    """Return the outcomes of the incidents that were not healed, in words, with their numbers.

    An unknown outcome keeps its own word, so that the numbers add up.
    """
    counts = {
        outcome: count
        for outcome, count in summary.by_outcome.items()
        if count and outcome not in FIXED
    }
    known = [outcome for outcome in OUTCOMES if outcome in counts]
    unknown = sorted(counts.keys() - OUTCOMES.keys())
    return [
        (OUTCOMES.get(outcome) or mark_name(outcome), counts[outcome])
        for outcome in (*known, *unknown)
    ]


def _describe_notified(summary: Summary) -> str:
    """Return how many incidents paged (an urgent notification) or told a person. Empty if none."""
    paged = summary.totals.urgent
    told = summary.informed_count
    incidents = summary.totals.incidents
    count = paged or told
    if not count:
        return ""
    subject = f"{count:,} of the {incidents:,}"
    if count >= incidents:
        subject = {1: "it", 2: "both"}.get(incidents, f"all {incidents:,}")
    if not paged:
        return f"{subject} told a person"
    also_told = f" and {told:,} told one" if told else ""
    return f"{subject} paged a person{also_told}"


# With fewer incidents of a symptom, the symptom is no habit of the queue: it may be a coincidence.
FEWEST = 3


class Standout(Struct, frozen=True):
    """The queue that stands out. `queue` and `says` together are a sentence."""

    queue: str
    says: str
    # Further sentences, with the reason.
    because: str


def find_standout(summary: Summary) -> Standout | None:
    """Return the queue with most incidents that were not healed, or None if no queue stands out.

    If all incidents were healed, it is the queue with most incidents. Incidents that say nothing
    about their queue do not count: callers' mistakes, and possible races with a delete. If two
    queues have the same number of incidents and of failed calls, none stands out.
    """
    named = [incident for incident in summary.cases if incident.queue_arn != UNRESOLVED]
    not_healed = [
        incident
        for incident in named
        if not incident.is_fixed and incident.why not in (COUNT_ONLY, RACE)
    ]
    candidates = not_healed or [incident for incident in named if incident.is_fixed]
    queue_arn = _find_leader(candidates)
    counted = [incident for incident in candidates if incident.queue_arn == queue_arn]
    if queue_arn is None or not _is_enough(len(counted), len(candidates), bool(not_healed)):
        return None
    queue = queue_name(queue_arn)
    because = _describe_cause(counted)
    if summary.cases_left_out:
        # The list of incidents was cut, so the shares of all incidents are not known.
        healed = "not healed" if not_healed else "healed"
        listed = f"{len(candidates)} incidents listed as {healed}"
        says = f"stands out: {len(counted)} of the {listed} came from it."
        return Standout(queue, says, because)
    incidents_of_queue = counted
    share = f"it had {len(counted)} of the {len(candidates)}, all healed"
    sentence = "All healed"
    if not_healed:
        incidents_of_queue = [incident for incident in named if incident.queue_arn == queue_arn]
        share = _describe_open_share(len(counted), len(incidents_of_queue))
        sentence = f"{share[0].upper()}{share[1:]}"
    habit = _describe_habit(summary, incidents_of_queue)
    if habit:
        return Standout(queue, habit, f"{sentence}. {because}")
    return Standout(queue, f"stands out: {share}.", because)


def _is_enough(count: int, total: int, is_not_healed: bool) -> bool:
    """Return True if a queue with `count` of `total` incidents stands out.

    If the incidents were not healed, two are enough, or one if it is the only one. If they were
    healed, at least FEWEST and more than half of `total` are needed.
    """
    if is_not_healed:
        return count > 1 or total == 1
    return count >= FEWEST and 2 * count > total


def _describe_open_share(open_count: int, count: int) -> str:
    """Return how many of the queue's incidents were not healed."""
    if count == 1:
        return "its one incident was not healed"
    if open_count == count:
        return f"none of its {count} incidents was healed"
    return f"{open_count} of its {count} incidents {was_or_were(open_count)} not healed"


def _describe_habit(summary: Summary, incidents: list[Incident]) -> str:
    """Return a text about the queue's most frequent symptom.

    Empty if the queue had it fewer than FEWEST times, or if the summary has no text for it.
    """
    symptom, count = _find_commonest(incident.symptom for incident in incidents)
    if count < FEWEST or symptom not in summary.habits:
        return ""
    total = max(summary.by_symptom.get(symptom, 0), count)
    share = f"all {count:,}" if count == total else f"{count:,} of {total:,}"
    of_symptom = f'{share} "{mark_quote(title(symptom))}" incidents'
    return f"{mark_quote(summary.habits[symptom])}: {of_symptom} came from it."


def _find_leader(incidents: Iterable[Incident]) -> str | None:
    """Return the queue with most incidents, and among equals with most failed calls.

    None if there is no incident, or if two queues are equal in both.
    """
    counts = Counter[str]()
    failed_calls = Counter[str]()
    for incident in incidents:
        counts[incident.queue_arn] += 1
        failed_calls[incident.queue_arn] += incident.failed_calls
    if not counts:
        return None
    largest = max((counts[arn], failed_calls[arn]) for arn in counts)
    leaders = [arn for arn in counts if (counts[arn], failed_calls[arn]) == largest]
    return leaders[0] if len(leaders) == 1 else None


def _describe_cause(incidents: list[Incident]) -> str:
    """Return the most frequent symptom with its failed calls.

    If incidents of it were not healed, the most frequent reason is added.
    """
    symptom, count = _find_commonest(incident.symptom for incident in incidents)
    often = "" if count == len(incidents) else f" ({count} of {len(incidents)})"
    reasons = [
        describe_reason(incident)
        for incident in incidents
        if incident.symptom == symptom and not incident.is_fixed
    ]
    calls = format_calls(sum(incident.failed_calls for incident in incidents))
    reason, _ = _find_commonest(reason for reason in reasons if reason)
    reason_text = f": {mark_quote(reason)}" if reason else ""
    return f"{mark_quote(title(symptom))}{often}, {calls}{reason_text}."


def _find_commonest(texts: Iterable[str]) -> tuple[str, int]:
    """Return the most frequent text and its count; of several, the first in alphabetical order.

    Returns an empty text and 0 if there is no text.
    """
    ranked = sort_by_count(Counter(texts))
    return ranked[0] if ranked else ("", 0)
