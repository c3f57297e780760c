"""Receiving, deleting and changing the visibility of messages, answered as AWS answers.

"(recorded)" marks what was seen from the real SQS.

Standard queues:

- DeleteMessage answers 200 in every case. With the receipt handle of an earlier receive, the
  message stays in the queue.
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

from local_account.hooks import around
from local_account.sqs.queues import invalid_parameter
from mendq.model.queue import parse_redrive_policy

Parameters = Mapping[str, Any]
Queue = dict[str, Any]
Message = dict[str, Any]
Act = Callable[[Queue, Parameters], None]
LONGEST_SECONDS = 43_200
LONGEST_WAIT_SECONDS = 20
# If a queue has given more receipt handles, the oldest are forgotten and count as invalid.
MOST_HANDLES = 200_000
MOST_ENTRIES = 10
# Key of a queue that has all its receipt handles, with their messages.
_HANDLES = "local_account_receipts"


def install() -> None:
    """Make MiniStack answer calls about messages as SQS does. Call this once per process."""
    # Reentrant: the hooks below hold it while they call functions that take it themselves.
    sqs._queues_lock = threading.RLock()
    _answer_action("DeleteMessage", _delete_message)
    _answer_action("ChangeMessageVisibility", _change_visibility)
    _refuse_calls()

    @around(sqs._HANDLERS, "SendMessage", "SendMessageBatch", "PurgeQueue")
    @around(sqs, "_expire_retained", "_dlq_sweep")
    def call_locked(inner: Any, *arguments: Any) -> Any:
        """Change no queue while an event source mapping polls it.

        The poller replaces the queue's list of messages, and a message added meanwhile would be
        lost.
        """
        with sqs._queues_lock:
            return inner(*arguments)

    @around(sqs, "_collect_msgs")
    def collect(inner: Any, queue: Queue, *rest: Any) -> list[Message]:
        """Store every receipt handle. MiniStack itself knows only a message's latest one."""
        with sqs._queues_lock:
            messages = _put_back_dead(queue, inner(queue, *rest))
            handles: OrderedDict[str, Message] = queue.setdefault(_HANDLES, OrderedDict())
            for message in messages:
                handles[message["receipt_handle"]] = message
            while len(handles) > MOST_HANDLES:
                handles.popitem(last=False)
        return messages


def _put_back_dead(queue: Queue, messages: list[Message]) -> list[Message]:
    """Return the received messages without those that must move to the DLQ, which are put back.

    Such messages became visible after MiniStack last moved messages to the DLQ. Its next turn moves
    them. In a FIFO queue the messages behind them in their group are put back too, so that the
    order stays.
    """
    redrive = parse_redrive_policy(queue["attributes"].get("RedrivePolicy", ""))
    if redrive is None or sqs._queue_by_arn(redrive.dlq_arn) is None:
        return messages
    alive: list[Message] = []
    blocked_groups: set[str] = set()
    for message in messages:
        is_dead = message["receive_count"] > redrive.max_receive_count
        is_behind_dead = queue["is_fifo"] and message["group_id"] in blocked_groups
        if not is_dead and not is_behind_dead:
            alive.append(message)
            continue
        blocked_groups.add(message["group_id"])
        message["receive_count"] -= 1
        message["visible_at"] = 0.0
    return alive


def _refuse_calls() -> None:
    @around(sqs._HANDLERS, "ReceiveMessage")
    def receive(inner: Any, data: Parameters, url: str) -> Any:
        wait = data.get("WaitTimeSeconds")
        if wait is not None and not 0 <= int(wait) <= LONGEST_WAIT_SECONDS:
            reason = f"Must be >= 0 and <= {LONGEST_WAIT_SECONDS}, if provided."  # (recorded)
            raise invalid_parameter(wait, "WaitTimeSeconds", reason)
        _refuse_visibility(int(data.get("VisibilityTimeout") or 0))
        return inner(data, url)

    @around(sqs, "_validate_batch_entries")
    def validate(inner: Any, entries: list[Any], entry_name: str) -> None:
        if len(entries) > MOST_ENTRIES:
            limit = f"Maximum number of entries per request are {MOST_ENTRIES}."  # (recorded)
            text = f"{limit} You have sent {len(entries)}."
            raise sqs._Err("TooManyEntriesInBatchRequest", text)
        inner(entries, entry_name)


