"""What the ledger says about one (queue, symptom), read in one consistent look."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from functions.healing.case import SILENT_DAYS, Case
from functions.healing.configuration import Configuration
from functions.healing.denials import RefusedBy
from functions.healing.evidence import Evidence
from functions.healing.facts import Facts
from functions.healing.page_record import PageRecord
from functions.healing.steps import AttributeStep, SetVisibilityTimeout

# Budgets look back a day; the last write is kept however old it is.
REMEMBERED = timedelta(hours=48)
HELD_UP = timedelta(hours=1)

# A case's id, and the how manieth of its transitions.
Transition = tuple[str, int]


@dataclass(frozen=True)
class Write:
    """One write of ours."""

    at: datetime
    before: str
    after: str


@dataclass(frozen=True)
class AttributeRecord:
    """What we did to one attribute of one queue.

    `person_value` is what stood there before the first of our `writes`; a person's later change
    starts both anew, and so does another queue of the same name. `owes_a_page`: a person has
    rolled it back, and nobody was told since that the symptom shows again. `intent` is the case
    that a claim was taken for and not yet recorded, `intent_modified_at` when the queue had been
    changed before.
    """

    person_value: str | None = None
    writes: tuple[Write, ...] = ()
    contested_until: datetime | None = None
    owes_a_page: bool = False
    claim_owner: str | None = None
    claim_until: datetime | None = None
    intent: Case | None = None
    intent_modified_at: datetime | None = None
    queue_created_at: datetime | None = None

    @property
    def last_written(self) -> str | None:
        return self.writes[-1].after if self.writes else None

    def person_value_behind(self, current: str) -> str:
        """The value that a person chose last, when `current` stands there now."""
        ours = self.person_value is not None and current == self.last_written
        return self.person_value if ours and self.person_value is not None else current

    def after_writing(self, before: str, after: str, now: datetime) -> AttributeRecord:
        """The record after one more write of ours, the claim ended."""
        recent = tuple(each for each in self.writes if now - each.at < REMEMBERED)
        return AttributeRecord(
            person_value=self.person_value_behind(before),
            writes=(*recent, Write(now, before, after)),
            queue_created_at=self.queue_created_at,
        )

    def after_going_back_to(self, value: str) -> AttributeRecord:
        """The record once `value` stands there again: every write since is forgotten."""
        kept = self.writes
        while kept and kept[-1].after != value:
            kept = kept[:-1]
        return AttributeRecord(
            person_value=self.person_value if kept else None,
            writes=kept,
            queue_created_at=self.queue_created_at,
        )

    def of_queue(self, created_at: datetime | None) -> AttributeRecord:
        """The record of the queue that was created then: nothing, if that is another one."""
        if self.queue_created_at not in (None, created_at):
            return AttributeRecord(queue_created_at=created_at)
        return replace(self, queue_created_at=created_at)

    def held_by_another(self, owner: str, now: datetime) -> bool:
        """Whether somebody else's claim still runs."""
        held = self.claim_owner is not None and self.claim_owner != owner
        return held and self.claim_until is not None and now < self.claim_until


@dataclass(frozen=True)
class HoldUp:
    """Why the owner of its write has not taken a case up: what it said last, since when it waits.

    It is the case's own until its next transition.
    """

    since: datetime
    code: str
    reason: str

    def is_to_be_told(self, now: datetime) -> bool:
        """A cooldown passes by itself; what lasts longer a person should know."""
        return now - self.since >= HELD_UP


def with_what_refused(facts: Facts, evidence: Mapping[str, Any]) -> Facts:
    """The facts with who was refused what by which policy, as a case's evidence holds it."""
    return replace(
        facts,
        principals=tuple(evidence["principals"]),
        event_names=tuple(evidence["event_names"]),
        refused_by=frozenset(map(RefusedBy, evidence["refused_by"])),
    )


@dataclass(frozen=True)
class LedgerView:
    """Absent things are None or empty: an empty ledger is a quiet account.

    `failures` are the newest failed calls since the case's last transition, while it is open;
    `unfiled` are the transitions that may not lie in the case bucket yet, other cases' too;
    `attributes` holds a record for each attribute that was asked for; `known` is the queue's
    configuration as it stood when a case was last written down.
    """

    frozen: str | None = None
    case: Case | None = None
    unfiled: frozenset[Transition] = frozenset()
    hold_up: HoldUp | None = None
    failures: Evidence = field(default_factory=Evidence)
    evidence: Evidence = field(default_factory=Evidence)
    attributes: Mapping[str, AttributeRecord] = field(default_factory=dict)
    page: PageRecord | None = None
    known: Configuration | None = None

    def record_of(self, attribute: str) -> AttributeRecord:
        return self.attributes.get(attribute, AttributeRecord())

    def of_queue(self, created_at: datetime | None) -> LedgerView:
        """What is known of the queue that was created then, not of another of the same name."""
        records = {name: each.of_queue(created_at) for name, each in self.attributes.items()}
        return replace(self, attributes=records)

    def with_what_calls_said(self, facts: Facts, evidence: Evidence) -> Facts:
        """The facts with what failed calls say of themselves, and the lease a person chose last."""
        lease, person = SetVisibilityTimeout.attribute, None
        if lease in self.attributes and lease in facts.attributes:
            record = self.record_of(lease).of_queue(facts.created_at)
            person = int(record.person_value_behind(facts.attributes[lease]))
        return replace(
            facts,
            person_visibility_seconds=person,
            reader_visibility_seconds=evidence.reader_visibility_seconds(),
            principals=evidence.principals(),
            event_names=evidence.event_names(),
            refused_by=evidence.refused_by(),
        )

    def last_written(self, steps: Iterable[AttributeStep]) -> tuple[AttributeStep, ...]:
        """The steps from what stands there to what we wrote last, where we have written it."""
        return tuple(
            step if written is None else replace(step, after=type(step.after)(written))
            for step in steps
            for written in (self.record_of(step.attribute).last_written,)
        )

    def contested(self, case: Case, now: datetime) -> dict[str, AttributeRecord]:
        """The records of a contested case's attributes: silent for a week, a person's value."""
        until = now + timedelta(days=SILENT_DAYS)
        return {
            step["attribute"]: replace(
                self.record_of(step["attribute"]), contested_until=until, person_value=None
            )
            for step in case.steps
        }

    def told_of_the_silence(self, case: Case) -> dict[str, AttributeRecord]:
        """The records once people know that it shows again since they rolled it back."""
        return {
            step["attribute"]: replace(self.record_of(step["attribute"]), owes_a_page=False)
            for step in case.steps
        }

    @property
    def intent(self) -> Case | None:
        """The case of a claim that was taken and not yet recorded."""
        intents = (each.intent for each in self.attributes.values())
        return next((each for each in intents if each is not None), None)

    def held_by_another(self, owner: str, now: datetime) -> bool:
        """Whether somebody else's claim on one of the attributes still runs."""
        return any(each.held_by_another(owner, now) for each in self.attributes.values())
