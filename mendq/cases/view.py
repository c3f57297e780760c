"""The case store view: all stored data about one symptom of one queue, as of one moment.

`CaseStore.look` returns the view. `mendq.model.case` defines the case itself, and
`mendq.cases.attribute_record` the history of one attribute.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field, structs

from mendq.cases.attribute_record import AttributeRecord
from mendq.model.case import Case
from mendq.model.evidence import DELETE_INTERVAL_KEY, REFUSED_FUNCTION_KEY, Evidence
from mendq.model.failed_call import RefusedBy
from mendq.model.state import SILENT_DAYS
from mendq.model.steps import AttributeStep, SetVisibilityTimeout, is_permanent

if TYPE_CHECKING:
    from mendq.model.facts import Facts
    from mendq.notifications.sent import NotificationRecord

# How long the case store keeps a change of the queue that explains failed calls.
CHANGE_LIFETIME = timedelta(days=1)


class HoldUp(Struct, frozen=True, array_like=True):
    """The reason why a case's next write waits, and since when it waits.

    The Lambda that must make the write stores its newest reason with the case. The case's next
    transition removes the reason.
    """

    waiting_since: datetime
    code: str
    reason: str


def add_refusals(facts: Facts, evidence: Mapping[str, Any]) -> Facts:
    """Return `facts` with the callers, calls and refusing policies from a case's evidence."""
    return replace(
        facts,
        principals=tuple(evidence["principals"]),
        event_names=tuple(evidence["event_names"]),
        refused_by=frozenset(map(RefusedBy, evidence["refused_by"])),
    )


def restore_delete_interval(facts: Facts, evidence: Mapping[str, Any]) -> Facts:
    """Return `facts` with the time between late deletes from a case's evidence, if known."""
    interval_seconds = evidence.get(DELETE_INTERVAL_KEY)
    if type(interval_seconds) not in {int, float}:
        return facts
    return replace(facts, delete_interval_seconds=interval_seconds)


def restore_refused_function(facts: Facts, evidence: Mapping[str, Any]) -> Facts:
    """Return `facts` with the timeout of the function whose mapping was refused, if known."""
    function_seconds = evidence.get(REFUSED_FUNCTION_KEY)
    if type(function_seconds) is not int:
        return facts
    return replace(facts, refused_function_seconds=function_seconds)


