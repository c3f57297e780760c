"""The cases that wait for a person, most pressing first: how long, what waits there, what to do."""

from __future__ import annotations

import re
from collections import defaultdict

from msgspec import Struct, structs

from mendq.report.links import CASE_ID, Here, queue_of
from mendq.report.summary import Summary
from mendq.report.summary_parts import OpenCase, Recommendation
from mendq.report.tables import state
from mendq.report.words import counted, duration, queue_name, quote, title, visible

MOST_COMMAND = 500
# What a person may be handed to run: verbs that show or ask, about this case and its queue alone,
# and Mendq's own tags of seconds; nothing that asks elsewhere, or answers for them.
_RUNNABLE = (
    r"(mendq (show|approve|decline|rollback|history|policy show|redrive|dlq|queues|alarms|doctor)"
    r"|aws (sqs ((get|list)-[a-z-]+|tag-queue)|lambda list-event-source-mappings))"
    r"(?=.*[ /:]({case}|{name})(?![^ ]))"
    r"( ({case}|{name}|{arn}|https://sqs\.{region}\.amazonaws\.com(\.cn)?/{account}/{name}|{region}"
    r"|[A-Z][A-Za-z]{{2,50}}|--(region|queue-url|event-source-arn|attribute-names|tags|all|dry-run)"
    r"|mendq:[a-z]+(-[a-z]+)*-seconds=(SECONDS|[0-9]{{1,5}})))+"
)


class Waiting(Struct, frozen=True):
    """One case: its queue, what is known of it, and what to run."""

    case_id: str
    queue_arn: str
    facts: str
    command: str


class Kind(Struct, frozen=True):
    """Cases that say the same; `sentence` is the next step. Texts are to be shown as they are."""

    symptom: str
    code: str
    state: str
    urgent: bool
    reason: str
    sentence: str
    runbook: str
    cases: tuple[Waiting, ...] = ()


def kinds(summary: Summary, here: Here | None) -> tuple[Kind, ...]:
    """In the summary's order; cases of different urgency are never of one kind."""
    found = defaultdict[Kind, list[Waiting]](list)
    for each in summary.open_now:
        said = quote(each.reason), quote(each.next_step.sentence), visible(each.next_step.runbook)
        kind = Kind(each.symptom, visible(each.code), state(each), each.urgent, *said)
        verb = "approve" if each.state == "proposed" else "show"
        command = command_of(each, each.next_step.command, verb, here)
        found[kind].append(Waiting(each.case_id, each.queue_arn, _facts(summary, each), command))
    return tuple(structs.replace(kind, cases=tuple(cases)) for kind, cases in found.items())


def _facts(summary: Summary, case: OpenCase) -> str:
    """How long it is open, and what the last scan saw waiting."""
    age = max(0.0, (summary.made_at - case.opened_at).total_seconds())
    known = [f"open for {duration(age)}"]
    if case.backlog is not None:
        known.append(f"{counted(case.backlog, 'message')} waiting")
    if case.oldest_age_seconds is not None:
        known.append(f"the oldest for {duration(case.oldest_age_seconds)}")
    return ", ".join(known)


def command_of(case: OpenCase | Recommendation, asked: str, verb: str, here: Here | None) -> str:
    """What the case asks for where it can do no harm; else `mendq` with `verb`.

    Empty where there is no case, or what names it has not the form of one of ours.
    """
    queue, found = queue_of(case.queue_arn, here), CASE_ID.fullmatch(case.case_id)
    if not queue:
        return ""
    named = {"arn": queue[0], "case": (found or queue)[0], **queue.groupdict()}
    runnable = _RUNNABLE.format(**{name: re.escape(text) for name, text in named.items()})
    if len(asked) <= MOST_COMMAND and re.fullmatch(runnable, asked):
        return asked
    if not found or found["symptom"] != case.symptom:
        return ""
    return f"mendq {verb} {case.case_id} --region {queue['region']}"


def caption(summary: Summary) -> str:
    """How many wait, and how many are not listed."""
    count, left_out = summary.open_cases, summary.open_now_left_out
    waits = f"{counted(count, 'case')} {'waits' if count == 1 else 'wait'} for a person"
    rest = f"; {left_out:,} of them less pressing and not listed" if left_out else ""
    return f"{waits}{rest}."


def in_short(summary: Summary) -> str:
    """The most pressing one and how many more; empty where none waits."""
    if not summary.open_now:
        return ""
    first, more = summary.open_now[0], summary.open_cases - 1
    step = quote(first.next_step.sentence or first.reason)
    said = f"{queue_name(first.queue_arn)}, {title(first.symptom)}, {_facts(summary, first)}"
    rest = f" And {counted(more, 'more case')}." if more else ""
    return f"Needs you: {said}{f': {step}' if step else ''}".rstrip(".") + f".{rest}"
