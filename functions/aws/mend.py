"""Mends one queue of one symptom: look, decide, claim, snapshot, write, record.

Level-triggered: the events only say where to look. Killed at any point and run again, it ends in
the same place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from functions.aws.freeze import closed_calendars
from functions.aws.gather_facts import attributes_of, gather, tags_of
from functions.aws.ledger import Claim
from functions.aws.managed_queues import count_managed
from functions.aws.run import Group, Outcome, Run
from functions.aws.write_steps import write
from functions.catalogue.symptom import Symptom
from functions.healing import guardrails
from functions.healing.case import SILENT_DAYS, Case, opened
from functions.healing.evidence import Evidence, Sighting
from functions.healing.facts import Facts
from functions.healing.failed_call import FailedCall
from functions.healing.ledger_view import AttributeRecord, LedgerView
from functions.healing.mode import Mode
from functions.healing.plan import Plan, Refusal
from functions.healing.queue_names import parts_of
from functions.healing.states import State
from functions.healing.steps import AttributeStep
from functions.settings import HealSettings

ACTOR = "heal"


def mend(group: Group, run: Run) -> Outcome:
    """Raises FactsUnavailable, LedgerUnavailable or StepFailed: then the group is to come again."""
    tags = tags_of(run.clients, group.queue_arn)
    if tags is None:
        return Outcome(refusal=Refusal("queue_gone", "the queue is gone", becomes=None))
    mode = run.consent.mode_of(parts_of(group.queue_arn).name, tags)
    refusal = guardrails.not_managed(mode)
    if refusal or mode is None:
        return Outcome(refusal=refusal)
    view = run.ledger.look(group.queue_arn, group.symptom.name, group.attribute)
    left_behind = view.attribute.intent
    if left_behind and not view.attribute.held_by_another(run.owner, run.now):
        finished = _finish(left_behind, group, run, view)
        if finished:
            return finished
    return _Mending(
        group, run, tags, _highest_mode(group.symptom, mode, run.settings), view
    ).decide()


def _highest_mode(symptom: Symptom, mode: Mode, settings: HealSettings) -> Mode:
    return min(mode, settings.autonomy.get(symptom.name, symptom.autonomy))


def _finish(intent: Case, group: Group, run: Run, view: LedgerView) -> Outcome | None:
    """Complete what an invocation that died had claimed; None where it had not written."""
    step = intent.steps[0]
    before, after = int(step["before"]), int(step["after"])
    current = int(attributes_of(run.clients, group.queue_arn)[step["attribute"]])
    if current == before:
        return None
    record = view.attribute.after_writing(before, after, intent.at)
    case = intent
    if current != after:
        reason = f"{step['attribute']} is {current}, neither {before} nor Mendq's {after}"
        case = replace(intent, state=State.CONTESTED, reason=reason)
        record = replace(record, contested_until=run.now + timedelta(days=SILENT_DAYS))
    run.case_bucket.put(case)
    owner = view.attribute.claim_owner or run.owner
    run.ledger.record(case, view, step["attribute"], change=record, owner=owner)
    return Outcome(case=case)


def _reader_visibility(calls: Sequence[FailedCall]) -> int | None:
    """The least lease that every one of the failed calls itself asked for; 0 gives one back."""
    asked_for = [each.requested_visibility_seconds for each in calls]
    return min((each for each in asked_for if each), default=None) if all(asked_for) else None


@dataclass(frozen=True)
class _Mending:
    group: Group
    run: Run
    tags: Mapping[str, str]
    mode: Mode
    view: LedgerView

    @property
    def evidence(self) -> Evidence:
        return Evidence.of(
            [*self.view.evidence.sightings, *(Sighting.of(each) for each in self._fresh_calls())]
        )

    def decide(self) -> Outcome:
        refusal = guardrails.first_refusal(guardrails.ON_CASE, self._situation())
        if not self.evidence.suffices(self.group.symptom.evidence):
            self._remember()
            return Outcome(refusal=replace(refusal, becomes=None) if refusal else None)
        return self._decline(refusal) if refusal else self._decide_on_facts()

    def _decide_on_facts(self) -> Outcome:
        facts = self._facts()
        plan = self.group.symptom.plan(facts, self.run.settings.limits)
        if isinstance(plan, Refusal):
            return self._decline(plan)
        if not plan.steps:
            return Outcome()
        refusal = guardrails.first_refusal(guardrails.ON_PLAN, self._proposal(plan))
        if refusal:
            return self._decline(refusal, plan.steps)
        if self.mode is Mode.HEAL:
            return self._apply(plan, facts)
        state = State.PROPOSED if self.mode is Mode.PROPOSE else State.OBSERVED
        return self._open(state, plan.reason, plan.steps)

    def _fresh_calls(self) -> list[FailedCall]:
        return [each for each in self.group.calls if guardrails.is_fresh(each, self.run.now)]

    def _situation(self) -> guardrails.Situation:
        calendar = closed_calendars(self.run.clients, self.run.settings.freeze_calendars)
        return guardrails.Situation(
            view=replace(self.view, frozen=self.view.frozen or calendar),
            fresh_calls=len(self._fresh_calls()),
            evidence=self.evidence,
            evidence_needed=self.group.symptom.evidence,
            owner=self.run.owner,
            now=self.run.now,
            timing=self.run.settings.timing,
        )

    def _proposal(self, plan: Plan) -> guardrails.Proposal:
        run, group = self.run, self.group
        spread = run.ledger.spread_to(
            group.queue_arn, group.symptom.name, self.view.spread, run.now
        )
        queues_with_symptom = len(spread.queues(run.now))
        few = queues_with_symptom <= guardrails.FEW_QUEUES
        return guardrails.Proposal(
            plan=plan,
            view=self.view,
            limits=self.run.settings.limits,
            timing=self.run.settings.timing,
            now=self.run.now,
            remaining_seconds=self.run.remaining_seconds(),
            queues_with_symptom=queues_with_symptom,
            managed_queues=0 if few else count_managed(run.clients, run.consent.queues),
        )

    def _facts(self) -> Facts:
        group, record = self.group, self.view.attribute
        facts = gather(
            self.run.clients, group.queue_arn, self.tags, group.symptom.needs, self.run.now
        )
        return replace(
            facts,
            person_visibility_seconds=record.person_value_behind(facts.visibility_seconds),
            reader_visibility_seconds=_reader_visibility(group.calls),
        )

    def _remember(self) -> None:
        case = self.view.case
        if case and case.is_open(self.run.now, self.run.settings.timing):
            return
        kept = set(self.evidence.worth_keeping(self.run.now))
        stored = set(self.view.evidence.sightings)
        if kept != stored:
            self.run.ledger.remember(
                self.group.queue_arn,
                self.group.symptom.name,
                add=sorted(kept - stored),
                drop=sorted(stored - kept),
                now=self.run.now,
            )

    def _decline(self, refusal: Refusal, steps: tuple[AttributeStep, ...] = ()) -> Outcome:
        if refusal.becomes is None:
            return Outcome(refusal=refusal)
        outcome = self._open(refusal.becomes, refusal.reason, steps)
        return Outcome(case=outcome.case, refusal=refusal)

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

    def _open(self, state: State, reason: str, steps: tuple[AttributeStep, ...]) -> Outcome:
        """Write a case down, unless it only repeats what was said a little while ago."""
        case, last = self._case(state, reason, steps), self.view.case
        cooldown = timedelta(minutes=self.run.settings.timing.cooldown_minutes)
        if last and last.says_the_same(case) and self.run.now - last.at < cooldown:
            return Outcome(refusal=Refusal("said_already", reason, becomes=None))
        change = None
        if state is State.CONTESTED:
            until = self.run.now + timedelta(days=SILENT_DAYS)
            change = AttributeRecord(writes=self.view.attribute.writes, contested_until=until)
        self._record(case, change)
        return Outcome(case=case)

    def _apply(self, plan: Plan, facts: Facts) -> Outcome:
        step = plan.steps[0]
        case = self._case(State.APPLIED, plan.reason, plan.steps)
        claim = Claim(self.group.queue_arn, step, case, self.run.owner, self.view)
        snapshot = {"attributes": dict(facts.attributes), "tags": dict(facts.tags)}
        per_minute = self.run.settings.limits.writes_per_minute
        refusal = self.run.ledger.claim(claim, snapshot, writes_per_minute=per_minute)
        if refusal:
            return Outcome(refusal=refusal)
        refusal = write(self.run.clients, self.group.queue_arn, plan.steps)
        if refusal:
            self.run.ledger.release(claim)
            return self._decline(refusal, plan.steps)
        change = self.view.attribute.after_writing(step.before, step.after, self.run.now)
        self._record(case, change)
        return Outcome(case=case)

    def _record(self, case: Case, change: AttributeRecord | None) -> None:
        """The bucket first: a transition that only the ledger knows would be lost to the night."""
        self.run.case_bucket.put(case)
        self.run.ledger.record(
            case, self.view, self.group.attribute, change=change, owner=self.run.owner
        )
