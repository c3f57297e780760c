"""Results of a rollback, or of its preview, as text for people: one block per case.

A `RollbackAnswer` is the rollback Lambda's answer for one case. Each of its attributes has an
outcome (`UndoOutcome`), the values `before` and `after` the case's change, and the value `now`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from shlex import quote
from typing import Any

from mendq.cases.table import OpenCases
from mendq.cli.account import Account
from mendq.cli.output import LabelledLine, Output, format_minute
from mendq.heal.undo import CaseWrite, UndoOutcome, list_writes
from mendq.model.case import Case
from mendq.model.queue import parse_queue_arn
from mendq.model.state import State
from mendq.model.steps import CreateDlq, has_value_in_queue
from mendq.notifications.change_lines import (
    DELETION_WARNING,
    RETENTION_ATTRIBUTE,
    format_attribute_value,
)
from mendq.notifications.commands import dlq_messages_command
from mendq.notifications.configuration import NOT_SET_TEXT
from mendq.notifications.text import to_terminal_text

_STYLE_BY_OUTCOME = {
    "undone": "green",
    "kept": "bold yellow",
    "printed": "yellow",
    "nothing": "dim",
}
# Sentences about a redrive: no attribute of a queue says where its messages are.
_REDRIVE_STOPPED_TEXT = "stopped: the rest is held, and what went back stays there"
_REDRIVE_OVER_TEXT = "nothing goes on: what went back stays there"
RollbackAnswer = dict[str, Any]
# Transitions of each case, first to last, by case ID.
CaseHistories = Mapping[str, Sequence[Case]]


def print_preview(
    out: Output, answers: Sequence[RollbackAnswer], history_by_case_id: CaseHistories
) -> None:
    """Print what a rollback would do. Cases already rolled back have their own heading."""
    answers_rolled_back_earlier = [answer for answer in answers if was_rolled_back(answer)]
    answers_to_roll_back = [answer for answer in answers if not was_rolled_back(answer)]
    if answers_rolled_back_earlier:
        print_answers(out, "Rolled back already", answers_rolled_back_earlier, history_by_case_id)
    if answers_to_roll_back or not answers_rolled_back_earlier:
        heading = "Would be, in this order" if len(answers_to_roll_back) > 1 else "Would be"
        print_answers(out, heading, answers_to_roll_back, history_by_case_id)


def print_answers(
    out: Output, heading: str, answers: Sequence[RollbackAnswer], history_by_case_id: CaseHistories
) -> None:
    """Print a heading, each case's outcomes, and the commands for what a person must undo."""
    out.say_heading(heading)
    if not answers:
        out.say("nothing: no change was written since then")
    for answer in answers:
        newest_transition = history_by_case_id[answer["case_id"]][-1]
        out.say(
            f"{answer['case_id']} on {parse_queue_arn(newest_transition.queue_arn).name}", "bold"
        )
        attributes = answer.get("attributes", ())
        manual_reason = "no rollback ever writes"
        if "error" in answer:
            out.say_labelled(
                [("not done", "red", to_terminal_text(answer["error"]["message"], 300))]
            )
            manual_reason = "AWS did not let Mendq write"
        out.say_labelled(map(format_attribute, attributes))
        if newest_transition.state is State.ROLLED_BACK:
            out.say_unwrapped(
                f"at {format_minute(newest_transition.at)} by {newest_transition.actor}", indent=2
            )
        for attribute, command in list_printed_commands(attributes).items():
            if attribute == CreateDlq.attribute:
                _print_kept_queue(out, newest_transition.queue_arn, attributes, command)
                continue
            warning = f"; {DELETION_WARNING}" if attribute == RETENTION_ATTRIBUTE else ""
            out.say(f"{manual_reason} {attribute}; by hand{warning}:")
            out.say_command(command)


def _print_kept_queue(
    out: Output, source_arn: str, attributes: Sequence[RollbackAnswer], delete_command: str
) -> None:
    """Print that a queue that Mendq made stays, and what to do before someone deletes it."""
    dlq_arn = next(
        attribute["after"]
        for attribute in attributes
        if attribute["attribute"] == CreateDlq.attribute
    )
    dlq_arn = str(dlq_arn)
    dlq = parse_queue_arn(dlq_arn)
    source = parse_queue_arn(source_arn)
    out.say(f"{to_terminal_text(dlq.name, 80)} stays, with its messages. See what is in it:")
    out.say_command(dlq_messages_command(dlq_arn))
    out.say("what can be handled now goes back:")
    dlq_name = quote(dlq.name)
    source_name = quote(source.name)
    out.say_command(
        f"mendq redrive {dlq_name} --to {source_name} --from {source_name} --all --dry-run "
        f"--region {dlq.region}"
    )
    out.say("deleting the queue deletes its messages: only once it is empty and no queue names it:")
    out.say_command(delete_command)


def list_printed_commands(attributes: Iterable[RollbackAnswer]) -> dict[str, str]:
    """Return the commands for changes that Mendq does not write itself, by attribute."""
    return {
        attribute["attribute"]: attribute["command"]
        for attribute in attributes
        if attribute["outcome"] == UndoOutcome.COMMAND_PRINTED and attribute.get("command")
    }


