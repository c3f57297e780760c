"""Read the Lambda functions that consume queues: event source mappings, timeouts and metrics.

A function's metrics are those of the last hour, such as durations and errors. Six hours are read,
because a function that failed for some minutes some hours ago may have lost messages.

https://docs.aws.amazon.com/lambda/latest/api/API_ListEventSourceMappings.html
https://docs.aws.amazon.com/lambda/latest/dg/monitoring-metrics-types.html
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

from mendq.aws.clients import Clients
from mendq.aws.cloudwatch import (
    build_query,
    read_metric_series,
    round_down_to_hour,
    select_finite_points,
)
from mendq.aws.errors import translate_aws_errors
from mendq.model.facts import FAILING_CONSUMER_ERROR_SHARE, FailedStretch, LambdaConsumer
from mendq.model.mapping import (
    DEFAULT_BATCH_SIZE,
    DEFAULT_MAXIMUM_POLLERS,
    DEFAULT_MINIMUM_POLLERS,
    ProvisionedPollers,
)
from mendq.model.metrics import LONGEST_WINDOW, Datapoints

if TYPE_CHECKING:
    from mypy_boto3_lambda.type_defs import (
        EventSourceMappingConfigurationTypeDef as EventSourceMapping,
    )
    from mypy_boto3_lambda.type_defs import ListEventSourceMappingsResponseTypeDef as Page

# CloudWatch's price does not depend on the time that is read.
FUNCTION_METRICS_WINDOW = LONGEST_WINDOW
_ONE_HOUR = timedelta(hours=1)
_COUNT_PERIOD = timedelta(minutes=5)
# Percentiles cannot be computed from those of shorter periods.
_DURATION_PERIOD = _ONE_HOUR
# Failed runs belong to one stretch if they are less than this apart.
_LONGEST_GAP_IN_STRETCH = timedelta(minutes=30)


class _FunctionMetric(NamedTuple):
    """A metric of Lambda functions, its statistic, and the length of the time of a datapoint."""

    name: str
    statistic: str
    period: timedelta


FUNCTION_METRIC_BY_KEY = {
    "duration_p99": _FunctionMetric("Duration", "p99", _DURATION_PERIOD),
    "duration_p50": _FunctionMetric("Duration", "p50", _DURATION_PERIOD),
    "errors_sum": _FunctionMetric("Errors", "Sum", _COUNT_PERIOD),
    "invocations_sum": _FunctionMetric("Invocations", "Sum", _COUNT_PERIOD),
    "throttles_sum": _FunctionMetric("Throttles", "Sum", _COUNT_PERIOD),
}
_ACTIVE_MAPPING_STATES = frozenset({"Enabled", "Enabling", "Updating", "Creating"})
_STOPPED_MAPPING_STATES = frozenset({"Disabled", "Disabling"})


def list_mappings(clients: Clients, queue_arn: str | None = None) -> list[EventSourceMapping]:
    """Return the event source mappings of one queue.

    Without `queue_arn`, return those of all queues and streams of the account and region. Raise
    FactsUnavailable.
    """
    queue_or_account_text = f"of {queue_arn}" if queue_arn else "of the account"
    with translate_aws_errors(f"Lambda consumers {queue_or_account_text}"):
        mappings: list[EventSourceMapping] = []
        for page in _iterate_mapping_pages(clients, queue_arn):
            mappings += page["EventSourceMappings"]
        return mappings


def _iterate_mapping_pages(clients: Clients, queue_arn: str | None) -> Iterator[Page]:
    """Yield the pages of Lambda's list of event source mappings.

    botocore's own paginator is not used, because it first lists all services, which adds 6 ms to a
    cold start.
    """
    request_arguments: dict[str, Any] = {"EventSourceArn": queue_arn} if queue_arn else {}
    while True:
        page = clients.functions.list_event_source_mappings(**request_arguments)
        yield page
        next_page_marker = page.get("NextMarker")
        if not next_page_marker:
            return
        request_arguments["Marker"] = next_page_marker


def read_function_timeout_seconds(clients: Clients, function_arn: str) -> int | None:
    """Return the function's timeout in seconds; None if the function was deleted.

    Raise FactsUnavailable.
    """
    with translate_aws_errors(f"the timeout of {function_arn}"):
        try:
            function_configuration = clients.functions.get_function_configuration(
                FunctionName=function_arn
            )
        except clients.functions.exceptions.ResourceNotFoundException:
            return None
        return function_configuration["Timeout"]


def read_reserved_concurrency(clients: Clients, function_name: str) -> int | None:
    """Return the function's reserved concurrency; None if it has none. Raise FactsUnavailable."""
    with translate_aws_errors(f"the reserved concurrency of {function_name}"):
        response = clients.functions.get_function_concurrency(FunctionName=function_name)
        return response.get("ReservedConcurrentExecutions")


