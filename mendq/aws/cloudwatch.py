"""Read CloudWatch: the metrics of many queues per call, and the alarms on queues."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from math import isfinite
from typing import TYPE_CHECKING, Any, TypeVar

from botocore.exceptions import BotoCoreError, ClientError

from mendq.aws.clients import Clients
from mendq.aws.errors import FactsUnavailable, translate_aws_errors
from mendq.model.facts import Facts, QueueFacts
from mendq.model.metrics import (
    DATAPOINT_PERIOD,
    DAYS_OF_TRAFFIC,
    DAYS_OF_TRAFFIC_METRICS,
    LONGEST_WINDOW,
    METRIC_KINDS_OF_SOME_QUEUES,
    METRICS_BY_KIND,
    Datapoints,
    DatapointsBySeries,
    DaysOfTraffic,
    Measurement,
    MetricGap,
    Window,
    find_time_without_gaps,
    select_series,
    summarize_series,
)
from mendq.model.queue import parse_queue_arn

if TYPE_CHECKING:
    from mypy_boto3_cloudwatch.type_defs import MetricDataQueryTypeDef, MetricDataResultTypeDef


# CloudWatch returns at most 100,800 datapoints per call. Mendq asks for a third of that, so that
# the answer arrives before the client's timeout.
MOST_DATAPOINTS_PER_CALL = 33_600
_MOST_SERIES_PER_QUEUE = len(select_series(("every queue", "FIFO", "receives")))
MOST_QUEUES_PER_CALL = MOST_DATAPOINTS_PER_CALL // (
    LONGEST_WINDOW // DATAPOINT_PERIOD * _MOST_SERIES_PER_QUEUE
)
# 31 queues of three sums each.
MOST_QUEUES_PER_SUMS_CALL = MOST_DATAPOINTS_PER_CALL // (
    LONGEST_WINDOW // DATAPOINT_PERIOD * len(select_series(("sums",)))
)
_COMPLETE_STATUS = "Complete"
_PARTIAL_STATUS = "PartialData"


def measure_queues(
    clients: Clients,
    window_by_arn: Mapping[str, Window],
    known_points_by_arn: Mapping[str, DatapointsBySeries] | None = None,
) -> dict[str, Measurement | MetricGap | None]:
    """Measure up to MOST_QUEUES_PER_CALL queues with one query of CloudWatch.

    Args:
        clients: The AWS clients.
        window_by_arn: The time to measure, by queue ARN; at least one.
        known_points_by_arn: Datapoints of these windows that were read before, by queue ARN and
            series. They are not asked for again, because CloudWatch bills each series.

    Returns:
        The measurement by queue ARN, of the time without gaps. A MetricGap if that is too short.
        None for a queue without data or with impossible values, or if CloudWatch did not return all
        of its series.

    Raises:
        FactsUnavailable: CloudWatch cannot be read.
    """
    known_points_by_arn = known_points_by_arn or {}
    new_points_by_arn = read_queue_series(clients, window_by_arn, known_points_by_arn)
    measurement_by_arn = dict[str, Measurement | MetricGap | None]()
    for arn, window in window_by_arn.items():
        points_by_series = {**known_points_by_arn.get(arn, {}), **new_points_by_arn[arn]}
        # An incomplete answer proves nothing. For example, deletes without the number of sends look
        # like messages that were handled twice.
        has_all_series = points_by_series.keys() >= window.series.keys()
        measured_points = {
            series: points for series, points in points_by_series.items() if series in window.series
        }
        measurement_by_arn[arn] = (
            _measure_time_without_gaps(measured_points, window) if has_all_series else None
        )
    return measurement_by_arn


def _measure_time_without_gaps(
    points_by_series: DatapointsBySeries, window: Window
) -> Measurement | MetricGap | None:
    """Return the measurement of the longest part of the window without gaps."""
    time_without_gaps = find_time_without_gaps(points_by_series, window)
    if isinstance(time_without_gaps, MetricGap):
        return time_without_gaps
    return summarize_series(points_by_series, time_without_gaps)


def read_queue_series(
    clients: Clients,
    window_by_arn: Mapping[str, Window],
    known_points_by_arn: Mapping[str, DatapointsBySeries],
) -> dict[str, dict[str, Datapoints]]:
    """Return the datapoints by queue ARN and series name, with one query of CloudWatch.

    Series that are known, or that CloudWatch did not return completely, are left out.

    Args:
        clients: The AWS clients.
        window_by_arn: The time and the kinds of metrics to read, by queue ARN; at least one.
        known_points_by_arn: The series that are not asked for, by queue ARN.

    Raises:
        FactsUnavailable: CloudWatch cannot be read.
    """
    queries: list[MetricDataQueryTypeDef] = []
    series_by_query_id = dict[str, tuple[str, str]]()
    for index, (arn, window) in enumerate(window_by_arn.items()):
        known_series = known_points_by_arn.get(arn, {})
        for series_name, (metric, statistic, namespace, period_seconds) in window.series.items():
            if series_name in known_series:
                continue
            query_id = f"{series_name}{index}"
            dimension = (namespace, "QueueName", parse_queue_arn(arn).name)
            queries.append(build_query(query_id, dimension, metric, statistic, period_seconds))
            series_by_query_id[query_id] = (arn, series_name)
    points_by_arn: dict[str, dict[str, Datapoints]] = {arn: {} for arn in window_by_arn}
    if not queries:
        return points_by_arn
    points_by_query_id = read_metric_series(
        clients,
        queries,
        min(window.since for window in window_by_arn.values()),
        max(window.until for window in window_by_arn.values()),
        subject=", ".join(window_by_arn),
    )
    for query_id, (arn, series_name) in series_by_query_id.items():
        if query_id in points_by_query_id:
            points_by_arn[arn][series_name] = points_by_query_id[query_id]
    return points_by_arn


def count_deleted_messages(
    clients: Clients, queue_arn: str, since: datetime, until: datetime
) -> int:
    """Return the number of messages that were deleted in a queue between two times.

    Return 0 if `until` is not after `since`. Raise FactsUnavailable if CloudWatch cannot be read.
    `since` must be at most 15 days ago: CloudWatch keeps one-minute datapoints for that time.
    """
    if until <= since:
        return 0
    query = build_query(
        "deleted", make_queue_dimension(queue_arn), "NumberOfMessagesDeleted", "Sum", 60
    )
    points_by_query_id = read_metric_series(clients, [query], since, until, subject=queue_arn)
    return int(
        sum(value for _, value in select_finite_points(points_by_query_id.get("deleted", ())))
    )


def read_deletes_by_minute(
    clients: Clients, queue_arn: str, since: datetime, until: datetime
) -> tuple[tuple[datetime, int], ...]:
    """Return the minutes with deletes and the number of deletes, oldest first.

    AWS bills one metric. Raise FactsUnavailable if CloudWatch does not return all datapoints.
    """
    query = build_query(
        "deleted", make_queue_dimension(queue_arn), "NumberOfMessagesDeleted", "Sum", 60
    )
    points_by_query_id = read_metric_series(clients, [query], since, until, subject=queue_arn)
    if "deleted" not in points_by_query_id:
        raise FactsUnavailable(f"the deletes of {queue_arn} by the minute: they are incomplete")
    points = sorted(select_finite_points(points_by_query_id["deleted"]))
    return tuple((minute, int(count)) for minute, count in points if count > 0)


def read_days_of_traffic(clients: Clients, queue_arn: str, now: datetime) -> DaysOfTraffic:
    """Return the hours of the last four days in which the queue was read. Raise FactsUnavailable.

    The current hour counts up to `now`. AWS bills the two metrics DAYS_OF_TRAFFIC_METRICS.
    """
    dimension = make_queue_dimension(queue_arn)
    # The time begins with an hour, so that CloudWatch's hours do too.
    since = round_down_to_hour(now - DAYS_OF_TRAFFIC)
    queries = [
        build_query(f"m{index}", dimension, metric, "Sum", 3600)
        for index, metric in enumerate(DAYS_OF_TRAFFIC_METRICS)
    ]
    points_by_query_id = read_metric_series(clients, queries, since, now, subject=queue_arn)
    if len(points_by_query_id) < len(queries):
        raise FactsUnavailable(f"the traffic of four days of {queue_arn}: it is incomplete")
    received_points = points_by_query_id["m0"]
    reported_since = min((time for time, _ in received_points), default=None)
    return DaysOfTraffic(
        _list_hours_with_counts(received_points),
        _list_hours_with_counts(points_by_query_id["m1"]),
        reported_since and round_down_to_hour(reported_since),
    )


def round_down_to_hour(time: datetime) -> datetime:
    """Return the start of the hour of a time."""
    return time.replace(minute=0, second=0, microsecond=0)


def _list_hours_with_counts(points: Datapoints) -> tuple[datetime, ...]:
    """Return the begin of each hour with a count above 0, oldest first."""
    hours = {round_down_to_hour(time) for time, count in select_finite_points(points) if count > 0}
    return tuple(sorted(hours))


# Two weeks have 4,032 datapoints per metric at this period.
ALARM_DATAPOINT_PERIOD = timedelta(minutes=5)
FORTNIGHT = timedelta(days=14)


def read_two_weeks_of_metrics(
    clients: Clients, queue_arn: str, metrics: Sequence[str], now: datetime
) -> Mapping[str, Datapoints]:
    """Return the datapoints of the last two weeks by metric, oldest first.

    Each datapoint is the largest value in an ALARM_DATAPOINT_PERIOD. Raise FactsUnavailable if
    CloudWatch cannot be read.
    """
    if not metrics:
        return {}
    dimension = make_queue_dimension(queue_arn)
    period_seconds = int(ALARM_DATAPOINT_PERIOD.total_seconds())
    queries = [
        build_query(f"m{index}", dimension, metric, "Maximum", period_seconds)
        for index, metric in enumerate(metrics)
    ]
    points_by_query_id = read_metric_series(
        clients, queries, now - FORTNIGHT, now, subject=queue_arn
    )
    return {
        metric: sorted(select_finite_points(points_by_query_id.get(f"m{index}", ())))
        for index, metric in enumerate(metrics)
    }


def select_finite_points(points: Datapoints) -> Datapoints:
    """Return the datapoints that are not NaN or Infinity. AWS's own metrics have no such values."""
    return [point for point in points if isfinite(point[1])]


