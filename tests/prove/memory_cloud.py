"""The account that redrives stand in: its queues hold messages, and consumers delete some."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from tests.prove.memory_account import Asked, Item, MemoryAccount, memory_account
from tests.prove.memory_sqs import MemorySqs


@dataclass
class Cloud(MemoryAccount):
    """The account that one world after another stands in."""

    sqs: MemorySqs = field(default_factory=lambda: MemorySqs(random.Random(0), 0.0))  # noqa: S311
    deletes_per_second: float = 0.0

    def does(self, method: str) -> Callable[[Asked], Item]:
        found: Callable[[Asked], Item] | None = getattr(self.sqs, method, None)
        return found or super().does(method)

    def _get_metric_data(self, asked: Asked) -> Item:
        seconds = (asked["EndTime"] - asked["StartTime"]).total_seconds()
        deleted = {
            "Values": [seconds * self.deletes_per_second],
            "Timestamps": [asked["StartTime"]],
        }
        results = []
        for query in asked["MetricDataQueries"]:
            metric = query["MetricStat"]["Metric"]["MetricName"]
            is_counted = metric == "NumberOfMessagesDeleted"
            series = deleted if is_counted else {"Values": [], "Timestamps": []}
            results.append({"Id": query["Id"], **series})
        return {"MetricDataResults": results}


@contextmanager
def cloud() -> Iterator[Cloud]:
    with memory_account(Cloud) as made:
        yield made
