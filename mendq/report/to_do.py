"""Things that people should do: what, why, and how many incidents it would prevent."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime

from msgspec import Struct

from mendq.report.links import (
    CASE_ID_REGEX,
    ReportedAccount,
    is_safe_in_command,
    match_queue,
)
from mendq.report.open_now import choose_command
from mendq.report.summary import Summary
from mendq.report.summary_parts import HealCandidate, Recommendation, ValueStillSet
from mendq.report.words import (
    describe_change,
    format_count,
    format_duration,
    format_principal,
    format_symptom,
    format_value,
    make_visible,
    mark_name,
    mark_queue,
    mark_quote,
)


class ToDo(Struct, frozen=True):
    """One thing to do, as texts for the page and the mail. Any text but `action` may be empty."""

    # Sentences in which names are marked: what to do, why, and what it would prevent.
    action: str
    reason: str
    effect: str
    # The CloudFormation stack that deploys the queue, or empty.
    owner: str
    # Command to copy. It consists of Mendq's own words, and of parts of the summary whose form was
    # checked.
    command: str


def list_to_do(
    summary: Summary, reported_account: ReportedAccount | None = None
) -> tuple[ToDo, ...]:
    """Return the things to do: the summary's recommendations, then suggestions of mode heal.

    The recommendations have the summary's order. An item has no command if `reported_account` is
    None or the queue is in another account or region.
    """
    to_dos = []
    for recommendation in summary.do_this_week:
        owner = ""
        if recommendation.kind != "fix_caller":
            owner = format_principal(recommendation.owner)
        to_do = ToDo(
            action=_describe_action(recommendation),
            reason=_describe_recommendation_reason(recommendation),
            effect=_describe_incidents_behind(recommendation),
            owner=owner,
            command=_choose_command(recommendation, reported_account),
        )
        to_dos.append(to_do)
    to_dos.extend(_suggest_heal_mode(heal_candidate) for heal_candidate in summary.earned)
    return tuple(to_dos)


def _suggest_heal_mode(heal_candidate: HealCandidate) -> ToDo:
    marked_symptom = mark_name(heal_candidate.symptom)
    action = f"Consider mode heal for {marked_symptom} of {mark_queue(heal_candidate.queue_arn)}."
    approved_share_text = f"{heal_candidate.approved:,} of {heal_candidate.asked:,}"
    reason = f"{approved_share_text} proposals were approved unchanged."
    return ToDo(action=action, reason=reason, effect="", owner="", command="")


class Drift(Struct, frozen=True):
    """A value that Mendq set on a queue and that the queue's template may not contain."""

    queue_arn: str
    # The attribute and its change, with marked names.
    change: str
    # How long ago Mendq set it, or "not known".
    age: str
    # The CloudFormation stack that deploys the queue, or empty.
    owner: str
    # Command that shows the template's lines. Empty if the queue is not known to be in the reported
    # account and region, or if the case id is not valid.
    command: str


def list_drift(summary: Summary, reported_account: ReportedAccount | None = None) -> list[Drift]:
    """Return the values that Mendq set on queues and that are still set.

    They have the summary's order, the oldest first.
    """
    return [
        _make_drift(summary, standing_value, reported_account)
        for standing_value in summary.standing
    ]


def _make_drift(
    summary: Summary, standing_value: ValueStillSet, reported_account: ReportedAccount | None
) -> Drift:
    queue_match = match_queue(standing_value.queue_arn, reported_account)
    case_id_match = CASE_ID_REGEX.fullmatch(standing_value.case_id)
    command = ""
    if queue_match and case_id_match and case_id_match["symptom"] == standing_value.symptom:
        command = (
            f"mendq patch {standing_value.case_id} --template FILE --region {queue_match['region']}"
        )
    age_text = ""
    # The time is empty if the nightly job did not read when Mendq wrote the value.
    with suppress(ValueError, TypeError):
        time_of_change = datetime.fromisoformat(standing_value.set_at)
        age_text = format_duration(max(0, (summary.made_at - time_of_change).total_seconds()))
    value_change = describe_change(
        standing_value.attribute, standing_value.before, standing_value.after
    )
    return Drift(
        queue_arn=standing_value.queue_arn,
        change=f"{mark_name(standing_value.attribute)} {value_change}".strip(),
        age=age_text or "not known",
        owner=make_visible(standing_value.owner),
        command=command,
    )


