"""Event source mappings: check the function's role, and wait for the batching window.

As on AWS, messages are received at once. Their visibility timeout runs while the batching window
collects more of them.
https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-configure.html
https://docs.aws.amazon.com/lambda/latest/dg/invocation-async-retain-records.html
"""

from __future__ import annotations

import logging
import threading
import time
from typing import Any

from ministack.core.concurrency import esm_wake
from ministack.services import lambda_svc, sqs

from local_account.hooks import around
from local_account.permissions import refusal_to_act

# Actions that the function's role needs on the queue.
POLL_ACTIONS = ("sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes")
MOST_PER_RECEIVE = 10
WAKE_SLACK_SECONDS = 0.005
Message = dict[str, Any]
logger = logging.getLogger("mendq.lambda")


def install() -> None:
    """Make event source mappings check the function's role and wait for the batching window.

    Destinations of failed events also check the role. Call this once per process.
    """
    _check_failure_destinations()
    logged_refusals: set[str] = set()
    # Queue URL -> when its batching window ends (monotonic seconds), and the messages in it.
    open_windows: dict[str, tuple[float, list[Message]]] = {}

    @around(sqs, "_receive_messages_for_esm")
    def receive(inner: Any, queue_url: str, most: int) -> list[Message]:
        """Return a batch if it is full or its batching window has ended, else no message.

        If the function's role may not poll the queue, no message is returned. MiniStack alone does
        not check that.
        """
        arn = (sqs._queues.get(queue_url) or {}).get("attributes", {}).get("QueueArn")
        mappings = [
            mapping
            for _, _, mapping in lambda_svc._iter_all_esms()
            if mapping.get("EventSourceArn") == arn and mapping.get("Enabled", True)
        ]
        for mapping in mappings:
            refusal = _role_refusal(
                mapping["FunctionName"], mapping.get("Qualifier"), POLL_ACTIONS, arn
            )
            if refusal:
                if refusal not in logged_refusals:
                    logged_refusals.add(refusal)
                    logger.error("the mapping of %s polls nothing: %s", arn, refusal)
                return []
        windows = [
            float(mapping.get("MaximumBatchingWindowInSeconds") or 0) for mapping in mappings
        ]
        window = max(windows, default=0.0)
        ends_at, messages = open_windows.get(queue_url, (0.0, []))
        while len(messages) < most:
            more = inner(queue_url, min(most - len(messages), MOST_PER_RECEIVE))
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


def _check_failure_destinations() -> None:
    """Send a failed event to its destination only if the function's role allows it."""

    @around(lambda_svc, "_route_async_failure")
    def send_failure(inner: Any, target_arn: str, function_name: str, *rest: Any) -> None:
        if refusal := _role_refusal(function_name, None, ("sqs:SendMessage",), target_arn):
            logger.error("the event that %s failed on is lost: %s", function_name, refusal)
            return
        # An event source mapping that polls replaces the queue's list of messages.
        with sqs._queues_lock:
            inner(target_arn, function_name, *rest)


def _role_refusal(
    function: str, qualifier: str | None, actions: tuple[str, ...], queue_arn: str
) -> str | None:
    """Return why the function's role may not do one of these actions on a queue, or None."""
    _, config = lambda_svc._get_func_record_for_qualifier(function, qualifier)
    role = str((config or {}).get("Role", ""))
    for action in actions:
        refusal = refusal_to_act(role, action, queue_arn)
        if refusal:
            return refusal
    return None
