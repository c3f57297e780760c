"""How a redrive would go, in the numbers that a person decides by."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import timedelta

from functions.healing.facts import Facts, SourceQueue
from functions.healing.queue_defaults import number_in
from functions.healing.queue_names import parts_of
from functions.healing.redrive_bounds import Bounds
from functions.healing.redrive_grants import key_grants, sentence
from functions.healing.retention_clock import TimeLeft, could_lose, span, takes
from functions.healing.sole_source import SoleSource

SHIPPED = Bounds()


@dataclass(frozen=True)
class Outlook:
    """What is to be expected, from the facts of both queues, the shipped bounds and the soak factor
    of the account."""

    facts: Facts
    queue: SourceQueue
    source: SoleSource
    left: TimeLeft

    @property
    def bounds(self) -> Bounds:
        return replace(SHIPPED, soak_factor=self.source.soak_factor)

    @property
    def soak(self) -> timedelta:
        stands = Facts(self.queue.queue_arn, self.queue.attributes, {})
        attributes = self.queue.attributes
        return self.bounds.soak(
            receives=stands.max_receive_count or 1,
            lease_seconds=number_in(attributes, "VisibilityTimeout"),
            delay_seconds=number_in(attributes, "DelaySeconds"),
        )

    @property
    def lasts(self) -> timedelta | None:
        """None while nobody deletes a message there: then nothing goes back."""
        per_second = SHIPPED.rate_per_second(self.source.deletes_per_second)
        return takes(self.facts.visible, per_second, self.soak, SHIPPED)

    @property
    def could_lose(self) -> bool:
        return could_lose(self.left, self.lasts)

    def sentences(self, *, raised: bool) -> Iterator[str]:
        """Without a full stop."""
        name = parts_of(self.queue.queue_arn).name
        yield (
            f"They go back to {name}, {SHIPPED.canary} first and then {SHIPPED.growth} times "
            f"as many after each soak of {span(self.soak)}; {self._pace()}. It halts when "
            f"{SHIPPED.halt_share:.0%} or {SHIPPED.halt_returned} of them have died again"
        )
        if raised:
            yield "So that none expires on the way, they are kept for 14 days first"
        yield "What goes back is a new message with an id of its own"
        grants = key_grants(
            self.facts.queue_arn, self.facts.attributes, self.queue.queue_arn, self.queue.attributes
        )
        if grants:
            yield sentence(grants, "Mendq's redrive role")

    def _pace(self) -> str:
        deletes, lasts = self.source.deletes_per_second, self.lasts
        if lasts is None:
            return "nothing was deleted there in the last hour, and it waits until something is"
        return (
            f"at {SHIPPED.rate_share:.0%} of what is deleted there ({deletes:,.2f} a second) that "
            f"takes about {span(lasts)}"
        )
