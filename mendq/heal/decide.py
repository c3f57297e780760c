"""Decide what becomes of a situation: the one decider of heal, of every owner and of a dry run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from msgspec import Struct, field, structs

from mendq.cases.record import Notification
from mendq.catalogue.symptom import Steps
from mendq.catalogue.visibility.needed_timeout import needs_document
from mendq.heal import guardrails
from mendq.heal.guardrails import A_DAY, Situation
from mendq.model.case import (
    LOWERED,
    MADE_FOR,
    QUEUE_DELETED,
    SILENT_DAYS,
    Case,
    State,
    longest_in,
    opened,
    severity_of,
)
from mendq.model.evidence import Evidence, named
from mendq.model.facts import Facts, messages_of
from mendq.model.lifecycle import WATCHED
from mendq.model.limits import Mode, deployed_by
from mendq.model.plan import Ignore, Plan, Refusal, Refuse
from mendq.model.steps import AttributeStep
from mendq.notifications.own_change import named_first, rollback_command
from mendq.notifications.text import moment

ACTOR = "heal"
UNTIL = "; it can be approved until "
# What a plan's case opens in where heal does not carry it out itself.
_OPENS = {Mode.OBSERVE: State.OBSERVED, Mode.PROPOSE: State.PROPOSED, Mode.HEAL: State.APPROVED}
# They pass by themselves; a case that waits goes on waiting and is called for again.
PASSING = frozenset({"too_soon", "mass_symptom", "frozen", "messages_are_taken"})


class Healthy(Struct, frozen=True):
    """The queue stands as it should."""


class Write(Struct, frozen=True):
    """Write the plan, and `case`, the transition to applied, when it is written."""

    plan: Plan
    case: Case


class Record(Struct, frozen=True):
    """Write a transition down and tell of it; `refusal` is why nothing is changed."""

    case: Case
    notification: Notification
    refusal: Refusal | None = None


class SayNo(Struct, frozen=True):
    """Write nothing down."""

    refusal: Refusal


class Wait(Struct, frozen=True):
    """Say no for now and keep what is known: `evidence`, or why a case waits."""

    refusal: Refusal
    evidence: Evidence = field(default_factory=Evidence)


No = Record | SayNo | Wait
Verdict = Healthy | Write | No
# The situation with how far its symptom has spread, which is noted where it is asked.
Counted = Callable[[Situation], Situation]


def decide_unlooked(situation: Situation, *, is_gone: bool = False) -> Verdict | None:
    """What is decided before the queue is looked at; None where it is to be looked at."""
    if situation.waits is not None:
        held = guardrails.claimed_by_another(situation)
        if held is not None or situation.mode is Mode.HEAL:
            return Wait(held) if held else None
        unseen = structs.replace(situation, facts=Facts(situation.facts.queue_arn, {}, {}))
        if is_gone:
            return _end(unseen, Refuse(QUEUE_DELETED, "the queue is gone"))
        return _end(unseen, Refuse("not_any_more", "Mendq may no longer change this queue"))
    refusal = guardrails.first_refusal(guardrails.ON_CASE, situation)
    if refusal is None or situation.has_strangers:
        return None
    return _decline(situation, refusal)


def decide(situation: Situation, counted: Counted) -> Verdict:
    """What is decided by the queue's facts; `counted` is asked where its reach matters."""
    if situation.waits is not None:
        return _decide_waiting(situation, situation.waits, counted)
    heard = structs.replace(situation, evidence=situation.since_last_change)
    if not situation.is_borne:
        refusal = guardrails.keeps_changing(situation.changes, situation.now)
        if refusal is not None:
            return _refuse(situation, refusal, counted)
        reason = "most failed calls are from before the queue was last changed"
        return _decline(heard, Ignore("before_last_change", reason))
    plan = _plan(heard)
    if isinstance(plan, Refusal):
        return _refuse(heard, plan, counted)
    return _act_on(counted(heard), plan) if plan.steps else Healthy()


def decide_refused(situation: Situation, plan: Plan, refusal: Refusal) -> No:
    """What is decided when the write was refused."""
    if situation.waits is not None:
        return _wait_or_end(situation, refusal)
    heard = structs.replace(situation, evidence=situation.since_last_change)
    if refusal.becomes is None:
        return Wait(refusal, heard.evidence)
    return _decline(heard, refusal, plan.steps)


