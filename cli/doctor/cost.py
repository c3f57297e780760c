"""What it would cost to see a queue's calls, from what it was called in the last week.

https://aws.amazon.com/cloudtrail/pricing/
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice
from typing import Any

from functions.aws.clients import Clients
from functions.healing.queue_names import parts_of

PRICE_PER_CALL = 0.10 / 100_000
PRICED = "data events at $0.10 per 100,000 as of November 2026, other regions may differ"
WEEK = timedelta(days=7)
MOST_QUEUES = 100
_DAY_SECONDS = 86_400
_QUERIES_PER_CALL = 500
# A message is at most one call to send, one to receive, one to delete; a batch is fewer.
_METRICS = {
    "NumberOfMessagesSent": frozenset({"SendMessage", "SendMessageBatch"}),
    "NumberOfMessagesReceived": frozenset({"ReceiveMessage"}),
    "NumberOfMessagesDeleted": frozenset({"DeleteMessage", "DeleteMessageBatch"}),
    "NumberOfEmptyReceives": frozenset({"ReceiveMessage"}),
}
_COUNTED = frozenset().union(*_METRICS.values())


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
        if self.calls_per_week is None:
            return None
        return round(self.calls_per_week * 30 / 7 * PRICE_PER_CALL, 2)

    def document(self) -> dict[str, Any]:
        return {
            "queue_arn": self.queue_arn,
            "calls_per_week": self.calls_per_week,
            "dollars_per_month": self.dollars_per_month,
            "uncounted": list(self.uncounted),
        }


def costs(clients: Clients, calls: Mapping[str, frozenset[str]], now: datetime) -> list[Cost]:
    """Of logging these calls too, by queue.

    Of the first `MOST_QUEUES` of them: GetMetricData is billed by the metric.
    """
    asked = list(islice(calls, MOST_QUEUES))
    queries = {
        f"m{number}_{index}": (arn, metric)
        for number, arn in enumerate(asked)
        for index, (metric, counted) in enumerate(_METRICS.items())
        if counted & calls[arn]
    }
    sums: dict[str, float] = {}
    names = list(queries)
    for start in range(0, len(names), _QUERIES_PER_CALL):
        part = {name: queries[name] for name in names[start : start + _QUERIES_PER_CALL]}
        for query, value in _sums(clients, part, now).items():
            arn = queries[query][0]
            sums[arn] = sums.get(arn, 0.0) + value
    return [
        Cost(
            arn,
            round(sums[arn]) if arn in sums else None,
            tuple(sorted(calls[arn] - _COUNTED)),
        )
        for arn in asked
    ]


def _sums(clients: Clients, queries: dict[str, tuple[str, str]], now: datetime) -> dict[str, float]:
    pages = clients.cloudwatch.get_paginator("get_metric_data").paginate(
        StartTime=now - WEEK,
        EndTime=now,
        MetricDataQueries=[
            {
                "Id": query,
                "MetricStat": {
                    "Metric": {
                        "Namespace": "AWS/SQS",
                        "MetricName": metric,
                        "Dimensions": [{"Name": "QueueName", "Value": parts_of(arn).name}],
                    },
                    "Period": _DAY_SECONDS,
                    "Stat": "Sum",
                },
            }
            for query, (arn, metric) in queries.items()
        ],
    )
    found: dict[str, float] = {}
    for page in pages:
        for each in page["MetricDataResults"]:
            if each.get("Values"):
                found[each["Id"]] = found.get(each["Id"], 0.0) + sum(each["Values"])
    return found