class CaseStoreView(Struct, frozen=True):
    """All data that the case store has about one symptom of one queue, as of one moment.

    A field is None or empty if the case store has nothing for it.

    Args:
        freeze_reason: The reasons why changes are frozen; None if there is no freeze.
        case: The newest case of the symptom, open or ended.
        hold_up: Why the case waits for its next write.
        failures: The newest failed calls since the open case's last transition.
        evidence: The failed calls that are stored for a case that is not open yet.
        record_by_attribute: The record of each attribute that was asked for.
        notification: The newest notification about the symptom.
        spread_item: The item that lists the queues that show the symptom. None if it was not read.
    """

    freeze_reason: str | None = None
    case: Case | None = None
    hold_up: HoldUp | None = None
    failures: Evidence = field(default_factory=Evidence)
    evidence: Evidence = field(default_factory=Evidence)
    record_by_attribute: Mapping[str, AttributeRecord] = field(default_factory=dict)
    notification: NotificationRecord | None = None
    spread_item: Mapping[str, Any] | None = None

    def record_of(self, attribute: str) -> AttributeRecord:
        """Return the record of an attribute. It is empty if the attribute has none."""
        return self.record_by_attribute.get(attribute, AttributeRecord())

    def restrict_to_queue(self, created_at: datetime | None) -> CaseStoreView:
        """Return the view with only the attribute records of the queue created at `created_at`.

        Records of a deleted queue of the same name become empty.
        """
        restricted_records = {
            name: record.restrict_to_queue(created_at)
            for name, record in self.record_by_attribute.items()
        }
        return structs.replace(self, record_by_attribute=restricted_records)

    def add_facts_of_calls(self, facts: Facts, evidence: Evidence) -> Facts:
        """Return `facts` with facts that the queue itself does not show.

        The failed calls give the callers, the API calls, the policies that refused them, the
        visibility timeout that they requested, and the time between failed deletes. The case store
        gives the visibility timeout that a person chose last.
        """
        timeout_attribute = SetVisibilityTimeout.attribute
        persons_timeout: int | None = None
        if timeout_attribute in self.record_by_attribute and timeout_attribute in facts.attributes:
            record = self.record_of(timeout_attribute).restrict_to_queue(facts.created_at)
            persons_timeout = int(record.find_person_value(facts.attributes[timeout_attribute]))
        return replace(
            facts,
            visibility_seconds_set_by_person=persons_timeout,
            smallest_requested_visibility_seconds=evidence.smallest_requested_visibility_seconds(),
            delete_interval_seconds=evidence.shortest_delete_interval_seconds(),
            refused_function_seconds=evidence.longest_refused_function_seconds(),
            principals=evidence.principals(),
            event_names=evidence.event_names(),
            refused_by=evidence.refusing_policies(),
        )

    def make_steps_to_last_written(
        self, steps: Iterable[AttributeStep]
    ) -> tuple[AttributeStep, ...]:
        """Return the steps with `after` set to the value that Mendq wrote last.

        A step for an attribute that Mendq never wrote stays the same.
        """
        return tuple(self._set_to_last_written(step) for step in steps)

    def _set_to_last_written(self, step: AttributeStep) -> AttributeStep:
        """Return one step with `after` set to the value that Mendq wrote last."""
        last_written_value = self.record_of(step.attribute).last_written_value
        if last_written_value is None:
            return step
        value_type = type(step.after)
        return replace(step, after=value_type(last_written_value))

    def make_overridden_records(self, case: Case, now: datetime) -> dict[str, AttributeRecord]:
        """Return the records of the case's attributes to store when the case becomes overridden.

        With these records, Mendq leaves the attributes alone for SILENT_DAYS.
        """
        overridden_until = now + timedelta(days=SILENT_DAYS)
        return self._change_records(case, overridden_until=overridden_until, person_value=None)

    def make_records_after_reminder(self, case: Case) -> dict[str, AttributeRecord]:
        """Return the records of the case's attributes, marked so that no reminder is due.

        Store them after people were notified that the symptom is back after a rollback.
        """
        return self._change_records(case, owes_a_notification=False)

    def without_claim(self, intent: Case) -> CaseStoreView:
        """Return a copy of the view in which the attributes of this case have no claim or intent.

        The case store is not changed.
        """
        unclaimed_records = self._change_records(
            intent, claim_owner=None, claim_until=None, intent=None
        )
        return structs.replace(
            self, record_by_attribute={**self.record_by_attribute, **unclaimed_records}
        )

    def _change_records(self, case: Case, **changed_fields: Any) -> dict[str, AttributeRecord]:
        """Return the records of the attributes that the case changes, with these fields changed."""
        attributes = [step["attribute"] for step in case.steps]
        return {
            attribute: structs.replace(self.record_of(attribute), **changed_fields)
            for attribute in attributes
        }

    def make_records_after_write(
        self, case: Case, created_at: datetime | None
    ) -> dict[str, AttributeRecord]:
        """Return the records to store after a case's steps were written to the queue.

        `created_at` is when the queue was created; records of an earlier queue of the same name do
        not count. With the records after a rollback, Mendq leaves the attributes alone for
        SILENT_DAYS. A queue that Mendq made still exists after a rollback, but the new record
        contains no write of it. So if a person attaches that queue again, Mendq does not mistake
        this for an override.
        """
        queue_view = self.restrict_to_queue(created_at)
        records: dict[str, AttributeRecord] = {}
        if case.is_rollback:
            for attribute, record in queue_view.record_by_attribute.items():
                if is_permanent(attribute):
                    records[attribute] = record.remove_writes_after("")
        for step in case.steps:
            record = queue_view.record_of(step["attribute"])
            if case.is_rollback:
                overridden_until = case.at + timedelta(days=SILENT_DAYS)
                record = structs.replace(
                    record.remove_writes_after(step["after"]),
                    overridden_until=overridden_until,
                    owes_a_notification=True,
                )
            else:
                record = record.add_write(step["before"], step["after"], case.at)
            records[step["attribute"]] = record
        return records

    @property
    def intent(self) -> Case | None:
        """The transition for which a run claimed attributes; None after its record or release."""
        for record in self.record_by_attribute.values():
            if record.intent is not None:
                return record.intent
        return None

    def is_held_by_another(self, owner: str, now: datetime) -> bool:
        """Return True if an invocation other than `owner` holds a claim on one of the attributes.

        Expired claims do not count.
        """
        return any(
            record.is_held_by_another(owner, now) for record in self.record_by_attribute.values()
        )
