"""What is known of one group before its queue is looked at; its evidence, waiting for more."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta

from functions.aws.run import Group, Outcome, Run
from functions.healing.advance import WATCHED
from functions.healing.case import Case
from functions.healing.evidence import Evidence, Sighting
from functions.healing.facts import Facts
from functions.healing.ledger_view import LedgerView
from functions.healing.mode import Mode
from functions.healing.noted_failures import with_failures
from functions.healing.plan import Refusal
from functions.healing.states import State

STRANGERS_EVERY = timedelta(hours=1)


@dataclass(frozen=True)
class Seen:
    """One group between the look and the record.

    `fresh` is what its failed calls say that are fresh and speak for the symptom, or what was
    found; `spread` the queues that show it. `found_facts` are the facts that a sweep's finding was
    confirmed by.
    """

    group: Group
    run: Run
    tags: Mapping[str, str]
    mode: Mode
    view: LedgerView
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
        """What failed of callers whom an open case that only pages does not know yet."""
        case = self.open_case
        if case is None or not self.group.symptom.pages_anyway or case.state is not State.ESCALATED:
            return Evidence()
        known = set(case.evidence["principals"])
        seen = Evidence.of([*self.view.failures.sightings, *self.fresh])
        strange = (each for each in seen.sightings if each.principal_arn not in known)
        return Evidence(tuple(each for each in strange if not each.measured))

    @property
    def has_strangers(self) -> bool:
        """Whether they are to be told of: once an hour, so that new names are no flood."""
        case = self.open_case
        if case is None or self.run.now - case.at < STRANGERS_EVERY:
            return False
        return self.strangers.suffices(self.group.symptom.evidence)

    def wait_for_more(self, refusal: Refusal) -> Outcome:
        """Keep the evidence; another run may have brought the rest of it meanwhile."""
        silent = replace(refusal, becomes=None)
        if self.open_case is not None:
            noted = self.note_failures(self.open_case)
            return Outcome(refusal=silent if noted else replace(silent, again=True))
        enough = self.remember().suffices(self.group.symptom.evidence)
        return Outcome(refusal=silent, look_again=enough and refusal.code == "too_little_evidence")

    def note_failures(self, case: Case) -> bool:
        """Beside an open case only the newest calls are kept: they tell whether it was mended.

        False where the case has moved meanwhile, or other runs came in between twice: then the
        calls are to come again.
        """
        if self._noted(case, self.view.failures):
            return True
        group = self.group
        view = self.run.ledger.look(group.queue_arn, group.symptom.name, group.attributes)
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

        What was found is not kept: the next sweep finds it again, or it is no more.
        """
        if self.group.is_found:
            return self.evidence
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
