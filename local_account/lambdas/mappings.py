"""Event source mappings on SQS: their batching window, and what Lambda asks of the role.

As on AWS the messages are received at once, so their visibility timeout runs while the window
gathers more of them.
https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-configure.html
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator, Mapping
from typing import Any

from ministack.core.concurrency import esm_wake
from ministack.services import lambda_svc, sqs

from local_account.hooks import around
from local_account.permissions import refusal_to_act

NEEDED = ("sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes")
ONE_RECEIVE = 10
WAKE_SLACK_SECONDS = 0.005
Message = dict[str, Any]
logger = logging.getLogger("mendq.poller")


def install() -> None:
    """Hook the poller; once per process."""
    said: set[str] = set()

    @around(sqs, "_receive_messages_for_esm")
    def receive(inner: Any, queue_url: str, most: int) -> Any:
        """Give nothing to a role that may not poll the queue: MiniStack would."""
        for mapping, config in _mappings_of(queue_url):
            role, arn = str(config.get("Role", "")), mapping["EventSourceArn"]
            for refusal in filter(None, (refusal_to_act(role, each, arn) for each in NEEDED)):
                if refusal not in said:
                    said.add(refusal)
                    logger.error("the mapping of %s polls nothing: %s", arn, refusal)
                return []
        return inner(queue_url, most)

    _gather()


def _gather() -> None:
    """Hand out a batch when it is full or its window over, and nothing before."""
    open_windows: dict[str, tuple[float, list[Message]]] = {}

    @around(sqs, "_receive_messages_for_esm")
    def receive(inner: Any, queue_url: str, most: int) -> list[Message]:
        window = max(
            (float(each.get("MaximumBatchingWindowInSeconds") or 0))
            for each in ({}, *(mapping for mapping, _ in _mappings_of(queue_url)))
        )
        if not window:
            received: list[Message] = inner(queue_url, most)
            return received
        ends_at, messages = open_windows.get(queue_url, (0.0, []))
        while len(messages) < most:
            more = inner(queue_url, min(most - len(messages), ONE_RECEIVE))
            if not more:
                break
            messages.extend(more)
        if messages and not ends_at:
            ends_at = time.monotonic() + window
            open_windows[queue_url] = (ends_at, messages)
            timer = threading.Timer(window + WAKE_SLACK_SECONDS, esm_wake.set)
            timer.daemon = True
            timer.start()
        if not messages or (len(messages) < most and time.monotonic() < ends_at):
            return []
        del open_windows[queue_url]
        return messages


def _mappings_of(queue_url: str) -> Iterator[tuple[Mapping[str, Any], Mapping[str, Any]]]:
    """Each mapping of a queue that is on, and the configuration of its function."""
    arn = (sqs._queues.get(queue_url) or {}).get("attributes", {}).get("QueueArn")
    for _, _, mapping in lambda_svc._iter_all_esms():
        if mapping.get("EventSourceArn") == arn and mapping.get("Enabled", True):
            _, config = lambda_svc._get_func_record_for_qualifier(
                mapping["FunctionName"], mapping.get("Qualifier")
            )
            yield mapping, config or {}