def _answer_action(action: str, act: Act) -> None:
    """Replace MiniStack's handlers of an SQS action and of its batch action.

    `act` handles one call, or one entry of a batch: it gets the queue and the parameters. If it
    raises an error for a call, the call fails. If it raises an error for an entry, only this entry
    fails, and the batch answers 200.
    """

    def answer_call(data: Parameters, url: str) -> dict[str, Any]:
        queue = sqs._get_q(data.get("QueueUrl") or url, f"sqs:{action}")
        act(queue, data)
        return {}

    def answer_batch(data: Parameters, url: str) -> dict[str, Any]:
        queue = sqs._get_q(data.get("QueueUrl") or url, f"sqs:{action}")
        entries = data.get("Entries") or []
        sqs._validate_batch_entries(entries, f"{action}BatchRequestEntry")
        answer: dict[str, Any] = {"Successful": [], "Failed": []}
        for entry in entries:
            entry_id = {"Id": entry["Id"]}
            try:
                act(queue, entry)
                answer["Successful"].append(entry_id)
            except sqs._Err as error:
                code = sqs._QUERY_COMPAT_CODES.get(error.code, error.code)
                failure = {"Code": code, "Message": error.message, "SenderFault": True}
                answer["Failed"].append(entry_id | failure)
        return answer

    sqs._HANDLERS[action] = answer_call
    sqs._HANDLERS[f"{action}Batch"] = answer_batch


def _refuse_visibility(seconds: int) -> None:
    if not 0 <= seconds <= LONGEST_SECONDS:
        reason = f"Must be between 0 and {LONGEST_SECONDS}, if provided."
        raise invalid_parameter(seconds, "VisibilityTimeout", reason)


def _delete_message(queue: Queue, entry: Parameters) -> None:
    """Delete the message if this is the receipt handle of its newest receive.

    With an older receipt handle, or if the message is deleted already, do nothing in a standard
    queue. A FIFO queue raises SQS's error for an older receipt handle, and after the visibility
    timeout.
    """
    handle = entry.get("ReceiptHandle", "")
    with sqs._queues_lock:
        message = _message_of_handle(queue, handle)
        is_latest = message["receipt_handle"] == handle
        if queue["is_fifo"] and not (is_latest and message["visible_at"] > time.time()):
            reason = "The receipt handle has expired."  # (recorded)
            raise invalid_parameter(handle, "ReceiptHandle", reason)
        if is_latest:
            queue["messages"] = [other for other in queue["messages"] if other is not message]


def _change_visibility(queue: Queue, entry: Parameters) -> None:
    """Make the message of a receipt handle visible again after the call's VisibilityTimeout."""
    handle = entry.get("ReceiptHandle", "")
    seconds = int(entry.get("VisibilityTimeout") or 0)
    _refuse_visibility(seconds)
    with sqs._queues_lock:
        message = _message_of_handle(queue, handle)
        now = time.time()
        is_latest = message["receipt_handle"] == handle
        if not any(other is message for other in queue["messages"]):
            reason = "Message does not exist or is not available for visibility timeout change."
            raise invalid_parameter(handle, "ReceiptHandle", reason)
        if not (is_latest and message["visible_at"] > now):
            if is_latest and not queue["is_fifo"]:
                return
            raise sqs._Err("MessageNotInflight", "The message is not in flight.")
        if now - (message.get("first_receive_at") or now) + seconds > LONGEST_SECONDS:
            limit = f"beyond the limit [{LONGEST_SECONDS} seconds]."
            reason = f"Total VisibilityTimeout for the message is {limit}"
            raise invalid_parameter(seconds, "VisibilityTimeout", reason)
        message["visible_at"] = now + seconds
    if seconds == 0:
        esm_wake.set()


def _message_of_handle(queue: Queue, handle: str) -> Message:
    """Return the message that was received with this receipt handle.

    Raises ReceiptHandleIsInvalid if the queue never gave it.
    """
    message: Message | None = queue.get(_HANDLES, {}).get(handle)
    if message is None:
        raise sqs._Err("ReceiptHandleIsInvalid", "The input receipt handle is invalid.")
    return message
