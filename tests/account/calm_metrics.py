"""Answers of CloudWatch about a queue that is in use and shows no harm."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from types import SimpleNamespace
from typing import Any

from mendq.aws.clients import Clients

VISIBLE_METRIC = "ApproximateNumberOfMessagesVisible"
DELETED_METRIC = "NumberOfMessagesDeleted"
# The metrics that SQS reports each minute for an active queue.
STEADY_METRICS = (
    VISIBLE_METRIC,
    "NumberOfMessagesSent",
    "NumberOfMessagesReceived",
    DELETED_METRIC,
)
_ONE_MINUTE = timedelta(minutes=1)


class CalmMetrics:
    """Answers GetMetricData as CloudWatch does for active queues to which little happens.

    SQS reports the number of visible messages and three counts each minute, here as 0, except that
    all deletes are in the last minute.

    Attributes:
        delete_count: The number of deletes of each queue.
        has_data: False if CloudWatch has no data except the deletes.
        silent_metrics: Metrics for which CloudWatch has no data.
        reported_minutes: The number of minutes at the beginning and at the end of the asked time in
            which SQS reports the queue; None for all minutes.
        missing_until_last: By metric, the number of minutes at the end of the asked time before
            which CloudWatch lacks the metric.
    """

    def __init__(self, clients: Clients, delete_count: int = 0) -> None:
        self.delete_count = delete_count
        self.has_data = True
        self.silent_metrics: frozenset[str] = frozenset()
        self.reported_minutes: tuple[int, int] | None = None
        self.missing_until_last: Mapping[str, int] = {}
        self._request: Mapping[str, Any] = {}
        events: Any = clients.cloudwatch.meta.events
        events.register("before-parameter-build.cloudwatch.GetMetricData", self._note_request)
        events.register("before-call.cloudwatch.GetMetricData", self._answer)

    def _note_request(self, params: Mapping[str, Any], **_: Any) -> None:
        self._request = dict(params)

    def _answer(self, **_: Any) -> tuple[Any, dict[str, Any]]:
        minutes = list(list_minutes(self._request["StartTime"], self._request["EndTime"]))
        results = []
        for query in self._request["MetricDataQueries"]:
            points = self._list_points(query["MetricStat"]["Metric"]["MetricName"], minutes)
            results.append(
                {
                    "Id": query["Id"],
                    "Values": [value for _, value in points],
                    "Timestamps": [minute for minute, _ in points],
                    "StatusCode": "Complete",
                }
            )
        return SimpleNamespace(status_code=200), {"MetricDataResults": results}

    def _list_points(
        self, metric: str, minutes: Sequence[datetime]
    ) -> list[tuple[datetime, float]]:
        is_with_deletes = metric == DELETED_METRIC and self.delete_count > 0
        if metric in self.silent_metrics or metric not in STEADY_METRICS:
            return []
        if metric in self.missing_until_last:
            minutes = minutes[-self.missing_until_last[metric] :]
        if self.reported_minutes is not None:
            first_count, last_count = self.reported_minutes
            minutes = [*minutes[:first_count], *minutes[len(minutes) - last_count :]]
        if not self.has_data:
            minutes = minutes[-1:] if is_with_deletes else []
        value_by_minute = dict.fromkeys(minutes, 0.0)
        if is_with_deletes and minutes:
            value_by_minute[minutes[-1]] = float(self.delete_count)
        return list(value_by_minute.items())


class ReportedQueue:
    """Completes CloudWatch's answers about a queue: SQS reports STEADY_METRICS each minute.

    Missing counts are 0. The number of visible messages stays until another one is in the metrics,
    and begins with 0.
    """

    def __init__(self, clients: Clients, queue_arn: str) -> None:
        self._queue_name = queue_arn.rpartition(":")[2]
        self._request: Mapping[str, Any] = {}
        events: Any = clients.cloudwatch.meta.events
        events.register("before-parameter-build.cloudwatch.GetMetricData", self._note_request)
        events.register("after-call.cloudwatch.GetMetricData", self._complete)

    def _note_request(self, params: Mapping[str, Any], **_: Any) -> None:
        self._request = dict(params)

    def _complete(self, parsed: dict[str, Any], **_: Any) -> None:
        metric_by_query_id = dict[str, str]()
        for query in self._request["MetricDataQueries"]:
            metric = query["MetricStat"]["Metric"]
            names = [dimension["Value"] for dimension in metric["Dimensions"]]
            if metric["MetricName"] in STEADY_METRICS and names == [self._queue_name]:
                metric_by_query_id[query["Id"]] = metric["MetricName"]
        for result in parsed.get("MetricDataResults", []):
            if result["Id"] in metric_by_query_id:
                is_count = metric_by_query_id[result["Id"]] != VISIBLE_METRIC
                self._add_missing_minutes(result, is_count=is_count)

    def _add_missing_minutes(self, result: dict[str, Any], *, is_count: bool) -> None:
        value_by_minute = dict(zip(result["Timestamps"], result["Values"], strict=True))
        value = 0.0
        minutes = list(list_minutes(self._request["StartTime"], self._request["EndTime"]))
        values: list[float] = []
        for minute in minutes:
            value = value_by_minute.get(minute, 0.0 if is_count else value)
            values.append(value)
        result["Timestamps"] = minutes
        result["Values"] = values


def list_minutes(since: datetime, until: datetime) -> Iterator[datetime]:
    """Yield the start of each minute from that of `since` to the last one before `until`."""
    minute = since.replace(second=0, microsecond=0)
    while minute < until:
        yield minute
        minute += _ONE_MINUTE
