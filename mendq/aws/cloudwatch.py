"""Read CloudWatch metrics of queues, many queues to a call."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError

from mendq.aws.clients import Clients
from mendq.aws.errors import looking
from mendq.model.metrics import (
    LONGEST,
    OPTIONAL,
    PERIOD,
    Measured,
    Points,
    Window,
    measured,
    metrics_of,
)
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


def measure(
    clients: Clients, windows: Mapping[str, Window], optional: Mapping[str, Collection[str]]
) -> dict[str, Measured | None]:
    """What was measured by queue ARN, for at most QUEUES_A_CALL of them.

    `optional` are the kinds of series that only some of them have.

    None where CloudWatch has nothing to say, or not all of it.

    Raises FactsUnavailable.
    """
    asked = {
        arn: metrics_of(
            fifo=on_fifo(arn), duplicates=each.counts_duplicates, optional=optional.get(arn, ())
        )
        for arn, each in windows.items()
    }
    with looking(f"metrics of {', '.join(windows)}"):
        pages = clients.cloudwatch.get_paginator("get_metric_data").paginate(
            StartTime=min(each.since for each in windows.values()),
            EndTime=max(each.until for each in windows.values()),
            MetricDataQueries=[
                query(
                    f"{key}{n}", (namespace, "QueueName", parts_of(arn).name), name, stat, seconds
                )
                for n, arn in enumerate(windows)
                for key, (name, stat, namespace, seconds) in asked[arn].items()
            ],
            ScanBy="TimestampAscending",
        )
        answers = [each for page in pages for each in page["MetricDataResults"]]
    series, found = whole_series(answers), dict[str, Measured | None]()
    for n, (arn, window) in enumerate(windows.items()):
        asked_keys = asked[arn]
        known = {key: series[f"{key}{n}"] for key in asked_keys if f"{key}{n}" in series}
        # Half of what was asked for says nothing: what was not sent would look like a race.
        found[arn] = measured(known, window) if len(known) == len(asked_keys) else None
    return found


def optional_series(clients: Clients, queue_name: str = "") -> Mapping[str, Collection[str]]:
    """The kinds of optional series that CloudWatch lists, by queue name: of one, or of all.

    A listing is billed as no metric. Where it is refused, what SQS counts is measured all the same.
    """
    found: dict[str, set[str]] = defaultdict(set)
    dimension: Any = {"Name": "QueueName"} | ({"Value": queue_name} if queue_name else {})
    with suppress(ClientError, BotoCoreError):
        for kind, series in OPTIONAL.items():
            metric, _, namespace, _ = next(iter(series.values()))
            pages = clients.cloudwatch.get_paginator("list_metrics").paginate(
                Namespace=namespace, MetricName=metric, Dimensions=[dimension]
            )
            for each in (listed for page in pages for listed in page["Metrics"]):
                if len(dimensions := each.get("Dimensions", [])) == 1:
                    found[dimensions[0].get("Value", "")].add(kind)
    return found


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