def make_queue_dimension(queue_arn: str) -> tuple[str, str, str]:
    """Return the argument `dimension` of `build_query` for the queue's metrics in AWS/SQS."""
    return ("AWS/SQS", "QueueName", parse_queue_arn(queue_arn).name)


def build_query(
    query_id: str, dimension: tuple[str, str, str], metric: str, statistic: str, period_seconds: int
) -> MetricDataQueryTypeDef:
    """Return one query for GetMetricData.

    Args:
        query_id: The id under which CloudWatch returns the series.
        dimension: The metric's namespace, the name of its dimension, and the dimension's value.
        metric: The metric's name.
        statistic: The statistic, such as `Sum`.
        period_seconds: The length of a datapoint's period, in seconds.
    """
    namespace, dimension_name, dimension_value = dimension
    dimensions = [{"Name": dimension_name, "Value": dimension_value}]
    metric_description: Any = {
        "Namespace": namespace,
        "MetricName": metric,
        "Dimensions": dimensions,
    }
    metric_stat: Any = {"Metric": metric_description, "Period": period_seconds, "Stat": statistic}
    return {"Id": query_id, "MetricStat": metric_stat}


def read_metric_series(
    clients: Clients,
    queries: Sequence[MetricDataQueryTypeDef],
    since: datetime,
    until: datetime,
    *,
    subject: str,
) -> dict[str, Datapoints]:
    """Return the datapoints by query id, oldest first. Incomplete series are left out.

    Args:
        clients: The AWS clients.
        queries: The queries.
        since: The start of the time to read.
        until: The end of the time to read.
        subject: The names of the queues or functions, for the error message.

    Raises:
        FactsUnavailable: CloudWatch cannot be read.
    """
    clients.metric_count.asked += len(queries)
    with translate_aws_errors(f"metrics of {subject}"):
        pages = clients.cloudwatch.get_paginator("get_metric_data").paginate(
            StartTime=since, EndTime=until, MetricDataQueries=queries, ScanBy="TimestampAscending"
        )
        return _select_complete_series(
            series for page in pages for series in page["MetricDataResults"]
        )


