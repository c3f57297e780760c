"""What measuring costs: GetMetricData is billed by the metric, however many calls carry it."""

from __future__ import annotations

from dataclasses import dataclass

from mendq.model.prices import METRIC_ASKED

PRICED = METRIC_ASKED.noted
ROUNDS_A_MONTH = 24 * 30


@dataclass
class Purse:
    """`most` metrics may be asked for, `spent` of them were; None: as many as it takes."""

    most: int | None = None
    spent: int = 0

    def take(self, metrics: int) -> bool:
        """Pay for so many, or for none of them where they are more than are left."""
        if self.most is not None and self.spent + metrics > self.most:
            return False
        self.spent += metrics
        return True


def dollars(metrics: int) -> float:
    """Of one scan."""
    return METRIC_ASKED.of(metrics)


def dollars_per_month(metrics: int) -> float:
    """Of a scan an hour that asks for as many each time."""
    return round(dollars(metrics) * ROUNDS_A_MONTH, 2)
