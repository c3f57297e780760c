"""Receiving, deleting and changing the visibility of messages, answered as AWS answers.

Messages and behavior marked "(recorded)" were seen from the real SQS.

Standard queues:

- DeleteMessage answers 200 for every receipt handle of the queue, also if the message is already
  deleted. With the receipt handle of an earlier receive, the message stays in the queue.
- ChangeMessageVisibility after the visibility timeout answers 200 (recorded) if the message was not
  received again. We assume that it changes nothing then.
- ChangeMessageVisibility with the receipt handle of an earlier receive fails with
  MessageNotInflight, as the API reference says.

FIFO queues: both calls fail as soon as the visibility timeout has passed. DeleteMessage's error
message is recorded.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any

from ministack.core.concurrency import esm_wake
from ministack.services import sqs

from local_account.hooks import replace_functions
from local_account.sqs.queues import count_receives, make_invalid_parameter_error
from mendq.model.queue import parse_redrive_policy

Parameters = Mapping[str, Any]
Queue = dict[str, Any]
Message = dict[str, Any]
MessageHandler = Callable[[Queue, Parameters], None]
MAXIMUM_VISIBILITY_SECONDS = 43_200
MAXIMUM_WAIT_SECONDS = 20
# A queue stores at most this many receipt handles. Older ones are forgotten and count as invalid.
MAXIMUM_STORED_HANDLES = 200_000
MAXIMUM_BATCH_ENTRIES = 10
# Key of a queue under which its receipt handles are stored, with their messages.
_RECEIPT_HANDLES_KEY = "local_account_receipts"


def install() -> None:
    """Make MiniStack answer calls about messages as SQS does. Call this once per process."""
    # Reentrant: the hooks below hold it while they call functions that take it themselves.
    sqs._queues_lock = threading.RLock()
    _replace_handlers("DeleteMessage", _delete_message)
    _replace_handlers("ChangeMessageVisibility", _change_visibility)
    _install_limit_checks()

    @replace_functions(sqs._HANDLERS, "SendMessage", "SendMessageBatch", "PurgeQueue")
    @replace_functions(sqs, "_expire_retained", "_dlq_sweep")
    def call_with_lock(original_function: Any, *arguments: Any) -> Any:
        """Call MiniStack's function with the lock of the queues.

        An event source mapping that polls replaces the queue's list of messages. Without the lock,
        a message that is added meanwhile would be lost.
        """
        with sqs._queues_lock:
            return original_function(*arguments)

    @replace_functions(sqs, "_collect_msgs")
    def collect_messages(
        original_function: Any, queue: Queue, *other_arguments: Any
    ) -> list[Message]:
        """Receive messages, and store their receipt handles. MiniStack stores only the latest.

        Messages that must move to the DLQ are not returned (`_put_back_dlq_messages`).
        """
        with sqs._queues_lock:
            messages = _put_back_dlq_messages(queue, original_function(queue, *other_arguments))
            message_by_receipt_handle: OrderedDict[str, Message] = queue.setdefault(
                _RECEIPT_HANDLES_KEY, OrderedDict()
            )
            for message in messages:
                message_by_receipt_handle[message["receipt_handle"]] = message
            while len(message_by_receipt_handle) > MAXIMUM_STORED_HANDLES:
                message_by_receipt_handle.popitem(last=False)
        return messages


def _put_back_dlq_messages(queue: Queue, messages: list[Message]) -> list[Message]:
    """Put received messages back that must move to the DLQ, and return the other ones.

    Such messages became visible after MiniStack last moved messages to the DLQ, and MiniStack moves
    them the next time. In a FIFO queue, later messages of the same group are put back too, so that
    their order is kept.
    """
    redrive_policy = parse_redrive_policy(queue["attributes"].get("RedrivePolicy", ""))
    if redrive_policy is None or sqs._queue_by_arn(redrive_policy.dlq_arn) is None:
        return messages
    deliverable_messages: list[Message] = []
    blocked_group_ids: set[str] = set()
    for message in messages:
        must_move_to_dlq = count_receives(message) > redrive_policy.max_receive_count
        is_behind_moving_message = queue["is_fifo"] and message["group_id"] in blocked_group_ids
        if not must_move_to_dlq and not is_behind_moving_message:
            deliverable_messages.append(message)
            continue
        blocked_group_ids.add(message["group_id"])
        message["receive_count"] -= 1
        message["visible_at"] = 0.0
    return deliverable_messages


def _install_limit_checks() -> None:
    """Make MiniStack refuse wait times, visibility timeouts and batches outside SQS's limits."""

    @replace_functions(sqs._HANDLERS, "ReceiveMessage")
    def check_receive(original_function: Any, parameters: Parameters, url: str) -> Any:
        wait_seconds = parameters.get("WaitTimeSeconds")
        if wait_seconds is not None and not 0 <= int(wait_seconds) <= MAXIMUM_WAIT_SECONDS:
            reason = f"Must be >= 0 and <= {MAXIMUM_WAIT_SECONDS}, if provided."  # (recorded)
            raise make_invalid_parameter_error(wait_seconds, "WaitTimeSeconds", reason)
        _check_visibility_timeout(int(parameters.get("VisibilityTimeout") or 0))
        return original_function(parameters, url)

    @replace_functions(sqs, "_validate_batch_entries")
    def check_batch_size(original_function: Any, entries: list[Any], entry_name: str) -> None:
        if len(entries) > MAXIMUM_BATCH_ENTRIES:
            # (recorded)
            size_rule_text = f"Maximum number of entries per request are {MAXIMUM_BATCH_ENTRIES}."
            message = f"{size_rule_text} You have sent {len(entries)}."
            raise sqs._Err("TooManyEntriesInBatchRequest", message)
        original_function(entries, entry_name)


