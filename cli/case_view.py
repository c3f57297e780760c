"""A case as operators see it: its transitions, what was known before, how to take it back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from cli.account import Account
from cli.exit_codes import Exit, Stopped
from functions.healing.case import Case
from functions.healing.change_lines import set_command, with_unit
from functions.healing.difference import NOT_SET
from functions.healing.evidence import to_text
from functions.healing.rollback import written_by
from functions.healing.states import State

STYLES: Mapping[State, str] = {
    State.ESCALATED: "bold red",
    State.CONTESTED: "red",
    State.INEFFECTIVE: "red",
    State.PROPOSED: "bold yellow",
    State.APPROVED: "yellow",
    State.APPLIED: "cyan",
    State.APPLIED_UNPROVEN: "cyan",
    State.VERIFIED: "green",
    State.WATCHING: "green",
    State.CLOSED: "green",
}


def find(account: Account, case_id: str) -> tuple[Case, ...]:
    """The transitions of a case, first to last; Stopped where the ledger has none."""
    found = account.open_cases.transitions(case_id)
    if not found:
        raise Stopped(f"no case {case_id} in the ledger: `mendq cases` lists them", Exit.NOT_FOUND)
    return found


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
    }


def opened_at(case: Case) -> datetime:
    return case.opened_at or case.at


def step_lines(steps: Sequence[Mapping[str, str]]) -> list[str]:
    """One line a step: attribute, before -> after, with units."""
    return [
        f"{each['attribute']}: {_shown(each, 'before')} -> {_shown(each, 'after')}"
        for each in steps
    ]


def _shown(step: Mapping[str, str], which: str) -> str:
    return with_unit(step["attribute"], step[which]) if step[which] else NOT_SET


def snapshot_of(account: Account, transitions: Sequence[Case]) -> Mapping[str, str] | None:
    """The queue's attributes from before the case first wrote; None where it never did."""
    kept = (account.open_cases.snapshot_of(each) for each in transitions)
    return next((each for each in kept if each is not None), None)


def undo_commands(transitions: Sequence[Case]) -> list[str]:
    """How to take back by hand what stands in the queue; nothing where nothing was written."""
    if transitions[-1].state is State.ROLLED_BACK:
        return []
    before = {each.attribute: each.before for each in written_by(transitions)}
    return [set_command(transitions[-1].queue_arn, before)] if before else []
