"""Read CloudWatch metrics of queues, many queues to a call."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from mendq.aws.clients import Clients
from mendq.aws.errors import looking
from mendq.model.metrics import LONGEST, PERIOD, Measured, Points, Window, measured, metrics_of
from mendq.model.queue import on_fifo, parts_of

if TYPE_CHECKING:
    from mypy_boto3_cloudwatch.type_defs import MetricDataQueryTypeDef, MetricDataResultTypeDef


# A call answers at most 100,800 datapoints; a third of that comes within a client's patience.
MOST_DATAPOINTS = 33_600
QUEUES_A_CALL = MOST_DATAPOINTS // (LONGEST // PERIOD * len(metrics_of(fifo=True)))
# SQS sends one datapoint a minute: longer periods would blur both ends of a backlog.
_A_MINUTE = 60
_WHOLE = "Complete"
_MORE_FOLLOWS = "PartialData"


def measure(clients: Clients, windows: Mapping[str, Window]) -> dict[str, Measured | None]:
    """What was measured by queue ARN, for at most QUEUES_A_CALL of them.

    None where CloudWatch has nothing to say, or not all of it.

    Raises FactsUnavailable.
    """
    with looking(f"metrics of {', '.join(windows)}"):
        pages = clients.cloudwatch.get_paginator("get_metric_data").paginate(
            StartTime=min(each.since for each in windows.values()),
            EndTime=max(each.until for each in windows.values()),
            MetricDataQueries=[
                query(f"{key}{n}", ("AWS/SQS", "QueueName", parts_of(arn).name), *asked, _A_MINUTE)
                for n, (arn, window) in enumerate(windows.items())
                for key, asked in _metrics_of(arn, window).items()
            ],
            ScanBy="TimestampAscending",
        )
        answers = [each for page in pages for each in page["MetricDataResults"]]
    series, found = whole_series(answers), dict[str, Measured | None]()
    for n, (arn, window) in enumerate(windows.items()):
        asked_keys = _metrics_of(arn, window)
        known = {key: series[f"{key}{n}"] for key in asked_keys if f"{key}{n}" in series}
        # Half of what was asked for says nothing: what was not sent would look like a race.
        found[arn] = measured(known, window) if len(known) == len(asked_keys) else None
    return found


def _metrics_of(queue_arn: str, window: Window) -> Mapping[str, tuple[str, str]]:
    return metrics_of(fifo=on_fifo(queue_arn), duplicates=window.counts_duplicates)


def whole_series(answers: Iterable[MetricDataResultTypeDef]) -> dict[str, Points]:
    """The values by what was asked, once the last page says that there is no more.

    Before that a series is PartialData; an error on any page leaves a hole.
    """
    points: dict[str, list[tuple[datetime, float]]] = defaultdict(list)
    said: dict[str, list[str]] = defaultdict(list)
    for each in answers:
        said[each["Id"]].append(each.get("StatusCode", _WHOLE))
        pairs = zip(each.get("Timestamps", []), each.get("Values", []), strict=False)
        points[each["Id"]].extend(pairs)
    return {
        asked_id: points[asked_id]
        for asked_id, codes in said.items()
        if codes[-1] == _WHOLE and set(codes) <= {_WHOLE, _MORE_FOLLOWS}
    }


def query(
    asked_id: str, of: tuple[str, str, str], metric: str, statistic: str, period_seconds: int
) -> MetricDataQueryTypeDef:
    """A query for GetMetricData; `of` is a namespace, its dimension's name and the value."""
    namespace, name, value = of
    dimensions = [{"Name": name, "Value": value}]
    asked: Any = {"Namespace": namespace, "MetricName": metric, "Dimensions": dimensions}
    stat: Any = {"Metric": asked, "Period": period_seconds, "Stat": statistic}
    return {"Id": asked_id, "MetricStat": stat}


def messages_deleted(clients: Clients, queue_arn: str, since: datetime, until: datetime) -> int:
    """NumberOfMessagesDeleted between the two; raises FactsUnavailable.

    CloudWatch keeps datapoints of a minute for 15 days, and gives 100,800 of them at once.
    """
    if until <= since:
        return 0
    of_queue = ("AWS/SQS", "QueueName", parts_of(queue_arn).name)
    asked = query("deleted", of_queue, "NumberOfMessagesDeleted", "Sum", _A_MINUTE)
    with looking(f"messages deleted from {queue_arn}"):
        answer = clients.cloudwatch.get_metric_data(
            StartTime=since, EndTime=until, MetricDataQueries=[asked]
        )
    return int(sum(value for each in answer["MetricDataResults"] for value in each["Values"]))
