"""Texts about the cases that wait for a person: the next step and a command for each."""

from __future__ import annotations

import re
from collections import defaultdict

from msgspec import Struct, structs

from mendq.report.links import (
    CASE_ID_REGEX,
    ReportedAccount,
    is_safe_in_command,
    make_queue_url,
    match_queue,
)
from mendq.report.summary import Summary
from mendq.report.summary_parts import OpenCaseSummary, Recommendation
from mendq.report.tables import describe_state
from mendq.report.words import (
    clean_sentence,
    format_count,
    format_duration,
    format_queue_name,
    format_symptom,
    make_visible,
)

MOST_COMMAND_CHARACTERS = 500
# Commands from a summary that may be printed for a person to copy. A summary may be forged, so only
# these pass: commands that read or ask first, about this case and its queue only, and commands that
# set Mendq's own tags of seconds. None may name another endpoint, or contain `--yes`.
_SAFE_COMMAND_PATTERN = (
    r"(mendq (show|approve|decline|rollback|history|policy show|redrive|dlq|queues|alarms|doctor)"
    r"|aws (sqs ((get|list)-[a-z-]+|tag-queue)|lambda list-event-source-mappings))"
    r"(?=.*[ /:]({case}|{name})(?![^ ]))"
    r"( ({case}|{name}|{arn}|{url}|{region}"
    r"|[A-Z][A-Za-z]{{2,50}}|--(region|queue-url|event-source-arn|attribute-names|tags|all|dry-run)"
    r"|mendq:[a-z]+(-[a-z]+)*-seconds=(SECONDS|[0-9]{{1,5}})))+"
)


class WaitingCase(Struct, frozen=True):
    """One case that waits for a person."""

    case_id: str
    queue_arn: str
    # Since when it is open and how many messages wait, in words.
    facts: str
    # Command to copy, or empty.
    command: str


class WaitingGroup(Struct, frozen=True):
    """Waiting cases that have the same texts and differ only in their queues.

    Invisible characters in the texts are replaced, so the texts are safe to show. Exception:
    `symptom` is the summary's text, which `format_symptom` makes safe.
    """

    symptom: str
    code: str
    state: str
    is_urgent: bool
    reason: str
    # What a person should do next, as a sentence.
    next_step: str
    runbook: str
    cases: tuple[WaitingCase, ...] = ()


def group_waiting_cases(
    summary: Summary, reported_account: ReportedAccount | None
) -> tuple[WaitingGroup, ...]:
    """Group the waiting cases that have the same symptom, code, state, urgency and texts.

    The texts are the reason, the next step and the runbook. The groups, and the cases in them, keep
    the summary's order: the most pressing first.
    """
    cases_by_group = defaultdict[WaitingGroup, list[WaitingCase]](list)
    for case in summary.open_now:
        waiting_group = WaitingGroup(
            symptom=case.symptom,
            code=make_visible(case.code),
            state=describe_state(case),
            is_urgent=case.urgent,
            reason=clean_sentence(case.reason),
            next_step=clean_sentence(case.next_step.sentence),
            runbook=make_visible(case.next_step.runbook),
        )
        fallback_subcommand = "approve" if case.state == "proposed" else "show"
        command = choose_command(
            case, case.next_step.command, fallback_subcommand, reported_account
        )
        age_and_backlog_text = _describe_age_and_backlog(summary, case)
        cases_by_group[waiting_group].append(
            WaitingCase(case.case_id, case.queue_arn, age_and_backlog_text, command)
        )
    return tuple(
        structs.replace(waiting_group, cases=tuple(waiting_cases))
        for waiting_group, waiting_cases in cases_by_group.items()
    )


def _describe_age_and_backlog(summary: Summary, case: OpenCaseSummary) -> str:
    """Return how long the case is open, how many messages wait, and how old the oldest one is.

    The numbers about messages are from the last scan. A number that it did not measure is left out.
    """
    age_seconds = max(0.0, (summary.made_at - case.opened_at).total_seconds())
    fact_texts = [f"open for {format_duration(age_seconds)}"]
    if case.backlog is not None:
        fact_texts.append(f"{format_count(case.backlog, 'message')} waiting")
    if case.oldest_age_seconds is not None:
        fact_texts.append(f"the oldest for {format_duration(case.oldest_age_seconds)}")
    return ", ".join(fact_texts)


def choose_command(
    case: OpenCaseSummary | Recommendation,
    command_in_summary: str,
    fallback_subcommand: str,
    reported_account: ReportedAccount | None,
) -> str:
    """Return a command for a case that a person can safely copy.

    A summary may be forged. So `command_in_summary` is returned only if it is safe: at most
    MOST_COMMAND_CHARACTERS long, and it matches `_SAFE_COMMAND_PATTERN`.

    Args:
        case: The case.
        command_in_summary: The command that the summary has for the case.
        fallback_subcommand: Subcommand of `mendq` that is used if `command_in_summary` is not safe,
            such as `show`.
        reported_account: The account and region of the report. None if they are not known.

    Returns:
        The command. Empty if the queue is not known to be in the reported account and region, or if
        `command_in_summary` is not safe and the case has no valid id of its symptom.
    """
    queue_match = match_queue(case.queue_arn, reported_account)
    case_id_match = CASE_ID_REGEX.fullmatch(case.case_id)
    if not queue_match:
        return ""
    replacement_by_placeholder = {
        "arn": queue_match[0],
        # A queue of an unknown partition has no URL. Its ARN may be in a command anyway.
        "url": make_queue_url(queue_match) or queue_match[0],
        "case": (case_id_match or queue_match)[0],
        **queue_match.groupdict(),
    }
    safe_command_pattern = _SAFE_COMMAND_PATTERN.format(
        **{
            placeholder: re.escape(replacement_text)
            for placeholder, replacement_text in replacement_by_placeholder.items()
        }
    )
    if (
        len(command_in_summary) <= MOST_COMMAND_CHARACTERS
        and is_safe_in_command(queue_match)
        and re.fullmatch(safe_command_pattern, command_in_summary)
    ):
        return command_in_summary
    if not case_id_match or case_id_match["symptom"] != case.symptom:
        return ""
    return f"mendq {fallback_subcommand} {case.case_id} --region {queue_match['region']}"


def make_caption(summary: Summary) -> str:
    """Return a sentence: how many cases wait for a person, and how many are not listed."""
    waiting_case_count = summary.open_case_count
    verb_form = "waits" if waiting_case_count == 1 else "wait"
    caption = f"{format_count(waiting_case_count, 'case')} {verb_form} for a person"
    if summary.open_now_left_out:
        caption += f"; {summary.open_now_left_out:,} of them less pressing and not listed"
    return f"{caption}."


def describe_most_pressing_case(summary: Summary) -> str:
    """Return sentences about the most pressing waiting case, and the number of other waiting cases.

    Empty if the summary lists no waiting case.
    """
    if not summary.open_now:
        return ""
    first_case = summary.open_now[0]
    facts_text = _describe_age_and_backlog(summary, first_case)
    queue_name = format_queue_name(first_case.queue_arn)
    waiting_text = f"Needs you: {queue_name}, {format_symptom(first_case.symptom)}, {facts_text}"
    next_step_sentence = clean_sentence(first_case.next_step.sentence or first_case.reason)
    if next_step_sentence:
        waiting_text += f": {next_step_sentence}"
    waiting_text = waiting_text.rstrip(".") + "."
    other_case_count = summary.open_case_count - 1
    if other_case_count:
        waiting_text += f" And {format_count(other_case_count, 'more case')}."
    return waiting_text
