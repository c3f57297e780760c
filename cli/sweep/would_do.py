"""What Mendq would do about a finding, from the queue as it is and the settings alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from cli.case_view import step_lines
from functions.aws.managed_queues import ManagedQueue
from functions.aws.sweep_looks import SweepLooks
from functions.catalogue import CATALOGUE
from functions.catalogue.symptom import Symptom
from functions.healing.facts import Facts
from functions.healing.managed import Consent
from functions.healing.mode import Mode
from functions.healing.plan import Plan, Refusal
from functions.healing.states import State
from functions.healing.sweeping import Finding
from functions.settings import HealSettings

BY_NAME: Mapping[str, Symptom] = {each.name: each for each in CATALOGUE}
_IN_MODE = {Mode.OBSERVE: "only notes", Mode.PROPOSE: "proposes", Mode.HEAL: "does"}


@dataclass(frozen=True)
class WouldDo:
    """In words, and the steps as lines."""

    words: str
    steps: tuple[str, ...] = ()

    def document(self) -> dict[str, object]:
        return {"would": self.words, "steps": list(self.steps)}

    @property
    def line(self) -> str:
        """Both in one line."""
        return ": ".join([self.words, *(["; ".join(self.steps)] if self.steps else [])])


@dataclass(frozen=True)
class Judge:
    """Looks at a queue once more, as heal would, and asks the entry for its plan.

    What a freeze, a case or a budget would stop is not asked: that is decided when it is done.
    """

    settings: HealSettings
    consent: Consent
    looks: SweepLooks

    def would_do(self, finding: Finding, queue: ManagedQueue) -> WouldDo:
        """Raises FactsUnavailable."""
        symptom = BY_NAME[finding.symptom]
        if symptom.plan is None or symptom.detection is None:
            return WouldDo("only reports it")
        if finding.symptom in self.looks.open_about([finding.queue_arn]):
            return WouldDo("has an open case about it: `mendq cases --open`")
        facts = self._facts(symptom, queue)
        if symptom.detection.detect(facts) is None:
            return WouldDo("finds nothing: it has passed meanwhile")
        plan = symptom.plan(replace(facts, found=finding.because), self.settings.limits)
        return _refused(plan) if isinstance(plan, Refusal) else self._planned(symptom, queue, plan)

    def _facts(self, symptom: Symptom, queue: ManagedQueue) -> Facts:
        return self.looks.facts(queue.queue_arn, queue.tags, symptom.every_need)

    def _planned(self, symptom: Symptom, queue: ManagedQueue, plan: Plan) -> WouldDo:
        if not plan.steps:
            return WouldDo("does nothing: the queue stands as it should")
        mode = self.consent.mode_of(queue.name, queue.tags) or Mode.OBSERVE
        autonomy = self.settings.autonomy.get(symptom.name, symptom.autonomy or Mode.HEAL)
        reached = min(mode, autonomy, plan.at_most)
        steps = step_lines([each.document() for each in plan.steps])
        return WouldDo(_IN_MODE[reached], tuple(steps))


def _refused(refusal: Refusal) -> WouldDo:
    if refusal.becomes is State.ESCALATED:
        return WouldDo("asks a person")
    return WouldDo(f"does nothing: {refusal.reason}")
