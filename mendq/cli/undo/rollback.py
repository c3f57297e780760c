"""`mendq rollback`: one fix taken back, or all since a time, the newest first.

The Lambda answers for a queue as it stands now. What a later case wrote hides what an earlier one
wrote, until the later one is undone: of that alone, what is to come is worked out here.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Container, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Annotated

import typer

from mendq.cli.commands import EVERY_CASE, INVOKE, Kind, command
from mendq.cli.exit_codes import Exit, Stopped, error_document
from mendq.cli.invocation import Invocation
from mendq.cli.look.case_view import find
from mendq.cli.output import Yes, confirm
from mendq.cli.undo.answers import (
    Answer,
    Histories,
    histories_of,
    name_later_cases,
    print_answers,
    print_preview,
    retained_of,
    was_rolled_back,
)
from mendq.heal.undo import NEVER_PUT_BACK, Outcome, written_by
from mendq.model.case import Case, State
from mendq.notifications.text import counted


def _once_undone(answer: Answer, history: Sequence[Case], first: Mapping[str, Answer]) -> Answer:
    """What is to come of a case once those of `first` have put back their values, by attribute.

    All else is as the Lambda answered. Its own turn decides: what somebody sets meanwhile is kept.
    """
    newest, written = history[-1], written_by(history)
    back = {name: value for each in first.values() for name, value in each.items()}
    attributes: list[Answer] = answer.get("attributes", [])
    if "error" in answer:
        error = answer["error"]
        if error["code"] != "wrong_state" or not any(each in error["message"] for each in first):
            return answer
        attributes = [
            {"attribute": each.attribute, "before": each.before, "after": each.after}
            | {"outcome": Outcome.PRINTED if each.attribute in NEVER_PUT_BACK else Outcome.UNDONE}
            for each in written
        ]
    elif back.keys().isdisjoint(each["attribute"] for each in attributes):
        return answer
    overridden = {each.attribute for each in written if each.was_overridden}
    attributes = [_then(each, back, overridden) for each in attributes]
    answer = {"case_id": newest.case_id, "state": str(newest.state), "attributes": attributes}
    return {**answer, "once_undone": list(first)}


def _then(found: Answer, back: Mapping[str, str], overridden: Container[str]) -> Answer:
    """By the Lambda's own rule; what still stands there as the case wrote it was not read."""
    if (stands := back.get(found["attribute"])) is None:
        return found
    if stands == found["before"]:
        return {**found, "outcome": Outcome.NOTHING, "now": stands}
    if stands != found["after"] or found["attribute"] in overridden:
        return {**found, "outcome": Outcome.THEIRS, "now": stands}
    return {**{key: found[key] for key in found if key != "now"}, "outcome": Outcome.UNDONE}


_AGO = re.compile(r"([1-9][0-9]{0,5})(min|m|h|d)")
# The case, or the queue that it is about.
_GONE = frozenset({"not_found", "queue_gone"})
_MINUTES = {"min": 1, "m": 1, "h": 60, "d": 24 * 60}


