"""What people said of a queue: a pin of its policy, and for which sources a DLQ may be changed."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.json import decode

from mendq.aws.clients import Clients
from mendq.aws.errors import CaseStoreUnreadable
from mendq.aws.recent_changes import list_changes_since
from mendq.cases import items
from mendq.cases.transactions import Table
from mendq.model.facts import Facts, Need
from mendq.model.policy import CheckedPin, Pin, check_pin, doubt_without_history
from mendq.model.steps import RestorePolicy

if TYPE_CHECKING:
    from mendq.cases.context import StoreContext


# Times of others are nobody's, and times are added to them.
_YEARS = range(2000, 9000)

# What `with_pins` answers.
OF_PEOPLE = frozenset({Need.APPROVED_SOURCES, Need.PIN})


def read_pin(text: str) -> Pin:
    """Raise ValueError where the text is none of ours."""
    pin = decode(text, type=Pin)
    for at in (pin.pinned_at, pin.queue_created_at, pin.queue_modified_at):
        if at.tzinfo is None or at.year not in _YEARS:
            raise ValueError("no moment of which it is known when it was")
    return pin


class UnreadablePin(Struct, frozen=True):
    """What stands where a queue's pin would, and is none of ours; nothing is put back by it."""

    queue_arn: str
    item: items.Item
    why: str


class Pins(Table, frozen=True):
    """All methods raise CaseStoreUnavailable."""

    def of(self, queue_arn: str) -> Pin | None:
        """The queue's pin, good or not. Raises CaseStoreUnreadable for one that is none of ours."""
        found = self.look(queue_arn)
        if isinstance(found, UnreadablePin):
            raise CaseStoreUnreadable(f"the pin of {queue_arn}: {found.why}")
        return found

    def look(self, queue_arn: str) -> Pin | UnreadablePin | None:
        """The same, for whoever can do something about one that is none of ours."""
        item = self.get(_key(queue_arn))
        if not item:
            return None
        try:
            int(item["generation"]["N"])
            return read_pin(item["pin"]["S"]) if "pin" in item else None
        except items.DECODE_ERRORS as error:
            return UnreadablePin(queue_arn, item, repr(error))

    def last_generation(self, queue_arn: str) -> int:
        """The number of the newest pin, also of one that was taken away; 0 where there was none.

        Raises CaseStoreUnreadable.
        """
        item = self.get(_key(queue_arn))
        with items.reading(f"the pin of {queue_arn}"):
            return int(item.get("generation", {"N": "0"})["N"])

    def put(self, pin: Pin) -> bool:
        """Keep it in place of the one before; False where another was pinned meanwhile."""
        text = json.dumps(pin.document(), sort_keys=True)
        item = {**_key(pin.queue_arn), **items.fields(pin=text, generation=pin.generation)}
        unmoved = "attribute_not_exists(pk) OR generation = :before OR pin = :mine"
        return self.put_item(item, unmoved, before=pin.generation - 1, mine=text)

    def remove(self, found: Pin | UnreadablePin) -> bool:
        """Take it away; False where something else stands there by now.

        Its number stays taken where it can be read, and else is lost with it.
        """
        if isinstance(found, Pin):
            stood = items.fields(generation=found.generation)
        else:
            stood = {name: found.item.get(name) for name in ("pin", "generation")}
        number = (stood["generation"] or {}).get("N", "")
        retained = {"generation": {"N": number if number.isdecimal() else "0"}}
        unchanged = " AND ".join(
            f"{name} = :{name}" if there else f"attribute_not_exists({name})"
            for name, there in stood.items()
        )
        values = {name: there for name, there in stood.items() if there}
        return self.put_item({**_key(found.queue_arn), **retained}, unchanged, **values)

    def approved_sources(self, dlq_arn: str) -> frozenset[str]:
        """The sources that a person has once approved a plan about this DLQ for."""
        return frozenset(items.texts_in(self.get(_approved_key(dlq_arn)), "sources"))

    def approve_source(self, dlq_arn: str, source_arn: str) -> None:
        self.change(_approved_key(dlq_arn), "ADD sources :one", one=[source_arn])

    def revoke_source(self, dlq_arn: str, source_arn: str) -> bool:
        """Ask again from now on; False where nothing was approved for it."""
        update, known = "DELETE sources :one", "contains(sources, :source)"
        key = _approved_key(dlq_arn)
        return self.change(key, update, known, one=[source_arn], source=source_arn)


def _key(queue_arn: str) -> items.Key:
    return items.key(queue_arn, "pin")


def _approved_key(dlq_arn: str) -> items.Key:
    return items.key(dlq_arn, "approved")


def with_pins(context: StoreContext, facts: Facts, needs: Collection[Need]) -> Facts:
    """The facts with what people said of the queue, where `needs` names it.

    Raises CaseStoreUnavailable.
    """
    pins = context.stored(Pins)
    if Need.APPROVED_SOURCES in needs:
        facts = replace(facts, approved_sources=pins.approved_sources(facts.queue_arn))
    return _with_pin(context, pins, facts) if Need.PIN in needs else facts


def _with_pin(context: StoreContext, pins: Pins, facts: Facts) -> Facts:
    try:
        pin = pins.of(facts.queue_arn)
    except CaseStoreUnreadable:
        return replace(facts, pin=CheckedPin(None, "its pin cannot be read"))
    if pin is None:
        return facts
    return replace(facts, pin=look_at(pin, context.clients, facts, context.now))


def look_at(pin: Pin, clients: Clients, facts: Facts, now: datetime) -> CheckedPin:
    """Whether it may be restored into the queue as it is. Never raises."""
    doubt = doubt_without_history(pin, facts.queue_arn, facts.created_at, now)
    if doubt is not None:
        return CheckedPin(pin, doubt)
    if RestorePolicy.value_in(facts.attributes) == pin.policy:
        return CheckedPin(pin)
    return check_pin(
        pin, list_changes_since(clients, facts.queue_arn, pin.since), facts.modified_at, now
    )
