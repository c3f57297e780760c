"""One (queue, symptom) as the case store holds it, read in one consistent look."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Self

from msgspec import Struct, field, structs

from mendq.model.case import SILENT_DAYS, Case
from mendq.model.evidence import Evidence
from mendq.model.failed_call import RefusedBy
from mendq.model.limits import Mode
from mendq.model.steps import AttributeStep, SetVisibilityTimeout, stays

if TYPE_CHECKING:
    from mendq.model.facts import Facts
    from mendq.notifications.sent import NotificationRecord

WINDOW = timedelta(hours=1)
SLOT = timedelta(minutes=10)
# An item of the case store holds 400 KB; so many queues are a mass symptom in any account.
MOST_QUEUES = 2_000


class Spread(Struct, frozen=True):
    """Notes of (when, queue ARN), `when` to the ten minutes, so that repeats are one note."""

    notes: frozenset[tuple[datetime, str]] = frozenset()

    @classmethod
    def from_texts(cls, texts: Iterable[str]) -> Self:
        """A note that cannot be read is no note: one bad text must not stop an account."""
        notes = set[tuple[datetime, str]]()
        for text in texts:
            slot, _, queue_arn = text.partition(" ")
            with suppress(ValueError):
                if (moment := datetime.fromisoformat(slot)).tzinfo:
                    notes.add((moment, queue_arn))
        return cls(frozenset(notes))

    def queues(self, now: datetime) -> frozenset[str]:
        """Those of the last hour, rounded up to the ten minutes."""
        oldest = _slot_of(now) - WINDOW
        return frozenset(queue_arn for slot, queue_arn in self.notes if slot >= oldest)

    def missing(self, queue_arns: Iterable[str], now: datetime) -> list[str]:
        """The texts to note, as many as there is room for.

        A queue that goes on failing is noted anew every other slot: else the notes of a mass
        symptom that lasts would run out together, and its queues look few.
        """
        slot = _slot_of(now)
        lately = {arn for noted, arn in self.notes if noted >= slot - SLOT}
        room = max(0, MOST_QUEUES - len(self.notes) + len(self.outdated(now)))
        return [f"{slot.isoformat()} {each}" for each in sorted(set(queue_arns) - lately)[:room]]

    def outdated(self, now: datetime) -> list[str]:
        """The texts that mean nothing any more: too old, or noted anew since."""
        oldest = _slot_of(now) - WINDOW
        newest = {arn: slot for slot, arn in sorted(self.notes)}
        return [
            f"{slot.isoformat()} {arn}"
            for slot, arn in self.notes
            if slot < max(oldest, newest[arn])
        ]


def _slot_of(moment: datetime) -> datetime:
    """The ten minutes that a moment lies in."""
    return moment.replace(minute=moment.minute // 10 * 10, second=0, microsecond=0)


class Reach(Struct, frozen=True):
    """The queues that show a symptom now, of how many managed ones; 0: they were not counted.

    `alike` of them, of `managed_alike`, are queues that Mendq may go as far on.
    """

    queue_arns: frozenset[str] = frozenset()
    managed_queues: int = 0
    alike: int = 0
    managed_alike: int = 0

    @classmethod
    def among(
        cls, spread: frozenset[str], managed: Mapping[str, Mode], mode: Mode = Mode.OBSERVE
    ) -> Self:
        """Of the `managed` queues, each in its mode, for one in `mode`.

        What was noted of queues that are gone, or not managed any more, counts for nothing.
        """
        shown = spread & managed.keys()
        alike = {arn for arn, theirs in managed.items() if theirs >= mode}
        return cls(shown, len(managed), len(shown & alike), len(alike))


CHANGES_REMEMBERED = timedelta(days=1)


# Budgets look back a day; the last write is kept however old it is.
REMEMBERED = timedelta(hours=48)


class Write(Struct, frozen=True, array_like=True):
    """One write of ours; the case store holds it as a list."""

    at: datetime
    before: str
    after: str


class AttributeRecord(Struct, frozen=True):
    """What we did to one attribute of one queue.

    `person_value` is what stood there before the first of our `writes`; a person's later change
    starts both anew, and so does another queue of the same name. `owes_a_notification`: a person
    has rolled it back, and nobody was told since that the symptom shows again. `intent` is the case
    that a claim was taken for and not yet recorded, `intent_modified_at` when the queue had been
    changed before.
    """

    person_value: str | None = None
    writes: tuple[Write, ...] = ()
    overridden_until: datetime | None = None
    owes_a_notification: bool = False
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
        if self.person_value is not None and current == self.last_written:
            return self.person_value
        return current

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
        retained = self.writes
        while retained and retained[-1].after != value:
            retained = retained[:-1]
        return AttributeRecord(
            person_value=self.person_value if retained else None,
            writes=retained,
            queue_created_at=self.queue_created_at,
        )

    def of_queue(self, created_at: datetime | None) -> AttributeRecord:
        """The record of the queue that was created then: nothing, if that is another one."""
        if self.queue_created_at not in (None, created_at):
            return AttributeRecord(queue_created_at=created_at)
        return structs.replace(self, queue_created_at=created_at)

    def held_by_another(self, owner: str, now: datetime) -> bool:
        """Whether somebody else's claim still runs."""
        if self.claim_owner in (None, owner) or self.claim_until is None:
            return False
        return now < self.claim_until


