"""What the ledger says about one (queue, symptom), read in one consistent look."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from functions.healing.case import Case
from functions.healing.evidence import Evidence

# Budgets look back a day; the last write is kept however old it is.
REMEMBERED = timedelta(hours=48)


@dataclass(frozen=True)
class Write:
    """One write of ours."""

    at: datetime
    before: int
    after: int


@dataclass(frozen=True)
class AttributeRecord:
    """What we did to one attribute of one queue.

    `person_value` is what stood there before the first of our `writes`; a person's later change
    starts both anew, and so does another queue of the same name. `intent` is the case that a claim
    was taken for and not yet recorded, `intent_modified_at` when the queue had been changed before.
    """

    person_value: int | None = None
    writes: tuple[Write, ...] = ()
    contested_until: datetime | None = None
    claim_owner: str | None = None
    claim_until: datetime | None = None
    intent: Case | None = None
    intent_modified_at: datetime | None = None
    queue_created_at: datetime | None = None

    @property
    def last_written(self) -> int | None:
        return self.writes[-1].after if self.writes else None

    def person_value_behind(self, current: int) -> int:
        """The value that a person chose last, when `current` stands there now."""
        ours = self.person_value is not None and current == self.last_written
        return self.person_value if ours and self.person_value is not None else current

    def after_writing(self, before: int, after: int, now: datetime) -> AttributeRecord:
        """The record after one more write of ours, the claim ended."""
        recent = tuple(each for each in self.writes if now - each.at < REMEMBERED)
        return AttributeRecord(
            person_value=self.person_value_behind(before),
            writes=(*recent, Write(now, before, after)),
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
class LedgerView:
    """Absent things are None or empty: an empty ledger is a quiet account."""

    frozen: str | None = None
    case: Case | None = None
    evidence: Evidence = field(default_factory=Evidence)
    attribute: AttributeRecord = field(default_factory=AttributeRecord)
