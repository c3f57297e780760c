"""An observation: what is known of one (queue, symptom) before its queue is read."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import timedelta

from mendq.aws.facts import FactsReader
from mendq.cases.pins import with_pin
from mendq.cases.view import CaseStoreView
from mendq.heal.context import FixContext, Group, Outcome, Run
from mendq.model.case import Case, State
from mendq.model.evidence import Evidence, EvidenceNeeded, Sighting
from mendq.model.facts import Facts, Need
from mendq.model.lifecycle import WATCHED, counts_from
from mendq.model.limits import Mode, Timing
from mendq.model.plan import Ignore, Refusal, Retry

NOTED_EVERY = timedelta(minutes=5)


def with_failures(
    case: Case, known: Evidence, calls: Evidence, needed: EvidenceNeeded, timing: Timing
) -> Evidence | None:
    """What is to be known of failed calls since; None where that is known well enough.

    As many as the symptom needs as evidence; more than that are noted every five minutes, so that
    a storm of failed calls is a trickle of writes.
    """
    after = Evidence.of([*known.sightings, *calls.since(counts_from(case, timing)).sightings])
    newest = _worth_noting(case, after, needed)
    if newest == known:
        return None
    if not known.suffices(needed):
        return newest
    later = newest.sightings[-1].event_time - known.sightings[-1].event_time
    return newest if later >= NOTED_EVERY else None


def _worth_noting(case: Case, after: Evidence, needed: EvidenceNeeded) -> Evidence:
    """The newest, and where a person has been called, those of callers that the case knows not."""
    strangers: tuple[Sighting, ...] = ()
    if case.state is State.ESCALATED:
        known = case.evidence["principals"]
        strangers = tuple(
            each
            for each in after.sightings
            if not each.measured and each.principal_arn not in known
        )
    most = needed.distinct_events
    return Evidence.of([*strangers[-most:], *after.sightings[-(1 if strangers else most) :]])


Needs = Collection[Need]


def gather(run: FixContext, queue_arn: str, tags: Mapping[str, str], needs: Needs) -> Facts:
    """The facts that `needs` names, and no more.

    Raises FactsUnavailable, CaseStoreUnavailable or CaseStoreUnreadable.
    """
    return gather_more(run, gather_queue(run, queue_arn, tags, needs), needs)


def gather_queue(run: FixContext, queue_arn: str, tags: Mapping[str, str], needs: Needs) -> Facts:
    """The queue's own attributes, before what else `needs` names. Raises FactsUnavailable."""
    return _reader(run).queue(queue_arn, tags, needs)


def gather_more(run: FixContext, facts: Facts, needs: Needs) -> Facts:
    """The facts with what else `needs` names; raises as `gather`."""
    facts = _reader(run).with_more(facts, needs)
    return with_pin(run, facts) if Need.PIN in needs else facts


def _reader(run: FixContext) -> FactsReader:
    return FactsReader(
        run.clients,
        run.now,
        run.settings.timing,
        run.open_cases.open_about,
        noted_moves=lambda: run.moves_by_name.into(run.now),
        newest_about=run.open_cases.newest_about,
        consent=run.consent,
    )


STRANGERS_EVERY = timedelta(hours=1)


@dataclass(frozen=True)
class Observation:
    """One group between the look and the record.

    `fresh` is what its failed calls say that are fresh and speak for the symptom, or what was
    found; `spread` the queues that show it. `found_facts` are the facts that a scan's finding was
    confirmed by.
    """

    group: Group
    run: Run
    tags: Mapping[str, str]
    mode: Mode
    view: CaseStoreView
    evidence: Evidence
    fresh: tuple[Sighting, ...]
    spread: frozenset[str] = frozenset()
    found_facts: Facts | None = None

    @property
    def open_case(self) -> Case | None:
        case = self.view.case
        return case if case and case.is_open(self.run.now, self.run.settings.timing) else None

    @property
    def strangers(self) -> Evidence:
        """What failed of callers whom an open case that only notifies does not know yet."""
        case = self.open_case
        if (
            case is None
            or not self.group.symptom.notifies_anyway
            or case.state is not State.ESCALATED
        ):
            return Evidence()
        known = set(case.evidence["principals"])
        seen = Evidence.of([*self.view.failures.sightings, *self.fresh])
        strange = (each for each in seen.sightings if each.principal_arn not in known)
        return Evidence(tuple(each for each in strange if not each.measured))

    @property
    def has_strangers(self) -> bool:
        """True where they are to be told of: once an hour, so that new names are no flood."""
        case = self.open_case
        if case is None or self.run.now - case.at < STRANGERS_EVERY:
            return False
        return self.strangers.suffices(self.group.symptom.evidence)

    def wait_for_more(self, refusal: Refusal) -> Outcome:
        """Keep the evidence; another run may have brought the rest of it meanwhile."""
        silent = refusal.as_kind(Ignore)
        if self.open_case is not None:
            noted = self.note_failures(self.open_case)
            return Outcome(refusal=silent if noted else silent.as_kind(Retry))
        enough = self.remember().suffices(self.group.symptom.evidence)
        return Outcome(refusal=silent, look_again=enough and refusal.code == "too_little_evidence")

    def note_failures(self, case: Case) -> bool:
        """Beside an open case only the newest calls are kept: they tell whether it was fixed.

        False where the case has moved meanwhile, or other runs came in between twice: then the
        calls are to come again.
        """
        if self._noted(case, self.view.failures):
            return True
        group = self.group
        view = self.run.case_store.look(group.queue_arn, group.symptom.name, group.attributes)
        has_moved = view.case is None or (view.case.case_id, view.case.n) != (case.case_id, case.n)
        return not has_moved and self._noted(case, view.failures)

    def _noted(self, case: Case, known: Evidence) -> bool:
        timing, needed = self.run.settings.timing, self.group.symptom.evidence
        calls = Evidence.of(self.fresh)
        now_known = with_failures(case, known, calls, needed, timing)
        if now_known is None:
            return True
        due_at = self.run.now if case.state in WATCHED and now_known.suffices(needed) else None
        return self.run.open_cases.note_failures(case, known, now_known, due_at)

    def remember(self) -> Evidence:
        """Keep the evidence for the next failed call; what is kept now, others' among it.

        What was found is not kept: the next scan finds it again, or it is no more.
        """
        if self.group.is_found:
            return self.evidence
        retained, stored = set(self.evidence.worth_keeping()), set(self.view.evidence.sightings)
        if retained == stored:
            return self.evidence
        together = self.run.case_store.remember(
            self.group.queue_arn,
            self.group.symptom.name,
            add=sorted(retained - stored),
            drop=sorted(stored - retained),
            now=self.run.now,
        )
        return together.fresh(self.run.now)
