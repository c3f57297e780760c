"""Decide about one queue and carry it out: claim, snapshot, write, record; or say why not."""

from __future__ import annotations

from dataclasses import dataclass, replace

from mendq.cases.record import Notification, record_transition
from mendq.cases.view import CaseStoreView
from mendq.heal import guardrails
from mendq.heal.apply import apply
from mendq.heal.context import Group, Outcome, Run, declined
from mendq.heal.guardrails import Proposal
from mendq.heal.observation import Observation
from mendq.heal.repeats import is_repeat, is_repeat_of_a_scan
from mendq.model.case import Case, State, longest_in, opened, severity_of
from mendq.model.facts import Facts
from mendq.model.limits import DRILL_TAG, Mode, deployed_by
from mendq.model.plan import Ignore, Plan, Refusal, owner_of_plan
from mendq.model.steps import AttributeStep
from mendq.notifications.text import moment

ACTOR = "heal"
# What a plan's case opens in where heal does not carry it out itself.
_OPENS = {Mode.OBSERVE: State.OBSERVED, Mode.PROPOSE: State.PROPOSED, Mode.HEAL: State.APPROVED}


@dataclass(frozen=True)
class Decision:
    """`facts` are without attributes where the queue was not looked at, or is gone."""

    seen: Observation
    facts: Facts

    @property
    def run(self) -> Run:
        return self.seen.run

    @property
    def group(self) -> Group:
        return self.seen.group

    @property
    def view(self) -> CaseStoreView:
        """The case store's, about this queue and not about another of the same name."""
        view = self.seen.view
        return view.of_queue(self.facts.created_at) if self.facts.exists else view

    def take(self) -> Outcome:
        plan = self._plan()
        if isinstance(plan, Refusal):
            return self.refuse(plan)
        if not plan.steps:
            return Outcome()
        refusal = guardrails.first_refusal(guardrails.ON_PLAN, self._proposal(plan))
        if refusal is None:
            return self._act_on(plan)
        return self.decline(refusal, plan.steps, of_the_plan=refusal.code == "overridden")

    def refuse(self, refusal: Refusal) -> Outcome:
        """Say no for what the queue shows.

        What many queues show is one page for all; what only notifies is written down even so.
        What would be silent on one queue pages for none of many.
        """
        if refusal.becomes is None or not refusal.heard_in(self.seen.mode):
            return self.decline(refusal)
        mass = guardrails.mass_symptom(self._proposal(Plan(steps=(), reason=refusal.reason)))
        if mass is None:
            return self.decline(refusal, of_the_plan=True)
        notifies_anyway = self.group.symptom.notifies_anyway
        heard = notifies_anyway or refusal.becomes is State.ESCALATED
        mass = replace(mass, silent_in_observe=not heard)
        outcome = self.decline(refusal if notifies_anyway else mass, quiet=True)
        return replace(outcome, refusal=mass)

    def decline(
        self,
        refusal: Refusal,
        steps: tuple[AttributeStep, ...] = (),
        *,
        of_the_plan: bool = False,
        quiet: bool = False,
    ) -> Outcome:
        """Say no; with a case where the refusal opens one, evidence bears it and none is open."""
        refusal = refusal.as_said_in(self.seen.mode)
        if self.seen.has_strangers:
            return self._tell_of_strangers(refusal)
        suffices = self.seen.evidence.suffices(self.group.symptom.evidence)
        if not suffices or self.seen.open_case is not None:
            return self.seen.wait_for_more(refusal)
        if refusal.becomes is None:
            return Outcome(refusal=refusal)
        if refusal.becomes is State.OVERRIDDEN:
            steps = self.view.last_written(steps)
        case = self._case(refusal.becomes, refusal.reason, steps, refusal.code)
        severity = severity_of(case, self.seen.mode, of_the_plan=of_the_plan)
        notification = Notification(
            self.group.symptom,
            self.facts,
            None if quiet else severity,
            next_command=refusal.next_command,
        )
        return replace(self._open(case, notification), refusal=refusal)

    def _tell_of_strangers(self, refusal: Refusal) -> Outcome:
        """An open case must not keep from people that somebody else is in trouble by now."""
        open_case = self.seen.open_case
        if open_case is None or refusal.becomes is not State.ESCALATED:
            return self.seen.wait_for_more(refusal)
        case = open_case.moved(
            State.ESCALATED,
            refusal.reason,
            self.run.now,
            actor=ACTOR,
            code=refusal.code,
            evidence=self.seen.evidence.added_to(open_case.evidence),
        )
        notification = Notification(
            self.group.symptom,
            self.facts,
            severity_of(case, self.seen.mode, of_the_plan=True),
            next_command=refusal.next_command,
            news=",".join(self.seen.evidence.principals()),
        )
        return Outcome(
            case=record_transition(case, self.view, notification, self.run, self.run.owner)
        )

    def _plan(self) -> Plan | Refusal:
        symptom = self.group.symptom
        if symptom.plan is None:
            return Ignore("count_only", "it is only counted")
        return symptom.plan(self.facts, self.run.settings.limits)

    def _act_on(self, plan: Plan) -> Outcome:
        mode = min(self.seen.mode, plan.at_most)
        owner = owner_of_plan(plan.steps)
        if mode is Mode.HEAL and owner is self.run.whose:
            return self._apply(plan)
        state, reason = _OPENS[mode], plan.reason
        longest = longest_in(state, self.run.settings.timing)
        if mode is Mode.HEAL:
            reason = f"{plan.reason}; settings let {owner} do it without a person"
        elif longest is not None:
            reason = f"{reason}; it can be approved until {moment(self.run.now + longest)}"
        case = self._case(state, reason, plan.steps)
        severity = severity_of(case, mode, of_the_plan=True)
        beyond = tuple(map(str, plan.proposal))
        notification = Notification(
            self.group.symptom, self.facts, severity, first=plan.first, beyond=beyond
        )
        return self._open(case, notification)

    def _proposal(self, plan: Plan) -> Proposal:
        reach = self.run.reach(self.seen.spread, [self.group.queue_arn])
        return Proposal(
            plan=plan,
            view=self.view,
            limits=self.run.settings.limits,
            timing=self.run.settings.timing,
            now=self.run.now,
            remaining_seconds=self.run.remaining_seconds(),
            queues_with_symptom=len(reach.queue_arns),
            managed_queues=reach.managed_queues,
            is_drill=DRILL_TAG in self.facts.tags,
        )

    def _open(self, case: Case, notification: Notification) -> Outcome:
        """Write a case down, unless it only repeats what was said a little while ago."""
        if self._is_repeat(case):
            return declined("said_already", case.reason)
        if case.state is State.OVERRIDDEN:
            notification = replace(notification, changes=self.view.overridden(case, self.run.now))
        elif case.code == "overridden" and notification.severity is not None:
            notification = replace(notification, changes=self.view.says_the_silence(case))
        return Outcome(
            case=record_transition(case, self.view, notification, self.run, self.run.owner)
        )

    def _is_repeat(self, case: Case) -> bool:
        if self.group.is_found:
            of_configuration = self.group.symptom.is_of_configuration
            return is_repeat_of_a_scan(
                case, self.view.case, self.run.now, of_configuration=of_configuration
            )
        return is_repeat(case, self.view.case, self.run.now, self.run.settings.timing)

    def _case(
        self, state: State, reason: str, steps: tuple[AttributeStep, ...], code: str = ""
    ) -> Case:
        case = opened(
            state,
            queue_arn=self.group.queue_arn,
            symptom=self.group.symptom.name,
            reason=reason,
            evidence=self.seen.evidence,
            steps=steps,
            now=self.run.now,
            actor=ACTOR,
            code=code,
            previous=self.view.case,
        )
        return replace(case, evidence={**case.evidence, **deployed_by(self.facts.tags)})

    def _apply(self, plan: Plan) -> Outcome:
        case = self._case(State.APPLIED, plan.reason, plan.steps)
        applied = apply(case, plan, self.facts, self.seen.view, self.group.symptom, self.run)
        if isinstance(applied, Case):
            return Outcome(case=applied)
        if applied.becomes is None:
            self.seen.remember()
        return self.decline(applied, plan.steps)
