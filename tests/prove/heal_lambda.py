"""The heal Lambda as Lambda calls it, with the clock in the hands of the proof."""

from __future__ import annotations

import io
import json
import logging
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, replace
from datetime import datetime, tzinfo
from typing import Any
from unittest.mock import patch

from functions import heal
from mendq.aws.clients import CallRateLimit, Clients
from tests.account.account import Account
from tests.functions.builders import LambdaContext, make_sqs_event, reset_to_cold_start
from tests.prove.calls import CountedCalls

# infra/lambdas/heal.py: what the event source mapping hands over at once.
BATCH_MESSAGES = 1_000


@dataclass
class HealLambda:
    """One warm execution environment; `deliver` is one invocation."""

    account: Account
    calls: CountedCalls
    output: io.StringIO
    invocations: int = 0

    @property
    def clients(self) -> Clients:
        """Its own."""
        _, clients = heal.handler.settings_and_clients
        return clients

    def deliver(self, bodies: Mapping[str, str]) -> dict[str, str]:
        """The messages that are to come again."""
        self.invocations += 1
        context = replace(LambdaContext(), aws_request_id=f"invocation-{self.invocations}")
        with redirect_stdout(self.output):
            answer = heal.handler(make_sqs_event(bodies), context)
        self.output.seek(0)
        self.output.truncate()
        failed = [
            batch_item_failure["itemIdentifier"]
            for batch_item_failure in answer["batchItemFailures"]
        ]
        return {message_id: bodies[message_id] for message_id in failed if message_id}


@contextmanager
def heal_lambda(account: Account) -> Iterator[HealLambda]:
    """Count the logged lines and metrics, and discard them."""
    reset_to_cold_start(heal.handler)
    output = io.StringIO()
    with (
        patch.dict(os.environ, account.settings.to_environment()),
        patch("functions.entry.datetime", _Clock(account)),
        _logging_to(output),
    ):
        _, clients = heal.handler.settings_and_clients
        clients.__dict__["look_ups"] = CallRateLimit(None)
        yield HealLambda(account, CountedCalls(clients.session), output)
    reset_to_cold_start(heal.handler)


@dataclass
class _Clock:
    account: Account

    def now(self, zone: tzinfo) -> datetime:
        return self.account.now.astimezone(zone)


@contextmanager
def _logging_to(output: io.StringIO) -> Iterator[None]:
    streams = [
        log_handler
        for log_handler in logging.getLogger("heal").handlers
        if isinstance(log_handler, logging.StreamHandler)
    ]
    before = [stream.setStream(output) for stream in streams]
    try:
        yield
    finally:
        for handler, stream in zip(streams, before, strict=True):
            handler.setStream(stream)


def envelope_of(record: Mapping[str, Any]) -> str:
    """The body of an intake message: EventBridge's envelope around a CloudTrail record."""
    return json.dumps(
        {
            "version": "0",
            "id": record["eventID"],
            "detail-type": "AWS API Call via CloudTrail",
            "source": "aws.sqs",
            "account": record["recipientAccountId"],
            "time": record["eventTime"],
            "region": record["awsRegion"],
            "resources": [],
            "detail": record,
        }
    )
