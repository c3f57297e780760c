"""Mends one queue of one symptom: decide, claim, snapshot, write, record.

Level-triggered: the events only say where to look. Killed at any point and run again, it ends in
the same place.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta

from functions.aws.errors import QueueRefusesUs
from functions.aws.freeze import closed_calendars
from functions.aws.gather_facts import gather
from functions.aws.ledger import Claim
from functions.aws.run import Group, Outcome, Run, declined
from functions.aws.write_steps import write
from functions.healing import guardrails
from functions.healing.case import SILENT_DAYS, Case, opened
from functions.healing.evidence import Evidence
from functions.healing.facts import Facts
from functions.healing.ledger_view import AttributeRecord, LedgerView
from functions.healing.mode import Mode
from functions.healing.plan import Plan, Refusal
from functions.healing.states import State
from functions.healing.steps import AttributeStep

ACTOR = "heal"


@dataclass(frozen=True)
class Mending:
    """One group between the look and the record; `spread` are the queues with its symptom."""

    group: Group
    run: Run
    tags: Mapping[str, str]
    mode: Mode
    view: LedgerView
    evidence: Evidence
    fresh_calls: int
    spread: frozenset[str] = frozenset()

    def refusal_so_far(self) -> Refusal | None:
        """What speaks against it before the queue's facts are gathered."""
        calendar = closed_calendars(self.run.clients, self.run.settings.freeze_calendars)
        situation = guardrails.Situation(
            view=replace(self.view, frozen=self.view.frozen or calendar),
            fresh_calls=self.fresh_calls,
            evidence=self.evidence,
            evidence_needed=self.group.symptom.evidence,
            owner=self.run.owner,
            now=self.run.now,
            timing=self.run.settings.timing,
        )
        return guardrails.first_refusal(guardrails.ON_CASE, situation)

    def decline(self, refusal: Refusal, steps: tuple[AttributeStep, ...] = ()) -> Outcome:
        """Say no: with a case where the refusal opens one and the evidence bears it."""
        if not self.evidence.suffices(self.group.symptom.evidence):
            return self._wait_for_more(refusal)
        if refusal.becomes is None:
            return Outcome(refusal=refusal)
        return replace(self._open(refusal.becomes, refusal.reason, steps), refusal=refusal)

    def decide(self) -> Outcome:
        """Raises FactsUnavailable, LedgerUnavailable or StepFailed: then it is to come again."""
        try:
            facts = self._facts()
        except QueueRefusesUs as refused:
            return declined("queue_refuses_us", str(refused))
        propagation = timedelta(seconds=self.run.settings.timing.propagation_seconds)
        current = replace(self, evidence=self.evidence.since(facts.settled_at(propagation)))
        if not current.evidence.suffices(self.group.symptom.evidence):
            reason = "most failed calls are from before the queue was last changed"
            return current.decline(Refusal("before_last_change", reason, becomes=None))
        plan = self.group.symptom.plan(facts, self.run.settings.limits)
        if isinstance(plan, Refusal):
            return current.decline(plan)
        return current.act_on(plan, facts) if plan.steps else Outcome()

    def act_on(self, plan: Plan, facts: Facts) -> Outcome:
        record = self.view.attribute.of_queue(facts.created_at)
        refusal = guardrails.first_refusal(guardrails.ON_PLAN, self._proposal(plan, record))
        if refusal:
            return self.decline(refusal, plan.steps)
        if self.mode is Mode.HEAL:
            return self._apply(plan, facts, record)
        state = State.PROPOSED if self.mode is Mode.PROPOSE else State.OBSERVED
        return self._open(state, plan.reason, plan.steps)

    def _proposal(self, plan: Plan, record: AttributeRecord) -> guardrails.Proposal:
        few = len(self.spread) <= guardrails.FEW_QUEUES
        return guardrails.Proposal(
            plan=plan,
            view=replace(self.view, attribute=record),
            limits=self.run.settings.limits,
            timing=self.run.settings.timing,
            now=self.run.now,
            remaining_seconds=self.run.remaining_seconds(),
            queues_with_symptom=len(self.spread),
            managed_queues=0 if few else self.run.managed_queues,
        )

    def _facts(self) -> Facts:
        facts = gather(
            self.run.clients,
            self.group.queue_arn,
            self.tags,
            self.group.symptom.needs,
            self.run.now,
        )
        record = self.view.attribute.of_queue(facts.created_at)
        return replace(
            facts,
            person_visibility_seconds=record.person_value_behind(facts.visibility_seconds),
            reader_visibility_seconds=self.evidence.reader_visibility_seconds(),
        )

    def _wait_for_more(self, refusal: Refusal) -> Outcome:
        """Keep the evidence; another run may have brought the rest of it meanwhile."""
        case, silent = self.view.case, replace(refusal, becomes=None)
        if case and case.is_open(self.run.now, self.run.settings.timing):
            return Outcome(refusal=silent)
        enough = self._remember().suffices(self.group.symptom.evidence)
        return Outcome(refusal=silent, look_again=enough and refusal.code == "too_little_evidence")

    def _remember(self) -> Evidence:
        """Keep the evidence for the next failed call; what is kept now, others' among it."""
        kept, stored = set(self.evidence.worth_keeping()), set(self.view.evidence.sightings)
        if kept == stored:
            return self.evidence
        together = self.run.ledger.remember(
            self.group.queue_arn,
            self.group.symptom.name,
            add=sorted(kept - stored),
            drop=sorted(stored - kept),
            now=self.run.now,
        )
        return together.fresh(self.run.now)

    def _open(self, state: State, reason: str, steps: tuple[AttributeStep, ...]) -> Outcome:
        """Write a case down, unless it only repeats what was said a little while ago."""
        case, last = self._case(state, reason, steps), self.view.case
        cooldown = timedelta(minutes=self.run.settings.timing.cooldown_minutes)
        if last and last.says_the_same(case) and self.run.now - last.at < cooldown:
            return declined("said_already", reason)
        change = None
        if state is State.CONTESTED:
            until = self.run.now + timedelta(days=SILENT_DAYS)
            change = replace(self.view.attribute, contested_until=until, person_value=None)
        self._record(case, change)
        return Outcome(case=case)

    def _case(self, state: State, reason: str, steps: tuple[AttributeStep, ...]) -> Case:
        return opened(
            state,
            queue_arn=self.group.queue_arn,
            symptom=self.group.symptom.name,
            reason=reason,
            evidence=self.evidence,
            steps=steps,
            now=self.run.now,
            actor=ACTOR,
        )

    def _apply(self, plan: Plan, facts: Facts, record: AttributeRecord) -> Outcome:
        step = plan.steps[0]
        case = self._case(State.APPLIED, plan.reason, plan.steps)
        claim = Claim(
            self.group.queue_arn, step, case, self.run.owner, self.view, facts.modified_at
        )
        snapshot = {"attributes": dict(facts.attributes), "tags": dict(facts.tags)}
        refusal = self.run.ledger.claim(
            claim, snapshot, writes_per_minute=self.run.settings.limits.writes_per_minute
        )
        if refusal:
            self._remember()
            return Outcome(refusal=refusal)
        refusal = self._too_late() or write(self.run.clients, self.group.queue_arn, plan.steps)
        if refusal:
            self.run.ledger.release(case, step.attribute, self.run.owner)
            return self.decline(refusal, plan.steps)
        self._record(case, record.after_writing(step.before, step.after, self.run.now))
        return Outcome(case=case)

    def _too_late(self) -> Refusal | None:
        """A run that slept on its claim must not wake up and write."""
        if self.run.remaining_seconds() >= guardrails.SECONDS_TO_RECORD:
            return None
        reason = "too little of the Lambda's time is left to record a write"
        return Refusal("too_little_time", reason, becomes=None, again=True)

    def _record(self, case: Case, change: AttributeRecord | None) -> None:
        """The bucket first: a transition that only the ledger knows would be lost to the night."""
        self.run.case_bucket.put(case)
        self.run.ledger.record(
            case, self.view, self.group.attribute, change=change, owner=self.run.owner
        )
