"""What was rolled back, or would be, as people read it: a block a case, a line an attribute."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from shlex import quote
from typing import Any

from mendq.cases.table import OpenCases
from mendq.cli.account import Account
from mendq.cli.output import LabelledLine, Output, format_minute
from mendq.heal.undo import UndoOutcome, Written, written_by
from mendq.model.case import Case, State
from mendq.model.queue import parts_of
from mendq.model.steps import CreateDlq, has_value_in_queue
from mendq.notifications.change_lines import DELETES, RETENTION, with_unit
from mendq.notifications.configuration import NOT_SET
from mendq.notifications.text import plain

_STYLES = {"undone": "green", "kept": "bold yellow", "printed": "yellow", "nothing": "dim"}
# Of messages on their way: no value of the queue's says where they are.
_STOPPED = "stopped: the rest is held, and what went back stays there"
_OVER = "nothing goes on: what went back stays there"
Answer = dict[str, Any]
Histories = Mapping[str, Sequence[Case]]


def print_preview(out: Output, answers: Sequence[Answer], histories: Histories) -> None:
    """Nothing was done yet; what was rolled back before stands under a heading of its own."""
    before = [each for each in answers if was_rolled_back(each)]
    others = [each for each in answers if not was_rolled_back(each)]
    if before:
        print_answers(out, "Rolled back already", before, histories)
    if others or not before:
        words = "Would be, in this order" if len(others) > 1 else "Would be"
        print_answers(out, words, others, histories)


def print_answers(out: Output, words: str, answers: Sequence[Answer], histories: Histories) -> None:
    """Under a heading what is, or would be, done: a block a case."""
    out.say_heading(words)
    if not answers:
        out.say("nothing: no change was written since then")
    for answer in answers:
        newest = histories[answer["case_id"]][-1]
        out.say(f"{answer['case_id']} on {parts_of(newest.queue_arn).name}", "bold")
        attributes, why = answer.get("attributes", ()), "no rollback ever writes"
        if "error" in answer:
            out.say_labelled([("not done", "red", plain(answer["error"]["message"], 300))])
            why = "AWS did not let Mendq write"
        out.say_labelled(map(format_attribute, attributes))
        if newest.state is State.ROLLED_BACK:
            out.say_unwrapped(f"at {format_minute(newest.at)} by {newest.actor}", indent=2)
        for attribute, command in list_printed_commands(attributes).items():
            if attribute == CreateDlq.attribute:
                _print_kept_queue(out, newest.queue_arn, attributes, command)
                continue
            also = f"; {DELETES}" * (attribute == RETENTION)
            out.say(f"{why} {attribute}; by hand{also}:")
            out.say_command(command)


def _print_kept_queue(
    out: Output, source_arn: str, attributes: Sequence[Answer], delete_command: str
) -> None:
    """Say that a queue that Mendq made stays, and what to do before somebody deletes it."""
    made = next(each["after"] for each in attributes if each["attribute"] == CreateDlq.attribute)
    dlq, source = parts_of(str(made)), parts_of(source_arn)
    out.say(f"{plain(dlq.name, 80)} stays, with its messages. See what is in it:")
    out.say_command(f"mendq dlq {quote(dlq.name)} --region {dlq.region}")
    out.say("what can be handled now goes back:")
    name, back_to = quote(dlq.name), quote(source.name)
    out.say_command(
        f"mendq redrive {name} --to {back_to} --from {back_to} --all --dry-run "
        f"--region {dlq.region}"
    )
    out.say("deleting the queue deletes its messages: only once it is empty and no queue names it:")
    out.say_command(delete_command)


def list_printed_commands(attributes: Iterable[Answer]) -> dict[str, str]:
    """By attribute the commands for what Mendq does not write."""
    printed = (each for each in attributes if each["outcome"] == UndoOutcome.PRINTED)
    return {each["attribute"]: each["command"] for each in printed if each.get("command")}


def was_rolled_back(answer: Answer) -> bool:
    """Of the answer to a preview, which changes no state."""
    return answer.get("state") == State.ROLLED_BACK


def format_attribute(each: Answer) -> LabelledLine:
    """One attribute: what becomes of it, and what stands there."""
    outcome = str(each["outcome"])
    return outcome, _STYLES.get(outcome, ""), f"{plain(each['attribute'], 64)}: {_value(each)}"


def _value(each: Answer) -> str:
    name = each["attribute"]
    if not has_value_in_queue(name):
        return _STOPPED if each["outcome"] == "undone" else _OVER
    now, before = (_shown(name, each.get(which)) for which in ("now", "before"))
    if each["outcome"] == "kept" and each.get("later_case"):
        return f"{now}, by a later case of Mendq: {each['later_case']}"
    if each["outcome"] == "kept":
        return f"{now}, set since by somebody else"
    if each["outcome"] == "nothing":
        return f"{now}, as before already"
    return f"{_shown(name, each.get('after'))} -> {before}"


def _shown(name: str, text: object) -> str:
    return with_unit(name, str(text)) if text not in (None, "") else NOT_SET


def retained_of(answer: Answer) -> list[Answer]:
    """The attributes at which somebody else's value stands."""
    return [each for each in answer.get("attributes", ()) if each["outcome"] == UndoOutcome.THEIRS]


def group_by_case(transitions: Iterable[Case]) -> dict[str, tuple[Case, ...]]:
    """The transitions of each case in their order; they come in none."""
    found: dict[str, tuple[Case, ...]] = {}
    for each in sorted(transitions, key=lambda each: each.n):
        found[each.case_id] = (*found.get(each.case_id, ()), each)
    return found


def name_later_cases(account: Account, answers: Iterable[Answer]) -> None:
    """Put into what was kept the case of ours whose value that is, by the whole case store."""
    retained = [(answer["case_id"], each) for answer in answers for each in retained_of(answer)]
    if not retained:
        return
    histories = group_by_case(account.open_store(OpenCases).all_transitions())
    for case_id, each in retained:
        each["later_case"] = _later_case(histories, each, case_id)


def _later_case(histories: Histories, answer: Answer, case_id: str) -> str | None:
    """The case that wrote what stands there after this one's last write; None if nobody's.

    What was overridden since, or taken back, is not ours.
    """
    mine = _written(histories.get(case_id, ()), answer["attribute"])
    if mine is None:
        return None
    queue_arn = mine.last.queue_arn
    for other, history in histories.items():
        if history[-1].queue_arn != queue_arn or history[-1].state is State.ROLLED_BACK:
            continue
        later = _written(history, answer["attribute"])
        if later is None or later.was_overridden or later.last.at <= mine.last.at:
            continue
        if later.after == answer["now"]:
            return other
    return None


def _written(history: Sequence[Case], attribute: str) -> Written | None:
    return next((each for each in written_by(history) if each.attribute == attribute), None)
