"""Read the Lambda functions that consume queues: event source mappings, timeouts and metrics.

A function's metrics are those of the last hour, such as durations and errors.

https://docs.aws.amazon.com/lambda/latest/api/API_ListEventSourceMappings.html
https://docs.aws.amazon.com/lambda/latest/dg/monitoring-metrics-types.html
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from mendq.aws.clients import Clients
from mendq.aws.cloudwatch import build_query, read_metric_series, select_finite_points
from mendq.aws.errors import translate_aws_errors
from mendq.model.facts import LambdaConsumer
from mendq.model.mapping import (
    DEFAULT_BATCH_SIZE,
    DEFAULT_MAXIMUM_POLLERS,
    DEFAULT_MINIMUM_POLLERS,
    ProvisionedPollers,
)

if TYPE_CHECKING:
    from mypy_boto3_lambda.type_defs import (
        EventSourceMappingConfigurationTypeDef as EventSourceMapping,
    )
    from mypy_boto3_lambda.type_defs import ListEventSourceMappingsResponseTypeDef as Page

FUNCTION_METRICS_WINDOW = timedelta(hours=1)
FUNCTION_METRICS_PERIOD_SECONDS = 3600
FUNCTION_METRIC_BY_KEY = {
    "duration_p99": ("Duration", "p99"),
    "duration_p50": ("Duration", "p50"),
    "errors_sum": ("Errors", "Sum"),
    "invocations_sum": ("Invocations", "Sum"),
    "throttles_sum": ("Throttles", "Sum"),
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


# One function's metrics of the last hour, by the fields of LambdaConsumer. If the function did not
# run, they are None, or 0 for counts. But if all requests were throttled, `throttled_share` is 1.
FunctionMetrics = Mapping[str, Any]


def read_function_metrics(
    clients: Clients, function_names: Sequence[str], now: datetime
) -> dict[str, FunctionMetrics]:
    """Return metrics of the last hour by function name, for at most 100 functions.

    The metrics of a function have the field names of LambdaConsumer. Raise FactsUnavailable.
    """
    queries = [
        build_query(
            f"{metric_key}_{index}",
            ("AWS/Lambda", "FunctionName", function_name),
            *metric_and_statistic,
            FUNCTION_METRICS_PERIOD_SECONDS,
        )
        for index, function_name in enumerate(function_names)
        for metric_key, metric_and_statistic in FUNCTION_METRIC_BY_KEY.items()
    ]
    points_by_query_id = read_metric_series(
        clients, queries, now - FUNCTION_METRICS_WINDOW, now, subject="Lambda functions"
    )
    values_by_query_id = {
        query_id: [value for _, value in select_finite_points(points)]
        for query_id, points in points_by_query_id.items()
    }
    return {
        function_name: _summarize_function_metrics(
            *(
                values_by_query_id.get(f"{metric_key}_{index}", [])
                for metric_key in FUNCTION_METRIC_BY_KEY
            )
        )
        for index, function_name in enumerate(function_names)
    }


def _summarize_function_metrics(*metric_values: Sequence[float]) -> FunctionMetrics:
    """Return the metrics of one function, by the field names of LambdaConsumer.

    Lambda does not count a throttled request as an invocation.

    Args:
        metric_values: The values of each metric of FUNCTION_METRIC_BY_KEY, in that order.
    """
    p99_durations_ms, median_durations_ms, error_counts, invocation_counts, throttle_counts = (
        metric_values
    )
    invocation_count = sum(invocation_counts)
    throttle_count = sum(throttle_counts)
    request_count = invocation_count + throttle_count
    return {
        "duration_p99_seconds": max(p99_durations_ms) / 1000 if p99_durations_ms else None,
        "error_share": sum(error_counts) / invocation_count
        if error_counts and invocation_count
        else None,
        "throttled_share": throttle_count / request_count if request_count else None,
        # The last 60 minutes may touch two hours of CloudWatch. The lower median is used, so that
        # the duration is not exaggerated.
        "duration_p50_seconds": min(median_durations_ms) / 1000 if median_durations_ms else None,
        "invocations": int(invocation_count),
    }
