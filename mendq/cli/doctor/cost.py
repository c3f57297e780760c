"""What it would cost to see a queue's calls, from what it was called in the last week."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from itertools import islice
from typing import Any

from mendq.aws.clients import Clients
from mendq.cli.cost.calls import COUNTED, a_month, counted, rounded
from mendq.model.prices import DATA_EVENT

PRICED = DATA_EVENT.noted
MOST_QUEUES = 100


@dataclass(frozen=True)
class Cost:
    """`calls_per_week` is an upper bound where calls are batches; None: no metric at all.

    `uncounted` are calls that would be logged as well, and of which there is no metric.
    """

    queue_arn: str
    calls_per_week: int | None
    uncounted: tuple[str, ...] = ()

    @property
    def dollars_per_month(self) -> float | None:
        calls = self.calls_per_week
        return rounded(None if calls is None else DATA_EVENT.of(a_month(calls)))

    def document(self) -> dict[str, Any]:
        return {**asdict(self), "dollars_per_month": self.dollars_per_month}


def costs(clients: Clients, calls: Mapping[str, frozenset[str]], now: datetime) -> list[Cost]:
    """Of logging these calls too, by queue; of the first `MOST_QUEUES` of them."""
    asked = {arn: calls[arn] for arn in islice(calls, MOST_QUEUES)}
    return [
        Cost(arn, each.a_week(asked[arn]), tuple(sorted(asked[arn] - COUNTED)))
        for arn, each in counted(clients, asked, now).items()
    ]
