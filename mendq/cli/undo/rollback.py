"""What rolling several cases back would do: each is asked once those before it are undone.

The Lambda answers for a queue as it stands now. What a later case wrote hides what an earlier one
wrote, until the later one is undone: from there on the answer is worked out here, by its own rule.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Annotated

import typer

from mendq.cli.account import Account
from mendq.cli.commands import EVERY_CASE, INVOKE, QUEUE, Commands
from mendq.cli.exit_codes import Exit, Stopped, error_document
from mendq.cli.invocation import Invocation, with_invocation
from mendq.cli.look.case_view import find, undos_now
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
from mendq.heal.undo import Outcome
from mendq.model.case import Case, State


def _once_undone(
    account: Account, before: Sequence[Case], history: Sequence[Case], answer: Answer
) -> Answer:
    """What the Lambda's answer for the queue as it is now will be behind those `before`.

    Only where it speaks of what will not be so any more once its turn has come.
    """
    newest = history[-1]
    if "error" in answer:
        if answer["error"]["code"] != "wrong_state":
            return answer
        in_the_way = account.case_store.look(newest.queue_arn, newest.symptom, ()).case
        if in_the_way is None or in_the_way.case_id not in {each.case_id for each in before}:
            return answer
    return {
        "case_id": newest.case_id,
        "state": str(newest.state),
        "attributes": [each.document() for each in undos_now(account, history, before)],
        "once_undone": [each.case_id for each in before],
    }


def _writes(answer: Answer) -> tuple[dict[str, str], ...]:
    """What would be written; nothing where the case was rolled back before."""
    if answer.get("state") == State.ROLLED_BACK:
        return ()
    return tuple(
        {"attribute": each["attribute"], "before": each["now"], "after": each["before"]}
        for each in answer.get("attributes", ())
        if each["outcome"] == Outcome.UNDONE
    )


_AGO = re.compile(r"([1-9][0-9]{0,5})(min|m|h|d)")
# The case, or the queue that it is about.
_GONE = frozenset({"not_found", "queue_gone"})
_MINUTES = {"min": 1, "m": 1, "h": 60, "d": 24 * 60}


COMMANDS = Commands(1, steering={"rollback": EVERY_CASE | QUEUE | {INVOKE}})


@with_invocation
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
    now = datetime.now(UTC)
    moment = None if since is None else moment_of(since, now)
    with call.out.waiting("looking at what would be undone"):
        chosen = _chosen(call, case_id, moment)
        preview = _previewed(call, chosen, now)
    print_preview(call.out, preview, chosen)
    undone = sum(_has(each, "undone") for each in preview if not was_rolled_back(each))
    if dry_run or not undone:
        return _ended(call, preview, one=case_id is not None)
    confirm(_question(undone, len(preview)), yes=yes)
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


def applied_since(transitions: Sequence[Case], since: datetime) -> list[str]:
    """The cases with a change written from then on, the newest change first."""
    last: dict[str, datetime] = {}
    ended = {each.case_id for each in transitions if each.state is State.ROLLED_BACK}
    for each in transitions:
        if each.state is State.APPLIED and each.at >= since and each.case_id not in ended:
            last[each.case_id] = max(each.at, last.get(each.case_id, each.at))
    return sorted(last, key=lambda case_id: last[case_id], reverse=True)


def _question(undone: int, asked: int) -> str:
    cases = "case" if asked == 1 else "cases"
    return f"Undo {undone} {cases}?" if undone == asked else f"Undo {undone} of {asked} {cases}?"


def _chosen(call: Invocation, case_id: str | None, since: datetime | None) -> Histories:
    """The transitions of each case, in the order in which they are to be undone."""
    if case_id is not None:
        return {case_id: find(call.account, case_id)}
    if since is None:
        return {}
    every = histories_of(call.account.open_cases.all_transitions())
    transitions = [each for history in every.values() for each in history]
    return {each: every[each] for each in applied_since(transitions, since)}


def _previewed(call: Invocation, chosen: Histories, now: datetime) -> list[Answer]:
    """In their order, the newest first; what was kept for a later case names it."""
    answers: list[Answer] = []
    undone: list[Case] = []
    for case_id, history in chosen.items():
        answer, newest = _ask(call, case_id, dry_run=True), history[-1]
        if before := [each for each in undone if each.queue_arn == newest.queue_arn]:
            answer = _once_undone(call.account, before, history, answer)
        if steps := _writes(answer):
            undone.append(newest.moved(State.ROLLED_BACK, "it would be", now, steps=steps))
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