def _plan(situation: Situation) -> Plan | Refusal:
    plan = situation.symptom.plan
    if plan is None:
        return Ignore("count_only", "it is only counted")
    planned, facts = plan(situation.facts, situation.limits), situation.facts
    if isinstance(planned, Refusal) or not (facts.dlq_sources and facts.is_sent_to):
        return planned
    both = f"Producers send to it, and it is named as the DLQ of {named(facts.source_arns)}"
    reason = f"{planned.reason}. {both}: which it is, a person has to say"
    return replace(planned, reason=reason, at_most=min(planned.at_most, Mode.PROPOSE))


def _refuse(situation: Situation, refusal: Refusal, counted: Counted) -> No:
    """Say no for what the queue shows.

    What many queues show is one page for all; what only notifies is written down even so.
    What would be silent on one queue pages for none of many.
    """
    if refusal.becomes is None or not refusal.heard_in(situation.mode):
        return _decline(situation, refusal)
    situation = counted(situation)
    mass = guardrails.mass_symptom(situation)
    if mass is None:
        return _decline(situation, refusal, of_the_plan=True)
    notifies_anyway = situation.symptom.notifies_anyway
    heard = notifies_anyway or refusal.becomes is State.ESCALATED
    mass = replace(mass, silent_in_observe=not heard)
    said = _decline(situation, refusal if notifies_anyway else mass, quiet=True)
    return structs.replace(said, refusal=mass)


def _decline(
    situation: Situation,
    refusal: Refusal,
    steps: Steps = (),
    *,
    of_the_plan: bool = False,
    quiet: bool = False,
) -> No:
    """Say no; with a case where the refusal opens one, evidence bears it and none is open."""
    refusal = refusal.as_said_in(situation.mode)
    if situation.has_strangers and refusal.becomes is State.ESCALATED:
        return _tell_of_strangers(situation, refusal)
    if situation.open_case is not None or not situation.evidence.suffices:
        return Wait(refusal, situation.evidence)
    if refusal.becomes is None:
        return SayNo(refusal)
    if refusal.becomes is State.OVERRIDDEN:
        steps = situation.records.last_written(steps)
    case = _opened(situation, refusal.becomes, refusal.reason, steps, refusal.code)
    if is_repeat(situation, case):
        return SayNo(refusal)
    notification = _notified(situation, case, refusal, of_the_plan=of_the_plan)
    if quiet:
        notification = structs.replace(notification, severity=None)
    if case.state is not State.OVERRIDDEN and case.code == "overridden" and notification.severity:
        changes = situation.records.says_the_silence(case)
        notification = structs.replace(notification, changes=changes)
    return Record(case, notification, refusal)


def _notified(
    situation: Situation, case: Case, refusal: Refusal | None = None, *, of_the_plan: bool = True
) -> Notification:
    """What there is to say of the case beyond itself; a person's value is left alone from now."""
    now, overridden = situation.now, case.state is State.OVERRIDDEN
    return Notification(
        situation.symptom,
        situation.facts,
        severity_of(case, situation.mode, of_the_plan=of_the_plan),
        refusal.next_command if refusal else "",
        changes=situation.records.overridden(case, now) if overridden else {},
    )


def _tell_of_strangers(situation: Situation, refusal: Refusal) -> Record:
    """An open case must not keep from people that somebody else is in trouble by now."""
    assert situation.open_case is not None  # noqa: S101 - strangers are strange to it
    case = situation.open_case.moved(
        State.ESCALATED,
        _with_own_change(situation, refusal.reason),
        situation.now,
        actor=ACTOR,
        code=refusal.code,
        evidence=situation.evidence.added_to(situation.open_case.evidence),
    )
    notification = _notified(situation, case, refusal)
    news = ",".join(situation.evidence.principals())
    return Record(case, structs.replace(notification, news=news))


