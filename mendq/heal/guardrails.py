"""Guardrails: every reason not to act, in the order they are asked."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from math import inf

from msgspec import Struct, field

from mendq.cases.spread import Reach
from mendq.cases.view import CHANGES_REMEMBERED, CaseStoreView
from mendq.catalogue.symptom import Symptom
from mendq.model.case import LOWERED, Case, State
from mendq.model.evidence import DISTINCT_EVENTS, STALE_AFTER, WITHIN_SECONDS, Evidence, Sighting
from mendq.model.facts import Facts
from mendq.model.failed_call import FailedCall
from mendq.model.limits import DRILL_TAG, Limits, Mode, Timing
from mendq.model.plan import Escalate, Ignore, Override, Plan, Refusal, Refuse, Retry
from mendq.model.steps import AttributeStep, Owner
from mendq.notifications.configuration import in_short

STRANGERS_EVERY = timedelta(hours=1)


class Situation(Struct, frozen=True):
    """Everything that heal or a dry run needs to decide about one symptom of one queue.

    `facts` are without attributes where the queue was not looked at, or is gone; `mode` is the
    lowest that holds. `fresh` is what failed calls say that are fresh and speak for the symptom, or
    what was found; `evidence` that and what was kept of it. `reach` is empty until somebody
    has asked how far the symptom has spread. With `waits`, a case that an owner has taken up, no
    evidence is asked. `changes` are those of a day that have each excused failed calls. `made_for`
    is the managed source that this queue was made for as its DLQ, if the queue itself is unmanaged.
    """

    symptom: Symptom
    facts: Facts
    mode: Mode
    view: CaseStoreView
    now: datetime
    owner: str
    whose: Owner
    limits: Limits
    timing: Timing
    evidence: Evidence = field(default_factory=Evidence)
    fresh: tuple[Sighting, ...] = ()
    reach: Reach = field(default_factory=Reach)
    remaining_seconds: float = inf
    waits: Case | None = None
    changes: tuple[datetime, ...] = ()
    made_for: str = ""

    @property
    def records(self) -> CaseStoreView:
        """The case store's view of this queue, and not of another of the same name."""
        return self.view.of_queue(self.facts.created_at) if self.facts.exists else self.view

    @property
    def is_found(self) -> bool:
        """True where a scan brought it here, and no failed call."""
        return any(each.measured for each in self.fresh)

    @property
    def writes(self) -> bool:
        """True where a plan would be carried out; where it is only told, nothing is frozen."""
        if self.waits is not None:
            return True
        return self.mode is Mode.HEAL and not self.symptom.notifies_anyway

    @property
    def open_case(self) -> Case | None:
        case = self.view.case
        return case if case and case.is_open(self.now, self.timing) else None

    @property
    def lowered_by(self) -> str:
        """The case whose change of this queue did not help, or was taken back; empty: none was.

        Only a person who has approved a plan since ends that: no failed call does.
        """
        last = self.view.case
        if last is None or self.facts.made_after(last.at):
            return ""
        return str(last.evidence.get(LOWERED, last.case_id * (last.state is State.INEFFECTIVE)))

    @property
    def strangers(self) -> Evidence:
        """What failed of callers whom an open case that only notifies does not know yet."""
        case = self.open_case
        if case is None or not self.symptom.notifies_anyway or case.state is not State.ESCALATED:
            return Evidence()
        known = set(case.evidence["principals"])
        seen = Evidence.of([*self.view.failures.sightings, *self.fresh])
        return Evidence(tuple(each for each in seen.calls if each.principal_arn not in known))

    @property
    def has_strangers(self) -> bool:
        """True where they are to be told of: once an hour, so that new names are no flood."""
        case = self.open_case
        if case is None or self.now - case.at < STRANGERS_EVERY:
            return False
        return self.strangers.suffices

    @property
    def in_question(self) -> Evidence:
        """What is to be decided by."""
        return self.strangers if self.has_strangers else self.evidence

    @property
    def since_last_change(self) -> Evidence:
        """What speaks about the queue as it is now."""
        seconds, later = self.timing.propagation_seconds, self.symptom.outlives_the_timeout
        return self.in_question.since(self.facts.settled_at(seconds, after_the_timeout=later))

    @property
    def is_borne(self) -> bool:
        """True where enough speaks about the queue as it is now."""
        return self.since_last_change.suffices

    @property
    def changed_since(self) -> bool:
        """True where the queue has changed since it failed, and does not do so all the time."""
        return not self.is_borne and keeps_changing(self.changes, self.now) is None

    def most_written_since(self, plan: Plan, age: timedelta) -> tuple[int, str]:
        """How often the attribute that was written most was written, and which one that is."""
        written = ((self.written_since(each.attribute, age), each.attribute) for each in plan.steps)
        return max(written, default=(0, ""))

    def written_since(self, attribute: str, age: timedelta) -> int:
        return sum(self.now - each.at < age for each in self.records.record_of(attribute).writes)


A_DAY = timedelta(hours=24)
FUTURE_AFTER = timedelta(minutes=5)
# What a claim, two reads, a write and a record may take together.
SECONDS_TO_WRITE = 15
# What a write, once claimed, and its record may still take.
SECONDS_TO_RECORD = 8
# So few queues are a coincidence, however small the account.
FEW_QUEUES = 3
# So many drills of an hour are practice; beyond it somebody has tagged other queues.
MOST_DRILLS = 20


def is_fresh(call: FailedCall, now: datetime) -> bool:
    """True where a call says something about the queue as it is now."""
    return -FUTURE_AFTER <= now - call.event_time <= STALE_AFTER


