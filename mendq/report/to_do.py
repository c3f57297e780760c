"""What people can do this week, each thing in sentences: what, why, and what it is behind."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime

from msgspec import Struct

from mendq.report.links import CASE_ID, Here, queue_of
from mendq.report.open_now import command_of
from mendq.report.summary import Summary
from mendq.report.summary_parts import Earned, Recommendation, Standing
from mendq.report.words import (
    changed,
    counted,
    duration,
    marked,
    marked_queue,
    principal_name,
    quoted,
    title,
    visible,
    written,
)


class ToDo(Struct, frozen=True):
    """`what`, `why` and `effect` are sentences with marked names; `command` is to be copied.

    A text that is empty has nothing to say. A command is made of our own words, and of parts of the
    summary that have the one form that they may have.
    """

    what: str
    why: str
    effect: str
    owner: str
    command: str


def to_do(summary: Summary, here: Here | None = None) -> tuple[ToDo, ...]:
    """In the summary's order: what would prevent most comes first; commands for what is `here`."""
    return tuple(
        ToDo(
            what=_what(each),
            why=_why(each),
            effect=_effect(each),
            owner="" if each.kind == "fix_caller" else principal_name(each.owner),
            command=_command(each, here),
        )
        for each in summary.do_this_week
    ) + tuple(_earned(each) for each in summary.earned)


def _earned(each: Earned) -> ToDo:
    what = f"Consider mode heal for {marked(each.symptom)} of {marked_queue(each.queue_arn)}."
    why = f"{each.approved:,} of {each.asked:,} proposals were approved unchanged."
    return ToDo(what=what, why=why, effect="", owner="", command="")


class Drift(Struct, frozen=True):
    """A value of Mendq's that a template may not hold: what it is, how old, and what shows where.

    The command is empty where the case, or where it is, has not the form that it may have.
    """

    queue_arn: str
    what: str
    age: str
    owner: str
    command: str


def drift(summary: Summary, here: Here | None = None) -> list[Drift]:
    """In the summary's order: the oldest first."""
    return [_drift(summary, each, here) for each in summary.standing]


def _drift(summary: Summary, each: Standing, here: Here | None) -> Drift:
    queue, case = queue_of(each.queue_arn, here), CASE_ID.fullmatch(each.case_id)
    age = patch = ""
    if queue and case and case["symptom"] == each.symptom:
        patch = f"mendq patch {each.case_id} --template FILE --region {queue['region']}"
    with suppress(ValueError, TypeError):
        seconds = (summary.made_at - datetime.fromisoformat(each.set_at)).total_seconds()
        age = duration(max(0, seconds))
    return Drift(
        queue_arn=each.queue_arn,
        what=f"{marked(each.attribute)} {changed(each.attribute, each.before, each.after)}".strip(),
        age=age or "not known",
        owner=visible(each.owner),
        command=patch,
    )


def drift_in_short(summary: Summary) -> str:
    """How many there are; empty where there are none."""
    count = len(summary.standing) + summary.standing_left_out
    verb = "stand" if count > 1 else "stands"
    values = counted(count, "value")
    return f"{values} that Mendq set {verb}, perhaps in no template yet." if count else ""


def left_out(summary: Summary) -> str:
    """How many things are not listed; empty where all are."""
    count = summary.do_this_week_left_out
    return f"{counted(count, 'more thing')} would have prevented less." if count else ""


def _command(asked: Recommendation, here: Here | None) -> str:
    """What the case says that a person runs, where it says so; what shows or approves it else."""
    if asked.kind in _OF_FINDINGS and (queue := queue_of(asked.queue_arn, here)):
        return f"mendq {_OF_FINDINGS[asked.kind].format(queue=queue[0])} --region {queue['region']}"
    verb = "approve" if asked.kind == "approve" else "show"
    return command_of(asked, asked.command, verb, here) if asked.kind in _OF_A_CASE else ""


_OF_FINDINGS = {"add_alarms": "alarms {queue}", "correct_tags": "queues"}
# What to do about what a case changed or would change, by kind; and where it names no attribute.
_OF_A_CASE = {
    "write_into_template": "Set {attribute} of {queues}{to} in {their} template.",
    "approve": "Approve or decline: {change}.",
    "watch": "Watch {attribute} of {queues}{changed}.",
    "decide": "Decide on {attribute} of {queues}{either}.",
    "fix": "Fix {symptom} of {queues}: {setting}.",
}
_OTHERWISE = {
    "approve": "Approve or decline what Mendq proposes for {symptom} of {queues}.",
    "decide": "Decide what to do about {symptom} of {queues}.",
    "fix": "Fix {symptom} of {queues}.",
    "fix_caller": "Fix {caller}, whose calls to {queues} are mistaken{codes}.",
    "name_code": "Find out what {code} means for {queues}.",
    "add_alarms": "Add CloudWatch alarms for {queues}.",
    "correct_tags": "Correct the tags of {queues}.",
}


def _what(asked: Recommendation) -> str:
    symptom = quoted(title(asked.symptom))
    if asked.next_step:
        return f"{symptom} on {_queues(asked)}. {quoted(asked.next_step)}"
    of_a_case = asked.attribute and _OF_A_CASE.get(asked.kind)
    sentence = of_a_case or _OTHERWISE.get(asked.kind, "Look at {symptom} of {queues}.")
    attribute, queues = marked(asked.attribute), _queues(asked)
    before, after = (written(asked.attribute, value) for value in (asked.before, asked.after))
    change = changed(asked.attribute, asked.before, asked.after)
    return sentence.format(
        attribute=attribute,
        queues=queues,
        symptom=f'"{symptom}"',
        their="its" if asked.queues <= 1 else "their",
        to=f" to {after}" if after else "",
        change=f"{attribute} of {queues} {change}".strip(),
        changed=f", changed {change}" if change else "",
        either=f": {before} or {after}" if before and after else "",
        setting=f"{attribute} {change}".strip(),
        caller=marked(principal_name(asked.owner)) if asked.owner else "the callers",
        codes=f" ({quoted(asked.reason)})" if asked.reason else "",
        code=marked(asked.symptom.removeprefix("unknown:")),
    )


def _queues(recommendation: Recommendation) -> str:
    more = recommendation.queues - 1
    rest = f" and {counted(more, 'other queue')}" if more > 0 else ""
    return f"{marked_queue(recommendation.queue_arn)}{rest}"


def _why(recommendation: Recommendation) -> str:
    if recommendation.kind == "write_into_template":
        old = written(recommendation.attribute, recommendation.before) or "the old value"
        when = "in an earlier week" if recommendation.why == "stands" else "and it helped"
        return (
            f"Mendq changed it {when}. If the template still says {old}, 'terraform apply' brings "
            "that back; CloudFormation does when the property changes there, or with a drift-aware "
            "change set."
        )
    why = WHY.get(recommendation.why, "")
    says = recommendation.why in _SAY_MORE and recommendation.reason
    return f"{why.removesuffix('.')}: {quoted(recommendation.reason.rstrip('.'))}." if says else why


# A case's state, or why no case answers its incidents.
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
    "found": "The last scan found it.",
    "count_only": "Nothing in the queue could fix a caller's mistake.",
}
_SAY_MORE = frozenset({"refused", "escalated", "ineffective", "found"})


def _effect(recommendation: Recommendation) -> str:
    if not recommendation.incidents:
        return ""
    calls = counted(recommendation.failed_calls, "failed call")
    shown = f" with {calls}" if recommendation.failed_calls else ", found by scans,"
    return f"Behind {counted(recommendation.incidents, 'incident')}{shown} this week."
