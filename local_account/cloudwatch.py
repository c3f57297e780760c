"""CloudWatch metrics that MiniStack lacks: of queues, of Lambdas, and in Lambdas' log lines.

A query returns the metric with exactly the dimensions that the query names. The query's StartTime
is rounded down to the minute. GetMetricData for a time in the future returns what SQS would report
about a queue to which nothing happens until then, because Mendq's follow-up can be given a later
time. MiniStack's alarms ignore dimensions and missing data, so any other
queue or Lambda could raise them. Alarms on metrics of queues and Lambdas are therefore not
evaluated.
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

from local_account.hooks import replace_functions
from local_account.sqs.counting import MINUTE_SECONDS, SQS_NAMESPACE, JumpedTime, QueueCounter

LAMBDA_NAMESPACE = "AWS/Lambda"
# Mendq asks up to two minutes ahead of its clock, so that an answer has the running minute.
JUMP_MARGIN_SECONDS = 2 * MINUTE_SECONDS
# A day. Mendq measures at most six hours.
MAXIMUM_JUMPED_MINUTES = 24 * 60
Parameters = Mapping[str, Any]
logger = logging.getLogger("mendq.metrics")


class _TruthyDimensions(dict[str, str]):
    """The dimensions of a metric or query, as a dict that is true even if it is empty.

    On AWS, a query without dimensions returns only the metric without dimensions. MiniStack takes a
    false value as "any dimensions".
    """

    def __bool__(self) -> bool:
        return True


def install(queue_counter: QueueCounter) -> None:
    """Add the metrics to MiniStack's CloudWatch, and start the thread that samples the queues.

    Call this once per process.
    """
    _install_lambda_metrics()

    @replace_functions(cloudwatch, "_dims_from_list")
    def read_dimensions(original_function: Any, dimensions: Any) -> _TruthyDimensions:
        return _TruthyDimensions(original_function(dimensions))

    @replace_functions(cloudwatch, "_get_metric_statistics", "_get_metric_data", "_list_metrics")
    def query_metrics(
        original_function: Any,
        query_parameters: Parameters,
        request: Parameters,
        *protocol_flags: bool,
    ) -> Any:
        queue_counter.measure()
        for (name, metric), metric_points in queue_counter.collect_points(
            get_account_id(), get_region(), _find_jumped_time(request)
        ).items():
            metric_key = (SQS_NAMESPACE, metric, cloudwatch._dims_key({"QueueName": name}))
            cloudwatch._metrics[metric_key] = metric_points
        start_seconds = cloudwatch._parse_ts(request.get("StartTime"))
        if start_seconds is not None:
            request = {**request, "StartTime": start_seconds // MINUTE_SECONDS * MINUTE_SECONDS}
        return original_function(query_parameters, request, *protocol_flags)

    @replace_functions(cloudwatch, "handle_request")
    async def handle_request(
        original_function: Any,
        method: str,
        path: str,
        headers: Mapping[str, str],
        *request_arguments: Any,
    ) -> Any:
        """Answer that there is no mute rule. There is none, because PutAlarmMuteRule is refused."""
        if headers.get("x-amz-target", "").endswith(".ListAlarmMuteRules"):
            return cloudwatch._json_ok({"AlarmMuteRuleSummaries": []})
        return await original_function(method, path, headers, *request_arguments)

    @replace_functions(cloudwatch, "_evaluate_alarm")
    def evaluate_alarm(original_function: Any, alarm: Parameters) -> None:
        if alarm.get("Namespace") not in (SQS_NAMESPACE, LAMBDA_NAMESPACE):
            original_function(alarm)

    threading.Thread(
        target=_measure_each_minute, args=(queue_counter,), name="queue-metrics", daemon=True
    ).start()


def _find_jumped_time(request: Parameters) -> JumpedTime | None:
    """Return the time between now and the clock of a caller that is ahead; None if it is not.

    The clock is assumed to be JUMP_MARGIN_SECONDS before the request's EndTime, because a caller
    with the right clock may name an end in the future too. At most MAXIMUM_JUMPED_MINUTES are
    returned, the first ones of the time that the request is about.
    """
    start_seconds = cloudwatch._parse_ts(request.get("StartTime"))
    end_seconds = cloudwatch._parse_ts(request.get("EndTime"))
    if start_seconds is None or end_seconds is None:
        return None
    first_minute = int(max(time.time() // MINUTE_SECONDS + 1, start_seconds // MINUTE_SECONDS))
    last_minute = int((end_seconds - JUMP_MARGIN_SECONDS) // MINUTE_SECONDS)
    minutes = range(first_minute, last_minute + 1)[:MAXIMUM_JUMPED_MINUTES]
    queue_names = set[str]()
    for metric_data_query in request.get("MetricDataQueries", ()):
        metric = metric_data_query.get("MetricStat", {}).get("Metric", {})
        queue_names |= {dimension["Value"] for dimension in metric.get("Dimensions", ())}
    return JumpedTime(
        tuple(float(minute * MINUTE_SECONDS) for minute in minutes), frozenset(queue_names)
    )


def _measure_each_minute(queue_counter: QueueCounter) -> None:
    """Sample all queues at the end of each minute, including empty ones that get no calls."""
    while True:
        minute_start = time.time() // MINUTE_SECONDS * MINUTE_SECONDS
        time.sleep(max(0.0, minute_start + MINUTE_SECONDS - time.time()))
        try:
            queue_counter.measure(minute_start)
        except Exception:
            logger.exception("the metrics of the queues are lost for this minute")


def _install_lambda_metrics() -> None:
    """Make MiniStack store the metrics of every Lambda run, and the metrics in its log lines."""

    @replace_functions(lambda_svc, "_emit_lambda_logs")
    def emit_logs(original_function: Any, *log_arguments: Any, **keyword_arguments: Any) -> None:
        original_function(*log_arguments, **keyword_arguments)
        function, _request_id, log_text, has_failed, duration_milliseconds, *_ = log_arguments
        configuration = function.get("config") or function
        try:
            with request_scope(*lambda_runtime._account_region_from_function_config(configuration)):
                _store_run_metrics(
                    configuration["FunctionName"], has_failed, log_text, duration_milliseconds
                )
        except Exception:
            logger.exception("the metrics of a Lambda's log lines are lost")

    @replace_functions(lambda_svc, "_emit_lambda_metrics")
    def skip_client_metrics(_original_function: Any, *_: object, **__: object) -> None:
        """Store nothing. `emit_logs` stores the metrics; otherwise, some runs would count twice."""


def _store_run_metrics(
    function_name: str, has_failed: bool, log_text: str, duration_milliseconds: float
) -> None:
    """Store the metrics of one run, and those in its log lines `log_text`. Evaluate all alarms."""
    dimensions = {"FunctionName": function_name}
    cloudwatch.record_metric(LAMBDA_NAMESPACE, "Invocations", 1, "Count", dimensions)
    cloudwatch.record_metric(LAMBDA_NAMESPACE, "Errors", int(has_failed), "Count", dimensions)
    cloudwatch.record_metric(
        LAMBDA_NAMESPACE, "Duration", duration_milliseconds, "Milliseconds", dimensions
    )
    for line in log_text.splitlines():
        for datum in parse_embedded_metrics(line):
            cloudwatch._store_datum(*datum)
    cloudwatch._evaluate_all_alarms()


def parse_embedded_metrics(line: str) -> tuple[tuple[Any, ...], ...]:
    """Return the metric data in a log line, each as the arguments of MiniStack's `_store_datum`.

    Return an empty tuple if the line is not in CloudWatch's embedded metric format.
    """
    if '"_aws"' not in line:
        return ()
    try:
        return tuple(_list_metric_data(json.loads(line)))
    except (ValueError, KeyError, TypeError, AttributeError):
        return ()


def _list_metric_data(embedded_document: Mapping[str, Any]) -> Iterator[tuple[Any, ...]]:
    """Yield a metric datum for each metric and each set of dimensions of a log line."""
    timestamp_seconds = embedded_document["_aws"]["Timestamp"] / 1000
    for metric_directive in embedded_document["_aws"]["CloudWatchMetrics"]:
        for dimension_names in metric_directive.get("Dimensions") or [[]]:
            dimensions = {name: str(embedded_document[name]) for name in dimension_names}
            for metric in metric_directive["Metrics"]:
                metric_value = embedded_document[metric["Name"]]
                metric_values = metric_value if isinstance(metric_value, list) else [metric_value]
                yield (
                    metric_directive["Namespace"],
                    metric["Name"],
                    dimensions,
                    timestamp_seconds,
                    metric.get("Unit", "None"),
                    None,
                    [float(metric_value) for metric_value in metric_values],
                    None,
                    None,
                )
