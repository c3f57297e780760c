"""How often queues are called, by what SQS counts in CloudWatch in a week.

https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-available-cloudwatch-metrics.html
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from functions.aws.clients import Clients
from functions.healing.queue_names import parts_of
from infra.prices import DATA_EVENT

WEEK = timedelta(days=7)
_DAY_SECONDS = 86_400
_QUERIES_PER_CALL = 500
EMPTY_RECEIVES = "NumberOfEmptyReceives"
# A message is at most one call to send, one to receive, one to delete; a batch is fewer.
METRICS: Mapping[str, frozenset[str]] = {
    "NumberOfMessagesSent": frozenset({"SendMessage", "SendMessageBatch"}),
    "NumberOfMessagesReceived": frozenset({"ReceiveMessage"}),
    "NumberOfMessagesDeleted": frozenset({"DeleteMessage", "DeleteMessageBatch"}),
    EMPTY_RECEIVES: frozenset({"ReceiveMessage"}),
}
COUNTED = frozenset().union(*METRICS.values())


@dataclass(frozen=True)
class Calls:
    """A queue's week by metric; what is not there was not counted, which is not none."""

    queue_arn: str
    of_the_week: Mapping[str, int] = field(default_factory=dict)

    def a_week(self, event_names: Iterable[str]) -> int | None:
        """Of these calls, an upper bound where they are batches; None: no metric of any."""
        asked = frozenset(event_names)
        found = [value for metric, value in self.of_the_week.items() if METRICS[metric] & asked]
        return sum(found) if found else None

    def dollars_a_month(self, event_names: Iterable[str]) -> float | None:
        """Of one trail that logs them."""
        calls = self.a_week(event_names)
        return None if calls is None else DATA_EVENT.of(a_month(calls))

    @property
    def empty_share(self) -> float | None:
        """Of all receives, how many found nothing."""
        every = self.a_week({"ReceiveMessage"})
        return self.of_the_week.get(EMPTY_RECEIVES, 0) / every if every else None

    def document(self) -> dict[str, Any]:
        """By call what a month of logging it costs; a batch is counted as its messages."""
        by_metric = {metric: round(a_month(each)) for metric, each in self.of_the_week.items()}
        calls = {
            name: self.dollars_a_month({name})
            for name in ("SendMessage", "ReceiveMessage", "DeleteMessage")
        }
        share = self.empty_share
        return {
            "queue_arn": self.queue_arn,
            "a_month": by_metric,
            "dollars_per_month": {
                name: None if each is None else round(each, 4) for name, each in calls.items()
            },
            "empty_share_of_receives": None if share is None else round(share, 4),
        }


def a_month(calls_per_week: float) -> float:
    return calls_per_week * 30 / 7


def metrics_of(event_names: Iterable[str]) -> list[str]:
    """What has to be asked for to count these calls."""
    asked = frozenset(event_names)
    return [metric for metric, counted in METRICS.items() if counted & asked]


def counted(
    clients: Clients, wanted: Mapping[str, frozenset[str]], now: datetime
) -> dict[str, Calls]:
    """The wanted calls of each queue; GetMetricData is billed by the metric. Raises ClientError."""
    queries = {
        f"m{number}_{index}": (arn, metric)
        for number, (arn, event_names) in enumerate(wanted.items())
        for index, metric in enumerate(metrics_of(event_names))
    }
    found: dict[str, dict[str, int]] = {arn: {} for arn in wanted}
    names = list(queries)
    for start in range(0, len(names), _QUERIES_PER_CALL):
        part = {name: queries[name] for name in names[start : start + _QUERIES_PER_CALL]}
        for query, value in _sums(clients, part, now).items():
            arn, metric = queries[query]
            found[arn][metric] = round(value)
    return {arn: Calls(arn, week) for arn, week in found.items()}


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
