"""What people can do this week, each thing in sentences: what, why, and what it is behind."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from functions.report.summary import Deed, Summary
from functions.report.words import (
    changed,
    counted,
    marked,
    marked_queue,
    principal_name,
    quoted,
    visible,
    written,
)

MOST_COMMAND = 1_000
MOST_LINE = 400


@dataclass(frozen=True)
class ToDo:
    """`what`, `why` and `effect` are sentences with marked names; the rest is to be copied.

    A text that is empty has nothing to say.
    """

    what: str
    why: str
    effect: str
    template_line: str
    owner: str
    command: str


def to_do(summary: Summary) -> tuple[ToDo, ...]:
    """In the summary's order: what would prevent most comes first."""
    return tuple(_to_do(each) for each in summary.do_this_week)


def left_out(summary: Summary) -> str:
    """How many things are not listed; empty where all are."""
    count = summary.do_this_week_left_out
    return f"{counted(count, 'more thing')} would have prevented less." if count else ""


def _to_do(deed: Deed) -> ToDo:
    what = _WHAT.get(deed.kind, _look_at)
    return ToDo(
        what=what(deed),
        why=_why(deed),
        effect=_effect(deed),
        template_line=_whole(deed.template_line, MOST_LINE),
        owner="" if deed.kind == "mend_caller" else principal_name(deed.owner),
        command=_whole(deed.command, MOST_COMMAND),
    )


def _whole(line: str, most: int) -> str:
    """A line that was cut, or holds what nobody can see, must not be copied."""
    return line if visible(line, most) == line else ""


def _write_into_template(deed: Deed) -> str:
    value = written(deed.attribute, deed.after)
    to = f" to {value}" if value else ""
    its = "its" if deed.queues <= 1 else "their"
    return f"Set {marked(deed.attribute)} of {_queues(deed)}{to} in {its} template."


def _approve(deed: Deed) -> str:
    if not deed.attribute:
        return f"Approve or decline what Mendq proposes for {_symptom_of(deed)}."
    return f"Approve or decline: {_change(deed)}."


def _watch(deed: Deed) -> str:
    if not deed.attribute:
        return f"Watch what Mendq did about {_symptom_of(deed)}."
    value = changed(deed.attribute, deed.before, deed.after)
    to = f", changed {value}" if value else ""
    return f"Watch {marked(deed.attribute)} of {_queues(deed)}{to}."


def _decide(deed: Deed) -> str:
    if not deed.attribute:
        return f"Decide what to do about {_symptom_of(deed)}."
    values = [written(deed.attribute, each) for each in (deed.before, deed.after)]
    which = f": {values[0]} or {values[1]}" if all(values) else ""
    return f"Decide on {marked(deed.attribute)} of {_queues(deed)}{which}."


def _mend(deed: Deed) -> str:
    value = changed(deed.attribute, deed.before, deed.after)
    would = f", {marked(deed.attribute)} {value}".rstrip() if deed.attribute else ""
    return f"Mend {_symptom_of(deed)}{would}."


def _mend_caller(deed: Deed) -> str:
    caller = marked(principal_name(deed.owner)) if deed.owner else "the callers"
    return f"Mend {caller}, whose calls to {_queues(deed)} are mistaken{_codes(deed)}."


def _label_code(deed: Deed) -> str:
    code = marked(deed.symptom.removeprefix("unlabelled:"))
    return f"Find out what {code} means for {_queues(deed)}."


def _look_at(deed: Deed) -> str:
    return f"Look at {_symptom_of(deed)}."


_WHAT: dict[str, Callable[[Deed], str]] = {
    "write_into_template": _write_into_template,
    "approve": _approve,
    "watch": _watch,
    "decide": _decide,
    "mend": _mend,
    "mend_caller": _mend_caller,
    "label_code": _label_code,
}


def _queues(deed: Deed) -> str:
    more = deed.queues - 1
    rest = f" and {counted(more, 'other queue')}" if more > 0 else ""
    return f"{marked_queue(deed.queue_arn)}{rest}"


def _symptom_of(deed: Deed) -> str:
    return f"{marked(deed.symptom)} of {_queues(deed)}"


def _change(deed: Deed) -> str:
    value = changed(deed.attribute, deed.before, deed.after)
    return f"{marked(deed.attribute)} of {_queues(deed)} {value}".strip()


def _codes(deed: Deed) -> str:
    return f" ({quoted(deed.reason)})" if deed.reason else ""


def _why(deed: Deed) -> str:
    if deed.kind == "write_into_template":
        old = written(deed.attribute, deed.before) or "the old value"
        return f"Mendq changed it and it helped; the next deployment would bring back {old}."
    why = WHY.get(deed.why, "")
    says = deed.why in _SAY_MORE and deed.reason
    return f"{why.removesuffix('.')}: {quoted(deed.reason.rstrip('.'))}." if says else why


# A case's state, or the label of incidents that no case can answer.
WHY = {
    "proposed": "Mendq waits for an answer.",
    "applied": "Mendq changed it and has not verified yet that it helped.",
    "expired": "Nobody answered Mendq's proposal in time.",
    "refused": "Mendq refused to act.",
    "escalated": "Mendq left it to a person.",
    "ineffective": "Mendq's change did not help.",
    "contested": "Somebody else changed it after Mendq, which leaves it alone now.",
    "observed": "Mendq only observed: the mode does not let it act.",
    "unlabelled": "The catalogue has no entry for this error code, so nothing acts on it.",
    "caller_bug": "Nothing in the queue could mend a caller's mistake.",
}
_SAY_MORE = frozenset({"refused", "escalated", "ineffective"})


def _effect(deed: Deed) -> str:
    if not deed.incidents:
        return ""
    calls = counted(deed.failed_calls, "failed call")
    return f"Behind {counted(deed.incidents, 'incident')} with {calls} this week."