def describe_drift(summary: Summary) -> str:
    """Return a sentence with the number of values that Mendq set and that are still set.

    Empty if there are none.
    """
    standing_value_count = len(summary.standing) + summary.standing_left_out
    if not standing_value_count:
        return ""
    verb_form = "stand" if standing_value_count > 1 else "stands"
    values_text = format_count(standing_value_count, "value")
    return f"{values_text} that Mendq set {verb_form}, perhaps in no template yet."


def describe_left_out(summary: Summary) -> str:
    """Return a sentence with the number of recommendations that the summary does not list.

    Empty if it lists all.
    """
    unlisted_recommendation_count = summary.do_this_week_left_out
    return (
        f"{format_count(unlisted_recommendation_count, 'more thing')} would have prevented less."
        if unlisted_recommendation_count
        else ""
    )


def _choose_command(
    recommendation: Recommendation, reported_account: ReportedAccount | None
) -> str:
    """Return the command to print for a recommendation.

    For a recommendation about a case, this is the summary's command if it is safe, and otherwise
    `mendq approve` or `mendq show` if the case id is valid. Empty if there is no such command, if
    this kind of recommendation has none, or if the queue is in another account or region.
    """
    recommendation_kind = recommendation.kind
    queue_match = match_queue(recommendation.queue_arn, reported_account)
    if recommendation_kind in _SUBCOMMAND_BY_RECOMMENDATION_KIND and queue_match:
        if not is_safe_in_command(queue_match):
            return ""
        subcommand = _SUBCOMMAND_BY_RECOMMENDATION_KIND[recommendation_kind].format(
            queue=queue_match[0]
        )
        return f"mendq {subcommand} --region {queue_match['region']}"
    if recommendation_kind not in _SENTENCE_WITH_ATTRIBUTE_BY_KIND:
        return ""
    fallback_subcommand = "approve" if recommendation_kind == "approve" else "show"
    return choose_command(
        recommendation, recommendation.command, fallback_subcommand, reported_account
    )


_SUBCOMMAND_BY_RECOMMENDATION_KIND = {"add_alarms": "alarms {queue}", "correct_tags": "queues"}
_SENTENCE_WITH_ATTRIBUTE_BY_KIND = {
    "write_into_template": "Set {attribute} of {queues}{to} in {their} template.",
    "approve": "Approve or decline: {change}.",
    "watch": "Watch {attribute} of {queues}{changed}.",
    "decide": "Decide on {attribute} of {queues}{either}.",
    "fix": "Fix {symptom} of {queues}: {setting}.",
}
# Sentences by kind, if the recommendation names no attribute.
_SENTENCE_WITHOUT_ATTRIBUTE_BY_KIND = {
    "approve": "Approve or decline what Mendq proposes for {symptom} of {queues}.",
    "decide": "Decide what to do about {symptom} of {queues}.",
    "fix": "Fix {symptom} of {queues}.",
    "fix_caller": "Fix {caller}, whose calls to {queues} are mistaken{codes}.",
    "name_code": "Find out what {code} means for {queues}.",
    "add_alarms": "Add CloudWatch alarms for {queues}.",
    "correct_tags": "Correct the tags of {queues}.",
}


