"""The verdict: the first sentences of the report, and the queue with the most trouble.

All sentences are made from the week's summary. Names in them are marked (see `words`), except in
`make_verdict_text` and `Standout.queue`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from msgspec import Struct

from mendq.report.not_seen import summarize_not_seen
from mendq.report.open_now import describe_most_pressing_case
from mendq.report.summary import Summary
from mendq.report.summary_parts import (
    COUNT_ONLY_REASON,
    FIXED_OUTCOMES,
    POSSIBLE_RACE_REASON,
    UNRESOLVED_QUEUE,
    Incident,
    MemberAccount,
    Organization,
    QueueNeedingPerson,
)
from mendq.report.tiles import make_tiles
from mendq.report.to_do import list_to_do
from mendq.report.words import (
    WORDS_BY_OUTCOME,
    break_links,
    describe_reason,
    format_calls,
    format_count,
    format_day,
    format_day_range,
    format_queue_name,
    format_symptom,
    format_week,
    join_names,
    mark_name,
    mark_queue,
    mark_quote,
    remove_marks,
    sort_by_count,
    was_or_were,
)

# Number of tiles in the mail's verdict: incidents, healed, paged.
_MAIL_TILE_COUNT = 3


def make_headline(summary: Summary) -> str:
    """Return the first sentence of the report: how many incidents, and how many were healed.

    If nothing was read, or if there were no incidents, it says that. In a backtest it does not say
    how many were healed.
    """
    so_far_text = "" if summary.is_over else " so far"
    if summary.nothing_was_read:
        return (
            f"Nothing was read this week{so_far_text}: whether there were incidents is not known."
        )
    day_count_text = format_count(summary.read_day_count, "day")
    days_read_text = f" in the {day_count_text} that {was_or_were(summary.read_day_count)} read"
    days_text = "" if summary.every_day_was_read else days_read_text
    if not summary.totals.incidents:
        new_word = "new " if summary.has_other_news else ""
        return f"No {new_word}incidents{so_far_text}{days_text or ' this week'}."
    incidents_text = format_count(summary.totals.incidents, "incident")
    if summary.had_mendq_in:
        incidents_and_days_text = f"{incidents_text}{so_far_text}{days_text}"
        return f"Had Mendq been there in mode {summary.had_mendq_in}: {incidents_and_days_text}."
    scans_text = _describe_found_by_scans(summary)
    return f"{incidents_text}{so_far_text}{days_text}{scans_text}, {_describe_healed(summary)}."


def describe_quiet_week(summary: Summary) -> str:
    """Return a text about a week without incidents.

    It has the number of days read. If earlier weeks are known, it also has the last one with an
    incident, or the number of these weeks if none had one.
    """
    days_read_text = f"{summary.read_day_count} of {len(summary.days)} days read"
    if not summary.previous_weeks:
        return days_read_text
    weeks_with_incidents = [week.week for week in summary.previous_weeks if week.incidents]
    if weeks_with_incidents:
        return f"{days_read_text} · last incident in {format_week(weeks_with_incidents[-1])}"
    return (
        f"{days_read_text} · none in the {format_count(len(summary.previous_weeks), 'week')} before"
    )


def describe_not_healed(summary: Summary) -> str:
    """Return a sentence with the outcomes of the incidents that were not healed.

    It adds how many incidents notified people. Empty if all incidents were healed and nobody was
    notified.
    """
    outcome_counts = _count_unhealed_by_outcome(summary)
    notified_text = _describe_notified(summary)
    not_healed_count = sum(incident_count for _, incident_count in outcome_counts)
    if not not_healed_count:
        return f"{notified_text[0].upper()}{notified_text[1:]}." if notified_text else ""
    outcomes_text = ", ".join(
        f"{incident_count:,} {outcome_words}" for outcome_words, incident_count in outcome_counts
    )
    if notified_text:
        outcomes_text += f"; {notified_text}"
    if not_healed_count == summary.totals.incidents:
        verb_form = "would have become" if summary.had_mendq_in else "became"
        return f"What {verb_form} of {'it' if not_healed_count == 1 else 'them'}: {outcomes_text}."
    return f"The other{'' if not_healed_count == 1 else f' {not_healed_count:,}'}: {outcomes_text}."


def describe_impact(summary: Summary) -> str:
    """Return a sentence with the number of messages that this week's incidents harmed, by kind.

    Empty if no case has such numbers.
    """
    message_impact = summary.impact
    message_count_by_harm = {
        "delayed": message_impact.delayed,
        "handled twice (estimated)": message_impact.handled_twice,
        "moved to a dead-letter queue": message_impact.dead,
        "lost to retention": message_impact.lost,
    }
    count_texts = [
        f"{message_count:,} {harm_words}"
        for harm_words, message_count in message_count_by_harm.items()
        if message_count is not None
    ]
    return f"Messages: {', '.join(count_texts)}." if count_texts else ""


NOTHING_REPORTED_STATE = "silent"
DAYS_MISSING_STATE = "late"
_MOST_LISTED_NAMES = 3
_LEFT_OUT_ROWS_REASON = "of another account, region or queue, or not as Mendq writes them"
_WORDS_BY_QUEUE_OUTCOME = {**WORDS_BY_OUTCOME, "escalated": "escalated"}


def describe_accounts(organization: Organization) -> str:
    """Return a sentence about all accounts of an organization.

    For example: `40 accounts: 3 of 120 incidents need somebody; 100 healed, 4 paged.`
    """
    totals = organization.totals
    incidents_text = format_count(totals.get("incidents", 0), "incident")
    waiting_count = totals.get("waiting", 0)
    waiting_text = f"{incidents_text}, "
    if waiting_count:
        verb_form = "needs" if waiting_count == 1 else "need"
        waiting_text = f"{waiting_count:,} of {incidents_text} {verb_form} somebody; "
    healed_text = f"{totals.get('healed', 0):,} healed"
    urgent_count = totals.get("urgent", 0)
    if urgent_count:
        healed_text += f", {urgent_count:,} paged"
    return f"{format_count(totals.get('accounts', 0), 'account')}: {waiting_text}{healed_text}."


def describe_incomplete(organization: Organization) -> list[str]:
    """Return sentences about accounts whose reports to the organization have faults.

    There is one sentence for each of these faults that some account has: nothing reported, days
    missing, rows left out because they may be forged, and tables that were not read.
    """
    members = organization.members
    totals = organization.totals
    silent_members = [member for member in members if member.state == NOTHING_REPORTED_STATE]
    late_members = [member for member in members if member.state == DAYS_MISSING_STATE]
    members_with_left_out_rows = [member for member in members if member.rows_left_out]
    members_with_unreadable_files = [member for member in members if member.files_unreadable]
    rows_text = format_count(totals.get("rows_left_out", 0), "row")
    faulty_members_and_faults = (
        (silent_members, totals.get(NOTHING_REPORTED_STATE, 0), "reported nothing"),
        (late_members, totals.get(DAYS_MISSING_STATE, 0), "reported some days only"),
        (members_with_left_out_rows, 0, f"shared {rows_text}, left out: {_LEFT_OUT_ROWS_REASON}"),
        (
            members_with_unreadable_files,
            0,
            "had tables that were unreadable or over the account's limit",
        ),
    )
    sentences = []
    for faulty_members, faulty_member_count, fault in faulty_members_and_faults:
        if faulty_members or faulty_member_count:
            sentences.append(f"{_join_members(faulty_members, faulty_member_count)} {fault}.")
    return sentences


def _join_members(members: Sequence[MemberAccount], total_member_count: int) -> str:
    """Return the names of the first members, and the number of further members.

    `total_member_count` is the number of all members, also of those that the summary does not list.
    It is 0 if that number is not known.
    """
    member_names = [format_member_name(member) for member in members[:_MOST_LISTED_NAMES]]
    unlisted_member_count = max(total_member_count, len(members)) - len(member_names)
    if unlisted_member_count:
        member_names.append(f"{unlisted_member_count:,} more")
    return join_names(member_names)


def format_member_name(member: MemberAccount) -> str:
    """Return the account and region of a member: `orders-prod (123456789012), eu-west-1`.

    The text is marked as a name, because the account chose its alias.
    """
    return mark_name(_format_account_name(member.alias, member.account, member.region))


def _format_account_name(alias: str, account: str, region: str) -> str:
    account_text = f"{alias} ({account})" if alias else account
    return ", ".join(text_part for text_part in (account_text, region) if text_part)


def format_queue_place(organization: Organization, queue: QueueNeedingPerson) -> str:
    """Return the account and region of a queue, in the form of `format_member_name`."""
    alias_by_account = {member.account: member.alias for member in organization.members}
    return mark_name(
        _format_account_name(alias_by_account.get(queue.account, ""), queue.account, queue.region)
    )


def describe_needy_queues(organization: Organization) -> list[str]:
    """Return a line for each of the queues that most need a person, at most three."""
    queue_lines = []
    for queue in organization.queues[:_MOST_LISTED_NAMES]:
        account_and_region = format_queue_place(organization, queue)
        quoted_symptom = mark_quote(format_symptom(queue.symptom))
        outcome_text = describe_outcome(queue)
        queue_name = mark_queue(queue.queue_arn)
        queue_lines.append(
            f"{queue_name} of {account_and_region}: {quoted_symptom}, {outcome_text}"
        )
    return queue_lines


def describe_outcome(queue: QueueNeedingPerson) -> str:
    """Return the most pressing outcome of a queue in words. An unknown outcome is quoted.

    Return `paged` if an incident of the queue that waits for a person paged people.
    """
    if queue.urgent:
        return "paged"
    return _WORDS_BY_QUEUE_OUTCOME.get(queue.outcome, mark_quote(queue.outcome))


def describe_days_reported(member: MemberAccount) -> str:
    """Return a text about the days that an account has reported, such as `every day`."""
    if member.state == NOTHING_REPORTED_STATE:
        return "nothing"
    last_day_text = f"until {format_day(member.last_day)}" if member.last_day else ""
    return f"some days, {last_day_text}" if member.state == DAYS_MISSING_STATE else "every day"


def make_verdict_text(summary: Summary) -> str:
    """Return the verdict as plain text for a mail or an SNS topic.

    It has at most 9 lines, and some more for an organization.
    """
    organization = summary.organization
    day_range_text = format_day_range(summary.first_day, summary.last_day)
    verdict_lines = [f"Mendq, {format_week(summary.week)} ({day_range_text}, UTC)"]
    if organization:
        verdict_lines.append(describe_accounts(organization))
        verdict_lines.extend(describe_incomplete(organization))
        verdict_lines.extend(describe_needy_queues(organization))
        verdict_lines.extend(["", "The hub's own account:"])
    sentences = (make_headline(summary), describe_not_healed(summary), describe_impact(summary))
    verdict_lines.append(" ".join(sentences).strip())
    standout = find_standout(summary)
    if standout:
        verdict_lines.append(f"{standout.queue} {standout.sentence}")
        verdict_lines.append(f"Why: {standout.because}")
    waiting_text = describe_most_pressing_case(summary)
    to_dos = list_to_do(summary)
    if waiting_text:
        verdict_lines.append(waiting_text)
    elif to_dos:
        verdict_lines.append(f"Do first: {to_dos[0].action} {to_dos[0].effect}".rstrip())
    verdict_lines.extend(
        f"{tile.title}: {tile.text}" for tile in make_tiles(summary)[:_MAIL_TILE_COUNT]
    )
    verdict_lines.append(f"Read: {summarize_not_seen(summary)}")
    return "\n".join(break_links(remove_marks(verdict_line)) for verdict_line in verdict_lines)


def _describe_found_by_scans(summary: Summary) -> str:
    """Return a part of a sentence: how many incidents scans found. Empty if scans found none."""
    incidents_found_by_scans = summary.by_found_by.scan
    incident_count = summary.totals.incidents
    if not incidents_found_by_scans:
        return ""
    of_them_text = f"{incidents_found_by_scans:,} of them "
    if incidents_found_by_scans == incident_count:
        of_them_text = {1: "", 2: "both "}.get(incident_count, "all ")
    return f", {of_them_text}found by {'a scan' if incidents_found_by_scans == 1 else 'scans'}"


def _describe_healed(summary: Summary) -> str:
    """Return a part of a sentence: how many incidents were healed, and if that was before a page.

    If some were healed after an approval, the text says how many, and nothing about pages.

    `before anyone was paged` is left out if more incidents paged people than were not healed. Then
    at least one of the healed incidents has paged somebody.
    """
    incident_count = summary.totals.incidents
    fixed_count = summary.fixed_count
    approved_count = summary.approved_count
    if not fixed_count:
        none_healed_text = "not healed" if incident_count == 1 else "none healed"
        changed_count = summary.by_outcome.get("applied", 0)
        return (
            f"{none_healed_text} yet, {changed_count:,} changed"
            if changed_count
            else none_healed_text
        )
    healed_text = f"{fixed_count:,} healed"
    if fixed_count >= incident_count:
        healed_text = {1: "healed", 2: "both healed"}.get(incident_count, "all healed")
    if approved_count:
        of_them_text = "" if approved_count == fixed_count else f", {approved_count:,} of them"
        return f"{healed_text}{of_them_text} after approval"
    if not (summary.totals.urgent or summary.totals.urgent_notifications):
        return f"{healed_text}, and nobody was paged"
    if summary.totals.urgent <= incident_count - fixed_count:
        return f"{healed_text} before anyone was paged"
    return healed_text


def _count_unhealed_by_outcome(summary: Summary) -> list[tuple[str, int]]:
    """Count the incidents that were not healed, by outcome. Return pairs of words and number.

    An outcome for which the report has no words is shown by its own name, so that the numbers add
    up.
    """
    count_by_outcome = {
        outcome: count
        for outcome, count in summary.by_outcome.items()
        if count and outcome not in FIXED_OUTCOMES
    }
    known_outcomes = [outcome for outcome in WORDS_BY_OUTCOME if outcome in count_by_outcome]
    unknown_outcomes = sorted(count_by_outcome.keys() - WORDS_BY_OUTCOME.keys())
    return [
        (WORDS_BY_OUTCOME.get(outcome) or mark_name(outcome), count_by_outcome[outcome])
        for outcome in (*known_outcomes, *unknown_outcomes)
    ]


def _describe_notified(summary: Summary) -> str:
    """Return a part of a sentence: how many incidents paged (urgent) or told (not urgent) a person.

    Empty if none did.
    """
    paged_count = summary.totals.urgent
    informed_incident_count = summary.informed_count
    incident_count = summary.totals.incidents
    notified_count = paged_count or informed_incident_count
    if not notified_count:
        return ""
    subject_text = f"{notified_count:,} of the {incident_count:,}"
    if notified_count >= incident_count:
        subject_text = {1: "it", 2: "both"}.get(incident_count, f"all {incident_count:,}")
    if not paged_count:
        return f"{subject_text} told a person"
    also_informed_text = (
        f" and {informed_incident_count:,} told one" if informed_incident_count else ""
    )
    return f"{subject_text} paged a person{also_informed_text}"


# With fewer incidents of a symptom, the symptom is no habit of the queue: it may be a coincidence.
LEAST_INCIDENTS_OF_HABIT = 3


class Standout(Struct, frozen=True):
    """The queue with the most trouble. `queue`, followed by `sentence`, is a whole sentence."""

    queue: str
    sentence: str
    # Further sentences, with the reason.
    because: str


def find_standout(summary: Summary) -> Standout | None:
    """Return the queue with most unhealed incidents, or None if no queue stands out.

    Only the incidents that the summary lists are counted. Unhealed incidents that are not the
    queue's fault do not count: callers' mistakes, and possible races with a delete. If no unhealed
    incident counts, healed incidents are counted instead. If the first two queues have equal
    numbers of incidents and of failed calls, none stands out.
    """
    candidate_incidents, are_candidates_healed = _list_standout_candidates(summary)
    queue_arn = _find_leading_queue(candidate_incidents)
    if queue_arn is None:
        return None
    queue_incidents = [
        incident for incident in candidate_incidents if incident.queue_arn == queue_arn
    ]
    incident_count = len(queue_incidents)
    if not _is_standout(incident_count, len(candidate_incidents), are_candidates_healed):
        return None
    queue_name = format_queue_name(queue_arn)
    reason_sentences = _describe_cause(queue_incidents)
    if summary.cases_left_out:
        # The list of incidents was cut, so the shares of all incidents are not known.
        outcome_text = "healed" if are_candidates_healed else "not healed"
        listed_text = f"{len(candidate_incidents)} incidents listed as {outcome_text}"
        return Standout(
            queue_name,
            f"stands out: {incident_count} of the {listed_text} came from it.",
            reason_sentences,
        )
    share_text = f"it had {incident_count} of the {len(candidate_incidents)}, all healed"
    share_sentence = "All healed"
    if not are_candidates_healed:
        queue_incidents = [
            incident for incident in summary.cases if incident.queue_arn == queue_arn
        ]
        share_text = _describe_unhealed_share(incident_count, len(queue_incidents))
        share_sentence = f"{share_text[0].upper()}{share_text[1:]}"
    habit_sentence = _describe_habit(summary, queue_incidents)
    if habit_sentence:
        return Standout(queue_name, habit_sentence, f"{share_sentence}. {reason_sentences}")
    return Standout(queue_name, f"stands out: {share_text}.", reason_sentences)


def _list_standout_candidates(summary: Summary) -> tuple[list[Incident], bool]:
    """Return the incidents that `find_standout` counts by queue.

    Returns:
        The unhealed incidents and False. If there are none, the healed incidents and True.
        Incidents of an unknown queue, callers' mistakes and possible races are left out.
    """
    healed_incidents = list[Incident]()
    unhealed_incidents = list[Incident]()
    for incident in summary.cases:
        if incident.queue_arn == UNRESOLVED_QUEUE:
            continue
        if incident.is_fixed:
            healed_incidents.append(incident)
        elif incident.why not in (COUNT_ONLY_REASON, POSSIBLE_RACE_REASON):
            unhealed_incidents.append(incident)
    return (unhealed_incidents, False) if unhealed_incidents else (healed_incidents, True)


def _is_standout(
    queue_incident_count: int, candidate_count: int, are_candidates_healed: bool
) -> bool:
    """Return True if a queue with `queue_incident_count` of all candidates stands out.

    Unhealed incidents: the queue needs at least two of them, or the only one. Healed incidents: it
    needs at least LEAST_INCIDENTS_OF_HABIT of them, and more than half of all candidates.
    """
    if are_candidates_healed:
        return (
            queue_incident_count >= LEAST_INCIDENTS_OF_HABIT
            and 2 * queue_incident_count > candidate_count
        )
    return queue_incident_count > 1 or candidate_count == 1


def _describe_unhealed_share(not_healed_count: int, incident_count: int) -> str:
    """Return a part of a sentence: how many of a queue's incidents were not healed."""
    if incident_count == 1:
        return "its one incident was not healed"
    if not_healed_count == incident_count:
        return f"none of its {incident_count} incidents was healed"
    verb_form = was_or_were(not_healed_count)
    return f"{not_healed_count} of its {incident_count} incidents {verb_form} not healed"


