"""What was rolled back, or would be, as people read it: a block a case, a line an attribute."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cli.output import Line, Output, minute
from functions.healing.case import Case
from functions.healing.change_lines import with_unit
from functions.healing.difference import NOT_SET
from functions.healing.every_step import leaves_a_value
from functions.healing.plain_text import plain
from functions.healing.queue_names import parts_of
from functions.healing.states import State

_STYLES = {"undone": "green", "kept": "bold yellow", "printed": "yellow", "nothing": "dim"}
# Of letters on their way: no value of the queue's says where they are.
_STOPPED = "stopped: the rest is held, and what went back stays there"
_OVER = "nothing goes on: what went back stays there"
Answer = dict[str, Any]
Histories = Mapping[str, Sequence[Case]]


def print_preview(out: Output, answers: Sequence[Answer], histories: Histories) -> None:
    """Nothing was done yet; what was rolled back before stands under a heading of its own."""
    before = [each for each in answers if was_rolled_back(each)]
    others = [each for each in answers if not was_rolled_back(each)]
    if before:
        out.heading("Rolled back already")
        for answer in before:
            _print_answer(out, answer, histories, [_standing(each) for each in _of(answer)])
            newest = histories[answer["case_id"]][-1]
            out.whole(f"at {minute(newest.at)} by {newest.actor}", indent=2)
    if others or not before:
        out.heading("Would be, in this order" if len(others) > 1 else "Would be")
        print_answers(out, others, histories)


def print_done(out: Output, answers: Sequence[Answer], histories: Histories) -> None:
    """What was done just now."""
    out.heading("Done")
    print_answers(out, answers, histories)


def print_answers(out: Output, answers: Sequence[Answer], histories: Histories) -> None:
    if not answers:
        out.say("nothing: no change was written since then")
    for answer in answers:
        _print_answer(out, answer, histories, [attribute_line(each) for each in _of(answer)])
        for each in _of(answer):
            if each["outcome"] == "printed" and each.get("command"):
                out.say(f"{_why_by_hand(answer, each['attribute'])}; by hand:")
                out.command(each["command"])


def _why_by_hand(answer: Answer, attribute: str) -> str:
    if "error" in answer:
        return f"AWS did not let Mendq write {attribute}"
    return f"no rollback ever writes {attribute}"


def was_rolled_back(answer: Answer) -> bool:
    """Of the answer to a preview, which changes no state."""
    return answer.get("state") == State.ROLLED_BACK


def _print_answer(out: Output, answer: Answer, histories: Histories, lines: Sequence[Line]) -> None:
    case_id = answer["case_id"]
    queue = parts_of(histories[case_id][-1].queue_arn).name
    out.say(f"{case_id} on {queue}", "bold")
    if "error" in answer:
        lines = [("not done", "red", plain(answer["error"]["message"], 300)), *lines]
    out.lines(lines)


def _of(answer: Answer) -> Sequence[Answer]:
    attributes: Sequence[Answer] = answer.get("attributes", ())
    return attributes


def attribute_line(each: Answer) -> Line:
    """One attribute: what becomes of it, and what stands there."""
    outcome = str(each["outcome"])
    return outcome, _STYLES.get(outcome, ""), f"{plain(each['attribute'], 64)}: {_value(each)}"


def _standing(each: Answer) -> Line:
    """What stands there now of what was taken back."""
    name, stands = each["attribute"], each.get("now")
    if not leaves_a_value(name):
        return "undone", _STYLES["undone"], f"{plain(name, 64)}: {_STOPPED}"
    is_back = stands == each.get("before")
    says = "as before the fix" if is_back else "not what was put back: somebody else has set it"
    label = "undone" if is_back else "kept"
    return label, _STYLES[label], f"{plain(name, 64)}: {_shown(name, stands)} stands there, {says}"


def _value(each: Answer) -> str:
    name = each["attribute"]
    if not leaves_a_value(name):
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