def _describe_action(recommendation: Recommendation) -> str:
    """Return the sentence that tells people what to do."""
    quoted_symptom = mark_quote(format_symptom(recommendation.symptom))
    queues_text = _describe_queues(recommendation)
    if recommendation.next_step:
        return f"{quoted_symptom} on {queues_text}. {mark_quote(recommendation.next_step)}"
    attribute_name = recommendation.attribute
    sentence_pattern = (
        _SENTENCE_WITH_ATTRIBUTE_BY_KIND.get(recommendation.kind) if attribute_name else None
    )
    if not sentence_pattern:
        sentence_pattern = _SENTENCE_WITHOUT_ATTRIBUTE_BY_KIND.get(
            recommendation.kind, "Look at {symptom} of {queues}."
        )
    marked_attribute = mark_name(attribute_name)
    old_value = format_value(attribute_name, recommendation.before)
    new_value = format_value(attribute_name, recommendation.after)
    change_text = describe_change(attribute_name, recommendation.before, recommendation.after)
    caller_text = "the callers"
    if recommendation.owner:
        caller_text = mark_name(format_principal(recommendation.owner))
    reason = recommendation.reason
    return sentence_pattern.format(
        attribute=marked_attribute,
        queues=queues_text,
        symptom=f'"{quoted_symptom}"',
        their="its" if recommendation.queues <= 1 else "their",
        to=f" to {new_value}" if new_value else "",
        change=f"{marked_attribute} of {queues_text} {change_text}".strip(),
        changed=f", changed {change_text}" if change_text else "",
        either=f": {old_value} or {new_value}" if old_value and new_value else "",
        setting=f"{marked_attribute} {change_text}".strip(),
        caller=caller_text,
        codes=f" ({mark_quote(reason)})" if reason else "",
        code=mark_name(recommendation.symptom.removeprefix("unknown:")),
    )


def _describe_queues(recommendation: Recommendation) -> str:
    """Return the name of the recommendation's queue, and the number of further queues."""
    other_queue_count = recommendation.queues - 1
    other_queues_text = (
        f" and {format_count(other_queue_count, 'other queue')}" if other_queue_count > 0 else ""
    )
    return f"{mark_queue(recommendation.queue_arn)}{other_queues_text}"


def _describe_recommendation_reason(recommendation: Recommendation) -> str:
    """Return the sentence that gives the reason for a recommendation.

    Empty if the report has no sentence for the reason in the summary.
    """
    if recommendation.kind == "write_into_template":
        old_value = format_value(recommendation.attribute, recommendation.before) or "the old value"
        when_changed_text = (
            "in an earlier week" if recommendation.why == "stands" else "and it helped"
        )
        return (
            f"Mendq changed it {when_changed_text}. If the template still says {old_value}, "
            "'terraform apply' brings that back; CloudFormation does when the property changes "
            "there, or with a drift-aware change set."
        )
    reason_sentence = SENTENCE_BY_RECOMMENDATION_REASON.get(recommendation.why, "")
    if recommendation.why in _STATES_WITH_REASON and recommendation.reason:
        quoted_reason = mark_quote(recommendation.reason.rstrip("."))
        return f"{reason_sentence.removesuffix('.')}: {quoted_reason}."
    return reason_sentence


# Sentences by the state of the case, by the reason why incidents have no case, or for a finding.
SENTENCE_BY_RECOMMENDATION_REASON = {
    "proposed": "Mendq waits for an answer.",
    "applied": "Mendq changed it and has not verified yet that it helped.",
    "expired": "Nobody answered Mendq's proposal in time.",
    "refused": "Mendq refused to act.",
    "escalated": "Mendq left it to a person.",
    "ineffective": "Mendq's change did not help.",
    "overridden": "Somebody else changed it after Mendq, which leaves it alone now.",
    "observed": "Mendq only observed: the mode does not let it act.",
    "unknown_code": "The catalogue has no entry for this error code, so nothing acts on it.",
    "found": "The last scan found it.",
    "count_only": "Nothing in the queue could fix a caller's mistake.",
}
# The recommendation's `reason` is added to the sentences of these.
_STATES_WITH_REASON = frozenset({"refused", "escalated", "ineffective", "found"})


def _describe_incidents_behind(recommendation: Recommendation) -> str:
    """Return a sentence with the number of this week's incidents behind a recommendation.

    Empty if there are none.
    """
    if not recommendation.incidents:
        return ""
    calls_text = format_count(recommendation.failed_calls, "failed call")
    calls_or_scans_text = (
        f" with {calls_text}" if recommendation.failed_calls else ", found by scans,"
    )
    incidents_text = format_count(recommendation.incidents, "incident")
    return f"Behind {incidents_text}{calls_or_scans_text} this week."
