"""Read CloudWatch of queues: their metrics, many queues to a call, and the alarms on them."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from math import isfinite
from typing import TYPE_CHECKING, Any, TypeVar

from botocore.exceptions import BotoCoreError, ClientError

from mendq.aws.clients import Clients
from mendq.aws.errors import translate_aws_errors
from mendq.model.facts import Facts, QueueFacts
from mendq.model.metrics import (
    LISTED_KINDS,
    LONGEST,
    METRICS_BY_KIND,
    PERIOD,
    Measurement,
    Points,
    Window,
    series_of,
    summarize_series,
)
from mendq.model.queue import parts_of

if TYPE_CHECKING:
    from mypy_boto3_cloudwatch.type_defs import MetricDataQueryTypeDef, MetricDataResultTypeDef


# A call answers at most 100,800 datapoints; a third of that comes within a client's patience.
MOST_DATAPOINTS = 33_600
_MOST_SERIES = len(series_of(("every queue", "FIFO", "receives")))
QUEUES_A_CALL = MOST_DATAPOINTS // (LONGEST // PERIOD * _MOST_SERIES)
_WHOLE = "Complete"
_MORE_FOLLOWS = "PartialData"


def measure(clients: Clients, windows: Mapping[str, Window]) -> dict[str, Measurement | None]:
    """What was measured by queue ARN, for at most QUEUES_A_CALL of them.

    None where CloudWatch has nothing to say, or not all of it.

    Raises FactsUnavailable.
    """
    queries = [
        build_query(
            f"{key}{n}", (namespace, "QueueName", parts_of(arn).name), name, statistic, seconds
        )
        for n, (arn, window) in enumerate(windows.items())
        for key, (name, statistic, namespace, seconds) in window.series.items()
    ]
    since = min(each.since for each in windows.values())
    until = max(each.until for each in windows.values())
    answered = read_series(clients, queries, since, until, of=", ".join(windows))
    found = dict[str, Measurement | None]()
    for n, (arn, window) in enumerate(windows.items()):
        known = {key: answered[f"{key}{n}"] for key in window.series if f"{key}{n}" in answered}
        # Half of what was asked for says nothing: what was not sent would look like a race.
        found[arn] = summarize_series(known, window) if len(known) == len(window.series) else None
    return found


def messages_deleted(clients: Clients, queue_arn: str, since: datetime, until: datetime) -> int:
    """NumberOfMessagesDeleted between the two; raises FactsUnavailable.

    CloudWatch keeps datapoints of a minute for 15 days.
    """
    if until <= since:
        return 0
    asked = build_query("deleted", queue_dimension(queue_arn), "NumberOfMessagesDeleted", "Sum", 60)
    series = read_series(clients, [asked], since, until, of=queue_arn)
    return int(sum(value for _, value in finite_points(series.get("deleted", ()))))


# A fortnight at this period is 4,032 datapoints of a metric.
ALARM_PERIOD = timedelta(minutes=5)
FORTNIGHT = timedelta(days=14)


def read_two_weeks(
    clients: Clients, queue_arn: str, metrics: Sequence[str], now: datetime
) -> Mapping[str, Points]:
    """The largest values of the last two weeks by metric; raises FactsUnavailable."""
    if not metrics:
        return {}
    about, seconds = queue_dimension(queue_arn), int(ALARM_PERIOD.total_seconds())
    queries = [
        build_query(f"m{n}", about, each, "Maximum", seconds) for n, each in enumerate(metrics)
    ]
    series = read_series(clients, queries, now - FORTNIGHT, now, of=queue_arn)
    return {each: sorted(finite_points(series.get(f"m{n}", ()))) for n, each in enumerate(metrics)}


def finite_points(points: Points) -> Points:
    """Return the points without NaN and Infinity; AWS's own metrics have neither."""
    return [point for point in points if isfinite(point[1])]


def queue_dimension(queue_arn: str) -> tuple[str, str, str]:
    """What `build_query` asks about a queue."""
    return ("AWS/SQS", "QueueName", parts_of(queue_arn).name)


