"""A case as people read it: its state, its plan, what they may say of it, and until when."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from mendq.cases.table import CaseStore, OpenCases
from mendq.cases.view import CaseStoreView, HoldUp
from mendq.catalogue import BY_NAME
from mendq.cli.account import Account
from mendq.cli.exit_codes import CommandError, Exit
from mendq.cli.output import format_minute, shorten_list
from mendq.heal.approve import DECISIONS
from mendq.heal.decide import UNTIL
from mendq.model import lifecycle
from mendq.model.case import PROVING, Case, State, longest_stay_in
from mendq.model.evidence import to_text
from mendq.model.lifecycle import CALLING
from mendq.model.limits import Timing
from mendq.model.queue import parts_of
from mendq.notifications import change_lines
from mendq.notifications.commands import mendq_command

STYLES: Mapping[State, str] = {
    State.ESCALATED: "bold red",
    **dict.fromkeys((State.OVERRIDDEN, State.INEFFECTIVE), "red"),
    State.PROPOSED: "bold yellow",
    State.APPROVED: "yellow",
    **dict.fromkeys((State.APPLIED, State.UNVERIFIED), "cyan"),
    **dict.fromkeys((State.VERIFIED, State.WATCHING, State.CLOSED), "green"),
}
WAITING = frozenset({State.PROPOSED, State.APPROVED})
# Whose steps stand in no queue, and did not stand in one.
NOT_MADE = WAITING | {State.OBSERVED, State.REFUSED, State.DECLINED, State.EXPIRED}

# What a plan comes up in; any other state says why nothing is done.
_PLANNED = WAITING | {State.OBSERVED, State.APPLIED}


def find(account: Account, named: str) -> tuple[Case, ...]:
    """The transitions of a case, first to last, by its id; or of the one open case that fits.

    That is one whose id begins so, or whose queue is called so. CommandError where none or several
    do.
    """
    if not named.strip():
        # Every id begins with an empty text: it would stand for whichever case is open.
        raise CommandError("name a case or its queue: `mendq cases` lists them", Exit.USAGE)
    source = account.open_store(OpenCases)
    if found := source.transitions(named):
        return found
    fits = {
        each.case_id
        for each in source.list_open()
        if parts_of(each.queue_arn).name == named or each.case_id.startswith(named)
    }
    if len(fits) > 1:
        raise CommandError(
            f"{named} fits {len(fits)} open cases: {shorten_list(sorted(fits))}", Exit.USAGE
        )
    for case_id in fits:
        return source.transitions(case_id)
    line = f"no case {named}, nor one open of that queue; a closed one needs its id: `mendq cases`"
    raise CommandError(line, Exit.NOT_FOUND)


def require_whole_id(case: Case, named: str, *, yes: bool) -> None:
    """CommandError where nobody is asked and the id is not whole: by then another may be open."""
    if yes and case.case_id != named:
        line = f"--yes wants the whole id of the case: {case.case_id} fits {named}"
        raise CommandError(line, Exit.USAGE)


def summary(case: Case) -> dict[str, Any]:
    """What `cases` says of a case, by its newest transition."""
    return {
        "case_id": case.case_id,
        "queue_arn": case.queue_arn,
        "symptom": case.symptom,
        "state": str(case.state),
        "opened_at": to_text(opened_at(case)),
        "steps": [dict(each) for each in case.steps],
        "reason": case.reason,
        "code": case.code,
    }


def held_up(account: Account, case: Case) -> HoldUp | None:
    """What keeps the owner of its write from taking it up; None of a case that waits for none."""
    if case.state not in CALLING:
        return None
    return hold_up_in(account.open_store(CaseStore).look(case.queue_arn, case.symptom, ()), case)


def hold_up_in(view: CaseStoreView, case: Case) -> HoldUp | None:
    """The same, as the case store said it; another transition's is none of this one's."""
    moved = view.case is None or view.case.transition != case.transition
    return None if moved else view.hold_up


def held_up_line(hold_up: HoldUp) -> str:
    return f"held up since {format_minute(hold_up.since)}: {hold_up.reason}"


def opened_at(case: Case) -> datetime:
    return case.opened_at or case.at


def plan_of(transitions: Sequence[Case]) -> Case:
    """The transition with which the newest plan came up; a rollback is none."""
    planned = [each for each in transitions if each.state is not State.ROLLED_BACK] or transitions
    return next(each for each in planned if each.steps == planned[-1].steps)


def plan_reason(transitions: Sequence[Case]) -> str:
    """Why these steps: what was said when they came up, not what was said of them since.

    Empty where that says why not.
    """
    planned = plan_of(transitions)
    if planned.state not in _PLANNED or not planned.steps:
        return ""
    reason = planned.reason
    return reason if transitions[-1].state is State.PROPOSED else reason.partition(UNTIL)[0]


def timing_of(account: Account, cases: Iterable[Case]) -> Timing | None:
    """The stack's, where one of the cases waits for a person or has to prove itself; None where it
    cannot be read.
    """
    if not any(each.state in {*WAITING, *PROVING} for each in cases):
        return None
    try:
        return account.settings.timing
    except (CommandError, ClientError, BotoCoreError):
        return None


def runs_out_at(case: Case, timing: Timing | None) -> datetime | None:
    """Until when a person may approve it, or what was approved may be made; else None."""
    if timing is None or case.state not in WAITING:
        return None
    longest = longest_stay_in(case.state, timing)
    return None if longest is None else case.at + longest


def until(case: Case, timing: Timing | None) -> str:
    """The same in words; nothing of a case that waits for nobody's word."""
    if case.state not in WAITING:
        return ""
    if at := runs_out_at(case, timing):
        return f"until {format_minute(at)}"
    return "until when is not known: heal's settings are unreadable"


def may_be_said_of(word: str, case: Case) -> tuple[State, ...]:
    """The states of a case like this one that a person's word ends, or moves on."""
    move = DECISIONS[word]
    if case.symptom in BY_NAME:
        return move.out_of
    unknown = {lifecycle.CLOSE: lifecycle.CLOSE_UNKNOWN.out_of, lifecycle.APPROVE: ()}
    return unknown.get(move, move.out_of)


def commands(case: Case) -> list[str]:
    """What a person may say of it in this state."""
    said = (word for word in DECISIONS if case.state in may_be_said_of(word, case))
    return [mendq_command(word, case) for word in said]


def step_lines(steps: Sequence[Mapping[str, str]]) -> list[str]:
    """As a page says them: attribute, before -> after, with units; a policy by its differences."""
    return [line for each in steps for line in change_lines.step_lines(each)]
