"""`mendq rollback`: undo one fix, or all fixes since a time, the newest first.

With `--all` it undoes every fix of the case's shared default. Cases that are not written yet are
declined before the first rollback, so that nothing more is written meanwhile.

The rollback Lambda's preview is about the queue as it is now. If several fixes of one attribute are
undone together, the queue still has the value of the later fix. So the Lambda cannot preview the
earlier fix, and this module computes its outcome.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Annotated

import typer

from mendq.cases.table import OpenCases
from mendq.cli.commands import CASE_SCAN_ACTIONS, INVOKE_LAMBDA_ACTION, CommandKind, command
from mendq.cli.exit_codes import CommandError, Exit, error_document
from mendq.cli.invocation import Invocation
from mendq.cli.look.case_view import find_case, require_whole_id
from mendq.cli.output import YesOption, confirm
from mendq.cli.undo.answers import (
    CaseHistories,
    RollbackAnswer,
    add_later_case_ids,
    group_by_case,
    list_printed_commands,
    print_answers,
    print_preview,
    was_rolled_back,
)
from mendq.heal.undo import MANUAL_ATTRIBUTES, CaseWrite, UndoOutcome, list_writes
from mendq.model.case import Case
from mendq.model.shared_default import select_members
from mendq.model.state import State
from mendq.model.steps import is_permanent
from mendq.notifications.text import format_count, to_terminal_text


def _predict_answer(
    answer: RollbackAnswer, history: Sequence[Case], later_answers: Sequence[RollbackAnswer]
) -> RollbackAnswer:
    """Return the answer that the Lambda will give for a case after later cases are undone.

    The Lambda's preview does not know that later cases are undone first. So the outcome is computed
    here from the values that these cases restore. The answer is returned unchanged if there is no
    later case. An answer with an error is also returned unchanged, unless the error is
    `wrong_state` and names a later case.

    Args:
        answer: The Lambda's preview for this case.
        history: The case's transitions.
        later_answers: Previews of the later cases on this queue that will be undone first.
    """
    newest_transition = history[-1]
    later_case_ids = [later_answer["case_id"] for later_answer in later_answers]
    error = answer.get("error", {"code": "wrong_state", "message": later_case_ids})
    is_about_later_case = any(later_case_id in error["message"] for later_case_id in later_case_ids)
    if error["code"] != "wrong_state" or not is_about_later_case:
        return answer
    restored_value_by_attribute = dict[str, str]()
    for later_answer in later_answers:
        for attribute in _list_undone_attributes(later_answer):
            restored_value_by_attribute[attribute["attribute"]] = attribute["before"]
    previewed_attribute_by_name = {
        attribute["attribute"]: attribute for attribute in answer.get("attributes", ())
    }
    attributes = [
        _predict_outcome(
            write, previewed_attribute_by_name.get(write.attribute), restored_value_by_attribute
        )
        for write in list_writes(history)
    ]
    return {
        "case_id": newest_transition.case_id,
        "state": str(newest_transition.state),
        "attributes": attributes,
        "once_undone": later_case_ids,
    }


def _predict_outcome(
    write: CaseWrite,
    previewed_answer: RollbackAnswer | None,
    restored_value_by_attribute: Mapping[str, str],
) -> RollbackAnswer:
    """Return the outcome for an attribute after later cases are undone.

    Args:
        write: What the case wrote.
        previewed_answer: The Lambda's answer about the attribute, None if it gave none.
        restored_value_by_attribute: Values that undoing the later cases restores, by attribute.
    """
    attribute_name = write.attribute
    must_be_undone_by_hand = attribute_name in MANUAL_ATTRIBUTES or is_permanent(attribute_name)
    attribute = previewed_answer or {
        "attribute": attribute_name,
        "outcome": UndoOutcome.COMMAND_PRINTED if must_be_undone_by_hand else UndoOutcome.UNDONE,
        "before": write.before,
        "after": write.after,
    }
    restored_value = restored_value_by_attribute.get(attribute_name)
    if restored_value is None:
        return attribute
    if restored_value == attribute["after"] != attribute["before"] and not write.was_overridden:
        attribute_without_now = {
            field_name: attribute[field_name] for field_name in attribute if field_name != "now"
        }
        return attribute_without_now | {"outcome": UndoOutcome.UNDONE}
    outcome = (
        UndoOutcome.ALREADY_UNDONE
        if restored_value == attribute["before"]
        else UndoOutcome.VALUE_KEPT
    )
    return {**attribute, "outcome": outcome, "now": restored_value}


_AGE_PATTERN = re.compile(r"([1-9][0-9]{0,5})(min|m|h|d)")
# Error codes that mean that the case or its queue does not exist.
_NOT_FOUND_CODES = frozenset({"not_found", "queue_gone"})
_MINUTES_BY_UNIT = {"min": 1, "m": 1, "h": 60, "d": 24 * 60}


@command(1, CommandKind.STEERING, CASE_SCAN_ACTIONS | {INVOKE_LAMBDA_ACTION})
def rollback(  # noqa: PLR0913, PLR0917 - each is one option of the command
    call: Invocation,
    case_id: Annotated[str | None, typer.Argument(metavar="CASE", show_default=False)] = None,
    since: Annotated[
        str | None,
        typer.Option(
            metavar="T", help="Roll back all fixes since this time: 2h, 3d or an ISO time."
        ),
    ] = None,
    every_queue: Annotated[
        bool, typer.Option("--all", help="Roll back all queues of the case's shared default.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would happen, and change nothing.")
    ] = False,
    yes: YesOption = False,
) -> Exit:
    """Undo a fix. A person's newer value is kept.

    Exits with 3 if a person's value was kept, whatever else was undone; with 4 if the case or the
    queue does not exist; with 1 if something was not undone, such as a change that is only printed.

    Examples:
      mendq rollback orders            # shows what would be undone and asks
      mendq rollback --since 2h --dry-run
      mendq rollback CASE --all        # a shared default: all of its queues
    """
    if every_queue and case_id is None:
        raise CommandError("--all needs a CASE of the shared default", Exit.USAGE)
    if (case_id is None) == (since is None):
        raise CommandError("give either a CASE or --since T", Exit.USAGE)
    call.account.require_whole_stack("roll back")
    with call.out.show_waiting("looking at what would be undone"):
        if since is not None:
            earliest_applied_at = parse_time_option(since, datetime.now(UTC))
            history_by_case_id = _find_cases_applied_since(call, earliest_applied_at)
        else:
            history_by_case_id = _find_named_cases(
                call, case_id or "", every_queue=every_queue, yes=yes
            )
        waiting_case_ids = _list_waiting_case_ids(history_by_case_id) if every_queue else []
        history_by_case_id = _leave_out_cases(history_by_case_id, waiting_case_ids)
        previewed_answers = _preview_rollbacks(call, history_by_case_id)
    is_one_case = case_id is not None and not every_queue
    if waiting_case_ids:
        waiting_text = format_count(len(waiting_case_ids), "case")
        call.out.say(f"{waiting_text} not written yet: Mendq declines them first")
    print_preview(call.out, previewed_answers, history_by_case_id)
    undoable_case_count = _count_undoable_cases(previewed_answers)
    if dry_run or not (undoable_case_count or waiting_case_ids):
        return _print_json(call, previewed_answers, is_one_case=is_one_case)
    confirm(
        f"Undo {undoable_case_count} of {format_count(len(previewed_answers), 'case')}?", yes=yes
    )
    with call.out.show_waiting("rolling back"):
        decline_answers = [_decline_case(call, waiting_id) for waiting_id in waiting_case_ids]
        answers = [
            _ask_rollback_lambda(call, rolled_back_case_id, dry_run=False)
            for rolled_back_case_id in history_by_case_id
        ]
        add_later_case_ids(call.account, answers)
    print_answers(call.out, "Done", answers, history_by_case_id)
    _print_declines(call, decline_answers)
    return _print_json(call, [*answers, *decline_answers], is_one_case=is_one_case)


def _find_named_cases(
    call: Invocation, case_or_queue: str, *, every_queue: bool, yes: bool
) -> dict[str, Sequence[Case]]:
    """Return the transitions of the named case by its ID, or of its whole shared default."""
    history = find_case(call.account, case_or_queue)
    newest_transition = history[-1]
    require_whole_id(newest_transition, case_or_queue, yes=yes)
    if every_queue:
        return _find_shared_cases(call, newest_transition)
    return {newest_transition.case_id: history}


def _count_undoable_cases(previewed_answers: Sequence[RollbackAnswer]) -> int:
    """Return the number of cases of which the rollback would undo something."""
    return sum(
        bool(_list_undone_attributes(answer))
        for answer in previewed_answers
        if not was_rolled_back(answer)
    )


def _leave_out_cases(
    history_by_case_id: CaseHistories, case_ids: Sequence[str]
) -> dict[str, Sequence[Case]]:
    """Return the transitions of the other cases, by case ID."""
    return {
        case_id: history
        for case_id, history in history_by_case_id.items()
        if case_id not in case_ids
    }


def _find_shared_cases(call: Invocation, case: Case) -> dict[str, Sequence[Case]]:
    """Return the transitions of all cases of the case's shared default, by case ID.

    The newest change comes first. Raises CommandError if the case belongs to no shared default.
    """
    shared_default = case.shared_default
    if shared_default is None:
        problem = f"case {case.case_id} belongs to no shared default: leave out --all"
        raise CommandError(problem, Exit.USAGE)
    history_by_case_id = group_by_case(call.account.open_store(OpenCases).scan_all_transitions())
    newest_transitions = [history[-1] for history in history_by_case_id.values()]
    members = select_members(newest_transitions, shared_default)
    members_newest_first = sorted(members, key=lambda member: member.at, reverse=True)
    return {member.case_id: history_by_case_id[member.case_id] for member in members_newest_first}


def _list_waiting_case_ids(history_by_case_id: CaseHistories) -> list[str]:
    """Return the cases that are proposed or approved, and may still be written."""
    return [
        case_id
        for case_id, history in history_by_case_id.items()
        if history[-1].state in (State.PROPOSED, State.APPROVED)
    ]


def _decline_case(call: Invocation, case_id: str) -> RollbackAnswer:
    """Decline a case that is not written yet. Roll it back if it was written meanwhile."""
    event = {"case_id": case_id, "decision": "decline", "actor": call.account.identity}
    answer = call.account.invoke("ApproveFunction", event)
    if answer.get("error") == "wrong_state":
        return _ask_rollback_lambda(call, case_id, dry_run=False)
    if "error" in answer:
        message = str(answer.get("reason") or answer["error"])
        return {"case_id": case_id, **error_document(str(answer["error"]), message)}
    return {"case_id": case_id, "state": str(answer.get("state")), "attributes": []}


def _print_declines(call: Invocation, decline_answers: Sequence[RollbackAnswer]) -> None:
    """Print a line for each case that was not written, with its new state or the error."""
    for answer in decline_answers:
        outcome_text = answer["error"]["message"] if "error" in answer else answer["state"]
        call.out.say(f"{answer['case_id']}: {to_terminal_text(str(outcome_text), 300)}")


def parse_time_option(time_text: str, now: datetime) -> datetime:
    """Return the time of `2h`, `3d` or `30min` before `now`, or an ISO time.

    An ISO time without an offset is UTC. Raises CommandError if the text is neither.
    """
    try:
        if age_match := _AGE_PATTERN.fullmatch(time_text):
            return now - timedelta(
                minutes=int(age_match.group(1)) * _MINUTES_BY_UNIT[age_match.group(2)]
            )
        parsed_time = datetime.fromisoformat(time_text)
    except (ValueError, OverflowError) as error:
        problem = f"--since {time_text!r} is not a time: write 2h, 3d or 2026-11-16T09:30Z"
        raise CommandError(problem, Exit.USAGE) from error
    return parsed_time if parsed_time.tzinfo else parsed_time.replace(tzinfo=UTC)


def _find_cases_applied_since(call: Invocation, since: datetime) -> dict[str, Sequence[Case]]:
    """Return the transitions of each case that made a change since then, by case ID.

    The case with the newest change comes first. Cases that were rolled back already are left out.
    """
    history_by_case_id = group_by_case(call.account.open_store(OpenCases).scan_all_transitions())
    last_applied_at_by_case_id = dict[str, datetime]()
    for case_id, history in history_by_case_id.items():
        if history[-1].state is State.ROLLED_BACK:
            continue
        for transition in history:
            if transition.state is State.APPLIED and transition.at >= since:
                last_applied_at_by_case_id[case_id] = transition.at
    case_ids_newest_first = sorted(
        last_applied_at_by_case_id,
        key=lambda case_id: last_applied_at_by_case_id[case_id],
        reverse=True,
    )
    return {case_id: history_by_case_id[case_id] for case_id in case_ids_newest_first}


def _preview_rollbacks(call: Invocation, history_by_case_id: CaseHistories) -> list[RollbackAnswer]:
    """Return what a rollback of each case would do, in the given order, without doing it.

    If a value is kept because a later case wrote it, the answer names that case.
    """
    answers: list[RollbackAnswer] = []
    undone_answers_by_queue = defaultdict[str, list[RollbackAnswer]](list)
    for case_id, history in history_by_case_id.items():
        later_answers = undone_answers_by_queue[history[-1].queue_arn]
        answer = _predict_answer(
            _ask_rollback_lambda(call, case_id, dry_run=True), history, later_answers
        )
        if _list_undone_attributes(answer) and not was_rolled_back(answer):
            later_answers.append(answer)
        answers.append(answer)
    add_later_case_ids(call.account, answers)
    return answers


def _ask_rollback_lambda(call: Invocation, case_id: str, *, dry_run: bool) -> RollbackAnswer:
    """Return the rollback Lambda's answer for one case. An error has the form of `--json`."""
    event = {"case_id": case_id, "actor": call.account.identity, "dry_run": dry_run}
    answer = {"case_id": case_id, **call.account.invoke("RollbackFunction", event)}
    if "error" not in answer:
        return answer
    error_code = str(answer["error"])
    message = str(answer.get("reason") or error_code)
    error_answer: RollbackAnswer = {"case_id": case_id, **error_document(error_code, message)}
    if "attributes" in answer:
        error_answer["attributes"] = answer["attributes"]
    return error_answer


