"""Events, contexts and invocations as Lambda hands them to a handler, and the metrics it prints."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

from functions.entry import Entry, LambdaInvocation
from mendq.model.limits import Limits
from mendq.model.settings import FULL_ALARMS

Deploy = Callable[..., None]


@dataclass
class LambdaContext:
    """The context object that Lambda passes to a handler."""

    aws_request_id: str = "request-1"
    function_name: str = "heal"
    memory_limit_in_mb: int = 512
    invoked_function_arn: str = "arn:aws:lambda:us-east-1:123456789012:function:heal"

    def get_remaining_time_in_millis(self) -> int:
        return 60_000


LAMBDA_CONTEXT: Any = LambdaContext()


def make_invocation(metrics: Any) -> LambdaInvocation[Any]:
    """Return an invocation for tests that look only at the metrics it records."""
    unused: Any = SimpleNamespace(limits=Limits(), alarms=FULL_ALARMS)
    return LambdaInvocation(unused, unused, unused, unused, metrics, datetime.now(UTC))


def reset_to_cold_start(handler: Entry[Any]) -> None:
    """Make the next call of `handler` read its settings and make its clients again."""
    vars(handler).pop("settings_and_clients", None)


def make_sqs_event(bodies: Mapping[str, str]) -> dict[str, Any]:
    """Return the event by which Lambda's SQS trigger delivers these bodies, keyed by message id."""
    records = [
        {"messageId": message_id, "body": body, "eventSource": "aws:sqs"}
        for message_id, body in bodies.items()
    ]
    return {"Records": records}


def sum_metrics(printed: str) -> dict[str, float]:
    """Return the sum of each metric that a Lambda printed in the embedded metric format."""
    sums: dict[str, float] = {}
    for line in printed.splitlines():
        document = json.loads(line)
        for group in document.get("_aws", {}).get("CloudWatchMetrics", []):
            assert group["Namespace"] == "Mendq"
            dimensions = group["Dimensions"]
            for metric in group["Metrics"]:
                name = metric["Name"] + ("" if dimensions == [[]] else f" by {dimensions[0]}")
                sums[name] = sums.get(name, 0) + sum(document[metric["Name"]])
    return sums