def list_consumers(
    mappings: Iterable[EventSourceMapping], timeout_seconds_by_arn: Mapping[str, int | None]
) -> tuple[tuple[LambdaConsumer, ...], tuple[str, ...]]:
    """Return the Lambda functions that consume the queue, and those whose mapping is disabled.

    Args:
        mappings: The queue's event source mappings.
        timeout_seconds_by_arn: The timeout of each function with an enabled mapping, by function
            ARN. None for a deleted function.

    Returns:
        The functions with an enabled mapping, without metrics and without deleted functions; and
        the ARNs of the functions with a disabled mapping, and of those that were deleted. A
        function has one entry per mapping.
    """
    consumers: list[LambdaConsumer] = []
    stopped_function_arns: list[str] = []
    for mapping in mappings:
        function_arn = mapping.get("FunctionArn", "")
        mapping_state = mapping.get("State")
        timeout_seconds = timeout_seconds_by_arn.get(function_arn)
        if mapping_state in _STOPPED_MAPPING_STATES:
            stopped_function_arns.append(function_arn)
        elif mapping_state in _ACTIVE_MAPPING_STATES and timeout_seconds is not None:
            consumers.append(_make_consumer(mapping, timeout_seconds))
        elif mapping_state in _ACTIVE_MAPPING_STATES and function_arn in timeout_seconds_by_arn:
            stopped_function_arns.append(function_arn)
    return tuple(consumers), tuple(stopped_function_arns)


def list_disabling_times(mappings: Iterable[EventSourceMapping]) -> tuple[datetime | None, ...]:
    """Return when each disabled event source mapping was last changed; None if it is not known."""
    return tuple(
        mapping.get("LastModified")
        for mapping in mappings
        if mapping.get("State") in _STOPPED_MAPPING_STATES
    )


def _make_consumer(mapping: EventSourceMapping, timeout_seconds: int) -> LambdaConsumer:
    """Return the Lambda consumer of one event source mapping, without metrics."""
    return LambdaConsumer(
        mapping["FunctionArn"],
        timeout_seconds,
        mapping.get("MaximumBatchingWindowInSeconds", 0),
        mapping_id=mapping.get("UUID", ""),
        batch_size=mapping.get("BatchSize", DEFAULT_BATCH_SIZE),
        reports_item_failures="ReportBatchItemFailures" in mapping.get("FunctionResponseTypes", ()),
        maximum_concurrency=mapping.get("ScalingConfig", {}).get("MaximumConcurrency"),
        provisioned_pollers=_read_provisioned_pollers(mapping),
        modified_at=mapping.get("LastModified"),
        filters=tuple(
            filter_pattern.get("Pattern", "")
            for filter_pattern in mapping.get("FilterCriteria", {}).get("Filters", ())
        ),
    )


def _read_provisioned_pollers(mapping: EventSourceMapping) -> ProvisionedPollers | None:
    """Return the pollers of a mapping; None if it is not in provisioned mode.

    Botocore leaves out a field that it does not know, so an old version never returns pollers.
    """
    poller_config = mapping.get("ProvisionedPollerConfig")
    if not poller_config:
        return None
    return ProvisionedPollers(
        minimum=poller_config.get("MinimumPollers", DEFAULT_MINIMUM_POLLERS),
        maximum=poller_config.get("MaximumPollers", DEFAULT_MAXIMUM_POLLERS),
    )


def list_active_function_arns(mappings: Iterable[EventSourceMapping]) -> list[str]:
    """Return the ARN of the function of each enabled mapping."""
    return [
        mapping["FunctionArn"]
        for mapping in mappings
        if mapping.get("State") in _ACTIVE_MAPPING_STATES
    ]


# Metrics of a function in the last hour, and its failed stretch. The keys are fields of
# LambdaConsumer. If the function did not run, counts are 0 and other metrics are None; but if all
# requests were throttled, `throttled_share` is 1.
FunctionMetrics = Mapping[str, Any]


_FUNCTION_METRIC_FIELDS = (
    "duration_p99_seconds",
    "error_share",
    "throttled_share",
    "duration_p50_seconds",
    "invocations",
    "failed_stretch",
)


def copy_function_metrics(consumer: LambdaConsumer) -> FunctionMetrics:
    """Return the metrics that a consumer has, as `read_function_metrics` returns them."""
    return {name: getattr(consumer, name) for name in _FUNCTION_METRIC_FIELDS}


