"""The batching window of an SQS event source mapping, which MiniStack stores and ignores.

As on AWS the messages are received at once, so their visibility timeout runs while the window
gathers more of them.
https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-configure.html
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ministack.core.concurrency import esm_wake
from ministack.services import lambda_svc, sqs

Message = dict[str, Any]
Receive = Callable[[str, int], list[Message]]
ONE_RECEIVE = 10
WAKE_SLACK_SECONDS = 0.005


@dataclass
class _Gathering:
    ends_at: float
    messages: list[Message] = field(default_factory=list)


def install() -> None:
    """Hook the poller; once per process."""
    sqs._receive_messages_for_esm = gathering(sqs._receive_messages_for_esm, _window_seconds)


def gathering(receive: Receive, window_seconds: Callable[[str], float]) -> Receive:
    """A receive that hands out a batch when it is full or its window over, and nothing before."""
    open_windows: dict[str, _Gathering] = {}

    def receiving(queue_url: str, most: int) -> list[Message]:
        window = window_seconds(queue_url)
        if not window:
            return receive(queue_url, most)
        gathered = open_windows.get(queue_url)
        messages = gathered.messages if gathered else []
        while len(messages) < most:
            more = receive(queue_url, min(most - len(messages), ONE_RECEIVE))
            if not more:
                break
            messages.extend(more)
        if messages and gathered is None:
            gathered = open_windows[queue_url] = _Gathering(time.monotonic() + window, messages)
            _wake_after(window + WAKE_SLACK_SECONDS)
        if gathered is None or (len(messages) < most and time.monotonic() < gathered.ends_at):
            return []
        del open_windows[queue_url]
        return messages

    return receiving


def _window_seconds(queue_url: str) -> float:
    queue = sqs._queues.get(queue_url) or {}
    arn = queue.get("attributes", {}).get("QueueArn")
    for _, _, mapping in lambda_svc._iter_all_esms():
        if mapping.get("EventSourceArn") == arn:
            return float(mapping.get("MaximumBatchingWindowInSeconds") or 0)
    return 0


def _wake_after(seconds: float) -> None:
    timer = threading.Timer(seconds, esm_wake.set)
    timer.daemon = True
    timer.start()
