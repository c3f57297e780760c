"""Guardrails: every reason not to act, in the order they are asked."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypeVar

from mendq.cases.view import CaseStoreView
from mendq.model.evidence import STALE_AFTER, Evidence, EvidenceNeeded
from mendq.model.failed_call import FailedCall
from mendq.model.limits import Limits, Mode, Timing
from mendq.model.plan import Escalate, Ignore, Override, Plan, Refusal, Refuse, Retry
from mendq.model.queue import partition_of, parts_of
from mendq.model.steps import AttributeStep
from mendq.notifications.configuration import in_short


@dataclass(frozen=True)
class Proposal:
    """A plan, beside all that may speak against it; one without steps would only notify.

    `queues_with_symptom` counts the managed queues that showed it within the hour, this one among
    them; `managed_queues` all of them, and need not be known while the former are few.
    """

    plan: Plan
    view: CaseStoreView
    limits: Limits
    timing: Timing
    now: datetime
    remaining_seconds: float
    queues_with_symptom: int = 1
    managed_queues: int = 0
    is_drill: bool = False

    def most_written_since(self, age: timedelta) -> tuple[int, str]:
        """How often the attribute that was written most was written, and which one that is."""
        attributes = (step.attribute for step in self.plan.steps)
        written = ((self.written_since(each, age), each) for each in attributes)
        return max(written, default=(0, ""))

    def written_since(self, attribute: str, age: timedelta) -> int:
        writes = self.view.record_of(attribute).writes
        return sum(self.now - write.at < age for write in writes)


A_DAY = timedelta(hours=24)


def overridden(proposal: Proposal) -> Refusal | None:
    """A person's value is never overwritten: ours was the last recorded and is gone."""
    refusals = (_overridden(step, proposal) for step in proposal.plan.steps)
    return next((each for each in refusals if each is not None), None)


def _overridden(step: AttributeStep, proposal: Proposal) -> Refusal | None:
    record, attribute = proposal.view.record_of(step.attribute), step.attribute
    if record.overridden_until is not None and proposal.now < record.overridden_until:
        until = f"{record.overridden_until:%F}"
        if record.owes_a_notification:
            reason = (
                f"it shows again since {attribute} was rolled back, and Mendq would make it "
                f"{step.after} again; it leaves it alone until {until}"
            )
            return Refuse("overridden", reason)
        reason = f"another principal keeps {attribute}; silent until {until}"
        return Ignore("overridden", reason)
    was_ours = record.last_written in (None, str(step.before)) or not step.leaves_a_value
    if record.overridden_until is None and not was_ours:
        reason = (
            f"another principal set {attribute} to {in_short(attribute, str(step.before))} "
            f"after Mendq had set it to {in_short(attribute, record.last_written or '')}; "
            "Mendq stays away for 7 days"
        )
        return Override("overridden", reason)
    return None


def too_soon(proposal: Proposal) -> Refusal | None:
    minutes = proposal.timing.cooldown_minutes
    written, attribute = proposal.most_written_since(timedelta(minutes=minutes))
    if written:
        reason = f"{attribute} was written less than {minutes} minutes ago"
        return Refuse("too_soon", reason)
    return None


def too_often(proposal: Proposal) -> Refusal | None:
    most = proposal.limits.writes_per_attribute_per_day
    written, attribute = proposal.most_written_since(A_DAY)
    if attribute and written >= most:
        reason = f"{attribute} was written {most} times in 24 hours; a person decides"
        return Escalate("too_often", reason, silent_in_observe=True)
    return _more_than_its_own_bound(proposal)


def _more_than_its_own_bound(proposal: Proposal) -> Refusal | None:
    """It is no fault that a person would have to find: tomorrow it may be done again."""
    for step in proposal.plan.steps:
        most = step.most_a_day
        if most is not None and proposal.written_since(step.attribute, A_DAY) >= most:
            times = "once" if most == 1 else f"{most} times"
            reason = f"{step.attribute} may be written {times} in 24 hours, and was"
            return Refuse("too_often", reason)
    return None


FUTURE_AFTER = timedelta(minutes=5)
# What a claim, two reads, a write and a record may take together.
SECONDS_TO_WRITE = 15
# What a write, once claimed, and its record may still take.
SECONDS_TO_RECORD = 8
# So few queues are a coincidence, however small the account.
FEW_QUEUES = 3
# So many drills of an hour are practice; beyond it somebody has tagged other queues.
MOST_DRILLS = 20


@dataclass(frozen=True)
class Home:
    """Where this Mendq runs, and the role ARNs it runs under."""

    account: str
    region: str
    own_roles: tuple[str, ...]


def own_call(call: FailedCall, home: Home) -> Refusal | None:
    if call.principal_arn in home.own_roles:
        return Ignore("own_call", "the call was Mendq's own")
    return None