def _describe_habit(summary: Summary, queue_incidents: list[Incident]) -> str:
    """Return a sentence about a queue's most frequent symptom, with the number of incidents.

    Empty if the queue had the symptom fewer than LEAST_INCIDENTS_OF_HABIT times, or if
    `summary.habits` has no text for the symptom.
    """
    symptom, symptom_count = _find_most_frequent(incident.symptom for incident in queue_incidents)
    if symptom_count < LEAST_INCIDENTS_OF_HABIT or symptom not in summary.habits:
        return ""
    symptom_count_of_all_queues = max(summary.by_symptom.get(symptom, 0), symptom_count)
    share_text = (
        f"all {symptom_count:,}"
        if symptom_count == symptom_count_of_all_queues
        else f"{symptom_count:,} of {symptom_count_of_all_queues:,}"
    )
    incidents_text = f'{share_text} "{mark_quote(format_symptom(symptom))}" incidents'
    return f"{mark_quote(summary.habits[symptom])}: {incidents_text} came from it."


def _find_leading_queue(incidents: Iterable[Incident]) -> str | None:
    """Return the ARN of the queue with most incidents; if equal, with most failed calls.

    None if there is no incident, or if two queues are first with equal numbers of both.
    """
    incident_count_by_queue = Counter[str]()
    failed_calls_by_queue = Counter[str]()
    for incident in incidents:
        incident_count_by_queue[incident.queue_arn] += 1
        failed_calls_by_queue[incident.queue_arn] += incident.failed_calls
    if not incident_count_by_queue:
        return None
    highest_incident_and_call_count = max(
        (incident_count_by_queue[queue_arn], failed_calls_by_queue[queue_arn])
        for queue_arn in incident_count_by_queue
    )
    leader_arns = [
        queue_arn
        for queue_arn in incident_count_by_queue
        if (incident_count_by_queue[queue_arn], failed_calls_by_queue[queue_arn])
        == highest_incident_and_call_count
    ]
    return leader_arns[0] if len(leader_arns) == 1 else None