def frozen(situation: Situation) -> Refusal | None:
    if situation.writes and situation.view.frozen is not None:
        return Refuse("frozen", f"changes are frozen: {situation.view.frozen}")
    return None


def stale_or_future(situation: Situation) -> Refusal | None:
    if not situation.fresh:
        reason = "every failed call is older than 60 minutes, ahead of the clock, or says nothing"
        return Ignore("stale_or_future", reason)
    return None


def too_little_evidence(situation: Situation) -> Refusal | None:
    if not situation.evidence.suffices:
        reason = f"fewer than {DISTINCT_EVENTS} distinct failed calls in {WITHIN_SECONDS} s"
        return Ignore("too_little_evidence", reason)
    return None


def case_already_open(situation: Situation) -> Refusal | None:
    case = situation.open_case
    if case is not None:
        return Ignore("case_already_open", f"case {case.case_id} is {case.state}")
    return None


def claimed_by_another(situation: Situation) -> Refusal | None:
    if situation.view.held_by_another(situation.owner, situation.now):
        return Retry("claimed", "another run is at work on it")
    return None


def overridden(situation: Situation, plan: Plan) -> Refusal | None:
    """A person's value is never overwritten: ours was the last recorded and is gone."""
    refusals = (_overridden(step, situation) for step in plan.steps)
    return next((each for each in refusals if each is not None), None)


def _overridden(step: AttributeStep, situation: Situation) -> Refusal | None:
    record, attribute = situation.records.record_of(step.attribute), step.attribute
    if record.overridden_until is not None and situation.now < record.overridden_until:
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


def out_of_bounds(_situation: Situation, plan: Plan) -> Refusal | None:
    for step in plan.steps:
        fault = step.out_of_bounds()
        if fault:
            return Refuse("out_of_bounds", fault)
    return None


def too_soon(situation: Situation, plan: Plan) -> Refusal | None:
    minutes = situation.timing.cooldown_minutes
    written, attribute = situation.most_written_since(plan, timedelta(minutes=minutes))
    if written:
        return Refuse("too_soon", f"{attribute} was written less than {minutes} minutes ago")
    return None


def too_often(situation: Situation, plan: Plan) -> Refusal | None:
    most = situation.limits.writes_per_attribute_per_day
    written, attribute = situation.most_written_since(plan, A_DAY)
    if attribute and written >= most:
        reason = f"{attribute} was written {most} times in 24 hours; a person decides"
        return Escalate("too_often", reason, silent_in_observe=True)
    for step in plan.steps:
        own = step.most_a_day
        if own is not None and situation.written_since(step.attribute, A_DAY) >= own:
            # No fault that a person would have to find: tomorrow it may be done again.
            times = "once" if own == 1 else f"{own} times"
            reason = f"{step.attribute} may be written {times} in 24 hours, and was"
            return Refuse("too_often", reason)
    return None


# More often than a queue is deployed; each time calls had failed just before.
MOST_CHANGES = 6


def keeps_changing(changed_at: Iterable[datetime], now: datetime) -> Refusal | None:
    """A refusal that pages, where so many changes of a day have each excused failed calls.

    Whether the queue fails is not known, so nobody is woken where Mendq only watches.
    """
    lately = {each for each in changed_at if now - each < CHANGES_REMEMBERED}
    if len(lately) < MOST_CHANGES:
        return None
    reason = (
        f"the queue was changed {len(lately)} times within 24 hours, each time just after calls "
        "had failed: none of them tells whether it still fails, and Mendq leaves it alone"
    )
    return Escalate("keeps_changing", reason, silent_in_observe=True)


def why_many(reach: Reach, limits: Limits) -> str | None:
    """Why so many queues show a symptom that it cannot be theirs alone; None where they are few.

    Whoever may tag a queue can make any number of others: the share of those that are only observed
    says nothing of those that are written, and no share goes over the number that is set.
    """
    share, most = limits.mass_symptom_share, limits.mass_symptom_queues
    for shown, of, which in (
        (len(reach.queue_arns), reach.managed_queues, "managed queues"),
        (reach.alike, reach.managed_alike, "queues that Mendq may go as far on"),
    ):
        if shown > min(most, max(FEW_QUEUES, share * of)):
            return f"{shown} of {of} {which} show it within the hour"
    return None


def mass_symptom(situation: Situation, _plan: Plan | None = None) -> Refusal | None:
    """What many queues show at once has a cause that is not theirs.

    It is about what would be written, so of itself it is nothing to tell where Mendq only watches.
    """
    if DRILL_TAG in situation.facts.tags:
        drills = len(situation.reach.queue_arns)
        many = f"{drills} drills within the hour" if drills > MOST_DRILLS else None
        because = f"at most {MOST_DRILLS} are fixed"
    else:
        many = why_many(situation.reach, situation.limits)
        because = "the cause is not this queue's"
    reason = f"{many}: {because}"
    return Refuse("mass_symptom", reason, silent_in_observe=True) if many else None


def too_little_time(situation: Situation, _plan: Plan) -> Refusal | None:
    if situation.remaining_seconds < SECONDS_TO_WRITE:
        reason = "too little of the Lambda's time is left to write and record"
        return Retry("too_little_time", reason)
    return None


# What another run has claimed may be written by now: no freeze makes that untrue.
ON_CASE = (stale_or_future, too_little_evidence, case_already_open, claimed_by_another, frozen)
ON_PLAN = (overridden, out_of_bounds, too_soon, too_often, mass_symptom, too_little_time)


def first_refusal(
    guardrails: Iterable[Callable[..., Refusal | None]], *subject: object
) -> Refusal | None:
    """The answer of the first guardrail that has one."""
    return next((refusal for each in guardrails if (refusal := each(*subject))), None)