class HoldUp(Struct, frozen=True, array_like=True):
    """Why the owner of its write has not taken a case up: what it said last, since when it waits.

    It is the case's own until its next transition.
    """

    since: datetime
    code: str
    reason: str


def with_what_refused(facts: Facts, evidence: Mapping[str, Any]) -> Facts:
    """The facts with who was refused what by which policy, as a case's evidence holds it."""
    return replace(
        facts,
        principals=tuple(evidence["principals"]),
        event_names=tuple(evidence["event_names"]),
        refused_by=frozenset(map(RefusedBy, evidence["refused_by"])),
    )


class CaseStoreView(Struct, frozen=True):
    """Absent things are None or empty: an empty case store is a quiet account.

    `failures` are the newest failed calls since the case's last transition, while it is open;
    `attributes` holds a record for each attribute that was asked for; `spread` is the item that
    says how far the symptom has spread, None where nobody asked.
    """

    frozen: str | None = None
    case: Case | None = None
    hold_up: HoldUp | None = None
    failures: Evidence = field(default_factory=Evidence)
    evidence: Evidence = field(default_factory=Evidence)
    attributes: Mapping[str, AttributeRecord] = field(default_factory=dict)
    page: NotificationRecord | None = None
    spread: Mapping[str, Any] | None = None

    def record_of(self, attribute: str) -> AttributeRecord:
        return self.attributes.get(attribute, AttributeRecord())

    def of_queue(self, created_at: datetime | None) -> CaseStoreView:
        """What is known of the queue that was created then, not of another of the same name."""
        records = {name: each.of_queue(created_at) for name, each in self.attributes.items()}
        return structs.replace(self, attributes=records)

    def with_what_calls_said(self, facts: Facts, evidence: Evidence) -> Facts:
        """The facts with what failed calls say of themselves, and the visibility timeout a person
        chose last.
        """
        visibility, person = SetVisibilityTimeout.attribute, None
        if visibility in self.attributes and visibility in facts.attributes:
            record = self.record_of(visibility).of_queue(facts.created_at)
            person = int(record.person_value_behind(facts.attributes[visibility]))
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
        written = [(each, self.record_of(each.attribute).last_written) for each in steps]
        return tuple(
            step if after is None else replace(step, after=type(step.after)(after))
            for step, after in written
        )

    def overridden(self, case: Case, now: datetime) -> dict[str, AttributeRecord]:
        """The records of an overridden case's attributes: silent for a week, a person's value."""
        until = now + timedelta(days=SILENT_DAYS)
        return self._records(case, overridden_until=until, person_value=None)

    def says_the_silence(self, case: Case) -> dict[str, AttributeRecord]:
        """The records once people know that it shows again since they rolled it back."""
        return self._records(case, owes_a_notification=False)

    def freed(self, intent: Case) -> CaseStoreView:
        """Without the claim that was taken for this case."""
        free = self._records(intent, claim_owner=None, claim_until=None, intent=None)
        return structs.replace(self, attributes={**self.attributes, **free})

    def _records(self, case: Case, **over: Any) -> dict[str, AttributeRecord]:
        names = [step["attribute"] for step in case.steps]
        return {name: structs.replace(self.record_of(name), **over) for name in names}

    def records_after(self, case: Case, created_at: datetime | None) -> dict[str, AttributeRecord]:
        """The records once the steps of a fix, or of a rollback, stand in that queue.

        A queue that was made stays; who has it attached again does not overrule anybody.
        """
        known, records = self.of_queue(created_at), dict[str, AttributeRecord]()
        if case.undoes:
            made = {name: each for name, each in known.attributes.items() if stays(name)}
            records = {name: each.after_going_back_to("") for name, each in made.items()}
        for step in case.steps:
            record = known.record_of(step["attribute"])
            if case.undoes:
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
        """The case of a claim that was taken and not yet recorded."""
        intents = (each.intent for each in self.attributes.values())
        return next((each for each in intents if each is not None), None)

    def held_by_another(self, owner: str, now: datetime) -> bool:
        """Whether somebody else's claim on one of the attributes still runs."""
        return any(each.held_by_another(owner, now) for each in self.attributes.values())


OPEN_CASES = "open_cases"
# The partition key is there while a case is open, and until people were told of its end; in a
# transition until it lies in the case bucket.
PARTITION = "open"
SORT = "due_at"
INCLUDED = ("case_id", "symptom", "state", "opened_at")
EVERY_CASE, UNFILED = "case", "transition"
