"""Read CloudWatch: the metrics of many queues per call, and the alarms on queues."""

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
    DATAPOINT_PERIOD,
    LISTED_KINDS,
    LONGEST_WINDOW,
    METRICS_BY_KIND,
    Datapoints,
    Measurement,
    Window,
    select_series,
    summarize_series,
)
from mendq.model.queue import parts_of

if TYPE_CHECKING:
    from mypy_boto3_cloudwatch.type_defs import MetricDataQueryTypeDef, MetricDataResultTypeDef


# CloudWatch returns at most 100,800 datapoints per call. Mendq asks for a third of that, so that
# the answer arrives before the client's timeout.
MOST_DATAPOINTS = 33_600
_MOST_SERIES = len(select_series(("every queue", "FIFO", "receives")))
QUEUES_A_CALL = MOST_DATAPOINTS // (LONGEST_WINDOW // DATAPOINT_PERIOD * _MOST_SERIES)
_WHOLE = "Complete"
_MORE_FOLLOWS = "PartialData"


def measure(clients: Clients, windows: Mapping[str, Window]) -> dict[str, Measurement | None]:
    """Measure up to QUEUES_A_CALL queues with one query of CloudWatch.

    Args:
        clients: The AWS clients.
        windows: The window to measure, by queue ARN.

    Returns:
        The measurement by queue ARN. None for a queue without data, or if CloudWatch did not return
        all of its series.

    Raises:
        FactsUnavailable: CloudWatch cannot be read.
    """
    queries = [
        build_query(
            f"{key}{n}", (namespace, "QueueName", parts_of(arn).name), name, statistic, seconds
        )
        for n, (arn, window) in enumerate(windows.items())
        for key, (name, statistic, namespace, seconds) in window.series.items()
    ]
    since = min(window.since for window in windows.values())
    until = max(window.until for window in windows.values())
    answered = read_series(clients, queries, since, until, of=", ".join(windows))
    found = dict[str, Measurement | None]()
    for n, (arn, window) in enumerate(windows.items()):
        known = {key: answered[f"{key}{n}"] for key in window.series if f"{key}{n}" in answered}
        # An incomplete answer proves nothing: without the number of sends, deletes would look like
        # a race.
        found[arn] = summarize_series(known, window) if len(known) == len(window.series) else None
    return found


def messages_deleted(clients: Clients, queue_arn: str, since: datetime, until: datetime) -> int:
    """Return the number of messages that were deleted in a queue between two times.

    `since` must not be more than 15 days ago: CloudWatch keeps datapoints of a minute for this
    time. Raise FactsUnavailable.
    """
    if until <= since:
        return 0
    asked = build_query("deleted", queue_dimension(queue_arn), "NumberOfMessagesDeleted", "Sum", 60)
    series = read_series(clients, [asked], since, until, of=queue_arn)
    return int(sum(value for _, value in finite_points(series.get("deleted", ()))))


# Two weeks have 4,032 datapoints per metric at this period.
ALARM_PERIOD = timedelta(minutes=5)
FORTNIGHT = timedelta(days=14)


def read_two_weeks(
    clients: Clients, queue_arn: str, metrics: Sequence[str], now: datetime
) -> Mapping[str, Datapoints]:
    """Return the datapoints of the last two weeks by metric, in order of time.

    Each datapoint is the largest value in an ALARM_PERIOD. Raise FactsUnavailable.
    """
    if not metrics:
        return {}
    about = queue_dimension(queue_arn)
    seconds = int(ALARM_PERIOD.total_seconds())
    queries = [
        build_query(f"m{n}", about, metric, "Maximum", seconds) for n, metric in enumerate(metrics)
    ]
    series = read_series(clients, queries, now - FORTNIGHT, now, of=queue_arn)
    return {
        metric: sorted(finite_points(series.get(f"m{n}", ()))) for n, metric in enumerate(metrics)
    }


def finite_points(points: Datapoints) -> Datapoints:
    """Return the points without NaN and Infinity; AWS's own metrics have neither."""
    return [point for point in points if isfinite(point[1])]


def queue_dimension(queue_arn: str) -> tuple[str, str, str]:
    """Return the argument `of` of `build_query` for SQS's own metrics of this queue."""
    return ("AWS/SQS", "QueueName", parts_of(queue_arn).name)


def build_query(
    asked_id: str, of: tuple[str, str, str], metric: str, statistic: str, period_seconds: int
) -> MetricDataQueryTypeDef:
    """Return one query for GetMetricData.

    Args:
        asked_id: The id under which CloudWatch returns the series.
        of: The metric's namespace, the name of its dimension, and the value of the dimension.
        metric: The metric's name.
        statistic: The statistic, such as `Sum`.
        period_seconds: The time that a datapoint stands for, in seconds.
    """
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
) -> dict[str, Datapoints]:
    """Return the datapoints by query id, oldest first. Incomplete series are left out.

    Args:
        clients: The AWS clients.
        queries: The queries.
        since: Begin of the time.
        until: End of the time.
        of: The name of the queues or functions, for the error message.

    Raises:
        FactsUnavailable: CloudWatch cannot be read.
    """
    with translate_aws_errors(f"metrics of {of}"):
        pages = clients.cloudwatch.get_paginator("get_metric_data").paginate(
            StartTime=since, EndTime=until, MetricDataQueries=queries, ScanBy="TimestampAscending"
        )
        return _whole_series(series for page in pages for series in page["MetricDataResults"])


