"""The attribute record: Mendq's writes to one attribute of one queue, and the claim on it."""

from __future__ import annotations

from datetime import datetime, timedelta

from msgspec import Struct, structs

from mendq.model.case import Case

# When a write is added, earlier writes that are older than this are dropped. Limits on writes count
# only those of the last day.
WRITE_HISTORY_LIFETIME = timedelta(hours=48)


class AttributeWrite(Struct, frozen=True, array_like=True):
    """One write by Mendq: its time, and the attribute's value before and after it.

    The case store holds it as a JSON list.
    """

    at: datetime
    before: str
    after: str


class AttributeRecord(Struct, frozen=True):
    """Mendq's writes to one attribute of one queue, and the claim on the attribute.

    A record of a deleted queue does not count for a new queue of the same name
    (`restrict_to_queue`).

    Args:
        person_value: The value that a person chose last, as of the newest of `writes`. None if
            Mendq wrote nothing, or if someone has overridden Mendq's value since.
        writes: The writes by Mendq, oldest first.
        overridden_until: When Mendq may change the attribute again after an override or a rollback.
            None if there was none.
        owes_a_notification: True after a rollback, until people were notified that the symptom is
            back.
        claim_owner: The token of the invocation that holds a claim on the attribute.
        claim_until: When the claim ends.
        intent: The transition for which the claim was taken. None after it was recorded.
        intent_modified_at: When the queue was last changed before the claim. The time of the claim
            if SQS did not say.
        queue_created_at: When the queue was created.
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
    def last_written_value(self) -> str | None:
        """The value that Mendq wrote last; None if Mendq wrote no value."""
        return self.writes[-1].after if self.writes else None

    def find_person_value(self, current_value: str) -> str:
        """Return the value that a person chose last.

        `current_value` is the attribute's value now. If Mendq did not write it, a person did.
        """
        if self.person_value is not None and current_value == self.last_written_value:
            return self.person_value
        return current_value

    def add_write(self, before: str, after: str, now: datetime) -> AttributeRecord:
        """Return the record after one more write by Mendq. It has no claim and no override."""
        recent_writes = tuple(
            write for write in self.writes if now - write.at < WRITE_HISTORY_LIFETIME
        )
        return AttributeRecord(
            person_value=self.find_person_value(before),
            writes=(*recent_writes, AttributeWrite(now, before, after)),
            queue_created_at=self.queue_created_at,
        )

    def remove_writes_after(self, last_kept_value: str) -> AttributeRecord:
        """Return the record after a rollback to `last_kept_value`.

        Drop the writes after the last one that wrote this value. If no write wrote it, drop all
        writes: the value is a person's.
        """
        remaining_writes = self.writes
        while remaining_writes and remaining_writes[-1].after != last_kept_value:
            remaining_writes = remaining_writes[:-1]
        return AttributeRecord(
            person_value=self.person_value if remaining_writes else None,
            writes=remaining_writes,
            queue_created_at=self.queue_created_at,
        )

    def restrict_to_queue(self, created_at: datetime | None) -> AttributeRecord:
        """Return the record if its queue was created at `created_at`, else an empty record.

        A record without a creation time counts as a record of this queue.
        """
        if self.queue_created_at not in (None, created_at):
            return AttributeRecord(queue_created_at=created_at)
        return structs.replace(self, queue_created_at=created_at)

    def is_held_by_another(self, owner: str, now: datetime) -> bool:
        """Return True if an invocation other than `owner` holds a claim that has not expired."""
        if self.claim_owner in (None, owner) or self.claim_until is None:
            return False
        return now < self.claim_until
