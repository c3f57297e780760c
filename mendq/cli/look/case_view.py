"""Texts and data about one case that several commands print: state, plan, decisions, deadline."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from mendq.cases.table import CaseStore, OpenCases
from mendq.cases.view import CaseStoreView, HoldUp
from mendq.catalogue import SYMPTOM_BY_NAME
from mendq.cli.account import Account
from mendq.cli.exit_codes import CommandError, Exit
from mendq.cli.output import format_minute, shorten_list
from mendq.heal.approve import TRANSITION_BY_DECISION
from mendq.heal.decide import APPROVAL_LIMIT_TEXT
from mendq.model import other_transitions
from mendq.model.case import Case
from mendq.model.lifecycle import STATES_THAT_CALL_OWNER
from mendq.model.limits import Timing
from mendq.model.queue import parse_queue_arn
from mendq.model.state import STATES_UNDER_VERIFICATION, State
from mendq.model.time_text import format_time
from mendq.notifications import change_lines
from mendq.notifications.commands import mendq_case_command

STYLE_BY_STATE: Mapping[State, str] = {
    State.ESCALATED: "bold red",
    **dict.fromkeys((State.OVERRIDDEN, State.INEFFECTIVE), "red"),
    State.PROPOSED: "bold yellow",
    State.APPROVED: "yellow",
    **dict.fromkeys((State.APPLIED, State.UNVERIFIED), "cyan"),
    **dict.fromkeys((State.VERIFIED, State.WATCHING, State.CLOSED), "green"),
}
WAITING_STATES = frozenset({State.PROPOSED, State.APPROVED})
# States of cases whose steps were never written into a queue.
UNWRITTEN_STATES = WAITING_STATES | {State.OBSERVED, State.REFUSED, State.DECLINED, State.EXPIRED}

# States whose reason explains the plan. In other states the reason says why nothing is done.
_STATES_WITH_PLAN_REASON = WAITING_STATES | {State.OBSERVED, State.APPLIED}


def find_case(account: Account, case_or_queue: str) -> tuple[Case, ...]:
    """Return the transitions of a case, the oldest first.

    `case_or_queue` is the id of a case, the beginning of an open case's id, or the name of an open
    case's queue. Raises CommandError if it is empty, or if it fits no case or several open cases.
    """
    if not case_or_queue.strip():
        # Every id begins with an empty text, so it would fit any open case.
        raise CommandError("name a case or its queue: `mendq cases` lists them", Exit.USAGE)
    case_store = account.open_store(OpenCases)
    transitions = case_store.list_transitions(case_or_queue)
    if transitions:
        return transitions
    case_ids = {
        case.case_id
        for case in case_store.list_open_cases()
        if parse_queue_arn(case.queue_arn).name == case_or_queue
        or case.case_id.startswith(case_or_queue)
    }
    if len(case_ids) > 1:
        raise CommandError(
            f"{case_or_queue} fits {len(case_ids)} open cases: {shorten_list(sorted(case_ids))}",
            Exit.USAGE,
        )
    for case_id in case_ids:
        return case_store.list_transitions(case_id)
    problem = f"no case {case_or_queue}, nor one open of that queue"
    raise CommandError(f"{problem}; a closed one needs its id: `mendq cases`", Exit.NOT_FOUND)


def require_whole_id(case: Case, given_id: str, *, yes: bool) -> None:
    """Raise CommandError if `yes` is True and `given_id` is not the whole id of the case.

    With --yes the command does not ask. So nobody would see that a part of an id, or the name of a
    queue, now fits another case.
    """
    if yes and case.case_id != given_id:
        problem = f"--yes wants the whole id of the case: {case.case_id} fits {given_id}"
        raise CommandError(problem, Exit.USAGE)


def summarize_case(case: Case) -> dict[str, Any]:
    """Return a case as `mendq cases --json` prints it. `case` is its newest transition."""
    return {
        "case_id": case.case_id,
        "queue_arn": case.queue_arn,
        "symptom": case.symptom,
        "state": str(case.state),
        "opened_at": format_time(get_opening_time(case)),
        "steps": [dict(step) for step in case.steps],
        "reason": case.reason,
        "code": case.code,
        "shared_default": case.shared_default and case.shared_default.first_case_id,
    }


def describe_shared_case(case: Case) -> str:
    """Return a line about the case's shared default; empty if it belongs to none."""
    shared_default = case.shared_default
    if shared_default is None:
        return ""
    queue_count = len(shared_default.queue_arns)
    if case.follows_first_case:
        return (
            f"one of {queue_count} queues with the same {shared_default.attribute}; "
            f"{shared_default.first_case_id} goes first"
        )
    names_text = shorten_list(shared_default.queue_names)
    return (
        f"goes first of {queue_count} queues with the same {shared_default.attribute}: {names_text}"
    )


