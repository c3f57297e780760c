"""Receipt handles and what can be done with them, as AWS answers it, in MiniStack's terms.

Standard: DeleteMessage answers 200 whatever became of the message; an old handle leaves it there.
ChangeMessageVisibility after the timeout, nobody having received it again, answers 200 as well
(recorded from the real SQS; that it then changes nothing is our reading). Once somebody else holds
the message the handle's own receive is over: MessageNotInflight, as the API reference words it.
FIFO: both fail as soon as the visibility timeout has passed. DeleteMessage's text is recorded.
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
# Beyond this the oldest are forgotten, and count as handles that never were.
MOST_HANDLES = 200_000
MOST_ENTRIES = 10
_BOOK = "local_account_receipts"


def install() -> None:
    """Hook the actions on messages; once per process."""
    sqs._queues_lock = threading.RLock()  # held around what is held already
    for action, act in (("DeleteMessage", _delete), ("ChangeMessageVisibility", _change)):
        _handle(action, act)
    _refuse_calls()

    @around(sqs._HANDLERS, "SendMessage", "SendMessageBatch", "PurgeQueue")
    @around(sqs, "_expire_retained", "_dlq_sweep")
    def locked(inner: Any, *given: Any) -> Any:
        """A mapping's poller replaces a queue's list of messages: nothing is added meanwhile."""
        with sqs._queues_lock:
            return inner(*given)

    @around(sqs, "_collect_msgs")
    def collect(inner: Any, queue: Queue, *rest: Any) -> list[Message]:
        """Remember every handle: MiniStack itself knows only the latest."""
        with sqs._queues_lock:
            received = _without_dead(queue, inner(queue, *rest))
            book: OrderedDict[str, Message] = queue.setdefault(_BOOK, OrderedDict())
            book.update((each["receipt_handle"], each) for each in received)
            while len(book) > MOST_HANDLES:
                book.popitem(last=False)
        return received


def _without_dead(queue: Queue, received: list[Message]) -> list[Message]:
    """Put back messages that must move to the DLQ, so that no consumer receives them once more.

    They became visible after MiniStack had moved messages to the DLQ; its next turn moves them. In
    a FIFO queue the messages behind them in their group are put back too, so that the order stays.
    """
    redrive = parse_redrive_policy(queue["attributes"].get("RedrivePolicy", ""))
    if redrive is None or sqs._queue_by_arn(redrive.dlq_arn) is None:
        return received
    staying: list[Message] = []
    blocked_groups: set[str] = set()
    for message in received:
        is_dead = message["receive_count"] > redrive.max_receive_count
        is_behind = queue["is_fifo"] and message["group_id"] in blocked_groups
        if not is_dead and not is_behind:
            staying.append(message)
            continue
        blocked_groups.add(message["group_id"])
        message["receive_count"] -= 1
        message["visible_at"] = 0.0
    return staying


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
            most = f"Maximum number of entries per request are {MOST_ENTRIES}."  # (recorded)
            said = f"{most} You have sent {len(entries)}."
            raise sqs._Err("TooManyEntriesInBatchRequest", said)
        inner(entries, entry_name)


def _handle(action: str, act: Act) -> None:
    """Have `act` done for the action, and for each entry of its batch, which answers 200."""

    def one(data: Parameters, url: str) -> dict[str, Any]:
        queue = sqs._get_q(data.get("QueueUrl") or url, f"sqs:{action}")
        act(queue, data)
        return {}

    def batch(data: Parameters, url: str) -> dict[str, Any]:
        queue = sqs._get_q(data.get("QueueUrl") or url, f"sqs:{action}")
        entries = data.get("Entries") or []
        sqs._validate_batch_entries(entries, f"{action}BatchRequestEntry")
        answer: dict[str, Any] = {"Successful": [], "Failed": []}
        for entry in entries:
            done = {"Id": entry["Id"]}
            try:
                act(queue, entry)
                answer["Successful"].append(done)
            except sqs._Err as error:
                code = sqs._QUERY_COMPAT_CODES.get(error.code, error.code)
                said = {"Code": code, "Message": error.message, "SenderFault": True}
                answer["Failed"].append(done | said)
        return answer

    sqs._HANDLERS.update({action: one, f"{action}Batch": batch})


def _refuse_visibility(seconds: int) -> None:
    if not 0 <= seconds <= LONGEST_SECONDS:
        reason = f"Must be between 0 and {LONGEST_SECONDS}, if provided."
        raise invalid_parameter(seconds, "VisibilityTimeout", reason)


def _delete(queue: Queue, entry: Parameters) -> None:
    """Also 200 for a message that this handle has deleted a moment ago."""
    handle = entry.get("ReceiptHandle", "")
    with sqs._queues_lock:
        message = _received(queue, handle)
        is_latest = message["receipt_handle"] == handle
        if queue["is_fifo"] and not (is_latest and message["visible_at"] > time.time()):
            reason = "The receipt handle has expired."  # (recorded)
            raise invalid_parameter(handle, "ReceiptHandle", reason)
        if is_latest:
            queue["messages"] = [each for each in queue["messages"] if each is not message]


def _change(queue: Queue, entry: Parameters) -> None:
    handle, seconds = entry.get("ReceiptHandle", ""), int(entry.get("VisibilityTimeout") or 0)
    _refuse_visibility(seconds)
    with sqs._queues_lock:
        message, now = _received(queue, handle), time.time()
        is_latest = message["receipt_handle"] == handle
        if not any(each is message for each in queue["messages"]):
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


def _received(queue: Queue, handle: str) -> Message:
    """The message that a handle was given for; raise where the queue never gave it."""
    message: Message | None = queue.get(_BOOK, {}).get(handle)
    if message is None:
        raise sqs._Err("ReceiptHandleIsInvalid", "The input receipt handle is invalid.")
    return message
