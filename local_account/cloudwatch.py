"""CloudWatch where MiniStack leaves something out: metrics of queues, Lambdas and log lines.

A query takes exactly the dimensions that it names; its StartTime is rounded down to the minute.
Alarms look at no dimension and at no missing data: those on queues and Lambdas, which any other
would raise, are not evaluated.
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
Asked = Mapping[str, Any]
logger = logging.getLogger("mendq.metrics")


class _Dimensions(dict[str, str]):
    """True even when empty: a query without dimensions asks for the metric without any."""

    def __bool__(self) -> bool:
        return True


def install(counting: Counting) -> None:
    """Hook everything, and start the threads that read and measure; once per process."""
    _keep_metrics_of_lambdas()

    @around(cloudwatch, "_dims_from_list")
    def dimensions(inner: Any, listed: Any) -> _Dimensions:
        return _Dimensions(inner(listed))

    @around(cloudwatch, "_get_metric_statistics", "_get_metric_data", "_list_metrics")
    def ask(inner: Any, params: Asked, asked: Asked, *protocol: bool) -> Any:
        counting.measure()
        for (name, metric), points in counting.series(get_account_id(), get_region()).items():
            key = (NAMESPACE, metric, cloudwatch._dims_key({"QueueName": name}))
            cloudwatch._metrics[key] = points
        start = cloudwatch._parse_ts(asked.get("StartTime"))
        if start is not None:
            asked = {**asked, "StartTime": start // MINUTE_SECONDS * MINUTE_SECONDS}
        return inner(params, asked, *protocol)

    @around(cloudwatch, "_evaluate_alarm")
    def evaluate(inner: Any, alarm: Asked) -> None:
        if alarm.get("Namespace") not in (NAMESPACE, OF_LAMBDA):
            inner(alarm)

    threading.Thread(target=_measure, args=(counting,), name="queue-metrics", daemon=True).start()


def _measure(counting: Counting) -> None:
    """Measure each minute at its end, also empty queues that nobody asks about."""
    while True:
        minute = time.time() // MINUTE_SECONDS * MINUTE_SECONDS
        time.sleep(max(0.0, minute + MINUTE_SECONDS - time.time()))
        try:
            counting.measure(minute)
        except Exception:
            logger.exception("the metrics of the queues are lost for this minute")


def _keep_metrics_of_lambdas() -> None:
    """Count every run, whoever started it, and read what Lambdas said."""

    @around(lambda_svc, "_emit_lambda_logs")
    def emit(inner: Any, *given: Any, **named: Any) -> None:
        inner(*given, **named)
        function, _request_id, text, failed, milliseconds, *_ = given
        config = function.get("config") or function
        try:
            with request_scope(*lambda_runtime._account_region_from_function_config(config)):
                _store(config["FunctionName"], failed, text, milliseconds)
        except Exception:
            logger.exception("the metrics of a Lambda's log lines are lost")

    @around(lambda_svc, "_emit_lambda_metrics")
    def count_nothing(_inner: Any, *_: object, **__: object) -> None:
        """Or what a client invokes would count twice."""


def _store(name: str, failed: bool, text: str, milliseconds: float) -> None:
    function = {"FunctionName": name}
    cloudwatch.record_metric(OF_LAMBDA, "Invocations", 1, "Count", function)
    cloudwatch.record_metric(OF_LAMBDA, "Errors", int(failed), "Count", function)
    cloudwatch.record_metric(OF_LAMBDA, "Duration", milliseconds, "Milliseconds", function)
    for line in text.splitlines():
        for datum in metrics_in(line):
            cloudwatch._store_datum(*datum)
    cloudwatch._evaluate_all_alarms()


def metrics_in(line: str) -> tuple[tuple[Any, ...], ...]:
    """The data of a log line as MiniStack stores them; none where it is not in the format."""
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
                values = [float(each) for each in (value if isinstance(value, list) else [value])]
                what = (directive["Namespace"], metric["Name"], dimensions, at_seconds)
                yield (*what, metric.get("Unit", "None"), None, values, None, None)
