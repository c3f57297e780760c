"""`mendq rollback`: one fix taken back, or all since a time, the newest first.

The Lambda answers for a queue as it stands now: what a later case hides is worked out here.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Annotated

import typer

from mendq.cases.table import OpenCases
from mendq.cli.commands import EVERY_CASE, INVOKE, Kind, command
from mendq.cli.exit_codes import CommandError, Exit, error_document
from mendq.cli.invocation import Invocation
from mendq.cli.look.case_view import find, require_whole_id
from mendq.cli.output import Yes, confirm
from mendq.cli.undo.answers import (
    Answer,
    Histories,
    group_by_case,
    list_printed_commands,
    name_later_cases,
    print_answers,
    print_preview,
    was_rolled_back,
)
from mendq.heal.undo import NEVER_PUT_BACK, UndoOutcome, Written, written_by
from mendq.model.case import Case, State
from mendq.model.steps import is_permanent
from mendq.notifications.text import format_count


def _once_undone(answer: Answer, history: Sequence[Case], first: Sequence[Answer]) -> Answer:
    """The Lambda's answer once those of `first` are undone; what is set meanwhile is kept."""
    newest, cases = history[-1], [each["case_id"] for each in first]
    error = answer.get("error", {"code": "wrong_state", "message": cases})
    if error["code"] != "wrong_state" or not any(each in error["message"] for each in cases):
        return answer
    back = {each["attribute"]: each["before"] for other in first for each in _undone(other)}
    read = {each["attribute"]: each for each in answer.get("attributes", ())}
    found = [_then(each, read.get(each.attribute), back) for each in written_by(history)]
    once = {"attributes": found, "once_undone": cases}
    return {"case_id": newest.case_id, "state": str(newest.state), **once}


def _then(written: Written, read: Answer | None, back: Mapping[str, str]) -> Answer:
    """What was `read`, unless a later case hides it: then by the value that one puts `back`."""
    name, before, after = written.attribute, written.before, written.after
    outcome = (
        UndoOutcome.PRINTED if name in NEVER_PUT_BACK or is_permanent(name) else UndoOutcome.UNDONE
    )
    found = read or {"attribute": name, "outcome": outcome, "before": before, "after": after}
    if (stands := back.get(name)) is None:
        return found
    if stands == found["after"] != found["before"] and not written.was_overridden:
        return {key: found[key] for key in found if key != "now"} | {"outcome": UndoOutcome.UNDONE}
    outcome = UndoOutcome.NOTHING if stands == found["before"] else UndoOutcome.THEIRS
    return {**found, "outcome": outcome, "now": stands}


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
    queue is gone; with 1 where something was not done, as what is only printed.

    Examples:
      mendq rollback orders            # shows what is undone and asks
      mendq rollback --since 2h --dry-run
    """
    if (case_id is None) == (since is None):
        raise CommandError("give either a CASE or --since T", Exit.USAGE)
    moment = None if since is None else parse_moment(since, datetime.now(UTC))
    with call.out.show_waiting("looking at what would be undone"):
        if moment is None:
            found = find(call.account, case_id or "")
            require_whole_id(found[-1], case_id or "", yes=yes)
            chosen: Histories = {found[-1].case_id: found}
        else:
            chosen = _written_since(call, moment)
        preview = _previewed(call, chosen)
    print_preview(call.out, preview, chosen)
    undone = sum(bool(_undone(each)) for each in preview if not was_rolled_back(each))
    if dry_run or not undone:
        return _ended(call, preview, one=case_id is not None)
    confirm(f"Undo {undone} of {format_count(len(preview), 'case')}?", yes=yes)
    with call.out.show_waiting("rolling back"):
        done = [_ask(call, each, dry_run=False) for each in chosen]
        name_later_cases(call.account, done)
    print_answers(call.out, "Done", done, chosen)
    return _ended(call, done, one=case_id is not None)


def parse_moment(text: str, now: datetime) -> datetime:
    """`2h`.

    `3d`, `30min`, or an ISO time, which is UTC unless it says otherwise; else Raise CommandError.
    """
    try:
        if ago := _AGO.fullmatch(text):
            return now - timedelta(minutes=int(ago.group(1)) * _MINUTES[ago.group(2)])
        moment = datetime.fromisoformat(text)
    except (ValueError, OverflowError) as unreadable:
        line = f"--since {text!r} is no time: say 2h, 3d or 2026-11-16T09:30Z"
        raise CommandError(line, Exit.USAGE) from unreadable
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _written_since(call: Invocation, since: datetime) -> Histories:
    """The transitions of each case, in the order in which they are to be undone."""
    every = group_by_case(call.account.open_store(OpenCases).all_transitions())
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
    undone = defaultdict[str, list[Answer]](list)
    for case_id, history in chosen.items():
        first = undone[history[-1].queue_arn]
        answer = _once_undone(_ask(call, case_id, dry_run=True), history, first)
        if _undone(answer) and not was_rolled_back(answer):
            first.append(answer)
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


def _undone(answer: Answer) -> list[Answer]:
    return [each for each in answer.get("attributes", ()) if each["outcome"] == "undone"]


def _ended(call: Invocation, answers: list[Answer], *, one: bool) -> Exit:
    call.out.print_json(answers[0] if one else answers)
    errors = {each["error"]["code"] for each in answers if "error" in each}
    if errors:
        return Exit.NOT_FOUND if errors <= _GONE else Exit.FAILED
    attributes = [each for answer in answers for each in answer.get("attributes", ())]
    retained = {
        each.get("later_case") for each in attributes if each["outcome"] == UndoOutcome.THEIRS
    }
    undone = {each["case_id"] for each in answers if _undone(each)}
    # A queue that stays is printed as well, and is not left undone.
    if not all(map(is_permanent, list_printed_commands(attributes))) or retained - undone - {None}:
        return Exit.FAILED
    return Exit.OVERRIDDEN if None in retained else Exit.DONE
