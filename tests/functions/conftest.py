"""A Lambda as Lambda calls it, on the account in moto that the tests of the engine have."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec import structs

from functions.entry import Entry, LambdaInvocation
from mendq.aws.clients import Clients
from mendq.model.limits import Limits
from mendq.model.settings import FULL_ALARMS
from tests.account.account import Account, account

__all__ = ["account"]
Deploy = Callable[..., None]


@dataclass
class Context:
    """What Lambda hands over."""

    aws_request_id: str = "request-1"
    function_name: str = "heal"
    memory_limit_in_mb: int = 512
    invoked_function_arn: str = "arn:aws:lambda:us-east-1:123456789012:function:heal"

    def get_remaining_time_in_millis(self) -> int:
        return 60_000


CONTEXT: Any = Context()


def call_with(metrics: Any) -> LambdaInvocation[Any]:
    """An invocation of which only what it counts is looked at."""
    nothing: Any = SimpleNamespace(limits=Limits(), alarms=FULL_ALARMS)
    return LambdaInvocation(nothing, nothing, nothing, nothing, metrics, datetime.now(UTC))


def forget(handler: Entry[Any]) -> None:
    """Begin cold again."""
    vars(handler).pop("settings_and_clients", None)


@pytest.fixture
def deploy(monkeypatch: pytest.MonkeyPatch) -> Iterator[Deploy]:
    """Give a handler its environment, from the account's settings and `over`, and begin cold."""
    deployed: list[Entry[Any]] = []

    def at(handler: Entry[Any], account: Account, /, **over: Any) -> None:
        known = {**structs.asdict(account.settings), **over}
        needed = {name for name in handler.settings_class.__struct_fields__ if name in known}
        settings = handler.settings_class(**{name: known[name] for name in needed})
        for variable, text in settings.to_environment().items():
            monkeypatch.setenv(variable, text)
        monkeypatch.setattr(Clients, "for_lambda", lambda: account.clients)
        forget(handler)
        deployed.append(handler)

    yield at
    for each in deployed:
        forget(each)


def event_of(bodies: Mapping[str, str]) -> dict[str, Any]:
    """Messages by their ids, as SQS hands them over."""
    records = [
        {"messageId": message_id, "body": body, "eventSource": "aws:sqs"}
        for message_id, body in bodies.items()
    ]
    return {"Records": records}


def metrics(printed: str) -> dict[str, float]:
    """The EMF values without a dimension, summed."""
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
