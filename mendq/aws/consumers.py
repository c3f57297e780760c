"""Read the Lambda functions that consume queues: their mappings, timeouts and figures.

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
from mendq.model.facts import BATCH_SIZE, LambdaConsumer

if TYPE_CHECKING:
    from mypy_boto3_lambda.type_defs import EventSourceMappingConfigurationTypeDef as Mapping_
    from mypy_boto3_lambda.type_defs import ListEventSourceMappingsResponseTypeDef as Page

FIGURES_WINDOW = timedelta(hours=1)
FIGURES_PERIOD_SECONDS = 3600
FIGURES = {
    "duration_p99": ("Duration", "p99"),
    "duration_p50": ("Duration", "p50"),
    **{f"{each.lower()}_sum": (each, "Sum") for each in ("Errors", "Invocations", "Throttles")},
}
_CONSUMING = frozenset({"Enabled", "Enabling", "Updating", "Creating"})
_STOPPED = frozenset({"Disabled", "Disabling"})


def list_mappings(clients: Clients, queue_arn: str | None = None) -> list[Mapping_]:
    """The event source mappings of one queue, or of the whole account. Raises FactsUnavailable."""
    of = f"of {queue_arn}" if queue_arn else "of the account"
    with translate_aws_errors(f"Lambda consumers {of}"):
        return [each for page in _pages(clients, queue_arn) for each in page["EventSourceMappings"]]


def _pages(clients: Clients, queue_arn: str | None) -> Iterator[Page]:
    """Page by hand: for its paginators botocore goes through all services, 6 ms of a start."""
    asked: dict[str, Any] = {"EventSourceArn": queue_arn} if queue_arn else {}
    while True:
        yield (page := clients.functions.list_event_source_mappings(**asked))
        if not (marker := page.get("NextMarker")):
            return
        asked["Marker"] = marker


def timeout_seconds_of(clients: Clients, function_arn: str) -> int | None:
    """The function's timeout, or None where it is gone: then it consumes nothing."""
    with translate_aws_errors(f"the timeout of {function_arn}"):
        try:
            found = clients.functions.get_function_configuration(FunctionName=function_arn)
        except clients.functions.exceptions.ResourceNotFoundException:
            return None
        return found["Timeout"]


def reserved_concurrency_of(clients: Clients, function_name: str) -> int | None:
    """How often the function may run at once, None where it shares the account's concurrency."""
    with translate_aws_errors(f"the reserved concurrency of {function_name}"):
        found = clients.functions.get_function_concurrency(FunctionName=function_name)
        return found.get("ReservedConcurrentExecutions")


def consumers_behind(
    mappings: Iterable[Mapping_], timeouts_seconds: Mapping[str, int | None]
) -> tuple[tuple[LambdaConsumer, ...], tuple[str, ...]]:
    """Those that consume, without figures, and those that are stopped.

    `timeouts_seconds` by the ARNs of those behind enabled mappings.
    """
    enabled, stopped = [], []
    for each in mappings:
        arn, state = each.get("FunctionArn", ""), each.get("State")
        timeout_seconds = timeouts_seconds.get(arn)
        if state in _STOPPED:
            stopped.append(arn)
        elif state in _CONSUMING and timeout_seconds is not None:
            enabled.append(_consumer(each, timeout_seconds))
    return tuple(enabled), tuple(stopped)


def _consumer(mapping: Mapping_, timeout_seconds: int) -> LambdaConsumer:
    return LambdaConsumer(
        mapping["FunctionArn"],
        timeout_seconds,
        mapping.get("MaximumBatchingWindowInSeconds", 0),
        mapping_id=mapping.get("UUID", ""),
        batch_size=mapping.get("BatchSize", BATCH_SIZE),
        reports_item_failures="ReportBatchItemFailures" in mapping.get("FunctionResponseTypes", ()),
        maximum_concurrency=mapping.get("ScalingConfig", {}).get("MaximumConcurrency"),
        modified_at=mapping.get("LastModified"),
    )


def active_function_arns(mappings: Iterable[Mapping_]) -> list[str]:
    """The functions behind mappings that are enabled."""
    return [each["FunctionArn"] for each in mappings if each.get("State") in _CONSUMING]


# Of one function's last hour, by the fields of LambdaConsumer; none where it never ran.
Figures = Mapping[str, Any]


def figures_of(clients: Clients, names: Sequence[str], now: datetime) -> dict[str, Figures]:
    """Figures by function name, for as many as one call takes: 100. Raises FactsUnavailable."""
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
    """Lambda counts a throttled request as no invocation."""
    durations_ms, medians_ms, errors, invocations, throttles = found
    ran, throttled = sum(invocations), sum(throttles)
    return {
        "duration_p99_seconds": max(durations_ms) / 1000 if durations_ms else None,
        "error_share": sum(errors) / ran if errors and ran else None,
        "throttled_share": throttled / (ran + throttled) if ran + throttled else None,
        # Two hours may have a share in the last one: the quicker is not over what it was.
        "duration_p50_seconds": min(medians_ms) / 1000 if medians_ms else None,
        "invocations": int(ran),
    }
