"""Looks at a queue's pin and at who changed the queue since; asks CloudTrail only where it must."""

from __future__ import annotations

from dataclasses import replace

from functions.aws.desk import Desk
from functions.aws.pins import Pins
from functions.aws.queue_changes import changes_since
from functions.healing.facts import Facts
from functions.healing.pin import Pinned, doubt_at_sight, judged
from functions.healing.policy_steps import RestorePolicy


def with_pin(desk: Desk, facts: Facts) -> Facts:
    """The facts with the pin, if the queue has one. Raises the ledger's errors."""
    return replace(facts, pin=_pinned(desk, facts))


def _pinned(desk: Desk, facts: Facts) -> Pinned | None:
    pin = Pins(desk.clients.dynamodb, desk.settings.ledger_table).of(facts.queue_arn)
    if pin is None:
        return None
    doubt = doubt_at_sight(pin, facts.queue_arn, facts.created_at, desk.now)
    if doubt is not None:
        return Pinned(pin, doubt)
    if RestorePolicy.standing_in(facts.attributes) == pin.policy:
        return Pinned(pin)
    changes = changes_since(desk.clients, facts.queue_arn, pin.since)
    return judged(pin, changes, facts.modified_at, desk.now)
