"""Case store view: what is stored about one symptom of one queue at one moment?

`CaseStore.look` returns it. `mendq.model.case` defines the case itself, and
`mendq.cases.attribute_record` the history of one attribute.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field, structs

from mendq.cases.attribute_record import AttributeRecord
from mendq.model.case import SILENT_DAYS, Case
from mendq.model.evidence import Evidence
from mendq.model.failed_call import RefusedBy
from mendq.model.steps import AttributeStep, SetVisibilityTimeout, is_permanent

if TYPE_CHECKING:
    from mendq.model.facts import Facts
    from mendq.notifications.sent import NotificationRecord

# How long a change that excuses failed calls is remembered.
CHANGES_REMEMBERED = timedelta(days=1)


class HoldUp(Struct, frozen=True, array_like=True):
    """Why the owner of a case's next write has not made it: its last reason, and since when.

    It is stored with the case until the case moves.
    """

    since: datetime
    code: str
    reason: str


def add_refusals(facts: Facts, evidence: Mapping[str, Any]) -> Facts:
    """Add to the facts, from a case's evidence, which callers a policy refused, and which calls."""
    return replace(
        facts,
        principals=tuple(evidence["principals"]),
        event_names=tuple(evidence["event_names"]),
        refused_by=frozenset(map(RefusedBy, evidence["refused_by"])),
    )


class CaseStoreView(Struct, frozen=True):
    """What the case store knows. What is not there is None or empty.

    Args:
        frozen: Why changes are frozen.
        case: The newest case.
        hold_up: Why the case waits for its next write.
        failures: The newest failed calls since the open case's last transition.
        evidence: The failed calls that are stored for a case that is not open yet.
        attributes: The record of each attribute that was asked for.
        notification: The newest notification about the symptom.
        spread: The item that says how far the symptom has spread, None if it was not asked for.
    """

    frozen: str | None = None
    case: Case | None = None
    hold_up: HoldUp | None = None
    failures: Evidence = field(default_factory=Evidence)
    evidence: Evidence = field(default_factory=Evidence)
    attributes: Mapping[str, AttributeRecord] = field(default_factory=dict)
    notification: NotificationRecord | None = None
    spread: Mapping[str, Any] | None = None

    def record_of(self, attribute: str) -> AttributeRecord:
        """Return the record of an attribute, an empty one if there is none."""
        return self.attributes.get(attribute, AttributeRecord())

    def restrict_to_queue(self, created_at: datetime | None) -> CaseStoreView:
        """Return what is known about the queue made then, not about another of the same name."""
        records = {
            name: record.restrict_to_queue(created_at) for name, record in self.attributes.items()
        }
        return structs.replace(self, attributes=records)

    def add_facts_of_calls(self, facts: Facts, evidence: Evidence) -> Facts:
        """Return the facts with what only failed calls and the case store know.

        The failed calls know the callers, the policies that refused them, and the visibility
        timeout that they asked for. The case store knows the visibility timeout that a person chose
        last.
        """
        visibility = SetVisibilityTimeout.attribute
        persons_timeout: int | None = None
        if visibility in self.attributes and visibility in facts.attributes:
            record = self.record_of(visibility).restrict_to_queue(facts.created_at)
            persons_timeout = int(record.person_value_behind(facts.attributes[visibility]))
        return replace(
            facts,
            person_visibility_seconds=persons_timeout,
            reader_visibility_seconds=evidence.reader_visibility_seconds(),
            principals=evidence.principals(),
            event_names=evidence.event_names(),
            refused_by=evidence.refusing_policies(),
        )

    def steps_to_last_written(self, steps: Iterable[AttributeStep]) -> tuple[AttributeStep, ...]:
        """Return the steps, but to the values that Mendq wrote last, if it wrote any."""
        return tuple(self._step_to_last_written(step) for step in steps)

    def _step_to_last_written(self, step: AttributeStep) -> AttributeStep:
        written = self.record_of(step.attribute).last_written
        if written is None:
            return step
        value_type = type(step.after)
        return replace(step, after=value_type(written))

    def records_if_overridden(self, case: Case, now: datetime) -> dict[str, AttributeRecord]:
        """Return the records of an overridden case: a person's value, left alone for a week."""
        until = now + timedelta(days=SILENT_DAYS)
        return self._records(case, overridden_until=until, person_value=None)

    def records_after_reminder(self, case: Case) -> dict[str, AttributeRecord]:
        """Return the records after people know that the symptom shows again since a rollback."""
        return self._records(case, owes_a_notification=False)

    def without_claim(self, intent: Case) -> CaseStoreView:
        """Return the view without the claim that was taken for this case."""
        free = self._records(intent, claim_owner=None, claim_until=None, intent=None)
        return structs.replace(self, attributes={**self.attributes, **free})

    def _records(self, case: Case, **changed: Any) -> dict[str, AttributeRecord]:
        """Return the records of the attributes that the case's steps change, with other fields."""
        names = [step["attribute"] for step in case.steps]
        return {name: structs.replace(self.record_of(name), **changed) for name in names}

    def records_after(self, case: Case, created_at: datetime | None) -> dict[str, AttributeRecord]:
        """Return the records after the steps of a fix or a rollback were written to that queue.

        A rollback keeps a queue that Mendq made. A person who attaches it again overrules nobody.
        """
        known = self.restrict_to_queue(created_at)
        records: dict[str, AttributeRecord] = {}
        if case.is_rollback:
            for name, record in known.attributes.items():
                if is_permanent(name):
                    records[name] = record.after_going_back_to("")
        for step in case.steps:
            record = known.record_of(step["attribute"])
            if case.is_rollback:
                until = case.at + timedelta(days=SILENT_DAYS)
                record = structs.replace(
                    record.after_going_back_to(step["after"]),
                    overridden_until=until,
                    owes_a_notification=True,
                )
            else:
                record = record.after_writing(step["before"], step["after"], case.at)
            records[step["attribute"]] = record
        return records

    @property
    def intent(self) -> Case | None:
        """The case of a claim that was taken and whose write is not recorded yet."""
        for record in self.attributes.values():
            if record.intent is not None:
                return record.intent
        return None

    def is_held_by_another(self, owner: str, now: datetime) -> bool:
        """Return True if another invocation's claim on one of the attributes has not ended."""
        return any(record.is_held_by_another(owner, now) for record in self.attributes.values())