def read_function_metrics(
    clients: Clients, function_names: Sequence[str], now: datetime
) -> dict[str, FunctionMetrics]:
    """Return metrics of the last hour and failed stretches by function name.

    The metrics of a function have the field names of LambdaConsumer. At most 100 functions are read
    at once. Raise FactsUnavailable.
    """
    queries = [
        build_query(
            f"{metric_key}_{index}",
            ("AWS/Lambda", "FunctionName", function_name),
            metric.name,
            metric.statistic,
            int(metric.period.total_seconds()),
        )
        for index, function_name in enumerate(function_names)
        for metric_key, metric in FUNCTION_METRIC_BY_KEY.items()
    ]
    # CloudWatch's periods begin at full hours and five minutes.
    since = round_down_to_hour(now - FUNCTION_METRICS_WINDOW)
    points_by_query_id = read_metric_series(
        clients, queries, since, now, subject="Lambda functions"
    )
    return {
        function_name: _summarize_function_metrics(
            {
                metric_key: select_finite_points(
                    points_by_query_id.get(f"{metric_key}_{index}", [])
                )
                for metric_key in FUNCTION_METRIC_BY_KEY
            },
            now,
        )
        for index, function_name in enumerate(function_names)
    }


def _summarize_function_metrics(
    points_by_key: Mapping[str, Datapoints], now: datetime
) -> FunctionMetrics:
    """Return the metrics of one function, by the field names of LambdaConsumer.

    Lambda does not count a throttled request as an invocation.

    Args:
        points_by_key: The datapoints of each metric of FUNCTION_METRIC_BY_KEY.
        now: The time until which they were read.
    """
    values_of_last_hour = {
        metric_key: [
            value
            for period_start, value in points_by_key[metric_key]
            if period_start + metric.period > now - _ONE_HOUR
        ]
        for metric_key, metric in FUNCTION_METRIC_BY_KEY.items()
    }
    invocation_count = sum(values_of_last_hour["invocations_sum"])
    throttle_count = sum(values_of_last_hour["throttles_sum"])
    error_counts = values_of_last_hour["errors_sum"]
    request_count = invocation_count + throttle_count
    p99_durations_ms = values_of_last_hour["duration_p99"]
    median_durations_ms = values_of_last_hour["duration_p50"]
    return {
        "duration_p99_seconds": max(p99_durations_ms) / 1000 if p99_durations_ms else None,
        "error_share": sum(error_counts) / invocation_count
        if error_counts and invocation_count
        else None,
        "throttled_share": throttle_count / request_count if request_count else None,
        # The last 60 minutes may touch two clock hours. The lower median is used, so that the
        # duration is not exaggerated.
        "duration_p50_seconds": min(median_durations_ms) / 1000 if median_durations_ms else None,
        "invocations": int(invocation_count),
        "failed_stretch": _find_failed_stretch(points_by_key, now),
    }


def _find_failed_stretch(
    points_by_key: Mapping[str, Datapoints], now: datetime
) -> FailedStretch | None:
    """Return the stretch of the last six hours with the most failed runs; None if none failed."""
    window_start = now - FUNCTION_METRICS_WINDOW
    error_points = [
        point for point in points_by_key["errors_sum"] if point[0] >= window_start and point[1] > 0
    ]
    if not error_points:
        return None
    stretches: list[list[tuple[datetime, float]]] = []
    for period_start, error_count in error_points:
        if stretches and period_start - stretches[-1][-1][0] < _LONGEST_GAP_IN_STRETCH:
            stretches[-1].append((period_start, error_count))
        else:
            stretches.append([(period_start, error_count)])
    # If two stretches have the same number of failed runs, the later one counts.
    worst_stretch = max(reversed(stretches), key=_sum_values)
    begins_at = worst_stretch[0][0]
    ends_at = worst_stretch[-1][0] + _COUNT_PERIOD
    return FailedStretch(
        begins_at=begins_at,
        ends_at=ends_at,
        invocations=int(_sum_between(points_by_key["invocations_sum"], begins_at, ends_at)),
        failed_runs=int(_sum_values(worst_stretch)),
        failed_run_seconds=_estimate_failed_run_seconds(points_by_key, begins_at, ends_at),
        invocations_of_all_hours=int(
            _sum_between(points_by_key["invocations_sum"], window_start, now)
        ),
    )


def _estimate_failed_run_seconds(
    points_by_key: Mapping[str, Datapoints], begins_at: datetime, ends_at: datetime
) -> float | None:
    """Return how long the failed runs of a stretch took, as `FailedStretch` describes it."""
    first_hour = round_down_to_hour(begins_at)
    invocation_count = _sum_between(points_by_key["invocations_sum"], first_hour, ends_at)
    error_count = _sum_between(points_by_key["errors_sum"], first_hour, ends_at)
    do_most_fail = error_count >= FAILING_CONSUMER_ERROR_SHARE * invocation_count
    duration_points = points_by_key["duration_p50" if do_most_fail else "duration_p99"]
    durations_ms = [
        duration_ms
        for hour_start, duration_ms in duration_points
        if first_hour <= hour_start < ends_at
    ]
    return max(durations_ms) / 1000 if durations_ms else None


def _sum_between(points: Datapoints, since: datetime, until: datetime) -> float:
    return sum(value for period_start, value in points if since <= period_start < until)


def _sum_values(points: Datapoints) -> float:
    return sum(value for _, value in points)