def _list_undone_attributes(answer: RollbackAnswer) -> list[RollbackAnswer]:
    """Return the attributes that the rollback undoes."""
    return [
        attribute for attribute in answer.get("attributes", ()) if attribute["outcome"] == "undone"
    ]


def _print_json(call: Invocation, answers: list[RollbackAnswer], *, is_one_case: bool) -> Exit:
    """Print the answers for scripts and return the exit code that they mean."""
    call.out.print_json(answers[0] if is_one_case else answers)
    error_codes = {answer["error"]["code"] for answer in answers if "error" in answer}
    if error_codes:
        return Exit.NOT_FOUND if error_codes <= _NOT_FOUND_CODES else Exit.FAILED
    attributes = [attribute for answer in answers for attribute in answer.get("attributes", ())]
    # The cases whose values were kept; None stands for a value that a person set.
    later_case_ids_of_kept_values = {
        attribute.get("later_case")
        for attribute in attributes
        if attribute["outcome"] == UndoOutcome.VALUE_KEPT
    }
    undone_case_ids = {answer["case_id"] for answer in answers if _list_undone_attributes(answer)}
    remaining_later_case_ids = later_case_ids_of_kept_values - undone_case_ids - {None}
    # The command for a queue that stays is printed too, but the queue is not left undone.
    has_manual_commands = not all(map(is_permanent, list_printed_commands(attributes)))
    if has_manual_commands or remaining_later_case_ids:
        return Exit.FAILED
    return Exit.OVERRIDDEN if None in later_case_ids_of_kept_values else Exit.DONE
