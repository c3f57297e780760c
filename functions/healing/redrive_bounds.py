"""How far a redrive may go at a time, and what stops it; an account cannot widen any of it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from math import ceil

LOWEST_SOAK_FACTOR = 1.2


@dataclass(frozen=True)
class Bounds:
    """The shipped values; only the local account sets others, and says so.

    `halt_returned` and `halt_share` of what was moved: at either, whichever is reached first.
    `least_per_tick`: a queue that little is sent to shows little of what its consumers can do.
    `mover_per_tick`: what is received, sent and deleted within one invocation, ten at a time.
    `patience_seconds`: how long it waits for somebody to handle messages.
    """

    canary: int = 5
    growth: int = 4
    halt_returned: int = 10
    halt_share: float = 0.05
    rate_share: float = 0.1
    least_per_tick: int = 1
    mover_per_tick: int = 1_500
    census: int = 5_000
    soak_factor: float = LOWEST_SOAK_FACTOR
    least_soak_seconds: int = 60
    tick_seconds: int = 60
    stage_seconds: int = 3_600
    patience_seconds: int = 3_600
    measuring_seconds: int = 900
    measuring_first_seconds: int = 3_600

    def halts_at(self, moved: int) -> int:
        """So many that came back stop it, once so many were moved."""
        # 0.05 * 100 is a little more than 5 in floating point.
        share = ceil(round(self.halt_share * moved, 6))
        return min(self.halt_returned, max(1, share))

    def rate_per_second(self, deletes_per_second: float) -> float:
        """How fast messages may go back to a queue whose consumers delete so many."""
        return min(self.rate_share * deletes_per_second, self.mover_per_tick / self.tick_seconds)

    def soak(
        self, *, receives: int, lease_seconds: int, delay_seconds: int, drain_seconds: float = 0
    ) -> timedelta:
        """How long a poison message may take until it is back.

        It waits behind what stood in the queue before it, is received so often, and each time
        held for a whole lease.
        """
        factor = max(self.soak_factor, LOWEST_SOAK_FACTOR)
        seconds = factor * receives * lease_seconds + delay_seconds + drain_seconds
        return timedelta(seconds=max(seconds, self.least_soak_seconds))
