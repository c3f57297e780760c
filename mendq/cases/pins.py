"""People's decisions about a queue in the case store: pins and approved sources.

- A pin is the queue policy that a person confirmed as the right one with `mendq policy pin`. Mendq
  may restore it.
- Approved sources of a DLQ are the source queues for which a person has approved a plan about this
  DLQ. Later plans for such a source need no person, until the approval is revoked.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.json import decode

from mendq.aws.clients import Clients
from mendq.aws.errors import CaseStoreUnreadable
from mendq.aws.recent_changes import list_changes_since
from mendq.cases import items
from mendq.cases.receivers import Receivers
from mendq.cases.transactions import Table
from mendq.model.facts import Facts, Need
from mendq.model.policy import CheckedPin, Pin, check_pin, find_pin_doubt_without_history
from mendq.model.receiver import find_receiver_objection
from mendq.model.steps import RestorePolicy

if TYPE_CHECKING:
    from mendq.cases.context import StoreContext


# Mendq adds time spans to the times of a pin. Outside these years, that could raise an error.
_POSSIBLE_PIN_YEARS = range(2000, 9000)

# The facts that `add_pins` can add.
NEEDS_FROM_PEOPLE = frozenset({Need.APPROVED_SOURCES, Need.DLQ_NAMESAKE, Need.PIN})


def read_pin(pin_text: str) -> Pin:
    """Return the pin in a JSON text. Raise ValueError if the text is not a valid pin."""
    pin = decode(pin_text, type=Pin)
    for pin_time in (pin.pinned_at, pin.queue_created_at, pin.queue_modified_at):
        if pin_time.tzinfo is None or pin_time.year not in _POSSIBLE_PIN_YEARS:
            raise ValueError("a time of the pin has no time zone or an impossible year")
    return pin


class UnreadablePin(Struct, frozen=True):
    """A stored pin that Mendq cannot read. Mendq never restores a policy from it.

    `item` is the pin's item in the case store. `error_text` is the error that reading it raised.
    """

    queue_arn: str
    item: items.Item
    error_text: str


class Pins(Table, frozen=True):
    """The pins and approved sources in the case store. All methods raise CaseStoreUnavailable."""

    def load(self, queue_arn: str) -> Pin | None:
        """Return the queue's pin, or None if it has none. The pin may be out of date.

        Raises:
            CaseStoreUnreadable: Mendq cannot read the pin.
        """
        pin = self.load_even_if_unreadable(queue_arn)
        if isinstance(pin, UnreadablePin):
            raise CaseStoreUnreadable(f"the pin of {queue_arn}: {pin.error_text}")
        return pin

    def load_even_if_unreadable(self, queue_arn: str) -> Pin | UnreadablePin | None:
        """Return the queue's pin, an UnreadablePin if Mendq cannot read it, or None if it has none.

        The pin may be out of date.
        """
        pin_item = self.get(_pin_key(queue_arn))
        if not pin_item:
            return None
        try:
            int(pin_item["generation"]["N"])
            return read_pin(pin_item["pin"]["S"]) if "pin" in pin_item else None
        except items.DECODE_ERRORS as error:
            return UnreadablePin(queue_arn, pin_item, repr(error))

    def load_last_generation(self, queue_arn: str) -> int:
        """Return the number of the queue's newest pin, even a removed one; 0 if it never had a pin.

        Raises:
            CaseStoreUnreadable: Mendq cannot read the number.
        """
        pin_item = self.get(_pin_key(queue_arn))
        with items.convert_decode_errors(f"the pin of {queue_arn}"):
            return int(pin_item.get("generation", {"N": "0"})["N"])

    def put(self, pin: Pin) -> bool:
        """Store a pin in place of the last one.

        The stored pin's number must be `pin.generation` - 1. If it is not, another pin was stored
        meanwhile: change nothing and return False. Storing the same pin again returns True.
        """
        pin_text = json.dumps(pin.document(), sort_keys=True)
        pin_item = {
            **_pin_key(pin.queue_arn),
            **items.to_item_attributes(pin=pin_text, generation=pin.generation),
        }
        unchanged_condition = "attribute_not_exists(pk) OR generation = :before OR pin = :mine"
        return self.put_item(
            pin_item, unchanged_condition, before=pin.generation - 1, mine=pin_text
        )

    def remove(self, pin: Pin | UnreadablePin) -> bool:
        """Remove a pin. Change nothing and return False if another pin is stored by now.

        The item keeps the pin's number, so that no later pin gets the same number. If the number
        cannot be read, it becomes 0.
        """
        stored_values: dict[str, Any]
        if isinstance(pin, Pin):
            stored_values = items.to_item_attributes(generation=pin.generation)
        else:
            stored_values = {
                attribute_name: pin.item.get(attribute_name)
                for attribute_name in ("pin", "generation")
            }
        generation_text = (stored_values["generation"] or {}).get("N", "")
        generation_attribute = {
            "generation": {"N": generation_text if generation_text.isdecimal() else "0"}
        }
        conditions: list[str] = []
        value_by_placeholder: dict[str, Any] = {}
        for attribute_name, stored_value in stored_values.items():
            if stored_value:
                conditions.append(f"{attribute_name} = :{attribute_name}")
                value_by_placeholder[attribute_name] = stored_value
            else:
                conditions.append(f"attribute_not_exists({attribute_name})")
        pin_item = {**_pin_key(pin.queue_arn), **generation_attribute}
        return self.put_item(pin_item, " AND ".join(conditions), **value_by_placeholder)

    def load_approved_sources(self, dlq_arn: str) -> frozenset[str]:
        """Return the source queues for which a person approved a plan about this DLQ.

        Revoked approvals are left out.
        """
        return frozenset(items.read_texts(self.get(_approved_sources_key(dlq_arn)), "sources"))

    def approve_source(self, dlq_arn: str, source_arn: str) -> None:
        """Store that a person approved a plan about this DLQ for this source queue."""
        self.change(_approved_sources_key(dlq_arn), "ADD sources :one", one=[source_arn])

    def revoke_source(self, dlq_arn: str, source_arn: str) -> bool:
        """Remove the approval for a source queue, so that the next plan needs a person again.

        Return False if there was no approval for it.
        """
        return self.change(
            _approved_sources_key(dlq_arn),
            "DELETE sources :one",
            "contains(sources, :source)",
            one=[source_arn],
            source=source_arn,
        )


def _pin_key(queue_arn: str) -> items.Key:
    return items.item_key(queue_arn, "pin")


def _approved_sources_key(dlq_arn: str) -> items.Key:
    return items.item_key(dlq_arn, "approved")


def add_pins(context: StoreContext, facts: Facts, needs: Collection[Need]) -> Facts:
    """Add the people's decisions that `needs` contains to the facts.

    These are the queue's approved sources, its pin, and the confirmation that Mendq may use an
    existing queue that has the name of a new DLQ.

    Raises:
        CaseStoreUnavailable: The case store does not answer.
    """
    pins = context.open_store(Pins)
    if Need.APPROVED_SOURCES in needs:
        facts = replace(facts, approved_sources=pins.load_approved_sources(facts.queue_arn))
    if Need.DLQ_NAMESAKE in needs:
        facts = _add_dlq_namesake_objection(context, facts)
    if Need.PIN in needs:
        facts = _add_pin(context, pins, facts)
    return facts


def _add_dlq_namesake_objection(context: StoreContext, facts: Facts) -> Facts:
    """Add the objection to using the existing queue that has the name of a new DLQ.

    The objection is empty if the queue may receive messages or does not exist.
    """
    namesake = facts.dlq_namesake
    if namesake is None or not namesake.exists:
        return replace(facts, dlq_namesake_objection="")
    receiver = context.open_store(Receivers).load(namesake.queue_arn)
    if receiver is not None and receiver.is_creation_noted(context.now):
        # A run of Mendq died while it made the queue. The next run that makes the queue checks it.
        return replace(facts, dlq_namesake_objection="")
    objection = find_receiver_objection(receiver, namesake) or ""
    return replace(facts, dlq_namesake_objection=objection)


def _add_pin(context: StoreContext, pins: Pins, facts: Facts) -> Facts:
    """Add the queue's pin to the facts, with the reason if it may not be restored."""
    try:
        pin = pins.load(facts.queue_arn)
    except CaseStoreUnreadable:
        return replace(facts, pin=CheckedPin(None, "its pin cannot be read"))
    if pin is None:
        return facts
    return replace(facts, pin=check_pin_now(pin, context.clients, facts, context.now))


def check_pin_now(pin: Pin, clients: Clients, facts: Facts, now: datetime) -> CheckedPin:
    """Return the pin, with the reason if it may not be restored into the queue now.

    Mendq reads the queue's changes from CloudTrail only if the queue's policy differs from the pin.
    Never raise an error.
    """
    pin_doubt = find_pin_doubt_without_history(pin, facts.queue_arn, facts.created_at, now)
    if pin_doubt is not None:
        return CheckedPin(pin, pin_doubt)
    if RestorePolicy.value_in(facts.attributes) == pin.policy:
        return CheckedPin(pin)
    changes_since_pin = list_changes_since(clients, facts.queue_arn, pin.since)
    return check_pin(pin, changes_since_pin, facts.modified_at, now)
