"""What the cases of a week leave to people; nothing here is more than a case itself says."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from analytics.days import Days
from analytics.lives import Life, Step, steps_of
from analytics.week_deeds import Deed
from functions.catalogue import CATALOGUE
from functions.catalogue.queue_missing import QUEUE_MISSING
from functions.healing.advance import GONE, UNMANAGED
from functions.healing.case import Case
from functions.healing.dead_letter_steps import CreateDeadLetters
from functions.healing.every_step import leaves_a_value
from functions.healing.next_lines import mendq_command
from functions.healing.queue_names import arn_of
from functions.healing.states import State

WRITE_INTO_TEMPLATE = "write_into_template"
APPROVE = "approve"
DECIDE = "decide"
MEND = "mend"
WATCH = "watch"

_VERIFIED = frozenset({State.VERIFIED, State.WATCHING})
_WHY = {WRITE_INTO_TEMPLATE: "verified", WATCH: "applied"}
_ASKS = {
    State.APPLIED: WATCH,
    State.APPLIED_UNPROVEN: WATCH,
    State.PROPOSED: APPROVE,
    State.CONTESTED: DECIDE,
    State.OBSERVED: MEND,
    State.REFUSED: MEND,
    State.EXPIRED: MEND,
    State.INEFFECTIVE: MEND,
    State.ESCALATED: MEND,
}
_CURES = {each.name: each.plan_in_words for each in CATALOGUE}


def deeds_of_cases(days: Days, lives: Sequence[Life]) -> list[Deed]:
    """One per (queue, attribute), the newest case's; of cases that moved in `days` alone.

    A newer case of the same symptom takes an older one's place, but for what that has mended.
    """
    in_order = sorted(lives, key=_age)
    newest = {(each.newest.queue_arn, each.newest.symptom): each for each in in_order}
    gone_at = _gone_at(in_order)
    found: dict[tuple[str, str], Deed | None] = {}
    for life in in_order:
        case = life.newest
        is_newest = newest[case.queue_arn, case.symptom] is life
        for key, deed in _asked(life):
            is_told = deed and (is_newest or deed.kind == WRITE_INTO_TEMPLATE)
            is_there = not _is_gone(case, gone_at) and any(life.within(days))
            found[case.queue_arn, key] = deed if is_told and is_there else None
    return [each for each in found.values() if each]


def _age(life: Life) -> tuple[datetime, datetime, str]:
    return life.opened_at, life.newest.at, life.newest.case_id


def _gone_at(lives: Sequence[Life]) -> dict[str, datetime]:
    """When each queue that is gone was last seen to be."""
    missed: dict[str, datetime] = {}
    for life in lives:
        case = life.newest
        if case.symptom == QUEUE_MISSING.name:
            missed[case.queue_arn] = max(life.opened_at, missed.get(case.queue_arn, life.opened_at))
        elif case.state is State.CLOSED and case.reason == GONE:
            missed[case.queue_arn] = max(case.at, missed.get(case.queue_arn, case.at))
    return missed


def _is_gone(case: Case, gone_at: dict[str, datetime]) -> bool:
    if case.symptom == QUEUE_MISSING.name or case.queue_arn not in gone_at:
        return False
    return case.at <= gone_at[case.queue_arn]


def _asked(life: Life) -> Iterator[tuple[str, Deed | None]]:
    """What a case asks for, by attribute, or by symptom where it has no change to offer.

    None, where it asks for nothing, takes older askings away; what was declined says nothing.
    """
    case = life.newest
    if case.state is State.DECLINED:
        return
    kind = WRITE_INTO_TEMPLATE if _has_mended(case) else _ASKS.get(case.state)
    steps = [each for each in steps_of(case) if _stands_in_the_queue(each)]
    for step in steps:
        yield f"attribute {step.attribute}", _deed(kind, life, step) if kind else None
    if not steps:
        asks = kind not in (WRITE_INTO_TEMPLATE, WATCH)
        yield f"symptom {case.symptom}", _deed(kind, life, None) if kind and asks else None


def _has_mended(case: Case) -> bool:
    """A change was verified and nothing took it back."""
    was_watched = case.state is State.CLOSED and case.came_from is State.WATCHING
    return case.state in _VERIFIED or (was_watched and case.reason not in (GONE, UNMANAGED))


def _stands_in_the_queue(step: Step) -> bool:
    """Not a queue that was made, nor letters that went back."""
    is_made = step.attribute == CreateDeadLetters.attribute
    return leaves_a_value(step.attribute) and not is_made


def _deed(kind: str, life: Life, step: Step | None) -> Deed:
    case = life.newest
    # What somebody has set in place of what Mendq wrote is in no case.
    is_overruled = case.state is State.CONTESTED and case.came_from is not None
    verb = "approve" if kind == APPROVE else "show"
    return Deed(
        kind=kind,
        why=_WHY.get(kind) or str(case.state),
        queue_arn=case.queue_arn,
        symptom=case.symptom,
        attribute=step.attribute if step else "",
        before=_before(life, step.attribute) if step and not is_overruled else "",
        after=step.after if step else "",
        owner=_owner(case),
        command=_command(verb, case),
        case_id=case.case_id,
        reason=case.reason if isinstance(case.reason, str) else "",
        cure=_CURES.get(case.symptom, ""),
    )


def _owner(case: Case) -> str:
    """The stack that deploys the queue, and what it is called there; empty where none was named."""
    stack, resource = (case.evidence.get(each) for each in ("stack", "resource"))
    if not (stack and isinstance(stack, str)):
        return ""
    named = f", {resource}" if resource and isinstance(resource, str) else ""
    return f"CloudFormation stack {stack}{named}"


def _before(life: Life, attribute: str) -> str:
    """What stood there before the case's first step: what a template still says."""
    steps = (step for each in life.transitions for step in steps_of(each))
    return next((each.before for each in steps if each.attribute == attribute), "")


def _command(verb: str, case: Case) -> str:
    """Empty where it could not be shown whole."""
    if arn_of(case.queue_arn) is None:
        return ""
    command = mendq_command(verb, case)
    return command if command.startswith("mendq ") else ""
