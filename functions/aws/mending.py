"""Mends one queue of one symptom: level-triggered, the events only say where to look.

Killed at any point and run again, it ends in the same place.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from functions.aws.decision import Decision
from functions.aws.errors import QueueRefusesUs
from functions.aws.gather_facts import gather_more, gather_queue
from functions.aws.run import Outcome, declined
from functions.aws.seen import Seen
from functions.healing import guardrails
from functions.healing.evidence import Evidence
from functions.healing.excused import keeps_changing
from functions.healing.facts import Facts
from functions.healing.mode import Mode
from functions.healing.plan import Refusal


class Mending(Seen):
    """What becomes of what was seen."""

    def refusal_so_far(self) -> Refusal | None:
        """What speaks against it before the queue's facts are gathered."""
        writes = self.mode is Mode.HEAL and not self.group.symptom.pages_anyway
        calendar = self.run.closed_calendars if writes else None
        situation = guardrails.Situation(
            view=replace(self.view, frozen=self.view.frozen or calendar),
            fresh_calls=len(self.fresh),
            evidence=self.evidence,
            evidence_needed=self.group.symptom.evidence,
            owner=self.run.owner,
            now=self.run.now,
            timing=self.run.settings.timing,
            writes=writes,
        )
        refusal = guardrails.first_refusal(guardrails.ON_CASE, situation)
        return None if refusal and self.has_strangers else refusal

    def decline(self, refusal: Refusal) -> Outcome:
        """Say no before the queue was looked at."""
        return Decision(self, Facts(self.group.queue_arn, {}, self.tags)).decline(refusal)

    def decide(self) -> Outcome:
        """Raises FactsUnavailable, LedgerUnavailable or StepFailed: then it is to come again."""
        try:
            facts = self._facts()
        except QueueRefusesUs as refused:
            if not self.group.symptom.pages_anyway:
                return declined("queue_refuses_us", str(refused))
            facts = self._with_what_calls_said(Facts(self.group.queue_arn, {}, self.tags))
        evidence = self._since_last_change(facts)
        decision = Decision(replace(self, evidence=evidence), facts)
        return decision.take() if self._suffices(evidence) else self._excused(decision)

    def _excused(self, decision: Decision) -> Outcome:
        """Nothing is done; of a queue that is changed again and again people are told."""
        group, run, changed_at = self.group, self.run, decision.facts.modified_at
        if changed_at is not None and self.open_case is None:
            changes = run.ledger.note_change(
                group.queue_arn, group.symptom.name, changed_at, run.now
            )
            refusal = keeps_changing(changes, run.now)
            if refusal is not None:
                return replace(decision, seen=self).refuse(refusal)
        reason = "most failed calls are from before the queue was last changed"
        return decision.decline(Refusal("before_last_change", reason, becomes=None))

    def _facts(self) -> Facts:
        """No more than the queue itself where nothing shows that it still is as it failed."""
        if self.found_facts is not None:
            return self._with_what_calls_said(self.found_facts)
        needs = self.group.symptom.needs
        queue = gather_queue(self.run, self.group.queue_arn, self.tags, needs)
        if not self._suffices(self._since_last_change(queue)):
            return queue
        return self._with_what_calls_said(gather_more(self.run, queue, needs))

    @property
    def _in_question(self) -> Evidence:
        """What is to be decided by."""
        return self.strangers if self.has_strangers else self.evidence

    def _since_last_change(self, facts: Facts) -> Evidence:
        """What speaks about the queue as it is now."""
        propagation = timedelta(seconds=self.run.settings.timing.propagation_seconds)
        after_a_lease = self.group.symptom.outlives_a_lease
        return self._in_question.since(facts.settled_at(propagation, after_a_lease=after_a_lease))

    def _suffices(self, evidence: Evidence) -> bool:
        return evidence.suffices(self.group.symptom.evidence)

    def _with_what_calls_said(self, facts: Facts) -> Facts:
        return self.view.with_what_calls_said(facts, self._in_question)
