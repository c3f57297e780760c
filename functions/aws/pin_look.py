"""Looks at a queue's pin and at who changed the queue; asks CloudTrail only where it must."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from functions.aws.clients import Clients
from functions.aws.desk import Desk
from functions.aws.errors import LedgerUnreadable
from functions.aws.pins import Pins
from functions.aws.queue_changes import changes_since
from functions.healing.facts import Facts
from functions.healing.pin import Pin, Pinned, doubt_at_sight, judged
from functions.healing.policy_steps import RestorePolicy


def with_pin(desk: Desk, facts: Facts) -> Facts:
    """The facts with the pin, if the queue has one. Raises LedgerUnavailable."""
    try:
        pin = Pins(desk.clients.dynamodb, desk.settings.ledger_table).of(facts.queue_arn)
    except LedgerUnreadable:
        return replace(facts, pin=Pinned(None, "its pin cannot be read"))
    return facts if pin is None else replace(facts, pin=look_at(pin, desk.clients, facts, desk.now))


def look_at(pin: Pin, clients: Clients, facts: Facts, now: datetime) -> Pinned:
    """Whether it may be restored into the queue as it is. Never raises."""
    doubt = doubt_at_sight(pin, facts.queue_arn, facts.created_at, now)
    if doubt is not None:
        return Pinned(pin, doubt)
    if RestorePolicy.standing_in(facts.attributes) == pin.policy:
        return Pinned(pin)
    return judged(pin, changes_since(clients, facts.queue_arn, pin.since), facts.modified_at, now)