def _act_on(situation: Situation, plan: Plan) -> Verdict:
    refusal = guardrails.first_refusal(guardrails.ON_PLAN, situation, plan)
    if refusal is not None:
        overridden = refusal.code == "overridden"
        return _decline(situation, refusal, plan.steps, of_the_plan=overridden)
    if situation.lowered_by and situation.mode is Mode.HEAL:
        plan = _lowered(plan, situation.lowered_by)
    change = situation.facts.own_change
    if change is not None and situation.mode is Mode.HEAL:
        plan = _for_a_person_to_choose(plan)
    mode, owner = min(situation.mode, plan.at_most), plan.steps[0].owner
    if mode is Mode.HEAL and owner is situation.whose:
        return Write(plan, _opened(situation, State.APPLIED, plan.reason, plan.steps))
    state, reason = _OPENS[mode], plan.reason
    longest = longest_in(state, situation.timing)
    if mode is Mode.HEAL:
        reason = f"{plan.reason}; settings let {owner} do it without a person"
    elif longest is not None:
        reason = f"{reason}{UNTIL}{moment(situation.now + longest)}"
    case = _opened(situation, state, reason, plan.steps)
    if plan.source_arn:
        case = replace(case, evidence={**case.evidence, "source": plan.source_arn})
    if is_repeat(situation, case):
        return SayNo(Ignore("said_already", case.reason))
    notification = _notified(situation, case)
    beyond = tuple(map(str, plan.proposal))
    first = plan.first
    if change is not None:
        first = (f"decide first: {change.take_back}:", rollback_command(change), *first)
    return Record(case, structs.replace(notification, first=first, beyond=beyond))


def _lowered(plan: Plan, case_id: str) -> Plan:
    """The plan, for a person to see first."""
    why = f"case {case_id} did not help or was taken back, so a person has to approve this one"
    at_most = min(plan.at_most, Mode.PROPOSE)
    return replace(plan, reason=f"{plan.reason}; {why}", at_most=at_most)


def _for_a_person_to_choose(plan: Plan) -> Plan:
    """Make the plan need approval: rolling back Mendq's earlier change may be better."""
    why = "that change by Mendq may be the cause, so a person must approve this plan"
    return replace(plan, reason=f"{plan.reason}; {why}", at_most=min(plan.at_most, Mode.PROPOSE))


def _with_own_change(situation: Situation, reason: str) -> str:
    """Put a sentence about Mendq's own change before the reason, if it may be the cause."""
    change = situation.facts.own_change
    return reason if change is None else f"{named_first(change, situation.now)}. {reason}"


def _opened(situation: Situation, state: State, reason: str, steps: Steps, code: str = "") -> Case:
    case = opened(
        state,
        queue_arn=situation.facts.queue_arn,
        symptom=situation.symptom.name,
        reason=_with_own_change(situation, reason),
        evidence=situation.evidence,
        steps=steps,
        now=situation.now,
        actor=ACTOR,
        code=code,
        previous=situation.view.case,
    )
    messages = messages_of(situation.symptom.name, situation.facts)
    needs = needs_document(situation.symptom.name, situation.facts)
    known = {
        "messages": messages,
        "needs": needs,
        LOWERED: situation.lowered_by,
        MADE_FOR: situation.made_for,
    }
    beside = deployed_by(situation.facts.tags) | {name: it for name, it in known.items() if it}
    return replace(case, evidence={**case.evidence, **beside})


def _decide_waiting(situation: Situation, case: Case, counted: Counted) -> Verdict:
    """The same for a case that waits for its next write: it stands on its evidence."""
    plan = _plan_again(situation, case)
    if isinstance(plan, Refusal):
        return Wait(plan) if plan.code in PASSING else _end(situation, plan)
    refusal = guardrails.frozen(situation)
    if refusal is None:
        refusal = guardrails.first_refusal(guardrails.ON_PLAN, counted(situation), plan)
    if refusal is not None:
        return _wait_or_end(situation, refusal)
    steps = _documents(plan.steps)
    applied = case.moved(
        State.APPLIED, plan.reason, situation.now, steps=steps, actor=situation.whose
    )
    return Write(plan, applied)


def is_approved_by_person(case: Case) -> bool:
    """True where a person approved it; else settings did, and they are asked again."""
    return case.state is State.APPROVED and case.came_from is State.PROPOSED