def was_rolled_back(answer: RollbackAnswer) -> bool:
    """Return True if the case had been rolled back before this preview was made."""
    return answer.get("state") == State.ROLLED_BACK


def format_attribute(attribute: RollbackAnswer) -> LabelledLine:
    """Return the line about one attribute: its outcome, its name and its values."""
    outcome = str(attribute["outcome"])
    attribute_text = (
        f"{to_terminal_text(attribute['attribute'], 64)}: {_describe_values(attribute)}"
    )
    return outcome, _STYLE_BY_OUTCOME.get(outcome, ""), attribute_text


def _describe_values(attribute: RollbackAnswer) -> str:
    """Return the text about an attribute's value: `after -> before` if it is undone.

    The text is the same if a person must undo it by a printed command. Otherwise return the present
    value and why it stays: somebody else or a later case set it, or it is the value from before. An
    attribute that the queue does not show, such as a redrive, has a fixed sentence.
    """
    attribute_name = attribute["attribute"]
    if not has_value_in_queue(attribute_name):
        return _REDRIVE_STOPPED_TEXT if attribute["outcome"] == "undone" else _REDRIVE_OVER_TEXT
    present_value = _format_value(attribute_name, attribute.get("now"))
    former_value = _format_value(attribute_name, attribute.get("before"))
    if attribute["outcome"] == "kept" and attribute.get("later_case"):
        return f"{present_value}, by a later case of Mendq: {attribute['later_case']}"
    if attribute["outcome"] == "kept":
        return f"{present_value}, set since by somebody else"
    if attribute["outcome"] == "nothing":
        return f"{present_value}, as before already"
    return f"{_format_value(attribute_name, attribute.get('after'))} -> {former_value}"


def _format_value(attribute_name: str, value: object) -> str:
    return (
        format_attribute_value(attribute_name, str(value))
        if value not in (None, "")
        else NOT_SET_TEXT
    )


def _list_kept_attributes(answer: RollbackAnswer) -> list[RollbackAnswer]:
    """Return the attributes whose value Mendq keeps: it may be a person's or another case's."""
    return [
        attribute
        for attribute in answer.get("attributes", ())
        if attribute["outcome"] == UndoOutcome.VALUE_KEPT
    ]


def group_by_case(transitions: Iterable[Case]) -> dict[str, tuple[Case, ...]]:
    """Return the transitions of each case, first to last, by case ID, from any order."""
    history_by_case_id: dict[str, tuple[Case, ...]] = {}
    for transition in sorted(transitions, key=lambda transition: transition.n):
        earlier_transitions = history_by_case_id.get(transition.case_id, ())
        history_by_case_id[transition.case_id] = (*earlier_transitions, transition)
    return history_by_case_id


def add_later_case_ids(account: Account, answers: Iterable[RollbackAnswer]) -> None:
    """Add `later_case` to each kept attribute: the ID of Mendq's later case that wrote its value.

    `later_case` is None if no case of Mendq wrote the value later. If any attribute is kept, all
    transitions in the case store are read.
    """
    kept_attributes = list[tuple[str, RollbackAnswer]]()
    for answer in answers:
        for attribute in _list_kept_attributes(answer):
            kept_attributes.append((answer["case_id"], attribute))
    if not kept_attributes:
        return
    history_by_case_id = group_by_case(account.open_store(OpenCases).scan_all_transitions())
    for case_id, attribute in kept_attributes:
        attribute["later_case"] = _find_later_case(history_by_case_id, attribute, case_id)


def _find_later_case(
    history_by_case_id: CaseHistories, attribute: RollbackAnswer, case_id: str
) -> str | None:
    """Return the ID of a case on the same queue that wrote the current value after this case did.

    None if no case wrote it later. Values of overridden or rolled-back cases do not count.
    """
    write_of_this_case = _find_attribute_write(
        history_by_case_id.get(case_id, ()), attribute["attribute"]
    )
    if write_of_this_case is None:
        return None
    queue_arn = write_of_this_case.last_transition.queue_arn
    for other_case_id, history in history_by_case_id.items():
        if history[-1].queue_arn != queue_arn or history[-1].state is State.ROLLED_BACK:
            continue
        write_of_other_case = _find_attribute_write(history, attribute["attribute"])
        if write_of_other_case is None or write_of_other_case.was_overridden:
            continue
        is_other_write_later = (
            write_of_other_case.last_transition.at > write_of_this_case.last_transition.at
        )
        if is_other_write_later and write_of_other_case.after == attribute["now"]:
            return other_case_id
    return None


def _find_attribute_write(history: Sequence[Case], attribute_name: str) -> CaseWrite | None:
    """Return what a case wrote to an attribute. None if it wrote nothing there."""
    return next(
        (
            attribute_write
            for attribute_write in list_writes(history)
            if attribute_write.attribute == attribute_name
        ),
        None,
    )