def build_query(
    asked_id: str, of: tuple[str, str, str], metric: str, statistic: str, period_seconds: int
) -> MetricDataQueryTypeDef:
    """A query for GetMetricData; `of` is a namespace, its dimension's name and the value."""
    namespace, name, value = of
    dimensions = [{"Name": name, "Value": value}]
    asked: Any = {"Namespace": namespace, "MetricName": metric, "Dimensions": dimensions}
    stat: Any = {"Metric": asked, "Period": period_seconds, "Stat": statistic}
    return {"Id": asked_id, "MetricStat": stat}


def read_series(
    clients: Clients,
    queries: Sequence[MetricDataQueryTypeDef],
    since: datetime,
    until: datetime,
    *,
    of: str,
) -> dict[str, Points]:
    """The values by what was asked, oldest first, of what was answered whole; `of` says whose.

    Raises FactsUnavailable.
    """
    with translate_aws_errors(f"metrics of {of}"):
        pages = clients.cloudwatch.get_paginator("get_metric_data").paginate(
            StartTime=since, EndTime=until, MetricDataQueries=queries, ScanBy="TimestampAscending"
        )
        return _whole_series(each for page in pages for each in page["MetricDataResults"])


def _whole_series(answers: Iterable[MetricDataResultTypeDef]) -> dict[str, Points]:
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


# CloudWatch lists 500 a call, so that this takes it a hundred.
MOST_LISTED = 50_000


def listed_kinds(clients: Clients, queue_name: str = "") -> Mapping[str, Sequence[str]]:
    """The kinds of series that CloudWatch lists, by queue name: of one, or of all.

    A listing is billed as no metric. Where it is refused, what SQS counts is measured all the same.
    Whoever may put metrics may put any number of them: MOST_LISTED are read of each kind.
    """
    found = defaultdict[str, list[str]](list)
    dimension: Any = {"Name": "QueueName"} | ({"Value": queue_name} if queue_name else {})
    with suppress(ClientError, BotoCoreError):
        for kind in LISTED_KINDS:
            first = next(iter(METRICS_BY_KIND[kind].values()))
            pages = clients.cloudwatch.get_paginator("list_metrics").paginate(
                Namespace=first.namespace,
                MetricName=first.metric,
                Dimensions=[dimension],
                PaginationConfig={"MaxItems": MOST_LISTED},
            )
            for each in (listed for page in pages for listed in page["Metrics"]):
                if len(dimensions := each.get("Dimensions", [])) == 1:
                    found[dimensions[0].get("Value", "")].append(kind)
    return found


_Queue = TypeVar("_Queue", bound=QueueFacts)
# By queue name the metrics that some alarm watches.
Alarms = Mapping[str, frozenset[str]]
# In place of a name: an alarm on a query of Metrics Insights may be about any queue.
ANY = "*"
_METRIC_OF_SQS = re.compile(r"\b(?:ApproximateNumberOf|ApproximateAgeOf|NumberOf)[A-Za-z]+")


def _alarms(clients: Clients, **asked: Any) -> Iterator[Mapping[str, Any]]:
    with translate_aws_errors("the account's alarms"):
        for page in clients.cloudwatch.get_paginator("describe_alarms").paginate(**asked):
            yield from page["MetricAlarms"]


def queue_alarms(clients: Clients) -> Alarms:
    """What every alarm on a queue's metrics watches; composite ones are made of these.

    Raises FactsUnavailable.
    https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_DescribeAlarms.html
    """
    found = defaultdict[str, frozenset[str]](frozenset)
    for alarm in _alarms(clients, AlarmTypes=["MetricAlarm"]):
        for queue_name, metric in _list_watched_metrics(alarm):
            found[queue_name] |= {metric}
    return found


def alarm_names(clients: Clients, prefix: str) -> frozenset[str]:
    """The names of all alarms that begin so; raises FactsUnavailable."""
    return frozenset(each["AlarmName"] for each in _alarms(clients, AlarmNamePrefix=prefix))


def _list_watched_metrics(alarm: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
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
    dlq = (
        facts.dlq
        if facts.dlq is None or not facts.dlq.exists
        else _add_alarmed_metrics(facts.dlq, alarms)
    )
    return replace(_add_alarmed_metrics(facts, alarms), dlq=dlq)


def _add_alarmed_metrics(queue: _Queue, alarms: Alarms) -> _Queue:
    none = frozenset[str]()
    return replace(queue, alarmed=alarms.get(queue.name, none) | alarms.get(ANY, none))
