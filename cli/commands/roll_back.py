"""`mendq roll-back CASE | --since T`: take back what Mendq wrote, and nothing of a person's."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Annotated

import typer

from cli.asking import Yes, confirm
from cli.case_view import find
from cli.exit_codes import Exit, Stopped, error_document
from cli.invocation import Invocation, with_invocation
from cli.later_writes import LaterWrites, kept_of, name_later_cases
from cli.roll_back_answers import (
    Answer,
    Histories,
    print_done,
    print_preview,
    was_rolled_back,
)
from cli.roll_back_preview import Preview
from functions.healing.case import Case
from functions.healing.states import State

_AGO = re.compile(r"([1-9][0-9]{0,5})(min|m|h|d)")
# The case, or the queue that it is about.
_GONE = frozenset({"not_found", "queue_gone"})
_MINUTES = {"min": 1, "m": 1, "h": 60, "d": 24 * 60}


@with_invocation
def roll_back(
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
        preview = _asked(call, chosen, Preview(call.account, now))
    print_preview(call.out, preview, chosen)
    undone = sum(_has(each, "undone") for each in preview if not was_rolled_back(each))
    if dry_run or not undone:
        return _ended(call, preview, one=case_id is not None)
    confirm(_question(undone, len(preview)), yes=yes)
    with call.out.waiting("rolling back"):
        done = _asked(call, chosen, None)
    print_done(call.out, done, chosen)
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
    every = LaterWrites.among(call.account.open_cases.all_transitions()).cases
    transitions = [each for history in every.values() for each in history]
    return {each: every[each] for each in applied_since(transitions, since)}


def _asked(call: Invocation, chosen: Histories, preview: Preview | None) -> list[Answer]:
    """In their order, the newest first; what was kept for a later case names it."""
    answers: list[Answer] = []
    for case_id, history in chosen.items():
        answer = _ask(call, case_id, dry_run=preview is not None)
        answers.append(answer if preview is None else preview.then(history, answer))
    name_later_cases(call.account, answers)
    return answers


def _ask(call: Invocation, case_id: str, *, dry_run: bool) -> Answer:
    event = {"case_id": case_id, "actor": call.account.identity, "dry_run": dry_run}
    answer = {"case_id": case_id, **call.account.invoke("RollBackFunction", event)}
    if "error" not in answer:
        return answer
    word = str(answer["error"])
    told = error_document(word, str(answer.get("reason") or word))
    left = {"attributes": answer["attributes"]} if "attributes" in answer else {}
    return {"case_id": case_id, **told, **left}


def _has(answer: Answer, outcome: str) -> bool:
    return any(each["outcome"] == outcome for each in answer.get("attributes", ()))


def _ended(call: Invocation, answers: list[Answer], *, one: bool) -> Exit:
    call.out.document(answers[0] if one else answers)
    errors = {each["error"]["code"] for each in answers if "error" in each}
    if errors:
        return Exit.NOT_FOUND if errors <= _GONE else Exit.FAILED
    kept = [each.get("later_case") for answer in answers for each in kept_of(answer)]
    if None in kept:
        return Exit.KEPT
    undone = {each["case_id"] for each in answers if _has(each, "undone")}
    return Exit.DONE if undone.issuperset(kept) else Exit.FAILED
