"""What Mendq would do about a finding now: heal's own way with it, rehearsed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from mendq.aws.queue import ManagedQueue, tags_of
from mendq.cases.finding import Finding, waiting
from mendq.cases.pins import with_pin
from mendq.catalogue import CATALOGUE
from mendq.catalogue.symptom import Symptom
from mendq.cli.look.case_view import step_lines
from mendq.cli.scan.rehearsal import Rehearsal
from mendq.heal import guardrails
from mendq.heal.assess import Assessment, said_of_another, spoken_for
from mendq.heal.context import Group, Outcome
from mendq.heal.repeats import NEW_FAULTS_A_DAY, silent_for, with_others
from mendq.model.case import Case, State
from mendq.model.evidence import Evidence, Sighting
from mendq.model.facts import Facts, Need
from mendq.model.limits import counted_as
from mendq.model.plan import Refusal
from mendq.model.queue import parts_of
from mendq.scan.reader import ScanReader

BY_NAME: Mapping[str, Symptom] = {each.name: each for each in CATALOGUE}
REFUSED = "would be refused"
WAITS = "waits"
OF_MANY = f"{REFUSED}: mass_symptom"
_ENDS_IN = {
    State.APPLIED: "does",
    State.APPROVED: "does",
    State.PROPOSED: "proposes",
    State.OBSERVED: "only notes",
    State.ESCALATED: "pages",
}


@dataclass(frozen=True)
class WouldDo:
    """In words, with the refusal's code where there is one; the steps as lines, or the reason."""

    words: str
    steps: tuple[str, ...] = ()
    why: str = ""

    def document(self) -> dict[str, object]:
        return {"would": self.words, "steps": list(self.steps), "why": self.why}

    @property
    def is_announced(self) -> bool:
        """Whether the scan would tell heal of it at all."""
        return self.words != WAITS

    @property
    def is_of_many(self) -> bool:
        return self.words == OF_MANY

    @property
    def line(self) -> str:
        """All in one line."""
        return ": ".join(each for each in (self.words, "; ".join(self.steps) or self.why) if each)