def _whole_series(answers: Iterable[MetricDataResultTypeDef]) -> dict[str, Datapoints]:
    """Return the datapoints by query id, of complete series only.

    A series may be spread over several pages. Its status is PartialData on the first pages and
    Complete on its last one. A series with an error on any page has a gap, so it is left out.
    """
    points: dict[str, list[tuple[datetime, float]]] = defaultdict(list)
    codes_by_id: dict[str, list[str]] = defaultdict(list)
    for answer in answers:
        codes_by_id[answer["Id"]].append(answer.get("StatusCode", _WHOLE))
        pairs = zip(answer.get("Timestamps", []), answer.get("Values", []), strict=False)
        points[answer["Id"]].extend(pairs)
    return {
        asked_id: points[asked_id]
        for asked_id, codes in codes_by_id.items()
        if codes[-1] == _WHOLE and set(codes) <= {_WHOLE, _MORE_FOLLOWS}
    }


# The most metrics of one name that are listed. CloudWatch lists 500 per call: a hundred calls.
MOST_LISTED = 50_000


def listed_kinds(clients: Clients, queue_name: str = "") -> Mapping[str, Sequence[str]]:
    """Return the kinds of metrics that only some queues have (LISTED_KINDS), by queue name.

    CloudWatch does not bill listing. If CloudWatch refuses, the kinds found so far are returned,
    and the other metrics can still be measured. Anyone may publish any number of metrics, so at
    most MOST_LISTED of each kind are read.

    Args:
        clients: The AWS clients.
        queue_name: The queue. Empty: all queues.
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
            for page in pages:
                for metric in page["Metrics"]:
                    dimensions = metric.get("Dimensions", [])
                    if len(dimensions) == 1:
                        found[dimensions[0].get("Value", "")].append(kind)
    return found


_Queue = TypeVar("_Queue", bound=QueueFacts)
# The metrics that at least one alarm watches, by queue name.
Alarms = Mapping[str, frozenset[str]]
# The queue name of an alarm on a Metrics Insights query, which may watch any queue.
ANY = "*"
_METRIC_OF_SQS = re.compile(r"\b(?:ApproximateNumberOf|ApproximateAgeOf|NumberOf)[A-Za-z]+")


def _alarms(clients: Clients, **asked: Any) -> Iterator[Mapping[str, Any]]:
    """Yield the metric alarms of the account and region. Raise FactsUnavailable.

    Args:
        clients: The AWS clients.
        asked: Further arguments of DescribeAlarms, to select alarms.
    """
    with translate_aws_errors("the account's alarms"):
        for page in clients.cloudwatch.get_paginator("describe_alarms").paginate(**asked):
            yield from page["MetricAlarms"]


def queue_alarms(clients: Clients) -> Alarms:
    """Return the metrics that at least one alarm watches, by queue name.

    Composite alarms need not be read, because they consist of these alarms. Raises
    FactsUnavailable.

    https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_DescribeAlarms.html
    """
    found = defaultdict[str, frozenset[str]](frozenset)
    for alarm in _alarms(clients, AlarmTypes=["MetricAlarm"]):
        for queue_name, metric in _list_watched_metrics(alarm):
            found[queue_name] |= {metric}
    return found


def alarm_names(clients: Clients, prefix: str) -> frozenset[str]:
    """Return the names of all alarms that begin with the prefix. Raise FactsUnavailable."""
    return frozenset(alarm["AlarmName"] for alarm in _alarms(clients, AlarmNamePrefix=prefix))


def _list_watched_metrics(alarm: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield queue name and metric for each SQS metric that an alarm watches.

    This includes metrics in metric math, in an anomaly detection band and in a Metrics Insights
    query.
    """
    queries = alarm.get("Metrics", [])
    metrics = [query.get("MetricStat", {}).get("Metric", {}) for query in queries]
    for metric in (alarm, *metrics):
        if metric.get("Namespace") == "AWS/SQS":
            for dimension in metric.get("Dimensions", []):
                yield dimension["Value"], metric["MetricName"]
    for query in queries:
        expression = query.get("Expression", "")
        if "AWS/SQS" in expression:
            for metric_name in _METRIC_OF_SQS.findall(expression):
                yield ANY, metric_name


def with_alarms(facts: Facts, alarms: Alarms) -> Facts:
    """Return the facts with `alarmed`, the metrics that alarms watch: for the queue, and for its
    DLQ if that exists.
    """
    dlq = (
        facts.dlq
        if facts.dlq is None or not facts.dlq.exists
        else _add_alarmed_metrics(facts.dlq, alarms)
    )
    return replace(_add_alarmed_metrics(facts, alarms), dlq=dlq)


def _add_alarmed_metrics(queue: _Queue, alarms: Alarms) -> _Queue:
    """Return the queue with `alarmed`, its metrics that at least one alarm watches."""
    none = frozenset[str]()
    return replace(queue, alarmed=alarms.get(queue.name, none) | alarms.get(ANY, none))