def _select_complete_series(results: Iterable[MetricDataResultTypeDef]) -> dict[str, Datapoints]:
    """Return the datapoints of complete series, by query id.

    A series may be spread over several pages. Its status is PartialData on all pages except its
    last, where it is Complete. A series with an error on any page is left out, because it has a
    gap.
    """
    points_by_query_id: dict[str, list[tuple[datetime, float]]] = defaultdict(list)
    statuses_by_query_id: dict[str, list[str]] = defaultdict(list)
    for result in results:
        statuses_by_query_id[result["Id"]].append(result.get("StatusCode", _COMPLETE_STATUS))
        points_of_page = zip(result.get("Timestamps", []), result.get("Values", []), strict=False)
        points_by_query_id[result["Id"]].extend(points_of_page)
    return {
        query_id: points_by_query_id[query_id]
        for query_id, statuses in statuses_by_query_id.items()
        if statuses[-1] == _COMPLETE_STATUS and set(statuses) <= {_COMPLETE_STATUS, _PARTIAL_STATUS}
    }


# The most metrics of one name that Mendq lists. CloudWatch returns 500 per call, so these are a
# hundred calls.
MOST_LISTED_METRICS = 50_000


def list_metric_kinds(clients: Clients, queue_name: str = "") -> Mapping[str, Sequence[str]]:
    """Return, by queue name, the kinds of metrics of METRIC_KINDS_OF_SOME_QUEUES that it has.

    If CloudWatch refuses or does not answer, return the kinds found so far; the metrics of every
    queue can still be measured. At most MOST_LISTED_METRICS of each kind are read, because anyone
    in the account can publish any number of metrics. CloudWatch does not charge for listing.

    Args:
        clients: The AWS clients.
        queue_name: The queue; an empty text stands for all queues.
    """
    metric_kinds_by_queue_name = defaultdict[str, list[str]](list)
    dimension: Any = {"Name": "QueueName"} | ({"Value": queue_name} if queue_name else {})
    with suppress(ClientError, BotoCoreError):
        for metric_kind in METRIC_KINDS_OF_SOME_QUEUES:
            sample_metric = next(iter(METRICS_BY_KIND[metric_kind].values()))
            pages = clients.cloudwatch.get_paginator("list_metrics").paginate(
                Namespace=sample_metric.namespace,
                MetricName=sample_metric.metric,
                Dimensions=[dimension],
                PaginationConfig={"MaxItems": MOST_LISTED_METRICS},
            )
            for page in pages:
                for metric in page["Metrics"]:
                    dimensions = metric.get("Dimensions", [])
                    if len(dimensions) == 1:
                        metric_kinds_by_queue_name[dimensions[0].get("Value", "")].append(
                            metric_kind
                        )
    return metric_kinds_by_queue_name


