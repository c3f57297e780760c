"""Which alarms watch a queue, and what its metrics did in two weeks, by which others are sized."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, TypeVar

from mendq.aws.clients import Clients
from mendq.aws.cloudwatch import query, whole_series
from mendq.aws.errors import looking
from mendq.model.facts import Facts, QueueFacts
from mendq.model.metrics import Points
from mendq.model.queue import parts_of

_Queue = TypeVar("_Queue", bound=QueueFacts)
# By queue name the metrics that some alarm watches.
Alarms = Mapping[str, frozenset[str]]
# In place of a name: an alarm on a query of Metrics Insights may be about any queue.
ANY = "*"
_METRIC_OF_SQS = re.compile(r"\b(?:ApproximateNumberOf|ApproximateAgeOf|NumberOf)[A-Za-z]+")


def queue_alarms(clients: Clients) -> Alarms:
    """What every alarm on a queue's metrics watches; composite ones are made of these.

    Raises FactsUnavailable.
    https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_DescribeAlarms.html
    """
    found = defaultdict[str, set[str]](set)
    with looking("the account's alarms"):
        pages = clients.cloudwatch.get_paginator("describe_alarms").paginate(
            AlarmTypes=["MetricAlarm"]
        )
        for alarm in (each for page in pages for each in page["MetricAlarms"]):
            for queue_name, metric in _watched(alarm):
                found[queue_name].add(metric)
    return {name: frozenset(metrics) for name, metrics in found.items()}


def _watched(alarm: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Queue name and metric, also of what metric math or a band is made of."""
    queries = alarm.get("Metrics", [])
    of_queries = (each.get("MetricStat", {}).get("Metric", {}) for each in queries)
    for metric in (alarm, *of_queries):
        if metric.get("Namespace") == "AWS/SQS":
            for dimension in metric.get("Dimensions", []):
                yield dimension["Value"], metric["MetricName"]
    for expression in (each.get("Expression", "") for each in queries):
        if "AWS/SQS" in expression:
            yield from ((ANY, found) for found in _METRIC_OF_SQS.findall(expression))


def with_alarms(facts: Facts, alarms: Alarms) -> Facts:
    """The facts with what alarms watch of the queue, and of its DLQ where there is one."""
    dlq = facts.dlq if facts.dlq is None or not facts.dlq.exists else _watched_by(facts.dlq, alarms)
    return replace(_watched_by(facts, alarms), dlq=dlq)


def _watched_by(queue: _Queue, alarms: Alarms) -> _Queue:
    none = frozenset[str]()
    return replace(queue, alarmed=alarms.get(queue.name, none) | alarms.get(ANY, none))


# A fortnight at this period is 4,032 datapoints of a metric.
ALARM_PERIOD = timedelta(minutes=5)
FORTNIGHT = timedelta(days=14)


def fortnight(
    clients: Clients, queue_arn: str, metrics: Sequence[str], now: datetime
) -> Mapping[str, Points]:
    """The largest values of the last two weeks by metric; raises FactsUnavailable."""
    if not metrics:
        return {}
    of_queue = ("AWS/SQS", "QueueName", parts_of(queue_arn).name)
    seconds = int(ALARM_PERIOD.total_seconds())
    queries = [query(f"m{n}", of_queue, each, "Maximum", seconds) for n, each in enumerate(metrics)]
    with looking(f"two weeks of {queue_arn}"):
        pages = clients.cloudwatch.get_paginator("get_metric_data").paginate(
            StartTime=now - FORTNIGHT, EndTime=now, MetricDataQueries=queries
        )
        series = whole_series(each for page in pages for each in page["MetricDataResults"])
    return {each: sorted(series.get(f"m{n}", ())) for n, each in enumerate(metrics)}
