"""Cases that wait for a person, the most pressing first, with the next step and its command."""

from __future__ import annotations

import re
from collections import defaultdict

from msgspec import Struct, structs

from mendq.report.links import CASE_ID, ReportedAccount, match_queue
from mendq.report.summary import Summary
from mendq.report.summary_parts import OpenCaseSummary, Recommendation
from mendq.report.tables import describe_state
from mendq.report.words import (
    clean_sentence,
    duration,
    format_count,
    make_visible,
    queue_name,
    title,
)

MOST_COMMAND = 500
# Commands from a summary that may be printed for a person to copy. A summary may be forged, so only
# these pass: commands that read or ask first, about this case and its queue only, and commands that
# set Mendq's own tags of seconds. None may name another endpoint, or contain `--yes`.
_RUNNABLE = (
    r"(mendq (show|approve|decline|rollback|history|policy show|redrive|dlq|queues|alarms|doctor)"
    r"|aws (sqs ((get|list)-[a-z-]+|tag-queue)|lambda list-event-source-mappings))"
    r"(?=.*[ /:]({case}|{name})(?![^ ]))"
    r"( ({case}|{name}|{arn}|https://sqs\.{region}\.amazonaws\.com(\.cn)?/{account}/{name}|{region}"
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


class WaitingKind(Struct, frozen=True):
    """Cases that wait for the same reason, on different queues. The texts are safe to show."""

    symptom: str
    code: str
    state: str
    urgent: bool
    reason: str
    # The next step.
    sentence: str
    runbook: str
    cases: tuple[WaitingCase, ...] = ()


def group_waiting_cases(summary: Summary, here: ReportedAccount | None) -> tuple[WaitingKind, ...]:
    """Return the waiting cases in groups that have the same text, in the summary's order.

    Cases of different urgency are in different groups.
    """
    cases_by_kind = defaultdict[WaitingKind, list[WaitingCase]](list)
    for case in summary.open_now:
        kind = WaitingKind(
            symptom=case.symptom,
            code=make_visible(case.code),
            state=describe_state(case),
            urgent=case.urgent,
            reason=clean_sentence(case.reason),
            sentence=clean_sentence(case.next_step.sentence),
            runbook=make_visible(case.next_step.runbook),
        )
        verb = "approve" if case.state == "proposed" else "show"
        command = choose_command(case, case.next_step.command, verb, here)
        facts = _describe_facts(summary, case)
        cases_by_kind[kind].append(WaitingCase(case.case_id, case.queue_arn, facts, command))
    return tuple(structs.replace(kind, cases=tuple(cases)) for kind, cases in cases_by_kind.items())


def _describe_facts(summary: Summary, case: OpenCaseSummary) -> str:
    """Return how long the case is open, and how many messages waited at the last scan."""
    age = max(0.0, (summary.made_at - case.opened_at).total_seconds())
    facts = [f"open for {duration(age)}"]
    if case.backlog is not None:
        facts.append(f"{format_count(case.backlog, 'message')} waiting")
    if case.oldest_age_seconds is not None:
        facts.append(f"the oldest for {duration(case.oldest_age_seconds)}")
    return ", ".join(facts)


def choose_command(
    case: OpenCaseSummary | Recommendation, asked: str, verb: str, here: ReportedAccount | None
) -> str:
    """Return the command to print for a case: `asked` if it is safe, otherwise `mendq VERB CASE`.

    `asked` is the command in the summary; safe commands match `_RUNNABLE`. Empty if the queue is of
    another account or region, or if `asked` is not safe and the case has no valid id.
    """
    queue = match_queue(case.queue_arn, here)
    found = CASE_ID.fullmatch(case.case_id)
    if not queue:
        return ""
    names = {"arn": queue[0], "case": (found or queue)[0], **queue.groupdict()}
    runnable = _RUNNABLE.format(**{name: re.escape(text) for name, text in names.items()})
    if len(asked) <= MOST_COMMAND and re.fullmatch(runnable, asked):
        return asked
    if not found or found["symptom"] != case.symptom:
        return ""
    return f"mendq {verb} {case.case_id} --region {queue['region']}"


def caption(summary: Summary) -> str:
    """Return a sentence: how many cases wait for a person, and how many of them are not listed."""
    count = summary.open_cases
    text = f"{format_count(count, 'case')} {'waits' if count == 1 else 'wait'} for a person"
    if summary.open_now_left_out:
        text += f"; {summary.open_now_left_out:,} of them less pressing and not listed"
    return f"{text}."


def describe_most_pressing(summary: Summary) -> str:
    """Return sentences about the most pressing case and how many more wait. Empty if none waits."""
    if not summary.open_now:
        return ""
    first = summary.open_now[0]
    facts = _describe_facts(summary, first)
    text = f"Needs you: {queue_name(first.queue_arn)}, {title(first.symptom)}, {facts}"
    step = clean_sentence(first.next_step.sentence or first.reason)
    if step:
        text += f": {step}"
    text = text.rstrip(".") + "."
    more = summary.open_cases - 1
    if more:
        text += f" And {format_count(more, 'more case')}."
    return text
