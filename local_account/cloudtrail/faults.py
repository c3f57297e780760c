"""Faults of delivery on AWS: late, twice, in another order, not at all. Off by default.

https://docs.aws.amazon.com/awscloudtrail/latest/userguide/get-and-view-cloudtrail-log-files.html
"""

from __future__ import annotations

import random
from dataclasses import dataclass


@dataclass(frozen=True)
class DeliveryFaults:
    """Shares are of events, from 0 to 1; the same seed does the same to the same events."""

    delay_seconds: float = 0
    reordered_within_seconds: float = 0
    duplicated_share: float = 0
    lost_share: float = 0
    seed: int = 0

    def deliveries(self, chance: random.Random) -> tuple[float, ...]:
        """After how many seconds one event arrives: each time that it does."""
        # Every chance is taken for every event, so that one setting does not shift the others.
        lost = chance.random() < self.lost_share
        times = 2 if chance.random() < self.duplicated_share else 1
        lags = tuple(
            self.delay_seconds + chance.random() * self.reordered_within_seconds for _ in range(2)
        )
        return () if lost else lags[:times]