def _plan_again(situation: Situation, case: Case) -> Plan | Refusal:
    """Approved: the plan that was shown, or none; nothing of a queue that was made since."""
    plan = _plan(situation)
    if situation.facts.made_after(case.opened_at):
        plan = Refuse("another_queue", "there is another queue of that name by now")
    elif isinstance(plan, Plan) and not plan.steps:
        plan = Refuse("healthy", "the queue has what it needs by now")
    if isinstance(plan, Refusal):
        return plan
    if case.state is State.APPROVED and _documents(plan.steps) != case.steps:
        now = ", ".join(map(str, plan.steps))
        return Refuse("plan_changed", f"the queue has changed: the plan would be {now} now")
    if not is_approved_by_person(case) and plan.at_most is not Mode.HEAL:
        return Refuse("not_by_itself", "a person has to see this step first")
    if (owner := plan.steps[0].owner) is not situation.whose:
        return Refuse("another_owner", f"{owner} would take the next step")
    return plan


def _documents(steps: Sequence[AttributeStep]) -> tuple[dict[str, str], ...]:
    return tuple(step.document() for step in steps)


def _wait_or_end(situation: Situation, refusal: Refusal) -> No:
    if refusal.again or refusal.becomes is None or refusal.code in PASSING:
        return Wait(refusal)
    if refusal.becomes is State.OVERRIDDEN:
        return _move(situation, State.OVERRIDDEN, refusal)
    return _end(situation, refusal)


def _end(situation: Situation, refusal: Refusal) -> No:
    """An approval comes to nothing; what did not help is a person's to decide."""
    case = situation.waits
    if case is None or case.state is State.APPROVED:
        return _move(situation, State.EXPIRED, refusal)
    because = f"{case.reason}, and Mendq has no further step: {refusal.reason}"
    return _move(situation, State.ESCALATED, replace(refusal, reason=because))


def _move(situation: Situation, state: State, refusal: Refusal) -> No:
    assert situation.waits is not None  # noqa: S101 - what does not wait is not moved
    case = situation.waits.moved(
        state, refusal.reason, situation.now, actor=situation.whose, code=refusal.code
    )
    return Record(case, _notified(situation, case, refusal), refusal)


# A scan comes round in an hour: a little less than a day, so that it is no day and an hour.
NOTED_EVERY = timedelta(hours=23)
# What is still found after so long is news again.
REMEMBERED = timedelta(days=30)


def is_repeat(situation: Situation, case: Case) -> bool:
    """True where `case` only repeats what was said a little while ago.

    Of failed calls that is a cooldown. A scan finds the same each hour, so it is told once a day;
    what a person declined is left alone for a week; what nobody answered, or a person closed
    unfixed, for a day, and of a fault in configuration, which nobody is in a hurry about, for
    REMEMBERED.
    """
    last = situation.view.case
    if last is None:
        return False
    is_old, age = last.says_the_same(case), situation.now - last.at
    if not situation.is_found:
        return is_old and age < timedelta(minutes=situation.timing.cooldown_minutes)
    if is_old:
        return age < A_DAY
    quiet = _silence_after(last, situation.symptom.is_of_configuration)
    return last.steps == case.steps and age < quiet


def needs_no_look(
    last: Case | None, mode: Mode, now: datetime, modified_at: datetime | None
) -> bool:
    """True where a fault in configuration would be a repeat, whatever CloudWatch says.

    Its plan is the same as long as nobody has changed the queue.
    """
    if last is None or (modified_at is not None and modified_at > last.at):
        return False
    if last.state is State.OBSERVED and mode is Mode.OBSERVE:
        return now - last.at < A_DAY
    return now - last.at < _silence_after(last, of_configuration=True)


def was_noted_lately(open_case: Case, noted_at: datetime | None, now: datetime) -> bool:
    """True where an open case that waits has heard within the day that it is still found."""
    waits = open_case.state not in WATCHED
    return waits and now - max(open_case.at, noted_at or open_case.at) < NOTED_EVERY


def _silence_after(last: Case, of_configuration: bool) -> timedelta:
    """Zero for a case that ended in any other way."""
    if last.state is State.DECLINED:
        return timedelta(days=SILENT_DAYS)
    if last.state is State.EXPIRED:
        unanswered = last.came_from is State.PROPOSED
        return REMEMBERED if of_configuration and unanswered else A_DAY
    unmended = last.state is State.CLOSED and last.came_from is State.ESCALATED
    return A_DAY if unmended else timedelta(0)
