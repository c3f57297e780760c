"""AWS/SQS in MiniStack's CloudWatch, and what its queries leave out.

A query's StartTime is rounded down to the minute, and GetMetricData's newest value comes first.
https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_GetMetricData.html
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from typing import Any

from ministack.core.responses import get_account_id, get_region
from ministack.services import cloudwatch

from local_account.sqs.queue_metrics import MINUTE_SECONDS, NAMESPACE, QueueMetrics

Asked = Mapping[str, Any]
Query = Callable[..., Any]
Measure = Callable[[], None]
logger = logging.getLogger("mendq.metrics")
_newest_first: ContextVar[bool] = ContextVar("newest_first", default=False)


def install(metrics: QueueMetrics, measure: Measure) -> None:
    """Hook the queries, and start the thread that measures each minute; once per process."""

    def published(query: Query) -> Query:
        def asking(params: Asked, asked: Asked, *protocol: bool) -> Any:
            measure()
            publish(metrics)
            return query(params, asked, *protocol)

        return asking

    cloudwatch._list_metrics = published(cloudwatch._list_metrics)
    cloudwatch._get_metric_statistics = published(_rounded(cloudwatch._get_metric_statistics))
    cloudwatch._get_metric_data = published(_ordered(_rounded(cloudwatch._get_metric_data)))
    cloudwatch._cbor_ok = _reversing(cloudwatch._cbor_ok)
    cloudwatch._json_ok = _reversing(cloudwatch._json_ok)
    cloudwatch._evaluate_alarm = _leaving_out_queues(cloudwatch._evaluate_alarm)
    threading.Thread(target=_run, args=(measure,), name="queue-metrics", daemon=True).start()


def publish(metrics: QueueMetrics) -> None:
    """Show the metrics of the caller's account and Region; what was shown before is replaced."""
    for series in metrics.series(get_account_id(), get_region()):
        key = (NAMESPACE, series.metric, cloudwatch._dims_key(series.dimensions))
        cloudwatch._metrics[key] = list(series.points)


def _run(measure: Measure) -> None:
    """An empty queue that nobody asks about reports as well, each minute."""
    while True:
        time.sleep(MINUTE_SECONDS - time.time() % MINUTE_SECONDS)
        try:
            measure()
        except Exception:
            logger.exception("the metrics of the queues are lost for this minute")


def _rounded(query: Query) -> Query:
    def asking(params: Asked, asked: Asked, *protocol: bool) -> Any:
        start = cloudwatch._parse_ts(asked.get("StartTime"))
        if start is not None:
            asked = {**asked, "StartTime": start // MINUTE_SECONDS * MINUTE_SECONDS}
        return query(params, asked, *protocol)

    return asking


def _ordered(query: Query) -> Query:
    def asking(params: Asked, asked: Asked, *protocol: bool) -> Any:
        token = _newest_first.set(asked.get("ScanBy") != "TimestampAscending")
        try:
            return query(params, asked, *protocol)
        finally:
            _newest_first.reset(token)

    return asking


def _reversing(respond: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def responding(answer: Any) -> Any:
        if _newest_first.get():
            results = [
                {
                    **each,
                    "Timestamps": list(reversed(each["Timestamps"])),
                    "Values": list(reversed(each["Values"])),
                }
                for each in answer["MetricDataResults"]
            ]
            answer = {**answer, "MetricDataResults": results}
        return respond(answer)

    return responding


def _leaving_out_queues(evaluate: Callable[[Asked], None]) -> Callable[[Asked], None]:
    """MiniStack's alarms look at no dimension: any queue would raise the alarm of another."""

    def evaluating(alarm: Asked) -> None:
        if alarm.get("Namespace") != NAMESPACE:
            evaluate(alarm)

    return evaluating