@command(1, Kind.STEERING, EVERY_CASE | {INVOKE})
def rollback(
    call: Invocation,
    case_id: Annotated[str | None, typer.Argument(metavar="CASE", show_default=False)] = None,
    since: Annotated[
        str | None,
        typer.Option(metavar="T", help="All that was applied since: 2h, 3d or an ISO time."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would be.")] = False,
    yes: Yes = False,
) -> Exit:
    """Undo a fix; a person's newer value is kept.

    Exits with 3 where a person's value was kept, whatever else was undone; with 4 where case or
    queue is gone; with 1 where something could not be done.
    """
    if (case_id is None) == (since is None):
        raise Stopped("give either a CASE or --since T", Exit.USAGE)
    moment = None if since is None else moment_of(since, datetime.now(UTC))
    with call.out.waiting("looking at what would be undone"):
        chosen = _chosen(call, case_id, moment)
        preview = _previewed(call, chosen)
    print_preview(call.out, preview, chosen)
    undone = sum(_has(each, "undone") for each in preview if not was_rolled_back(each))
    if dry_run or not undone:
        return _ended(call, preview, one=case_id is not None)
    confirm(f"Undo {undone} of {counted(len(preview), 'case')}?", yes=yes)
    with call.out.waiting("rolling back"):
        done = [_ask(call, each, dry_run=False) for each in chosen]
        name_later_cases(call.account, done)
    print_answers(call.out, "Done", done, chosen)
    return _ended(call, done, one=case_id is not None)


def moment_of(text: str, now: datetime) -> datetime:
    """`2h`, `3d`, `30min`, or an ISO time, which is UTC unless it says otherwise; else Stopped."""
    try:
        if ago := _AGO.fullmatch(text):
            return now - timedelta(minutes=int(ago.group(1)) * _MINUTES[ago.group(2)])
        moment = datetime.fromisoformat(text)
    except (ValueError, OverflowError) as unreadable:
        line = f"--since {text!r} is no time: say 2h, 3d or 2026-11-16T09:30Z"
        raise Stopped(line, Exit.USAGE) from unreadable
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _chosen(call: Invocation, case_id: str | None, since: datetime | None) -> Histories:
    """The transitions of each case, in the order in which they are to be undone."""
    if case_id is not None:
        return {case_id: find(call.account, case_id)}
    if since is None:
        return {}
    every = histories_of(call.account.open_cases.all_transitions())
    changed = {
        case_id: [each.at for each in history if each.state is State.APPLIED and each.at >= since]
        for case_id, history in every.items()
        if history[-1].state is not State.ROLLED_BACK
    }
    written = [case_id for case_id, moments in changed.items() if moments]
    newest_first = sorted(written, key=lambda each: changed[each][-1], reverse=True)
    return {each: every[each] for each in newest_first}


def _previewed(call: Invocation, chosen: Histories) -> list[Answer]:
    """In their order, the newest first; what was kept for a later case names it."""
    answers: list[Answer] = []
    undone = defaultdict[str, dict[str, Answer]](dict)
    for case_id, history in chosen.items():
        first, answer = undone[history[-1].queue_arn], _ask(call, case_id, dry_run=True)
        answer = _once_undone(answer, history, first) if first else answer
        if _has(answer, "undone") and not was_rolled_back(answer):
            every = answer["attributes"]
            first[case_id] = {
                each["attribute"]: each["before"] for each in every if each["outcome"] == "undone"
            }
        answers.append(answer)
    name_later_cases(call.account, answers)
    return answers


def _ask(call: Invocation, case_id: str, *, dry_run: bool) -> Answer:
    event = {"case_id": case_id, "actor": call.account.identity, "dry_run": dry_run}
    answer = {"case_id": case_id, **call.account.invoke("RollbackFunction", event)}
    if "error" not in answer:
        return answer
    word = str(answer["error"])
    announced = error_document(word, str(answer.get("reason") or word))
    left = {"attributes": answer["attributes"]} if "attributes" in answer else {}
    return {"case_id": case_id, **announced, **left}


def _has(answer: Answer, outcome: str) -> bool:
    return any(each["outcome"] == outcome for each in answer.get("attributes", ()))


def _ended(call: Invocation, answers: list[Answer], *, one: bool) -> Exit:
    call.out.document(answers[0] if one else answers)
    errors = {each["error"]["code"] for each in answers if "error" in each}
    if errors:
        return Exit.NOT_FOUND if errors <= _GONE else Exit.FAILED
    retained = [each.get("later_case") for answer in answers for each in retained_of(answer)]
    if None in retained:
        return Exit.OVERRIDDEN
    undone = {each["case_id"] for each in answers if _has(each, "undone")}
    return Exit.DONE if undone.issuperset(retained) else Exit.FAILED
