"""CloudWatch metrics that MiniStack lacks: of queues, of Lambdas, and in Lambdas' log lines.

A query returns the metric with exactly the dimensions that it names. Its StartTime is rounded down
to the minute. MiniStack's alarms ignore dimensions and missing data, so any other queue or Lambda
could raise them. Alarms on metrics of queues and Lambdas are therefore not evaluated.
https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_GetMetricData.html
https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Iterator, Mapping
from typing import Any

from ministack.core import lambda_runtime
from ministack.core.responses import get_account_id, get_region, request_scope
from ministack.services import cloudwatch, lambda_svc

from local_account.hooks import around
from local_account.sqs.counting import MINUTE_SECONDS, NAMESPACE, Counting

OF_LAMBDA = "AWS/Lambda"
Parameters = Mapping[str, Any]
logger = logging.getLogger("mendq.metrics")


class _Dimensions(dict[str, str]):
    """Dimensions that are true even if empty.

    A query without dimensions asks for the metric without dimensions. MiniStack would return the
    metric with any dimensions.
    """

    def __bool__(self) -> bool:
        return True


def install(counting: Counting) -> None:
    """Add the metrics to MiniStack's CloudWatch, and start the thread that samples the queues.

    Call this once per process.
    """
    _store_metrics_of_lambdas()

    @around(cloudwatch, "_dims_from_list")
    def read_dimensions(inner: Any, dimensions: Any) -> _Dimensions:
        return _Dimensions(inner(dimensions))

    @around(cloudwatch, "_get_metric_statistics", "_get_metric_data", "_list_metrics")
    def query(inner: Any, params: Parameters, request: Parameters, *protocol: bool) -> Any:
        counting.measure()
        for (name, metric), points in counting.series(get_account_id(), get_region()).items():
            key = (NAMESPACE, metric, cloudwatch._dims_key({"QueueName": name}))
            cloudwatch._metrics[key] = points
        start = cloudwatch._parse_ts(request.get("StartTime"))
        if start is not None:
            request = {**request, "StartTime": start // MINUTE_SECONDS * MINUTE_SECONDS}
        return inner(params, request, *protocol)

    @around(cloudwatch, "_evaluate_alarm")
    def evaluate(inner: Any, alarm: Parameters) -> None:
        if alarm.get("Namespace") not in (NAMESPACE, OF_LAMBDA):
            inner(alarm)

    threading.Thread(
        target=_measure_each_minute, args=(counting,), name="queue-metrics", daemon=True
    ).start()


def _measure_each_minute(counting: Counting) -> None:
    """Sample all queues at the end of each minute, including empty ones that get no calls."""
    while True:
        minute = time.time() // MINUTE_SECONDS * MINUTE_SECONDS
        time.sleep(max(0.0, minute + MINUTE_SECONDS - time.time()))
        try:
            counting.measure(minute)
        except Exception:
            logger.exception("the metrics of the queues are lost for this minute")


def _store_metrics_of_lambdas() -> None:
    """Store the metrics of every Lambda run, and those in its log lines."""

    @around(lambda_svc, "_emit_lambda_logs")
    def emit(inner: Any, *arguments: Any, **keywords: Any) -> None:
        inner(*arguments, **keywords)
        function, _request_id, text, has_failed, milliseconds, *_ = arguments
        config = function.get("config") or function
        try:
            with request_scope(*lambda_runtime._account_region_from_function_config(config)):
                _store(config["FunctionName"], has_failed, text, milliseconds)
        except Exception:
            logger.exception("the metrics of a Lambda's log lines are lost")

    @around(lambda_svc, "_emit_lambda_metrics")
    def count_nothing(_inner: Any, *_: object, **__: object) -> None:
        """Store nothing: a run that a client invokes would be counted twice."""


def _store(name: str, has_failed: bool, text: str, milliseconds: float) -> None:
    """Store the metrics of one run, and those in `text`, which has the run's log lines."""
    function = {"FunctionName": name}
    cloudwatch.record_metric(OF_LAMBDA, "Invocations", 1, "Count", function)
    cloudwatch.record_metric(OF_LAMBDA, "Errors", int(has_failed), "Count", function)
    cloudwatch.record_metric(OF_LAMBDA, "Duration", milliseconds, "Milliseconds", function)
    for line in text.splitlines():
        for datum in metrics_in(line):
            cloudwatch._store_datum(*datum)
    cloudwatch._evaluate_all_alarms()


def metrics_in(line: str) -> tuple[tuple[Any, ...], ...]:
    """Return the metric data in a log line, as MiniStack stores them.

    Empty if the line is not in CloudWatch's embedded metric format.
    """
    if '"_aws"' not in line:
        return ()
    try:
        return tuple(_data(json.loads(line)))
    except (ValueError, KeyError, TypeError, AttributeError):
        return ()


def _data(root: Mapping[str, Any]) -> Iterator[tuple[Any, ...]]:
    at_seconds = root["_aws"]["Timestamp"] / 1000
    for directive in root["_aws"]["CloudWatchMetrics"]:
        for names in directive.get("Dimensions") or [[]]:
            dimensions = {name: str(root[name]) for name in names}
            for metric in directive["Metrics"]:
                value = root[metric["Name"]]
                numbers = value if isinstance(value, list) else [value]
                yield (
                    directive["Namespace"],
                    metric["Name"],
                    dimensions,
                    at_seconds,
                    metric.get("Unit", "None"),
                    None,
                    [float(number) for number in numbers],
                    None,
                    None,
                )
