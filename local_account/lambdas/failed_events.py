"""Where an asynchronous event ends that no retry could handle, if the role may put it there.

A destination gets a record of what happened, a dead-letter queue the event itself.
https://docs.aws.amazon.com/lambda/latest/dg/invocation-async-retain-records.html
https://docs.aws.amazon.com/lambda/latest/dg/invocation-async.html
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from ministack.core.arn import parse_arn
from ministack.core.responses import new_uuid
from ministack.services import eventbridge, lambda_svc, sqs

from local_account.service_roles import refusal_to_act

DEFAULT_RETRIES = 2
NEEDED = {
    "sqs": "sqs:SendMessage",
    "sns": "sns:Publish",
    "lambda": "lambda:InvokeFunction",
}
logger = logging.getLogger("mendq.lambda")


def install() -> None:
    """Hook what MiniStack calls after the last attempt; once per process."""
    lambda_svc._route_async_failure = put_away


def put_away(target_arn: str, function_name: str, event: Any, result: Mapping[str, Any]) -> None:
    """Hand the event to its on-failure destination or dead-letter queue, or say why it is lost."""
    function, config = lambda_svc._get_func_record_for_qualifier(function_name, None)
    if function is None or config is None:
        return
    service = parse_arn(target_arn).service
    action = NEEDED.get(service)
    if action is None:
        logger.error("the event that %s failed on is lost: no %s here", function_name, service)
        return
    if refusal := refusal_to_act(config["Role"], action, target_arn):
        logger.error("the event that %s failed on is lost: %s", function_name, refusal)
        return
    settings = lambda_svc._event_invoke_config(function, None) or {}
    if _destination(settings) == target_arn:
        record = failure_record(config["FunctionArn"], settings, event, result)
        _deliver(service, target_arn, json.dumps(record))
    else:
        _deliver(service, target_arn, json.dumps(event), _reasons(result))


def failure_record(
    function_arn: str, settings: Mapping[str, Any], event: Any, result: Mapping[str, Any]
) -> dict[str, Any]:
    """What a destination gets."""
    body = result.get("body")
    request_id = body.get("requestId") if isinstance(body, dict) else None
    retries = settings.get("MaximumRetryAttempts")
    return {
        "version": "1.0",
        "timestamp": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%S.%f}"[:-3] + "Z",
        "requestContext": {
            "requestId": request_id or new_uuid(),
            "functionArn": f"{function_arn}:$LATEST",
            "condition": "RetriesExhausted",
            "approximateInvokeCount": 1 + (DEFAULT_RETRIES if retries is None else int(retries)),
        },
        "requestPayload": event,
        "responseContext": {
            "statusCode": 200,
            "executedVersion": "$LATEST",
            "functionError": result.get("function_error") or "Unhandled",
        },
        "responsePayload": body,
    }


def _destination(settings: Mapping[str, Any]) -> str | None:
    on_failure = (settings.get("DestinationConfig") or {}).get("OnFailure") or {}
    destination: str | None = on_failure.get("Destination")
    return destination


def _reasons(result: Mapping[str, Any]) -> dict[str, str]:
    body = result.get("body")
    described = body if isinstance(body, dict) else {}
    return {
        "RequestID": str(described.get("requestId") or new_uuid()),
        "ErrorCode": "200",
        "ErrorMessage": str(described.get("errorMessage") or "")[:1024],
    }


def _deliver(
    service: str, target_arn: str, text: str, attributes: Mapping[str, str] | None = None
) -> None:
    if service != "sqs":
        eventbridge._invoke_target({"Arn": target_arn, "Input": text}, {}, {})
        return
    with sqs._queues_lock:  # the poller of a mapping replaces the queue's list of messages
        queue = sqs._queue_by_arn(target_arn)
        if queue is None:
            logger.error("the event is lost: there is no queue %s", target_arn)
            return
        eventbridge._dispatch_to_sqs(parse_arn(target_arn), text)
        queue["messages"][-1]["message_attributes"] = {
            name: {"DataType": "String", "StringValue": value}
            for name, value in (attributes or {}).items()
        }
