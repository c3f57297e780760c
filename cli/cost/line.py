"""A line of a bill, at list price and beyond what AWS gives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from infra.prices import Price


@dataclass(frozen=True)
class Line:
    """What is billed of one thing, in a month where it is the stack's.

    `because` says what is counted or assumed; `billed` are units of prices.
    """

    what: str
    quantity: str
    because: str
    billed: tuple[tuple[Price, float], ...] = ()

    @property
    def dollars(self) -> float:
        """At list price."""
        return sum(price.of(units) for price, units in self.billed)

    @property
    def beyond(self) -> float:
        """Where nothing else on the payer's bill uses up what AWS gives."""
        return sum(price.beyond(units) for price, units in self.billed)

    def document(self) -> dict[str, Any]:
        return {
            "what": self.what,
            "quantity": self.quantity,
            "dollars": round(self.dollars, 4),
            "dollars_beyond_what_is_given": round(self.beyond, 4),
            "because": self.because,
        }
