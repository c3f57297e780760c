"""What is known when `decide` is asked about one symptom of one queue?"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from math import inf

from msgspec import Struct, field, structs

from mendq.cases.spread import Reach
from mendq.cases.view import CHANGES_REMEMBERED, CaseStoreView
from mendq.catalogue.symptom import Symptom
from mendq.model.case import LOWERED, Case, State
from mendq.model.evidence import Evidence, Sighting
from mendq.model.facts import Facts
from mendq.model.limits import Limits, Mode, Timing
from mendq.model.plan import Plan, Refusal
from mendq.model.steps import Owner

# People hear about new callers of an open case at most once in this time.
NEW_CALLERS_EVERY = timedelta(hours=1)
# A queue is rarely deployed this often in a day; each of these changes excused failed calls.
MOST_CHANGES = 6


class RefusedWrite(Struct, frozen=True):
    """A plan that was decided and could not be written, and the reason."""

    plan: Plan
    refusal: Refusal


class Situation(Struct, frozen=True):
    """The input of `decide`. What is known grows in stages, and each stage is visible here.

    Before the queue is read, `is_read` is false and `facts` hold only its ARN and tags. Until the
    queues that show the symptom are counted, `reach` is None. After a write was refused,
    `refused_write` says why.

    Attributes:
        symptom: The catalogue's entry.
        facts: The queue's facts. No attributes if the queue was not read or does not exist.
        mode: The lowest mode that settings, tags and the symptom's autonomy allow.
        view: What the case store holds about the queue and the symptom.
        now: The time of the run.
        owner: The token of this run. Claims carry it.
        whose: The Lambda that this run belongs to. It writes only steps of that owner.
        evidence: The fresh failed calls and those that the case store kept.
        fresh: The failed calls of this batch that speak for the symptom, or the scan's measurement.
        reach: How many queues show the symptom. None if they were not counted.
        remaining_seconds: The Lambda's remaining time when the queues were counted.
        waiting_case: The approved or ineffective case that this run continues. Such a case needs no
            new evidence.
        changes: Changes of the last day that each excused failed calls.
        made_for: The managed source that Mendq made this DLQ for, if the DLQ itself is unmanaged.
        is_read: True if the queue's facts were gathered.
        is_gone: True if the queue of `waiting_case` does not exist any more.
        refused_write: The plan of this run that could not be written.
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
    reach: Reach | None = None
    remaining_seconds: float = inf
    waiting_case: Case | None = None
    changes: tuple[datetime, ...] = ()
    made_for: str = ""
    is_read: bool = False
    is_gone: bool = False
    refused_write: RefusedWrite | None = None

    @property
    def records(self) -> CaseStoreView:
        """The case store's view of this queue, without records of an earlier queue of that name."""
        return (
            self.view.restrict_to_queue(self.facts.created_at) if self.facts.exists else self.view
        )

    @property
    def is_found(self) -> bool:
        """True if a scan or a measurement points here, and not failed calls alone."""
        return any(sighting.is_measured for sighting in self.fresh)

    @property
    def writes(self) -> bool:
        """True if a plan would be written. A change freeze stops only writes, not notifications."""
        if self.waiting_case is not None:
            return True
        return self.mode is Mode.HEAL and not self.symptom.notifies_anyway

    @property
    def open_case(self) -> Case | None:
        """The newest case of this queue and symptom, if it is still open."""
        case = self.view.case
        return case if case and case.is_open(self.now, self.timing) else None

    @property
    def lowered_by(self) -> str:
        """The id of the case whose change did not help or was rolled back, or an empty text.

        Only a person ends that, by approving a plan. A newer failed call does not.
        """
        last_case = self.view.case
        if last_case is None or self.facts.is_created_after(last_case.at):
            return ""
        did_not_help = last_case.case_id if last_case.state is State.INEFFECTIVE else ""
        return str(last_case.evidence.get(LOWERED, did_not_help))

    @property
    def new_callers(self) -> Evidence:
        """Failed calls by principals that the open, escalated case does not mention yet."""
        case = self.open_case
        if case is None or not self.symptom.notifies_anyway or case.state is not State.ESCALATED:
            return Evidence()
        mentioned = set(case.evidence["principals"])
        seen = Evidence.of([*self.view.failures.sightings, *self.fresh])
        new = [call for call in seen.calls if call.principal_arn not in mentioned]
        return Evidence(tuple(new))

    @property
    def must_report_new_callers(self) -> bool:
        """True if people must hear about new callers. At most once an hour, against floods."""
        case = self.open_case
        if case is None or self.now - case.at < NEW_CALLERS_EVERY:
            return False
        return self.new_callers.is_sufficient

    @property
    def evidence_in_question(self) -> Evidence:
        """The evidence to decide by. If people must hear about new callers, only theirs."""
        return self.new_callers if self.must_report_new_callers else self.evidence

    @property
    def current_evidence(self) -> Evidence:
        """The evidence from after the queue's last change has taken effect."""
        settled_at = self.facts.settled_at(
            self.timing.propagation_seconds,
            after_the_timeout=self.symptom.outlives_the_timeout,
        )
        return self.evidence_in_question.since(settled_at)

    @property
    def has_current_evidence(self) -> bool:
        """True if enough evidence speaks about the queue as it is now."""
        return self.current_evidence.is_sufficient

    @property
    def keeps_changing(self) -> bool:
        """True if MOST_CHANGES changes within a day have each excused failed calls."""
        return len(recent_changes(self.changes, self.now)) >= MOST_CHANGES

    @property
    def was_changed_since(self) -> bool:
        """True if the queue was changed after the calls failed, and is not changed all the time."""
        return not self.has_current_evidence and not self.keeps_changing

    def with_reach(self, reach: Reach, remaining_seconds: float) -> Situation:
        """Return the situation once the queues that show the symptom are counted."""
        return structs.replace(self, reach=reach, remaining_seconds=remaining_seconds)

    def most_written_since(self, plan: Plan, age: timedelta) -> tuple[int, str]:
        """Return the plan's attribute that Mendq wrote most often within `age`: count and name."""
        counts = [(self.written_since(step.attribute, age), step.attribute) for step in plan.steps]
        return max(counts, default=(0, ""))

    def written_since(self, attribute: str, age: timedelta) -> int:
        """Count Mendq's writes of an attribute within `age`."""
        writes = self.records.record_of(attribute).writes
        return sum(self.now - write.at < age for write in writes)


def recent_changes(changes: Iterable[datetime], now: datetime) -> set[datetime]:
    """Return the distinct changes within CHANGES_REMEMBERED."""
    return {changed_at for changed_at in changes if now - changed_at < CHANGES_REMEMBERED}