@dataclass(frozen=True)
class Judge:
    """`findings` are the round's, `tags` of every managed queue by ARN.

    `may_measure` says whether so many metrics more may be asked for. What only the moment of a
    write tells is not known here: the account's writes of that minute, and another run at work.
    """

    run: Rehearsal
    reader: ScanReader
    findings: tuple[Finding, ...]
    tags: Mapping[str, Mapping[str, str]]
    may_measure: Callable[[int], bool] = lambda _metrics: True

    @cached_property
    def _spoken(self) -> Mapping[Finding, Finding]:
        """One for each missing queue."""
        managed = [ManagedQueue(arn, tags) for arn, tags in self.tags.items()]
        open_cases = self.run.open_cases.by_due()
        spoken = spoken_for(self.findings, managed, open_cases, self.run.consent)
        return {each: each for each in spoken}

    @cached_property
    def _waits(self) -> Mapping[Finding, str]:
        """Of what heal does not hear yet, and why."""
        spoken = list(self._spoken.values())
        first = waiting(spoken, {name: each.gives_way_to for name, each in BY_NAME.items()})
        why = {
            each: f"said_of_another: {parts_of(by.queue_arn).name} speaks for it"
            for each, by in silent_for(self.findings, spoken).items()
        }
        why |= {each: f"{name} goes first" for each, name in first.items()}
        slow = [e for e in spoken if e not in why and is_paced(BY_NAME[e.symptom])]
        if slow:
            announced = self.run.scan_store.admit([each.topic for each in slow], self.run.now)
            day = f"of faults in configuration {NEW_FAULTS_A_DAY} new ones a day are taken up"
            why |= {each: day for each in slow if each.topic not in announced}
        return why

    def would_do(self, finding: Finding) -> WouldDo:
        """Raises FactsUnavailable, CaseStoreUnavailable, CaseStoreUnreadable or QueueRefusesUs."""
        symptom = BY_NAME[finding.symptom]
        if symptom.plan is None or symptom.detection is None:
            return WouldDo("only reports it")
        if finding in self._waits:
            return WouldDo(WAITS, why=self._waits[finding])
        facts = self._facts(finding, symptom)
        if facts is None:
            return WouldDo("cannot say", why="it takes more metrics than --metrics lets it ask for")
        return self._decided(finding, symptom, facts)

    def _facts(self, finding: Finding, symptom: Symptom) -> Facts | None:
        """As heal gathers them, from what the scan was answered; None where they cost too much."""
        tags, needs = tags_of(self.run.clients, finding.queue_arn) or {}, symptom.every_need
        facts = self.reader.facts(finding.queue_arn, tags, {Need.QUEUE})
        if not self.may_measure(self.reader.metrics_to_ask(facts, needs)):
            return None
        facts = self.reader.with_more(facts, needs)
        return with_pin(self.run, facts) if Need.PIN in needs else facts

    def _decided(self, finding: Finding, symptom: Symptom, facts: Facts) -> WouldDo:
        assert symptom.detection is not None  # noqa: S101 - `would_do` has told of the others
        found = symptom.detection.detect(facts)
        if found is None:
            return WouldDo("finds nothing: it has passed meanwhile")
        run, shared = self.run, self._spoken[finding].shared
        group = Group(finding.queue_arn, symptom, is_found=True, shared=shared)
        mode = run.consent.mode_of(parts_of(finding.queue_arn).name, facts.tags)
        if mode is None:
            return _refused(guardrails.not_managed(mode))
        view = run.case_store.look(finding.queue_arn, symptom.name, group.attributes)
        if view.intent is not None and not view.held_by_another(run.owner, run.now):
            return WouldDo("first ends what a run that died has begun", why=view.intent.case_id)
        autonomy = run.settings.autonomy.get(symptom.name, symptom.autonomy)
        lowest = mode if autonomy is None else min(mode, autonomy)
        fresh = (Sighting.of_measurement(run.now),)
        facts = replace(facts, found=with_others(found.because, shared))
        spread = self._spread(symptom, facts.tags)
        assessment = Assessment(
            group, run, facts.tags, lowest, view, Evidence(fresh), fresh, spread, facts
        )
        said = None if assessment.open_case else said_of_another(group, found.about, run)
        refusal = said or assessment.refusal_so_far()
        return _said(assessment.decline(refusal) if refusal else assessment.decide(), finding)

    def _spread(self, symptom: Symptom, tags: Mapping[str, str]) -> frozenset[str]:
        """The queues that show it, of this round and of the last hour."""
        if is_paced(symptom):
            return frozenset()
        word = counted_as(symptom.name, tags)
        return self.run.case_store.spread_to(self._found_by_word[word], word, self.run.now)

    @cached_property
    def _found_by_word(self) -> Mapping[str, Iterable[str]]:
        """The scan counts a drill's queues among all, heal among drills."""
        found = defaultdict[str, set[str]](set)
        for each in self.findings:
            if each in self._waits:
                continue
            words = {each.symptom, counted_as(each.symptom, self.tags.get(each.queue_arn, {}))}
            for word in words:
                found[word].add(each.queue_arn)
        return found


def is_paced(symptom: Symptom) -> bool:
    """Whether people are told of it a few queues a day."""
    return symptom.plan is not None and symptom.is_of_configuration


def _said(outcome: Outcome, finding: Finding) -> WouldDo:
    case, refusal = outcome.case, outcome.refusal
    if refusal and (case is None or refusal.code == "mass_symptom"):
        return _refused(refusal)
    if case is None:
        return WouldDo("does nothing: the queue stands as it should")
    if case.state not in _ENDS_IN:
        return WouldDo(f"{REFUSED}: {case.code}", why=case.reason)
    return WouldDo(_ENDS_IN[case.state], _steps(case), _reason(case, finding))


def _reason(case: Case, finding: Finding) -> str:
    """What was found stands above it."""
    return "" if case.reason == finding.because else case.reason


def _steps(case: Case) -> tuple[str, ...]:
    """None where a person is to do it."""
    return () if case.state is State.ESCALATED else tuple(step_lines(case.steps))


def _refused(refusal: Refusal | None) -> WouldDo:
    assert refusal is not None  # noqa: S101 - whoever calls has one
    return WouldDo(f"{REFUSED}: {refusal.code}", why=refusal.reason)
