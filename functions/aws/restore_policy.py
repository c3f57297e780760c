"""Writes a pinned policy back: the ledger asked anew, AWS's own checks, then compare and set."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from functions.aws.access_analyzer import refusal_to_write
from functions.aws.clients import Clients
from functions.aws.errors import LedgerUnreadable
from functions.aws.pins import Pins
from functions.aws.write_steps import write
from functions.healing.facts import Facts
from functions.healing.pin import Pin, doubt_at_sight
from functions.healing.plan import Refusal
from functions.healing.policy_steps import RestorePolicy
from functions.healing.states import State
from functions.healing.steps import AttributeStep


@dataclass(frozen=True)
class PolicyWriter:
    """The one way in which a policy is ever written."""

    pins: Pins
    now: datetime

    def write(
        self, clients: Clients, seen: Facts, steps: Sequence[AttributeStep]
    ) -> Refusal | None:
        """None when the pinned text stands there; else why not, and then nothing was written.

        Raises as `write_steps.write` does, and LedgerUnavailable.
        """
        pin = self._pin_behind(seen, steps)
        if isinstance(pin, Refusal):
            return pin
        (step,) = steps
        return refusal_to_write(clients, str(step.after), pin.policy) or write(clients, seen, steps)

    def _pin_behind(self, seen: Facts, steps: Sequence[AttributeStep]) -> Pin | Refusal:
        """The pin that the one step restores, as the ledger holds it at this moment."""
        try:
            pin, gathered = self.pins.of(seen.queue_arn), seen.pin
        except LedgerUnreadable:
            return _not_pinned("its pin cannot be read")
        if len(steps) != 1 or not isinstance(steps[0], RestorePolicy):
            return _not_pinned("only a policy is restored, and nothing beside it")
        if pin is None or gathered is None or pin != gathered.pin:
            return _not_pinned("the pin was changed or taken away meanwhile")
        doubt = gathered.doubt or doubt_at_sight(pin, seen.queue_arn, seen.created_at, self.now)
        if doubt:
            return _not_pinned(f"the pin may not be restored: {doubt}")
        if steps[0].after != pin.policy:
            return _not_pinned("what was to be written is not the pinned text")
        return pin


def _not_pinned(reason: str) -> Refusal:
    return Refusal("pin_not_good", reason, becomes=State.ESCALATED)
