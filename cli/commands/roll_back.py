"""`mendq roll-back CASE | --since T`: take back what Mendq wrote, and nothing of a person's."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

import typer
from rich.text import Text

from cli.asking import Yes, confirm
from cli.case_view import find
from cli.exit_codes import Exit, Stopped
from cli.invocation import Invocation, with_invocation
from cli.later_writes import LaterWrites
from cli.output import Output, table
from functions.healing.case import Case
from functions.healing.change_lines import with_unit
from functions.healing.difference import NOT_SET
from functions.healing.plain_text import plain
from functions.healing.states import State

_AGO = re.compile(r"([1-9][0-9]{0,5})(min|m|h|d)")
_MINUTES = {"min": 1, "m": 1, "h": 60, "d": 24 * 60}
_OUTCOMES = {"undone": "green", "kept": "bold yellow", "printed": "yellow", "nothing": "dim"}
Answer = dict[str, Any]


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
    """Undo a fix; a person's newer value is kept."""
    if (case_id is None) == (since is None):
        raise Stopped("give either a CASE or --since T", Exit.USAGE)
    now = datetime.now(UTC)
    moment = None if since is None else moment_of(since, now)
    with call.out.waiting("looking at what would be undone"):
        chosen = _chosen(call, case_id, moment)
        preview = _asked(call, chosen, dry_run=True)
    print_answers(call.out, preview, "Would be")
    undone = sum(_has(each, "undone") for each in preview)
    if dry_run or not undone:
        return _ended(call, preview, one=case_id is not None)
    confirm(_question(undone, len(preview)), yes=yes)
    with call.out.waiting("rolling back"):
        done = _asked(call, chosen, dry_run=False)
    print_answers(call.out, done, "Done")
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
    """Every case is asked anew: what a later one wrote hides what the one before it wrote."""
    if undone == asked:
        return f"Undo {undone} case(s)?"
    return f"Undo {undone} of {asked} case(s), and of the others what stands there then?"


def print_answers(out: Output, answers: Sequence[Answer], what: str) -> None:
    """What was, or would be, done: one line an attribute."""
    out.heading(what)
    if not answers:
        out.say("nothing: no change was written since then")
    shown = table("CASE", "ATTRIBUTE", "OUTCOME", "VALUE")
    for answer in answers:
        if "error" in answer:
            reason = Text(plain(answer.get("reason", answer["error"]), 300))
            shown.add_row(answer["case_id"], "", Text("not done", style="red"), reason)
        for each in answer.get("attributes", ()):
            outcome = str(each["outcome"])
            shown.add_row(
                Text(answer["case_id"]),
                Text(plain(each["attribute"], 64)),
                Text(outcome, style=_OUTCOMES.get(outcome, "")),
                Text(_value(each)),
            )
    out.show(shown)
    for answer in answers:
        for each in answer.get("attributes", ()):
            if each["outcome"] == "printed" and each.get("command"):
                out.say(f"{each['attribute']} is never written back by Mendq; by hand:")
                out.command(each["command"])


def _value(each: Answer) -> str:
    name = each["attribute"]
    now, before = (_shown(name, each.get(which)) for which in ("now", "before"))
    if each["outcome"] == "kept" and each.get("later_case"):
        return f"{now}: by a later case of Mendq"
    if each["outcome"] == "kept":
        return f"{now}: set since by somebody else"
    if each["outcome"] == "nothing":
        return f"{now}: as before already"
    return f"{_shown(name, each.get('after'))} -> {before}"


def _shown(name: str, text: object) -> str:
    return with_unit(name, str(text)) if text not in (None, "") else NOT_SET


def _chosen(call: Invocation, case_id: str | None, since: datetime | None) -> list[str]:
    if case_id is not None:
        find(call.account, case_id)
        return [case_id]
    transitions = list(call.account.open_cases.all_transitions())
    return applied_since(transitions, since) if since is not None else []


def _asked(call: Invocation, chosen: Sequence[str], *, dry_run: bool) -> list[Answer]:
    """In their order, the newest first; what was kept for a later case names it."""
    answers = [_ask(call, each, dry_run=dry_run) for each in chosen]
    if not any(map(_kept, answers)):
        return answers
    later = LaterWrites.among(call.account.open_cases.all_transitions())
    for answer in answers:
        for each in _kept(answer):
            name, case_id = each["attribute"], answer["case_id"]
            each["later_case"] = later.case_that_wrote(each["now"], name, case_id)
    return answers


def _ask(call: Invocation, case_id: str, *, dry_run: bool) -> Answer:
    event = {"case_id": case_id, "actor": call.account.identity, "dry_run": dry_run}
    answer = call.account.invoke("RollBackFunction", event)
    return {"case_id": case_id, **answer}


def _has(answer: Answer, outcome: str) -> bool:
    return any(each["outcome"] == outcome for each in answer.get("attributes", ()))


def _kept(answer: Answer) -> list[Answer]:
    return [each for each in answer.get("attributes", ()) if each["outcome"] == "kept"]


def _ended(call: Invocation, answers: list[Answer], *, one: bool) -> Exit:
    call.out.document(answers[0] if one else answers)
    if any(each.get("error") == "not_found" for each in answers):
        return Exit.NOT_FOUND
    if any("error" in each for each in answers):
        return Exit.FAILED
    kept = [each.get("later_case") for answer in answers for each in _kept(answer)]
    if None in kept:
        return Exit.KEPT
    undone = {each["case_id"] for each in answers if _has(each, "undone")}
    return Exit.DONE if undone.issuperset(kept) else Exit.FAILED
