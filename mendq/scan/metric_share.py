"""Divide the metrics that a scan may read among its suspects.

If there are more suspects than metrics, the worst come first. But no kind of suspect may use up all
metrics: otherwise anyone who creates many queues that name a full DLQ, or that have a disabled
mapping, keeps every other fault from being measured. So each urgency has a share, and the next
urgency gets what is left of it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from math import inf

from msgspec import Struct

from mendq.model.traffic import Urgency

_WEIGHT_BY_URGENCY = {
    Urgency.MESSAGES_LEAVE: 4,
    Urgency.MESSAGES_COME_BACK: 3,
    Urgency.MESSAGES_STAY: 2,
    Urgency.MESSAGES_WAIT: 1,
}


class MetricShare(Struct):
    """A number of metrics that may still be read, as a part of what the allowance permits.

    Attributes:
        may_measure: Counts metrics as read and returns True, if the allowance permits.
        left: The metrics that are left of this share.
    """

    may_measure: Callable[[int], bool]
    left: float = inf

    def spend(self, metric_count: int) -> bool:
        """Count the metrics as read and return True, if the share and the allowance permit it."""
        return metric_count <= self.left and self.spend_beyond_share(metric_count)

    def spend_beyond_share(self, metric_count: int) -> bool:
        """Spend metrics that a measured queue needs, even if the share is too small.

        Return False, and spend nothing, if the scan's budget refuses them.
        """
        if not self.may_measure(metric_count):
            return False
        self.left -= metric_count
        return True


def divide_by_urgency(metrics_left: float, urgencies: Collection[Urgency]) -> dict[Urgency, float]:
    """Return the share of each urgency that has suspects, the worst first.

    The shares add up to `metrics_left`.
    """
    present_urgencies = sorted(set(urgencies))
    weight_sum = sum(_WEIGHT_BY_URGENCY[urgency] for urgency in present_urgencies)
    return {
        urgency: metrics_left * _WEIGHT_BY_URGENCY[urgency] / weight_sum
        for urgency in present_urgencies
    }
