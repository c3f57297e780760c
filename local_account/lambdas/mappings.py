"""Event source mappings: check the function's role, and wait for the batching window.

As on AWS, messages are received at once. Their visibility timeout already runs while the poller
collects further messages in the batching window.
https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-configure.html
https://docs.aws.amazon.com/lambda/latest/dg/invocation-async-retain-records.html
"""

from __future__ import annotations

import logging
import threading
import time
from dataclasses import dataclass, field
from typing import Any

from ministack.core.concurrency import esm_wake
from ministack.services import lambda_svc, sqs

from local_account.hooks import replace_functions
from local_account.lambdas.undocumented import MappingChoices
from local_account.permissions import find_action_refusal
from local_account.sqs import encryption

RECEIVE_ACTION = "sqs:ReceiveMessage"
DELETE_ACTION = "sqs:DeleteMessage"
# Actions that the function's role needs on the queue.
POLL_ACTIONS = (RECEIVE_ACTION, DELETE_ACTION, "sqs:GetQueueAttributes")
MAXIMUM_MESSAGES_PER_RECEIVE = 10
# Pollers are woken this long after the batching window, so that it has surely ended.
POLLER_WAKE_DELAY_SECONDS = 0.005
Message = dict[str, Any]
EventSourceMapping = dict[str, Any]
logger = logging.getLogger("mendq.lambda")


def install(choices: MappingChoices) -> None:
    """Make event source mappings check the function's role and wait for the batching window.

    Destinations of failed events also check the role. Call this once per process.
    """
    _check_failure_destinations()
    replace_functions(sqs, "_receive_messages_for_esm")(MappingPoller(choices).receive_batch)


@dataclass
class MappingPoller:
    """Receives batches of messages for event source mappings, as Lambda's pollers do."""

    choices: MappingChoices
    _logged_refusals: set[str] = field(default_factory=set)
    # Queue URL -> when its batching window ends (monotonic seconds), and the messages in it.
    _open_batch_windows: dict[str, tuple[float, list[Message]]] = field(default_factory=dict)

    def receive_batch(
        self, original_function: Any, queue_url: str, maximum_messages: int
    ) -> list[Message]:
        """Return a batch if it is full or its batching window has ended; otherwise an empty list.

        The list is also empty if there are no messages, or if a function's role may not poll the
        queue, which MiniStack itself does not check. `original_function` is MiniStack's own receive
        function.
        """
        queue_arn = (sqs._queues.get(queue_url) or {}).get("attributes", {}).get("QueueArn")
        mappings = _list_enabled_mappings(queue_arn)
        if self._is_refused(mappings, queue_arn):
            return []
        batch_window_ends_at, messages = self._open_batch_windows.get(queue_url, (0.0, []))
        while len(messages) < maximum_messages:
            missing_message_count = maximum_messages - len(messages)
            received_messages = self._receive(
                original_function,
                queue_url,
                min(missing_message_count, MAXIMUM_MESSAGES_PER_RECEIVE),
                mappings,
            )
            if not received_messages:
                break
            messages.extend(received_messages)
        if messages and not batch_window_ends_at:
            batch_window_seconds = _find_longest_window_seconds(mappings)
            batch_window_ends_at = time.monotonic() + batch_window_seconds
            self._open_batch_windows[queue_url] = (batch_window_ends_at, messages)
            _wake_pollers_after(batch_window_seconds + POLLER_WAKE_DELAY_SECONDS)
        is_batch_full = len(messages) >= maximum_messages
        if not messages or (not is_batch_full and time.monotonic() < batch_window_ends_at):
            return []
        del self._open_batch_windows[queue_url]
        return messages

    def _receive(
        self,
        original_function: Any,
        queue_url: str,
        maximum_messages: int,
        mappings: list[EventSourceMapping],
    ) -> list[Message]:
        """Receive messages with the function's role. Return none if their KMS key is refused."""
        role_arn = _find_role_arn(mappings[0]) if mappings else ""
        try:
            with encryption.poll_as(role_arn):
                messages: list[Message] = original_function(queue_url, maximum_messages)
        except sqs._Err as error:
            if error.code not in encryption.QUERY_CODE_BY_ERROR:
                raise
            self._log_once(queue_url, error.message)
            return []
        return messages

    def _log_once(self, queue_name: str, refusal: str) -> None:
        """Log why the mapping of a queue polls nothing, each reason only once."""
        if refusal not in self._logged_refusals:
            self._logged_refusals.add(refusal)
            logger.error("the mapping of %s polls nothing: %s", queue_name, refusal)

    def _is_refused(self, mappings: list[EventSourceMapping], queue_arn: str) -> bool:
        """Return True if a function's role may not poll the queue. Log each reason only once."""
        needed_actions = POLL_ACTIONS if self.choices.stops_polling else (RECEIVE_ACTION,)
        for mapping in mappings:
            refusal = find_role_refusal(
                mapping["FunctionName"], mapping.get("Qualifier"), needed_actions, queue_arn
            )
            if not refusal:
                continue
            self._log_once(queue_arn, refusal)
            return True
        return False


def _list_enabled_mappings(queue_arn: str) -> list[EventSourceMapping]:
    """Return a queue's event source mappings that are not disabled."""
    return [
        mapping
        for _, _, mapping in lambda_svc._iter_all_esms()
        if mapping.get("EventSourceArn") == queue_arn and mapping.get("Enabled", True)
    ]


def _find_longest_window_seconds(mappings: list[EventSourceMapping]) -> float:
    """Return the longest batching window of these mappings, in seconds."""
    batch_window_seconds = [
        float(mapping.get("MaximumBatchingWindowInSeconds") or 0) for mapping in mappings
    ]
    return max(batch_window_seconds, default=0.0)


def _wake_pollers_after(seconds: float) -> None:
    """Make MiniStack's mappings poll again in `seconds` seconds. Return at once."""
    timer = threading.Timer(seconds, esm_wake.set)
    timer.daemon = True
    timer.start()


def _check_failure_destinations() -> None:
    """Make MiniStack send a failed event to its destination only if the role may send it."""

    @replace_functions(lambda_svc, "_route_async_failure")
    def send_failure(
        original_function: Any, target_arn: str, function_name: str, *other_arguments: Any
    ) -> None:
        if refusal := find_role_refusal(function_name, None, ("sqs:SendMessage",), target_arn):
            logger.error("the event that %s failed on is lost: %s", function_name, refusal)
            return
        role = encryption.make_role(_find_role_arn({"FunctionName": function_name}))
        with encryption.encrypt_delivery(target_arn, role) as key_refusal:
            if key_refusal is None:
                original_function(target_arn, function_name, *other_arguments)


def find_role_refusal(
    function_name: str, qualifier: str | None, actions: tuple[str, ...], queue_arn: str
) -> str | None:
    """Return why the function's role may not do one of `actions` on a queue, or None."""
    role_arn = _find_role_arn({"FunctionName": function_name, "Qualifier": qualifier})
    for action in actions:
        refusal = find_action_refusal(role_arn, action, queue_arn)
        if refusal:
            return refusal
    return None


def _find_role_arn(mapping: EventSourceMapping) -> str:
    """Return the ARN of the role of a mapping's function; empty without such a function."""
    _, configuration = lambda_svc._get_func_record_for_qualifier(
        mapping["FunctionName"], mapping.get("Qualifier")
    )
    return str((configuration or {}).get("Role", ""))
