"""Read the Lambda functions that consume queues: event source mappings, timeouts and figures.

Figures are a function's metrics of the last hour, such as durations and errors.

https://docs.aws.amazon.com/lambda/latest/api/API_ListEventSourceMappings.html
https://docs.aws.amazon.com/lambda/latest/dg/monitoring-metrics-types.html
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from mendq.aws.clients import Clients
from mendq.aws.cloudwatch import build_query, finite_points, read_series
from mendq.aws.errors import translate_aws_errors
from mendq.model.facts import DEFAULT_BATCH_SIZE, LambdaConsumer

if TYPE_CHECKING:
    from mypy_boto3_lambda.type_defs import EventSourceMappingConfigurationTypeDef as Mapping_
    from mypy_boto3_lambda.type_defs import ListEventSourceMappingsResponseTypeDef as Page

FIGURES_WINDOW = timedelta(hours=1)
FIGURES_PERIOD_SECONDS = 3600
FIGURES = {
    "duration_p99": ("Duration", "p99"),
    "duration_p50": ("Duration", "p50"),
    "errors_sum": ("Errors", "Sum"),
    "invocations_sum": ("Invocations", "Sum"),
    "throttles_sum": ("Throttles", "Sum"),
}
_CONSUMING = frozenset({"Enabled", "Enabling", "Updating", "Creating"})
_STOPPED = frozenset({"Disabled", "Disabling"})


def list_mappings(clients: Clients, queue_arn: str | None = None) -> list[Mapping_]:
    """Return the event source mappings of one queue; without `queue_arn`, all of the account and
    region.

    Raise FactsUnavailable.
    """
    of = f"of {queue_arn}" if queue_arn else "of the account"
    with translate_aws_errors(f"Lambda consumers {of}"):
        mappings: list[Mapping_] = []
        for page in _pages(clients, queue_arn):
            mappings += page["EventSourceMappings"]
        return mappings


def _pages(clients: Clients, queue_arn: str | None) -> Iterator[Page]:
    """Yield the pages of mappings.

    botocore's own paginator is not used: it first lists all services, which adds 6 ms to a cold
    start.
    """
    asked: dict[str, Any] = {"EventSourceArn": queue_arn} if queue_arn else {}
    while True:
        yield (page := clients.functions.list_event_source_mappings(**asked))
        if not (marker := page.get("NextMarker")):
            return
        asked["Marker"] = marker


def timeout_seconds_of(clients: Clients, function_arn: str) -> int | None:
    """Return the function's timeout in seconds; None if the function was deleted.

    Raise FactsUnavailable.
    """
    with translate_aws_errors(f"the timeout of {function_arn}"):
        try:
            found = clients.functions.get_function_configuration(FunctionName=function_arn)
        except clients.functions.exceptions.ResourceNotFoundException:
            return None
        return found["Timeout"]


def reserved_concurrency_of(clients: Clients, function_name: str) -> int | None:
    """Return the function's reserved concurrency; None if it has none. Raise FactsUnavailable."""
    with translate_aws_errors(f"the reserved concurrency of {function_name}"):
        found = clients.functions.get_function_concurrency(FunctionName=function_name)
        return found.get("ReservedConcurrentExecutions")


def consumers_behind(
    mappings: Iterable[Mapping_], timeouts_seconds: Mapping[str, int | None]
) -> tuple[tuple[LambdaConsumer, ...], tuple[str, ...]]:
    """Return the queue's Lambda consumers, without figures, and the stopped ones.

    Args:
        mappings: The queue's event source mappings.
        timeouts_seconds: The timeout of each function with an enabled mapping, by function ARN.
            None for a deleted function.

    Returns:
        The functions with an enabled mapping, and the ARNs of functions with a disabled one.
        Deleted functions are left out of the first.
    """
    enabled: list[LambdaConsumer] = []
    stopped: list[str] = []
    for mapping in mappings:
        arn = mapping.get("FunctionArn", "")
        state = mapping.get("State")
        timeout_seconds = timeouts_seconds.get(arn)
        if state in _STOPPED:
            stopped.append(arn)
        elif state in _CONSUMING and timeout_seconds is not None:
            enabled.append(_consumer(mapping, timeout_seconds))
    return tuple(enabled), tuple(stopped)


def _consumer(mapping: Mapping_, timeout_seconds: int) -> LambdaConsumer:
    """Return the Lambda consumer of one event source mapping, without figures."""
    return LambdaConsumer(
        mapping["FunctionArn"],
        timeout_seconds,
        mapping.get("MaximumBatchingWindowInSeconds", 0),
        mapping_id=mapping.get("UUID", ""),
        batch_size=mapping.get("BatchSize", DEFAULT_BATCH_SIZE),
        reports_item_failures="ReportBatchItemFailures" in mapping.get("FunctionResponseTypes", ()),
        maximum_concurrency=mapping.get("ScalingConfig", {}).get("MaximumConcurrency"),
        modified_at=mapping.get("LastModified"),
    )


def active_function_arns(mappings: Iterable[Mapping_]) -> list[str]:
    """Return the ARN of the function of each enabled mapping."""
    return [mapping["FunctionArn"] for mapping in mappings if mapping.get("State") in _CONSUMING]


# One function's figures of the last hour, by the fields of LambdaConsumer. They are None, or 0 for
# counts, if the function did not run.
Figures = Mapping[str, Any]


def figures_of(clients: Clients, names: Sequence[str], now: datetime) -> dict[str, Figures]:
    """Return the figures of the last hour by function name, for at most 100 functions. Raise
    FactsUnavailable.
    """
    queries = [
        build_query(
            f"{key}_{n}", ("AWS/Lambda", "FunctionName", name), *asked, FIGURES_PERIOD_SECONDS
        )
        for n, name in enumerate(names)
        for key, asked in FIGURES.items()
    ]
    series = read_series(clients, queries, now - FIGURES_WINDOW, now, of="Lambda functions")
    values = {key: [value for _, value in finite_points(points)] for key, points in series.items()}
    return {
        name: _figures(*(values.get(f"{key}_{n}", []) for key in FIGURES))
        for n, name in enumerate(names)
    }


def _figures(*found: Sequence[float]) -> Figures:
    """Return the figures of one function, by the field names of LambdaConsumer.

    Lambda does not count a throttled request as an invocation.

    Args:
        found: The values of each metric of FIGURES, in that order.
    """
    durations_ms, medians_ms, errors, invocations, throttles = found
    ran, throttled = sum(invocations), sum(throttles)
    return {
        "duration_p99_seconds": max(durations_ms) / 1000 if durations_ms else None,
        "error_share": sum(errors) / ran if errors and ran else None,
        "throttled_share": throttled / (ran + throttled) if ran + throttled else None,
        # The last 60 minutes may touch two hours of CloudWatch. The lower median is used, so that
        # the figure is not exaggerated.
        "duration_p50_seconds": min(medians_ms) / 1000 if medians_ms else None,
        "invocations": int(ran),
    }
