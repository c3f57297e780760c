"""What people can do this week, each thing in sentences: what, why, and what it is behind."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from mendq.report.summary import Recommendation, Summary
from mendq.report.words import (
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


def _to_do(recommendation: Recommendation) -> ToDo:
    what = _WHAT.get(recommendation.kind, _look_at)
    return ToDo(
        what=what(recommendation),
        why=_why(recommendation),
        effect=_effect(recommendation),
        template_line=_whole(recommendation.template_line, MOST_LINE),
        owner="" if recommendation.kind == "fix_caller" else principal_name(recommendation.owner),
        command=_whole(recommendation.command, MOST_COMMAND),
    )


def _whole(line: str, most: int) -> str:
    """A line that was cut, or holds what nobody can see, must not be copied."""
    return line if visible(line, most) == line else ""


def _write_into_template(recommendation: Recommendation) -> str:
    value = written(recommendation.attribute, recommendation.after)
    to = f" to {value}" if value else ""
    its = "its" if recommendation.queues <= 1 else "their"
    return (
        f"Set {marked(recommendation.attribute)} of {_queues(recommendation)}{to} in {its} "
        "template."
    )


def _approve(recommendation: Recommendation) -> str:
    if not recommendation.attribute:
        return f"Approve or decline what Mendq proposes for {_symptom_of(recommendation)}."
    return f"Approve or decline: {_change(recommendation)}."


def _watch(recommendation: Recommendation) -> str:
    if not recommendation.attribute:
        return f"Watch what Mendq did about {_symptom_of(recommendation)}."
    value = changed(recommendation.attribute, recommendation.before, recommendation.after)
    to = f", changed {value}" if value else ""
    return f"Watch {marked(recommendation.attribute)} of {_queues(recommendation)}{to}."


def _decide(recommendation: Recommendation) -> str:
    if not recommendation.attribute:
        return f"Decide what to do about {_symptom_of(recommendation)}."
    values = [
        written(recommendation.attribute, each)
        for each in (recommendation.before, recommendation.after)
    ]
    which = f": {values[0]} or {values[1]}" if all(values) else ""
    return f"Decide on {marked(recommendation.attribute)} of {_queues(recommendation)}{which}."


def _fix(recommendation: Recommendation) -> str:
    value = changed(recommendation.attribute, recommendation.before, recommendation.after)
    would = (
        f", {marked(recommendation.attribute)} {value}".rstrip() if recommendation.attribute else ""
    )
    return f"Fix {_symptom_of(recommendation)}{would}."


def _fix_caller(recommendation: Recommendation) -> str:
    caller = marked(principal_name(recommendation.owner)) if recommendation.owner else "the callers"
    return (
        f"Fix {caller}, whose calls to {_queues(recommendation)} are "
        f"mistaken{_codes(recommendation)}."
    )


def _name_code(recommendation: Recommendation) -> str:
    code = marked(recommendation.symptom.removeprefix("unknown:"))
    return f"Find out what {code} means for {_queues(recommendation)}."


def _look_at(recommendation: Recommendation) -> str:
    return f"Look at {_symptom_of(recommendation)}."


_WHAT: dict[str, Callable[[Recommendation], str]] = {
    "write_into_template": _write_into_template,
    "approve": _approve,
    "watch": _watch,
    "decide": _decide,
    "fix": _fix,
    "fix_caller": _fix_caller,
    "name_code": _name_code,
}


def _queues(recommendation: Recommendation) -> str:
    more = recommendation.queues - 1
    rest = f" and {counted(more, 'other queue')}" if more > 0 else ""
    return f"{marked_queue(recommendation.queue_arn)}{rest}"


def _symptom_of(recommendation: Recommendation) -> str:
    return f"{marked(recommendation.symptom)} of {_queues(recommendation)}"


def _change(recommendation: Recommendation) -> str:
    value = changed(recommendation.attribute, recommendation.before, recommendation.after)
    return f"{marked(recommendation.attribute)} of {_queues(recommendation)} {value}".strip()


def _codes(recommendation: Recommendation) -> str:
    return f" ({quoted(recommendation.reason)})" if recommendation.reason else ""


def _why(recommendation: Recommendation) -> str:
    if recommendation.kind == "write_into_template":
        old = written(recommendation.attribute, recommendation.before) or "the old value"
        return f"Mendq changed it and it helped; the next deployment would bring back {old}."
    why = WHY.get(recommendation.why, "")
    says = recommendation.why in _SAY_MORE and recommendation.reason
    return f"{why.removesuffix('.')}: {quoted(recommendation.reason.rstrip('.'))}." if says else why


# A case's state, or the symptom of incidents that no case can answer.
WHY = {
    "proposed": "Mendq waits for an answer.",
    "applied": "Mendq changed it and has not verified yet that it helped.",
    "expired": "Nobody answered Mendq's proposal in time.",
    "refused": "Mendq refused to act.",
    "escalated": "Mendq left it to a person.",
    "ineffective": "Mendq's change did not help.",
    "overridden": "Somebody else changed it after Mendq, which leaves it alone now.",
    "observed": "Mendq only observed: the mode does not let it act.",
    "unknown_code": "The catalogue has no entry for this error code, so nothing acts on it.",
    "invalid_request": "Nothing in the queue could fix a caller's mistake.",
}
_SAY_MORE = frozenset({"refused", "escalated", "ineffective"})


def _effect(recommendation: Recommendation) -> str:
    if not recommendation.incidents:
        return ""
    calls = counted(recommendation.failed_calls, "failed call")
    return f"Behind {counted(recommendation.incidents, 'incident')} with {calls} this week."