_QueueFactsT = TypeVar("_QueueFactsT", bound=QueueFacts)
_SQS_METRIC_NAME_PATTERN = re.compile(
    r"\b(?:ApproximateNumberOf|ApproximateAgeOf|NumberOf)[A-Za-z]+"
)
# A condition of a Metrics Insights query, such as `QueueName != 'orders-dlq'`.
_QUEUE_NAME_CONDITION_PATTERN = re.compile(r"""\bQueueName"?\s*(!?=)\s*'([^']*)'""")


@dataclass(frozen=True)
class QueueQuery:
    """A Metrics Insights query of an alarm: its SQS metrics and its conditions on queue names.

    Other conditions, such as those on tags, are ignored. So Mendq may assume that the query watches
    more queues than it does.
    """

    metrics: frozenset[str]
    # The names in conditions such as `QueueName = 'orders'`. A queue must meet all of them.
    required_names: frozenset[str] = frozenset()
    excluded_names: frozenset[str] = frozenset()

    def may_watch(self, queue_name: str) -> bool:
        """Return True if the query's conditions on queue names allow this queue."""
        return self.required_names <= {queue_name} and queue_name not in self.excluded_names


@dataclass(frozen=True)
class AlarmedMetrics:
    """The SQS metrics that alarms watch: those of queues named in alarms, and those in queries."""

    metrics_by_queue_name: Mapping[str, frozenset[str]]
    queries: tuple[QueueQuery, ...] = ()

    def list_metrics_of(self, queue_name: str) -> frozenset[str]:
        """Return the queue's metrics that an alarm watches, or that a query may watch."""
        metrics = self.metrics_by_queue_name.get(queue_name, frozenset())
        for query in self.queries:
            if query.may_watch(queue_name):
                metrics |= query.metrics
        return metrics


