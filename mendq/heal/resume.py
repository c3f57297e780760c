"""The way in of every owner of a write: a case that was approved, or whose last step did not help.

The facts are gathered anew and every guardrail is asked again; only evidence is not, because the
case stands on it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from mendq.aws.errors import CaseUnreadable
from mendq.aws.queue import tags_of
from mendq.cases.record import Notification, record_transition, try_to_file_owed
from mendq.cases.view import CaseStoreView, HoldUp, with_what_refused
from mendq.catalogue import CATALOGUE
from mendq.catalogue.symptom import Symptom
from mendq.heal import guardrails
from mendq.heal.apply import apply
from mendq.heal.context import FixContext, Outcome, declined
from mendq.heal.guardrails import Proposal
from mendq.heal.observation import gather
from mendq.heal.recover import settle
from mendq.model.case import Case, State, severity_of
from mendq.model.facts import Facts
from mendq.model.lifecycle import CALLING
from mendq.model.limits import DRILL_TAG, Mode, counted_as
from mendq.model.plan import Ignore, Plan, Refusal, Refuse, owner_of_case, owner_of_plan
from mendq.model.queue import arn_of, parts_of

# They pass by themselves; the case waits and is called for again.
PASSING = frozenset({"too_soon", "mass_symptom", "frozen", "messages_are_taken"})


def take_up(request: Mapping[str, Any], run: FixContext) -> Outcome:
    """`{"case_id", "queue_arn", "symptom"}`; raises CaseUnreadable, or what `apply` raises."""
    symptom = next((each for each in CATALOGUE if each.name == request.get("symptom")), None)
    queue_arn, case_id = request.get("queue_arn"), request.get("case_id")
    if symptom is None or not isinstance(queue_arn, str) or not isinstance(case_id, str):
        raise CaseUnreadable(f"no case of ours: {str(request)[:400]}")
    if arn_of(queue_arn) is None:
        raise CaseUnreadable(f"no queue's ARN: {queue_arn[:200]}")
    if not run.is_here(queue_arn):
        return declined("elsewhere", "the queue is in another account or region")
    attributes = tuple(step.attribute for step in symptom.steps)
    view = try_to_file_owed(run.case_store.look(queue_arn, symptom.name, attributes), run)
    if view.intent is not None and not view.held_by_another(run.owner, run.now):
        settled = settle(view, view.intent, symptom, run)
        if isinstance(settled, Outcome):
            return settled
        view = settled
    case = view.case
    if case is None or case.case_id != case_id or case.state not in CALLING:
        return declined("moved_on", f"case {case_id} is not waiting for anybody")
    if owner_of_case(case.steps) is not run.whose:
        return declined("another_owner", f"case {case_id} is not {run.whose}'s to write")
    return _TakenUp(symptom, case, view, run).decide()


@dataclass(frozen=True)
class _TakenUp:
    """A case that waits for its next write, beside all that may speak against it."""

    symptom: Symptom
    case: Case
    view: CaseStoreView
    run: FixContext

    def decide(self) -> Outcome:
        tags = tags_of(self.run.clients, self.case.queue_arn)
        mode = self._mode(tags)
        if tags is None or mode is not Mode.HEAL:
            reason = "Mendq may no longer change this queue"
            return self._end(Refuse("not_any_more", reason), Facts(self.case.queue_arn, {}, {}))
        facts = self._facts(tags)
        plan = self._is_another_queue(facts) or self._plan(facts)
        if isinstance(plan, Refusal):
            passes = plan.code in PASSING
            return self._refused(plan, facts) if passes else self._end(plan, facts)
        refusal = self._refusal(plan, facts)
        if refusal is not None:
            return self._refused(refusal, facts)
        case = self.case.moved(
            State.APPLIED,
            plan.reason,
            self.run.now,
            steps=tuple(step.document() for step in plan.steps),
            actor=self.run.whose,
        )
        applied = apply(case, plan, facts, self.view, self.symptom, self.run)
        if isinstance(applied, Case):
            return Outcome(case=applied)
        return self._refused(applied, facts)

    @property
    def was_approved(self) -> bool:
        return self.case.state is State.APPROVED

    @property
    def a_person_said_so(self) -> bool:
        """True where a person approved it; else settings did, and they are asked again."""
        return self.was_approved and self.case.came_from is State.PROPOSED

    def _mode(self, tags: Mapping[str, str] | None) -> Mode | None:
        """A person's word lets a proposal be written; nothing lets an unmanaged queue be."""
        mode = self.run.consent.mode_of(parts_of(self.case.queue_arn).name, tags or {})
        if mode is None or mode is Mode.OBSERVE:
            return None
        if self.a_person_said_so:
            return Mode.HEAL
        autonomy = self.run.settings.autonomy.get(self.symptom.name, self.symptom.autonomy)
        return min(mode, autonomy) if autonomy is not None else None

    def _facts(self, tags: Mapping[str, str]) -> Facts:
        facts = self._as_it_is(tags)
        if self.was_approved and "refused_by" in self.case.evidence:
            return with_what_refused(facts, self.case.evidence)
        return self.view.with_what_calls_said(facts, self.view.failures)

    def _as_it_is(self, tags: Mapping[str, str]) -> Facts:
        """What a scan found is looked for again as it was found; whether it is, the plan says."""
        symptom, queue_arn = self.symptom, self.case.queue_arn
        if self.case.evidence["failed_calls"] or symptom.detection is None:
            return gather(self.run, queue_arn, tags, symptom.needs)
        facts = gather(self.run, queue_arn, tags, symptom.every_need)
        found = symptom.detection.detect(facts)
        return replace(facts, found=found.because if found else "")

    def _is_another_queue(self, facts: Facts) -> Refusal | None:
        """Nobody has agreed to anything about a queue that was made since."""
        opened_at, created_at = self.case.opened_at, facts.created_at
        if opened_at is None or created_at is None or created_at <= opened_at:
            return None
        return Refuse("another_queue", "there is another queue of that name by now")

    def _plan(self, facts: Facts) -> Plan | Refusal:
        """Approved: the plan that was shown, or none."""
        assert self.symptom.plan is not None  # noqa: S101 - it has written a case that plans
        plan = self.symptom.plan(facts, self.run.settings.limits)
        if isinstance(plan, Refusal):
            return plan
        if not plan.steps:
            return Refuse("healthy", "the queue has what it needs by now")
        steps = tuple(step.document() for step in plan.steps)
        if self.was_approved and steps != self.case.steps:
            now = ", ".join(map(str, plan.steps))
            return Refuse("plan_changed", f"the queue has changed: the plan would be {now} now")
        if not self.a_person_said_so and plan.at_most is not Mode.HEAL:
            return Refuse("not_by_itself", "a person has to see this step first")
        if owner_of_plan(plan.steps) is not self.run.whose:
            return Refuse("another_owner", f"{owner_of_plan(plan.steps)} would take the next step")
        return plan

    def _refusal(self, plan: Plan, facts: Facts) -> Refusal | None:
        frozen = self.view.frozen or self.run.closed_calendars
        if frozen is not None:
            return Refuse("frozen", f"changes are frozen: {frozen}")
        run = self.run
        word = counted_as(self.symptom.name, facts.tags)
        spread = run.case_store.spread_to([self.case.queue_arn], word, run.now)
        reach = run.reach(spread, [self.case.queue_arn])
        proposal = Proposal(
            plan=plan,
            view=self.view.of_queue(facts.created_at),
            limits=self.run.settings.limits,
            timing=self.run.settings.timing,
            now=self.run.now,
            remaining_seconds=self.run.remaining_seconds(),
            queues_with_symptom=len(reach.queue_arns),
            managed_queues=reach.managed_queues,
            is_drill=DRILL_TAG in facts.tags,
        )
        return guardrails.first_refusal(guardrails.ON_PLAN, proposal)

    def _refused(self, refusal: Refusal, facts: Facts) -> Outcome:
        if refusal.again or refusal.becomes is None or refusal.code in PASSING:
            self._hold_up(refusal)
            return Outcome(refusal=refusal.as_kind(Ignore))
        if refusal.becomes is State.OVERRIDDEN:
            return self._move(State.OVERRIDDEN, refusal, facts)
        return self._end(refusal, facts)

    def _hold_up(self, refusal: Refusal) -> None:
        """Kept beside the case, for whoever asks why it waits."""
        known = self.view.hold_up
        since = known.since if known else self.run.now
        hold_up = HoldUp(since, refusal.code, refusal.reason)
        if hold_up != known:
            self.run.open_cases.hold_up(self.case, hold_up)

    def _end(self, refusal: Refusal, facts: Facts) -> Outcome:
        """An approval comes to nothing; what did not help is a person's to decide."""
        if self.was_approved:
            return self._move(State.EXPIRED, refusal, facts)
        because = f"{self.case.reason}, and Mendq has no further step: {refusal.reason}"
        return self._move(State.ESCALATED, replace(refusal, reason=because), facts)

    def _move(self, state: State, refusal: Refusal, facts: Facts) -> Outcome:
        case = self.case.moved(
            state, refusal.reason, self.run.now, actor=self.run.whose, code=refusal.code
        )
        changes = self.view.overridden(case, self.run.now) if state is State.OVERRIDDEN else {}
        notification = Notification(
            self.symptom,
            facts,
            severity_of(case, Mode.HEAL, of_the_plan=True),
            next_command=refusal.next_command,
            changes=changes,
        )
        recorded = record_transition(case, self.view, notification, self.run, self.run.owner)
        return Outcome(case=recorded, refusal=refusal)
