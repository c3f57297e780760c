"""What Lambda asks of a function's role, and its mappings' batching window.

As on AWS the messages are received at once, so their visibility timeout runs while the window
gathers more of them.
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

NEEDED = ("sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes")
ONE_RECEIVE = 10
WAKE_SLACK_SECONDS = 0.005
Message = dict[str, Any]
logger = logging.getLogger("mendq.lambda")


def install() -> None:
    """Hook the poller, and what takes an event that no retry could handle; once per process."""
    _handle_failures()
    said: set[str] = set()
    open_windows: dict[str, tuple[float, list[Message]]] = {}

    @around(sqs, "_receive_messages_for_esm")
    def receive(inner: Any, queue_url: str, most: int) -> list[Message]:
        """Hand out a batch when it is full or its window over, and nothing before.

        Nothing either to a role that may not poll the queue: MiniStack would.
        """
        arn = (sqs._queues.get(queue_url) or {}).get("attributes", {}).get("QueueArn")
        mappings = [
            mapping
            for _, _, mapping in lambda_svc._iter_all_esms()
            if mapping.get("EventSourceArn") == arn and mapping.get("Enabled", True)
        ]
        for each in mappings:
            name, qualifier = each["FunctionName"], each.get("Qualifier")
            if refusal := _role_refusal(name, qualifier, NEEDED, arn):
                if refusal not in said:
                    said.add(refusal)
                    logger.error("the mapping of %s polls nothing: %s", arn, refusal)
                return []
        windows = (float(each.get("MaximumBatchingWindowInSeconds") or 0) for each in mappings)
        window = max(windows, default=0.0)
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


def _handle_failures() -> None:
    @around(lambda_svc, "_route_async_failure")
    def put_away(inner: Any, target_arn: str, function_name: str, *rest: Any) -> None:
        if refusal := _role_refusal(function_name, None, ("sqs:SendMessage",), target_arn):
            logger.error("the event that %s failed on is lost: %s", function_name, refusal)
            return
        with sqs._queues_lock:  # the poller of a mapping replaces the queue's list of messages
            inner(target_arn, function_name, *rest)


def _role_refusal(
    function: str, qualifier: str | None, actions: tuple[str, ...], queue_arn: str
) -> str | None:
    """Tell what of these actions on a queue the function's role may not do."""
    _, config = lambda_svc._get_func_record_for_qualifier(function, qualifier)
    role = str((config or {}).get("Role", ""))
    return next(filter(None, (refusal_to_act(role, each, queue_arn) for each in actions)), None)