def _iterate_alarms(
    clients: Clients, **alarm_selection_arguments: Any
) -> Iterator[Mapping[str, Any]]:
    """Yield metric alarms of the account and region. Raise FactsUnavailable.

    Args:
        clients: The AWS clients.
        alarm_selection_arguments: Arguments of DescribeAlarms that select alarms. Without them,
            yield all alarms.
    """
    with translate_aws_errors("the account's alarms"):
        for page in clients.cloudwatch.get_paginator("describe_alarms").paginate(
            **alarm_selection_arguments
        ):
            yield from page["MetricAlarms"]


def read_alarmed_metrics(clients: Clients) -> AlarmedMetrics:
    """Return the SQS metrics that alarms watch, by queue, and the alarms' Metrics Insights queries.

    Composite alarms are not read, because they consist of metric alarms. Raise FactsUnavailable if
    the alarms cannot be read.

    https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_DescribeAlarms.html
    """
    metrics_by_queue_name = defaultdict[str, frozenset[str]](frozenset)
    queries = list[QueueQuery]()
    for alarm in _iterate_alarms(clients, AlarmTypes=["MetricAlarm"]):
        for queue_name, metric in _list_watched_metrics(alarm):
            metrics_by_queue_name[queue_name] |= {metric}
        queries += _list_queue_queries(alarm)
    return AlarmedMetrics(metrics_by_queue_name, tuple(queries))


def list_alarm_names(clients: Clients, prefix: str) -> frozenset[str]:
    """Return the names of metric alarms that begin with the prefix. Raise FactsUnavailable."""
    return frozenset(
        alarm["AlarmName"] for alarm in _iterate_alarms(clients, AlarmNamePrefix=prefix)
    )


def _list_watched_metrics(alarm: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the queue's name and the metric for each SQS metric that an alarm names.

    This includes metrics in metric math and in an anomaly detection band.
    """
    queries = alarm.get("Metrics", [])
    metrics = [query.get("MetricStat", {}).get("Metric", {}) for query in queries]
    for metric in (alarm, *metrics):
        if metric.get("Namespace") == "AWS/SQS":
            for dimension in metric.get("Dimensions", []):
                yield dimension["Value"], metric["MetricName"]


def _list_queue_queries(alarm: Mapping[str, Any]) -> Iterator[QueueQuery]:
    """Yield the alarm's Metrics Insights queries of SQS metrics.

    https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/cloudwatch-metrics-insights-querylanguage.html
    """
    for metric_query in alarm.get("Metrics", []):
        expression = metric_query.get("Expression", "")
        if "AWS/SQS" not in expression:
            continue
        names_by_operator: dict[str, set[str]] = {"=": set(), "!=": set()}
        for operator, queue_name in _QUEUE_NAME_CONDITION_PATTERN.findall(expression):
            names_by_operator[operator].add(queue_name)
        yield QueueQuery(
            frozenset(_SQS_METRIC_NAME_PATTERN.findall(expression)),
            required_names=frozenset(names_by_operator["="]),
            excluded_names=frozenset(names_by_operator["!="]),
        )


def add_alarmed_metrics_of_queue_and_dlq(facts: Facts, alarmed_metrics: AlarmedMetrics) -> Facts:
    """Set `alarmed_metrics`, the metrics that alarms watch, for the queue and an existing DLQ."""
    dlq = facts.dlq
    if dlq is not None and dlq.exists:
        dlq = _add_alarmed_metrics(dlq, alarmed_metrics)
    return replace(_add_alarmed_metrics(facts, alarmed_metrics), dlq=dlq)


def _add_alarmed_metrics(
    queue_facts: _QueueFactsT, alarmed_metrics: AlarmedMetrics
) -> _QueueFactsT:
    """Return the queue with `alarmed_metrics`, its metrics that at least one alarm watches."""
    return replace(queue_facts, alarmed_metrics=alarmed_metrics.list_metrics_of(queue_facts.name))