def _describe_cause(queue_incidents: list[Incident]) -> str:
    """Return a sentence with the most frequent symptom, and the failed calls of all its incidents.

    If incidents of that symptom were not healed, their most frequent reason is added.
    """
    symptom, symptom_count = _find_most_frequent(incident.symptom for incident in queue_incidents)
    share_text = (
        ""
        if symptom_count == len(queue_incidents)
        else f" ({symptom_count} of {len(queue_incidents)})"
    )
    reasons = [
        describe_reason(incident)
        for incident in queue_incidents
        if incident.symptom == symptom and not incident.is_fixed
    ]
    calls_text = format_calls(sum(incident.failed_calls for incident in queue_incidents))
    reason, _ = _find_most_frequent(reason for reason in reasons if reason)
    reason_text = f": {mark_quote(reason)}" if reason else ""
    return f"{mark_quote(format_symptom(symptom))}{share_text}, {calls_text}{reason_text}."


def _find_most_frequent(texts: Iterable[str]) -> tuple[str, int]:
    """Return the most frequent text and its count. Return an empty text and 0 if there is none.

    If several texts are equally frequent, the first in alphabetical order is returned.
    """
    ranked_texts = sort_by_count(Counter(texts))
    return ranked_texts[0] if ranked_texts else ("", 0)
