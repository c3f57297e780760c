"""What Invoke answers when a handler raised, and where an event ends that no retry could handle.

MiniStack names neither the exception nor its place. A destination gets a record of what happened, a
DLQ the event itself, if the function's role may put it there.
https://docs.aws.amazon.com/lambda/latest/dg/python-exceptions.html
https://docs.aws.amazon.com/lambda/latest/dg/invocation-async-retain-records.html
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from ministack.core.arn import parse_arn
from ministack.core.responses import new_uuid
from ministack.services import eventbridge, lambda_svc, sqs

from local_account.hooks import around
from local_account.permissions import refusal_to_act

DEFAULT_RETRIES = 2
_FRAME = re.compile(r"  File .*\n(?:    .*\n)*")
_TRACE = "Traceback (most recent call last):\n"
logger = logging.getLogger("mendq.lambda")


def install() -> None:
    """Hook MiniStack's warm executor, and what it calls after the last attempt; once."""
    lambda_svc._route_async_failure = put_away

    @around(lambda_svc, "_execute_function_warm")
    def execute(inner: Any, function: Mapping[str, Any], event: Any, request_id: str) -> Any:
        result = inner(function, event, request_id)
        if result.get("error") and isinstance(result.get("body"), dict):
            log = str(result.get("log") or "")
            return {**result, "body": payload_of(result["body"], log, request_id)}
        return result


def payload_of(body: Mapping[str, Any], log: str, request_id: str) -> dict[str, Any]:
    """The payload of a failed invocation; `log` ends with the trace, where the handler raised."""
    message = str(body.get("errorMessage") or "")
    if body.get("errorType") == "Sandbox.Timedout":
        return {**body, "errorMessage": f"RequestId: {request_id} Error: {message}"}
    _, began, trace = log.rpartition(_TRACE)
    if not began:
        return dict(body)
    named = trace.rstrip("\n").removesuffix(message.rstrip("\n")).rstrip().removesuffix(":")
    return {
        "errorMessage": message,
        "errorType": named.rpartition("\n")[2].rpartition(".")[2],  # without its module
        "requestId": request_id,
        # The first frame is that of what calls the handler.
        "stackTrace": _FRAME.findall(trace)[1:],
    }


def put_away(target_arn: str, function_name: str, event: Any, result: Mapping[str, Any]) -> None:
    """Hand the event to the queue that is its destination or takes dead events, or it is lost."""
    function, config = lambda_svc._get_func_record_for_qualifier(function_name, None)
    if function is None or config is None:
        return
    if refusal := refusal_to_act(config["Role"], "sqs:SendMessage", target_arn):
        logger.error("the event that %s failed on is lost: %s", function_name, refusal)
        return
    settings = lambda_svc._event_invoke_config(function, None) or {}
    on_failure = (settings.get("DestinationConfig") or {}).get("OnFailure") or {}
    if on_failure.get("Destination") == target_arn:
        retries = int(settings.get("MaximumRetryAttempts", DEFAULT_RETRIES))
        event = failure_record(config["FunctionArn"], retries, event, result)
    with sqs._queues_lock:  # the poller of a mapping replaces the queue's list of messages
        if sqs._queue_by_arn(target_arn) is not None:
            eventbridge._dispatch_to_sqs(parse_arn(target_arn), json.dumps(event))


def failure_record(
    function_arn: str, retries: int, event: Any, result: Mapping[str, Any]
) -> dict[str, Any]:
    """What a destination gets."""
    body = result.get("body")
    request_id = body.get("requestId") if isinstance(body, dict) else None
    return {
        "version": "1.0",
        "timestamp": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%S.%f}"[:-3] + "Z",
        "requestContext": {
            "requestId": request_id or new_uuid(),
            "functionArn": f"{function_arn}:$LATEST",
            "condition": "RetriesExhausted",
            "approximateInvokeCount": 1 + retries,
        },
        "requestPayload": event,
        "responseContext": {
            "statusCode": 200,
            "executedVersion": "$LATEST",
            "functionError": result.get("function_error") or "Unhandled",
        },
        "responsePayload": body,
    }