def _replace_handlers(action: str, handle_message: MessageHandler) -> None:
    """Replace MiniStack's handlers of an SQS action and of its batch action.

    `handle_message` handles a single call or one entry of a batch. Its arguments are the queue and
    the parameters. If `handle_message` raises SQS's error for a single call, the call fails. If it
    raises the error for an entry, only this entry fails, and the batch is answered with 200.
    """

    def handle_call(parameters: Parameters, url: str) -> dict[str, Any]:
        queue = sqs._get_q(parameters.get("QueueUrl") or url, f"sqs:{action}")
        handle_message(queue, parameters)
        return {}

    def handle_batch(parameters: Parameters, url: str) -> dict[str, Any]:
        queue = sqs._get_q(parameters.get("QueueUrl") or url, f"sqs:{action}")
        entries = parameters.get("Entries") or []
        sqs._validate_batch_entries(entries, f"{action}BatchRequestEntry")
        response: dict[str, Any] = {"Successful": [], "Failed": []}
        for entry in entries:
            entry_id = {"Id": entry["Id"]}
            try:
                handle_message(queue, entry)
                response["Successful"].append(entry_id)
            except sqs._Err as error:
                error_code = sqs._QUERY_COMPAT_CODES.get(error.code, error.code)
                error_fields = {"Code": error_code, "Message": error.message, "SenderFault": True}
                response["Failed"].append(entry_id | error_fields)
        return response

    sqs._HANDLERS[action] = handle_call
    sqs._HANDLERS[f"{action}Batch"] = handle_batch


def _check_visibility_timeout(timeout_seconds: int) -> None:
    if not 0 <= timeout_seconds <= MAXIMUM_VISIBILITY_SECONDS:
        reason = f"Must be between 0 and {MAXIMUM_VISIBILITY_SECONDS}, if provided."
        raise make_invalid_parameter_error(timeout_seconds, "VisibilityTimeout", reason)


def _delete_message(queue: Queue, parameters: Parameters) -> None:
    """Delete the message if the call has the receipt handle of the message's newest receive.

    In a standard queue, do nothing if the receipt handle is older or the message is already
    deleted. In a FIFO queue, raise SQS's error if the receipt handle is older or the visibility
    timeout has passed. In both, raise SQS's error if the queue has not stored the receipt handle.
    """
    receipt_handle = parameters.get("ReceiptHandle", "")
    with sqs._queues_lock:
        message = _find_message(queue, receipt_handle)
        is_latest_handle = message["receipt_handle"] == receipt_handle
        if queue["is_fifo"] and not (is_latest_handle and message["visible_at"] > time.time()):
            reason = "The receipt handle has expired."  # (recorded)
            raise make_invalid_parameter_error(receipt_handle, "ReceiptHandle", reason)
        if is_latest_handle:
            queue["messages"] = [
                stored_message
                for stored_message in queue["messages"]
                if stored_message is not message
            ]


def _change_visibility(queue: Queue, parameters: Parameters) -> None:
    """Make the message of a receipt handle visible again after the call's VisibilityTimeout.

    Raises SQS's error if the timeout is not allowed, if the queue has not stored the receipt
    handle, or if the message is deleted or not in flight. In a standard queue, do nothing if only
    the visibility timeout has passed.
    """
    receipt_handle = parameters.get("ReceiptHandle", "")
    timeout_seconds = int(parameters.get("VisibilityTimeout") or 0)
    _check_visibility_timeout(timeout_seconds)
    with sqs._queues_lock:
        message = _find_message(queue, receipt_handle)
        now = time.time()
        is_latest_handle = message["receipt_handle"] == receipt_handle
        if not any(stored_message is message for stored_message in queue["messages"]):
            reason = "Message does not exist or is not available for visibility timeout change."
            raise make_invalid_parameter_error(receipt_handle, "ReceiptHandle", reason)
        if not (is_latest_handle and message["visible_at"] > now):
            if is_latest_handle and not queue["is_fifo"]:
                return
            raise sqs._Err("MessageNotInflight", "The message is not in flight.")
        seconds_since_first_receive = now - (message.get("first_receive_at") or now)
        if seconds_since_first_receive + timeout_seconds > MAXIMUM_VISIBILITY_SECONDS:
            limit_text = f"beyond the limit [{MAXIMUM_VISIBILITY_SECONDS} seconds]."
            reason = f"Total VisibilityTimeout for the message is {limit_text}"
            raise make_invalid_parameter_error(timeout_seconds, "VisibilityTimeout", reason)
        message["visible_at"] = now + timeout_seconds
    if timeout_seconds == 0:
        esm_wake.set()


def _find_message(queue: Queue, receipt_handle: str) -> Message:
    """Return the message that was received with this receipt handle.

    Raises SQS's ReceiptHandleIsInvalid if the queue has not stored this receipt handle.
    """
    message: Message | None = queue.get(_RECEIPT_HANDLES_KEY, {}).get(receipt_handle)
    if message is None:
        raise sqs._Err("ReceiptHandleIsInvalid", "The input receipt handle is invalid.")
    return message
