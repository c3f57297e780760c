"""What Mendq did to one attribute of one queue, and who may change it now."""

from __future__ import annotations

from datetime import datetime, timedelta

from msgspec import Struct, structs

from mendq.model.case import Case

# Budgets look back a day. The last write is kept however old it is.
REMEMBERED = timedelta(hours=48)


class AttributeWrite(Struct, frozen=True, array_like=True):
    """One write by Mendq. The case store holds it as a list."""

    at: datetime
    before: str
    after: str


class AttributeRecord(Struct, frozen=True):
    """The history of one attribute of one queue, and the claim on it.

    A person's later change starts it again, and so does another queue of the same name.

    Args:
        person_value: The value from before the first of `writes`.
        writes: The writes by Mendq, oldest first.
        overridden_until: Until when Mendq leaves a person's value alone.
        owes_a_notification: True if a person has rolled the attribute back, and people were not
            notified since that the symptom shows again.
        claim_owner: The invocation that holds a claim on the attribute.
        claim_until: When the claim ends.
        intent: The case that the claim was taken for and that is not recorded yet.
        intent_modified_at: When the queue had been changed before the claim.
        queue_created_at: When the queue was made.
    """

    person_value: str | None = None
    writes: tuple[AttributeWrite, ...] = ()
    overridden_until: datetime | None = None
    owes_a_notification: bool = False
    claim_owner: str | None = None
    claim_until: datetime | None = None
    intent: Case | None = None
    intent_modified_at: datetime | None = None
    queue_created_at: datetime | None = None

    @property
    def last_written(self) -> str | None:
        """The value that Mendq wrote last, None if it wrote none."""
        return self.writes[-1].after if self.writes else None

    def person_value_behind(self, current: str) -> str:
        """Return the value that a person chose last, if the queue has the value `current` now."""
        if self.person_value is not None and current == self.last_written:
            return self.person_value
        return current

    def after_writing(self, before: str, after: str, now: datetime) -> AttributeRecord:
        """Return the record after one more write by Mendq. The claim has ended."""
        recent = tuple(write for write in self.writes if now - write.at < REMEMBERED)
        return AttributeRecord(
            person_value=self.person_value_behind(before),
            writes=(*recent, AttributeWrite(now, before, after)),
            queue_created_at=self.queue_created_at,
        )

    def after_going_back_to(self, value: str) -> AttributeRecord:
        """Return the record after a rollback to `value`: every later write is forgotten."""
        retained = self.writes
        while retained and retained[-1].after != value:
            retained = retained[:-1]
        return AttributeRecord(
            person_value=self.person_value if retained else None,
            writes=retained,
            queue_created_at=self.queue_created_at,
        )

    def restrict_to_queue(self, created_at: datetime | None) -> AttributeRecord:
        """Return the record of the queue that was made then, an empty one if this is another."""
        if self.queue_created_at not in (None, created_at):
            return AttributeRecord(queue_created_at=created_at)
        return structs.replace(self, queue_created_at=created_at)

    def is_held_by_another(self, owner: str, now: datetime) -> bool:
        """Return True if another invocation's claim has not ended."""
        if self.claim_owner in (None, owner) or self.claim_until is None:
            return False
        return now < self.claim_until