def read_hold_up(account: Account, case: Case) -> HoldUp | None:
    """Return why a Lambda cannot continue the case, and since when.

    None if nothing holds up the case, if the case does not wait for a Lambda, or if `case` is not
    the case's newest transition.
    """
    if case.state not in STATES_THAT_CALL_OWNER:
        return None
    return select_hold_up(
        account.open_store(CaseStore).look(case.queue_arn, case.symptom, ()), case
    )


def select_hold_up(case_store_view: CaseStoreView, case: Case) -> HoldUp | None:
    """Return from a case store view why a Lambda cannot continue the case, and since when.

    None if nothing holds up the case, or if the view shows another case or another transition.
    """
    is_other_transition = (
        case_store_view.case is None or case_store_view.case.transition != case.transition
    )
    return None if is_other_transition else case_store_view.hold_up


def describe_hold_up(hold_up: HoldUp) -> str:
    """Return a line that says why the case is held up, and since when."""
    return f"held up since {format_minute(hold_up.waiting_since)}: {hold_up.reason}"


def get_opening_time(case: Case) -> datetime:
    """Return when the case was opened."""
    return case.opened_at or case.at


def find_plan_transition(transitions: Sequence[Case]) -> Case:
    """Return the first transition that has the same steps as the last transition.

    Rollbacks are ignored, unless all transitions are rollbacks.
    """
    transitions_with_plan = [case for case in transitions if case.state is not State.ROLLED_BACK]
    candidate_transitions = transitions_with_plan or transitions
    return next(
        case for case in candidate_transitions if case.steps == candidate_transitions[-1].steps
    )


def find_plan_reason(transitions: Sequence[Case]) -> str:
    """Return the reason for the newest plan, as it was recorded when the plan was made.

    Its text about the approval's time limit is left out, unless the case is still proposed. Empty
    if there is no plan, or if the recorded reason says why nothing is done.
    """
    plan_transition = find_plan_transition(transitions)
    if plan_transition.state not in _STATES_WITH_PLAN_REASON or not plan_transition.steps:
        return ""
    reason = plan_transition.reason
    if transitions[-1].state is State.PROPOSED:
        return reason
    return reason.partition(APPROVAL_LIMIT_TEXT)[0]


def read_timing(account: Account, cases: Iterable[Case]) -> Timing | None:
    """Return the stack's time limits, if a case is proposed, approved or under verification.

    None if there is no such case, or if the settings cannot be read.
    """
    if not any(case.state in {*WAITING_STATES, *STATES_UNDER_VERIFICATION} for case in cases):
        return None
    try:
        return account.settings.timing
    except (CommandError, ClientError, BotoCoreError):
        return None


def find_deadline(case: Case, timing: Timing | None) -> datetime | None:
    """Return when the time to approve a case, or to make its approved fix, ends.

    None if the case is neither proposed nor approved, or if its time limit is not known.
    """
    if timing is None or case.state not in WAITING_STATES:
        return None
    time_limit = case.find_time_limit(timing)
    return None if time_limit is None else case.at + time_limit


def describe_deadline(case: Case, timing: Timing | None) -> str:
    """Return the deadline of the case as text, or that it is not known.

    Empty if the case is neither proposed nor approved.
    """
    if case.state not in WAITING_STATES:
        return ""
    deadline = find_deadline(case, timing)
    if deadline:
        return f"until {format_minute(deadline)}"
    return "until when is not known: heal's settings are unreadable"


def list_states_for_decision(decision: str, case: Case) -> tuple[State, ...]:
    """Return the states in which a person may make this decision about the case.

    `decision` is `approve`, `decline` or `close`. If this version of Mendq does not know the case's
    symptom, the case cannot be approved, and it can be closed in every state in which it is open.
    """
    decision_transition = TRANSITION_BY_DECISION[decision]
    if case.symptom in SYMPTOM_BY_NAME:
        return decision_transition.states_before
    close_unknown_transition = other_transitions.CLOSE_UNKNOWN_TRANSITION
    states_if_symptom_unknown = {
        other_transitions.CLOSE_TRANSITION: close_unknown_transition.states_before,
        other_transitions.APPROVAL_TRANSITION: (),
    }
    return states_if_symptom_unknown.get(decision_transition, decision_transition.states_before)


def list_decision_commands(case: Case) -> list[str]:
    """Return the commands for the decisions that a person may make about the case now."""
    return [
        mendq_case_command(decision, case)
        for decision in TRANSITION_BY_DECISION
        if case.state in list_states_for_decision(decision, case)
    ]


def list_step_lines(steps: Sequence[Mapping[str, str]]) -> list[str]:
    """Return lines that describe a case's steps: attribute, old value and new value with units.

    For a policy, the lines show only what differs.
    """
    step_lines: list[str] = []
    for step in steps:
        step_lines.extend(change_lines.describe_step(step))
    return step_lines
