"""The situation: everything that `decide` knows about one symptom of one queue."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from functools import cached_property
from math import inf

from msgspec import Struct, field, structs

from mendq.cases.spread import Reach, mass_symptom_key
from mendq.cases.view import CHANGE_LIFETIME, CaseStoreView
from mendq.catalogue.symptom import Symptom
from mendq.model.case import MODE_LOWERED_BY_CASE_KEY, Case
from mendq.model.evidence import Evidence, Sighting
from mendq.model.facts import Facts
from mendq.model.limits import Limits, Timing
from mendq.model.mode import Mode
from mendq.model.plan import Plan, Refusal
from mendq.model.shared_default import SharedCases, SharedDefault
from mendq.model.state import State
from mendq.model.steps import Owner
from mendq.notifications.announcements import must_report_new_callers

# A person is notified if a queue was changed this often within a day, each time just after calls
# had failed. People rarely deploy a queue that often.
MINIMUM_FREQUENT_CHANGES = 6


class RefusedWrite(Struct, frozen=True):
    """A plan that Mendq decided to write, and the reason why it was not written."""

    plan: Plan
    refusal: Refusal


class Situation(Struct, frozen=True, dict=True):
    """The input of `decide`: everything that is known about one symptom of one queue.

    It is filled in stages. Until the queue is read, `are_facts_read` is False, and `facts` has only
    the queue's ARN and tags, unless a measurement has confirmed a finding. Until Mendq counts the
    queues that show the symptom, `reach` is None. After a refused write, `refused_write` has the
    plan and the reason.

    Attributes:
        symptom: The catalogue's entry.
        facts: The queue's facts. Without attributes if the queue was not read or does not exist.
        mode: The queue's mode by settings and tags, or the symptom's autonomy if that is lower.
            After a person's approval, the autonomy does not matter.
        view: The case store's records about the queue and the symptom.
        now: The time of the run.
        owner: The id of this invocation, which its claims in the case store have.
        writer: The Lambda of this run. It writes only the steps that it owns.
        limits: The settings that limit what Mendq may do.
        timing: The settings about time, such as the cooldown.
        evidence: The new failed calls and earlier ones from the case store, or the measurement that
            confirmed a scan's finding. Empty for a waiting case.
        fresh_sightings: The failed calls of this batch that are evidence of the symptom, or the
            measurement that confirmed a scan's finding.
        reach: The queues that show the symptom. None if they were not counted.
        remaining_seconds: The Lambda's remaining time when the queues were counted.
        waiting_case: The case that this run continues, because it was approved or its last step did
            not help. It needs no new evidence. None if the run continues no case.
        excusing_change_times: The times within the last day at which the queue was changed just
            after calls had failed. These calls are not evidence.
        managed_source_arn: The ARN of the managed source for which Mendq made this DLQ, if the DLQ
            itself is not managed; otherwise empty.
        are_facts_read: True if the queue's facts were gathered.
        is_queue_gone: True if the queue of `waiting_case` no longer exists.
        refused_write: The plan of this run that could not be written, and the reason.
        shared_default: The shared default to which a new case of this queue belongs; None if it
            belongs to none.
        shared_cases: The other cases of the shared default of `waiting_case`; None if it belongs to
            none.
    """

    symptom: Symptom
    facts: Facts
    mode: Mode
    view: CaseStoreView
    now: datetime
    owner: str
    writer: Owner
    limits: Limits
    timing: Timing
    evidence: Evidence = field(default_factory=Evidence)
    fresh_sightings: tuple[Sighting, ...] = ()
    reach: Reach | None = None
    remaining_seconds: float = inf
    waiting_case: Case | None = None
    excusing_change_times: tuple[datetime, ...] = ()
    managed_source_arn: str = ""
    are_facts_read: bool = False
    is_queue_gone: bool = False
    refused_write: RefusedWrite | None = None
    shared_default: SharedDefault | None = None
    shared_cases: SharedCases | None = None

    @cached_property
    def records(self) -> CaseStoreView:
        """The case store's records, without those of an earlier queue with the same name.

        If the queue was not read or does not exist, these are all records.
        """
        return (
            self.view.restrict_to_queue(self.facts.created_at) if self.facts.exists else self.view
        )

    @property
    def mass_symptom_key(self) -> str:
        """The key under which the case store counts the queues that show the symptom."""
        return mass_symptom_key(self.symptom.name, self.facts.tags)

    @property
    def is_found_by_measurement(self) -> bool:
        """True if a measurement shows the symptom."""
        return any(sighting.is_measured for sighting in self.fresh_sightings)

    @property
    def would_write_plan(self) -> bool:
        """True if Mendq would write a plan to the queue. Only then does a change freeze matter."""
        if self.waiting_case is not None:
            return True
        return self.mode is Mode.HEAL and not self.symptom.notifies_anyway

    @property
    def approved_shared_default(self) -> SharedDefault | None:
        """The shared default of the waiting case, if a person approved it; otherwise None."""
        case = self.waiting_case
        return case.shared_default if case is not None and case.is_approved_by_person else None

    @cached_property
    def open_case(self) -> Case | None:
        """The open case of this queue and symptom; None if there is none."""
        case = self.view.case
        return case if case and case.is_open(self.now, self.timing) else None

    @property
    def unhelpful_case_id(self) -> str:
        """The id of an earlier case whose change did not help or was rolled back, or an empty text.

        While there is such a case, a person must approve each plan for this symptom of the queue.
        This ends when a plan is approved, or when the queue is deleted and created again.
        """
        last_case = self.view.case
        if last_case is None or self.facts.is_created_after(last_case.at):
            return ""
        ineffective_case_id = last_case.case_id if last_case.state is State.INEFFECTIVE else ""
        return str(last_case.evidence.get(MODE_LOWERED_BY_CASE_KEY, ineffective_case_id))

    @cached_property
    def new_callers(self) -> Evidence:
        """Failed calls by principals that the open, escalated case does not mention yet.

        Empty if there is no such case, or if the symptom does not have `notifies_anyway`.
        """
        case = self.open_case
        if case is None or not self.symptom.notifies_anyway or case.state is not State.ESCALATED:
            return Evidence()
        mentioned_principals = set(case.evidence["principals"])
        all_failures = Evidence.of([*self.view.failures.sightings, *self.fresh_sightings])
        new_calls = [
            call for call in all_failures.calls if call.principal_arn not in mentioned_principals
        ]
        return Evidence(tuple(new_calls))

    @cached_property
    def must_report_new_callers(self) -> bool:
        """True if people must be notified of new callers of the open case."""
        open_case = self.open_case
        if open_case is None:
            return False
        return must_report_new_callers(open_case, self.new_callers, self.now)

    @property
    def deciding_evidence(self) -> Evidence:
        """The evidence on which the decision is based.

        If people must be notified of new callers, these are only the failed calls of new callers.
        """
        return self.new_callers if self.must_report_new_callers else self.evidence

    @cached_property
    def current_evidence(self) -> Evidence:
        """The deciding evidence since the queue's last change took effect.

        If SQS reports no times, or the queue was not read, this is all deciding evidence.
        """
        settled_at = self.facts.settled_at(
            self.timing.propagation_seconds,
            after_the_timeout=self.symptom.can_show_after_fix,
        )
        return self.deciding_evidence.since(settled_at)

    @cached_property
    def has_current_evidence(self) -> bool:
        """True if enough evidence is newer than the queue's last change."""
        return self.current_evidence.is_sufficient

    @property
    def keeps_changing(self) -> bool:
        """True if the queue was changed at least MINIMUM_FREQUENT_CHANGES times within a day.

        Only changes just after failed calls count (`excusing_change_times`).
        """
        return (
            len(select_recent_changes(self.excusing_change_times, self.now))
            >= MINIMUM_FREQUENT_CHANGES
        )

    @property
    def was_changed_after_failures(self) -> bool:
        """True if the queue was changed after most calls failed, and it does not keep changing."""
        return not self.has_current_evidence and not self.keeps_changing

    def with_reach(self, reach: Reach, remaining_seconds: float) -> Situation:
        """Return the situation with the queues that show the symptom, and the remaining time."""
        return structs.replace(self, reach=reach, remaining_seconds=remaining_seconds)

    def find_most_written_attribute(self, plan: Plan, time_span: timedelta) -> tuple[int, str]:
        """Return `(count, attribute)` for the plan's attribute that Mendq wrote most often.

        Only writes in the last `time_span` before the run count. Return `(0, "")` for a plan
        without steps.
        """
        counts_with_attributes = [
            (self.count_writes(step.attribute, time_span), step.attribute) for step in plan.steps
        ]
        return max(counts_with_attributes, default=(0, ""))

    def count_writes(self, attribute: str, time_span: timedelta) -> int:
        """Return how often Mendq wrote the attribute in the last `time_span` before the run."""
        writes = self.records.record_of(attribute).writes
        return sum(self.now - write.at < time_span for write in writes)


def select_recent_changes(change_times: Iterable[datetime], now: datetime) -> set[datetime]:
    """Return the distinct times of changes that are newer than CHANGE_LIFETIME."""
    return {changed_at for changed_at in change_times if now - changed_at < CHANGE_LIFETIME}