def elsewhere(call: FailedCall, home: Home) -> Refusal | None:
    queue = parts_of(call.queue_arn) if call.queue_arn else None
    here = (partition_of(home.region), home.region, home.account)
    if queue is None or queue[:3] != here:
        return Ignore("elsewhere", "the queue is in another account or region")
    return None


def not_managed(mode: Mode | None) -> Refusal | None:
    if mode is None:
        return Ignore("not_managed", "the queue is not managed by Mendq")
    return None


@dataclass(frozen=True)
class Situation:
    """All that is known before the queue itself is looked at.

    `writes`: whether a plan would be carried out; where it is only told, nothing is to be frozen.
    """

    view: CaseStoreView
    fresh_calls: int
    evidence: Evidence
    evidence_needed: EvidenceNeeded
    owner: str
    now: datetime
    timing: Timing
    writes: bool = True


def frozen(situation: Situation) -> Refusal | None:
    if situation.writes and situation.view.frozen is not None:
        return Refuse("frozen", f"changes are frozen: {situation.view.frozen}")
    return None


def stale_or_future(situation: Situation) -> Refusal | None:
    if not situation.fresh_calls:
        reason = "every failed call is older than 60 minutes, ahead of the clock, or says nothing"
        return Ignore("stale_or_future", reason)
    return None


def too_little_evidence(situation: Situation) -> Refusal | None:
    if not situation.evidence.suffices(situation.evidence_needed):
        needed = situation.evidence_needed
        return Ignore(
            "too_little_evidence",
            f"fewer than {needed.distinct_events} distinct failed calls "
            f"in {needed.within_seconds} s",
        )
    return None


def case_already_open(situation: Situation) -> Refusal | None:
    case = situation.view.case
    if case is not None and case.is_open(situation.now, situation.timing):
        return Ignore("case_already_open", f"case {case.case_id} is {case.state}")
    return None


def claimed_by_another(situation: Situation) -> Refusal | None:
    if situation.view.held_by_another(situation.owner, situation.now):
        return Retry("claimed", "another run is at work on it")
    return None


def out_of_bounds(proposal: Proposal) -> Refusal | None:
    for step in proposal.plan.steps:
        fault = step.out_of_bounds()
        if fault:
            return Refuse("out_of_bounds", fault)
    return None


def are_many(queues: int, managed_queues: int, limits: Limits) -> bool:
    """True where so many managed queues show a symptom that it cannot be theirs alone."""
    return queues > max(FEW_QUEUES, limits.mass_symptom_share * managed_queues)


def mass_symptom(proposal: Proposal) -> Refusal | None:
    """What many queues show at once has a cause that is not theirs.

    It is about what would be written, so of itself it is nothing to tell where Mendq only watches.
    """
    if proposal.is_drill:
        return _too_many_drills(proposal.queues_with_symptom)
    if not are_many(proposal.queues_with_symptom, proposal.managed_queues, proposal.limits):
        return None
    reason = (
        f"{proposal.queues_with_symptom} of {proposal.managed_queues} managed queues show it "
        "within the hour: the cause is not this queue's"
    )
    return Refuse("mass_symptom", reason, silent_in_observe=True)


def _too_many_drills(queues: int) -> Refusal | None:
    if queues <= MOST_DRILLS:
        return None
    reason = f"{queues} drills within the hour: at most {MOST_DRILLS} are fixed"
    return Refuse("mass_symptom", reason, silent_in_observe=True)


def too_little_time(proposal: Proposal) -> Refusal | None:
    if proposal.remaining_seconds < SECONDS_TO_WRITE:
        reason = "too little of the Lambda's time is left to write and record"
        return Retry("too_little_time", reason)
    return None


def is_fresh(call: FailedCall, now: datetime) -> bool:
    """True where a call says something about the queue as it is now."""
    return -FUTURE_AFTER <= now - call.event_time <= STALE_AFTER


ON_CALL = (own_call, elsewhere)
ON_CASE = (frozen, stale_or_future, too_little_evidence, case_already_open, claimed_by_another)
ON_PLAN = (overridden, out_of_bounds, too_soon, too_often, mass_symptom, too_little_time)
Subject = TypeVar("Subject")


def first_refusal(
    guardrails: Iterable[Callable[[Subject], Refusal | None]], subject: Subject
) -> Refusal | None:
    """The answer of the first guardrail that has one."""
    return next((refusal for each in guardrails if (refusal := each(subject))), None)


def first_refusal_of_call(call: FailedCall, home: Home) -> Refusal | None:
    """What speaks against a call before anything is looked at."""
    return next((refusal for each in ON_CALL if (refusal := each(call, home))), None)
