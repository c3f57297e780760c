"""What Lambda refuses when an SQS queue is mapped to a function; MiniStack takes it all.

https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-configure.html
Whether the role may poll is judged at every poll instead (poller_permissions.py).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ministack.core.responses import error_response_json
from ministack.services import lambda_svc, sqs
from ministack.services.cloudformation import provisioners

TYPE = "AWS::Lambda::EventSourceMapping"
LARGEST_STANDARD_BATCH = 10_000
LARGEST_FIFO_BATCH = 10
DEFAULT_TIMEOUT_SECONDS = 3


@dataclass(frozen=True)
class QueueMapping:
    """What of a mapping decides whether Lambda takes it."""

    is_fifo: bool
    batch_size: int
    window_seconds: int
    visibility_seconds: int
    function_timeout_seconds: int


def mapping_refusal(mapping: QueueMapping) -> str | None:
    """Why Lambda refuses a mapping, or None."""
    largest = LARGEST_FIFO_BATCH if mapping.is_fifo else LARGEST_STANDARD_BATCH
    if not 1 <= mapping.batch_size <= largest:
        return f"Batch size must be between 1 and {largest} for this type of queue."
    if mapping.is_fifo and mapping.window_seconds:
        return "Batching window is not supported for FIFO queues."
    if mapping.batch_size > LARGEST_FIFO_BATCH and not mapping.window_seconds:
        return (
            "Maximum batch window in seconds must be greater than 0 "
            "if maximum batch size is greater than 10"
        )
    if mapping.visibility_seconds < mapping.function_timeout_seconds:
        return (
            f"Queue visibility timeout: {mapping.visibility_seconds} seconds "
            f"is less than Function timeout: {mapping.function_timeout_seconds} seconds"
        )
    return None


def install() -> None:
    """Hook the API and CloudFormation; once per process."""
    lambda_svc._create_esm = _refusing_call(lambda_svc._create_esm)
    handlers = provisioners._RESOURCE_HANDLERS[TYPE]
    provisioners._RESOURCE_HANDLERS[TYPE] = {
        **handlers,
        "create": _refusing_resource(handlers["create"]),
    }


def _refusing_call(create: Callable[[Mapping[str, Any]], Any]) -> Callable[..., Any]:
    def creating(asked: Mapping[str, Any]) -> Any:
        if refusal := _refusal_of(asked):
            message = f"Invalid request provided: {refusal}"
            return error_response_json("InvalidParameterValueException", message, 400)
        return create(asked)

    return creating


def _refusing_resource(create: Callable[..., Any]) -> Callable[..., Any]:
    def creating(logical_id: str, properties: Mapping[str, Any], stack_name: str) -> Any:
        if refusal := _refusal_of(properties):
            raise ValueError(f"{TYPE}: Invalid request provided: {refusal}")
        return create(logical_id, properties, stack_name)

    return creating


def _refusal_of(asked: Mapping[str, Any]) -> str | None:
    queue = sqs._queue_by_arn(str(asked.get("EventSourceArn", "")))
    name = str(asked.get("FunctionName", "")).rpartition(":function:")[2]
    function, _, qualifier = name.partition(":")
    _, config = lambda_svc._get_func_record_for_qualifier(function, qualifier or None)
    if queue is None or config is None:
        return None  # no queue, or MiniStack says itself what is missing
    return mapping_refusal(
        QueueMapping(
            is_fifo=queue["is_fifo"],
            batch_size=int(asked.get("BatchSize") or LARGEST_FIFO_BATCH),
            window_seconds=int(asked.get("MaximumBatchingWindowInSeconds") or 0),
            visibility_seconds=int(queue["attributes"]["VisibilityTimeout"]),
            function_timeout_seconds=int(config.get("Timeout") or DEFAULT_TIMEOUT_SECONDS),
        )
    )
