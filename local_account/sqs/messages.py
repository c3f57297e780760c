"""Receipt handles and what can be done with them, as AWS answers it, in MiniStack's terms.

Standard: DeleteMessage answers 200 whatever became of the message; an old handle leaves it there.
ChangeMessageVisibility after the timeout, nobody having received it again, answers 200 as well
(recorded from the real SQS; that it then changes nothing is our reading). Once somebody else holds
the message the handle's own receive is over: MessageNotInflight, as the API reference words it.
FIFO: both fail as soon as the visibility timeout has passed. DeleteMessage's text is recorded.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ministack.core.concurrency import esm_wake
from ministack.services import sqs

from local_account.hooks import around
from local_account.sqs.attributes import Refusal, invalid_parameter

Parameters = Mapping[str, Any]
Queue = dict[str, Any]
Message = dict[str, Any]
Act = Callable[[Queue, Parameters], None]
LONGEST_SECONDS = 43_200
LONGEST_WAIT_SECONDS = 20
# Beyond this the oldest are forgotten, and count as handles that never were.
MOST_HANDLES = 200_000
MOST_ENTRIES = 10
UNKNOWN = Refusal("ReceiptHandleIsInvalid", "The input receipt handle is invalid.")
_BOOK = "local_account_receipts"


@dataclass(frozen=True)
class Receipt:
    """What is known of one handle now."""

    handle: str
    is_fifo: bool
    message_exists: bool
    is_latest: bool
    is_in_flight: bool  # or would be, had it not been deleted
    received_seconds_ago: float = 0

    @property
    def holds(self) -> bool:
        """Tell whether the receive that gave this handle still hides the message."""
        return self.message_exists and self.is_latest and self.is_in_flight

    def delete_refusal(self) -> Refusal | None:
        """Tell why DeleteMessage fails, or None where it answers 200."""
        if not self.is_fifo or (self.is_latest and self.is_in_flight):
            return None  # also for a message that this handle has deleted a moment ago
        reason = "The receipt handle has expired."
        return invalid_parameter(self.handle, "ReceiptHandle", reason)  # (recorded)

    def change_refusal(self, seconds: int) -> Refusal | None:
        """Tell why ChangeMessageVisibility fails, or None where it answers 200."""
        if refusal := _visibility_refusal(seconds):
            return refusal
        if not self.message_exists:
            reason = "Message does not exist or is not available for visibility timeout change."
            return invalid_parameter(self.handle, "ReceiptHandle", reason)
        if not self.holds:
            forgiven = not self.is_fifo and self.is_latest
            not_held = Refusal("MessageNotInflight", "The message is not in flight.")
            return None if forgiven else not_held
        if self.received_seconds_ago + seconds > LONGEST_SECONDS:
            limit = f"beyond the limit [{LONGEST_SECONDS} seconds]."
            reason = f"Total VisibilityTimeout for the message is {limit}"
            return invalid_parameter(seconds, "VisibilityTimeout", reason)
        return None


def raised(refusal: Refusal) -> Exception:
    """The refusal as MiniStack's own exception, which it writes in either protocol."""
    error: Exception = sqs._Err(refusal.name, refusal.message, refusal.status)
    return error


def install() -> None:
    """Hook the actions on messages; once per process."""
    sqs._HANDLERS.update(
        DeleteMessage=_single("DeleteMessage", _delete),
        DeleteMessageBatch=_batch("DeleteMessage", _delete),
        ChangeMessageVisibility=_single("ChangeMessageVisibility", _change),
        ChangeMessageVisibilityBatch=_batch("ChangeMessageVisibility", _change),
    )

    @around(sqs, "_collect_msgs")
    def collect(inner: Any, queue: Queue, *rest: Any) -> list[Message]:
        """Remember every handle: MiniStack itself knows only the latest."""
        with sqs._queues_lock:
            received: list[Message] = inner(queue, *rest)
            book: OrderedDict[str, Message] = queue.setdefault(_BOOK, OrderedDict())
            book.update((each["receipt_handle"], each) for each in received)
            while len(book) > MOST_HANDLES:
                book.popitem(last=False)
        return received

    @around(sqs._HANDLERS, "ReceiveMessage")
    async def receive(
        inner: Callable[..., Awaitable[Any]], data: Parameters, url: str
    ) -> dict[str, Any]:
        if refusal := _receive_refusal(data):
            raise raised(refusal)
        answer: dict[str, Any] = await inner(data, url)
        return answer

    @around(sqs, "_validate_batch_entries")
    def validate(inner: Any, entries: list[Any], entry_name: str) -> None:
        if len(entries) > MOST_ENTRIES:
            raise sqs._Err(  # (recorded)
                "TooManyEntriesInBatchRequest",
                f"Maximum number of entries per request are {MOST_ENTRIES}. "
                f"You have sent {len(entries)}.",
            )
        inner(entries, entry_name)

    @around(sqs._HANDLERS, "SendMessageBatch")
    def send_batch(inner: Any, data: Parameters, url: str) -> dict[str, Any]:
        with sqs._queues_lock:  # nobody receives a message that lacks its header
            answer: dict[str, Any] = inner(data, url)
            queue = sqs._get_q(data.get("QueueUrl") or url)
            _keep_traces(queue, data.get("Entries") or [], answer)
        return answer


def _keep_traces(queue: Queue, entries: list[Parameters], answer: Parameters) -> None:
    """Of a batch MiniStack drops AWSTraceHeader, which a single message keeps."""
    ids = {each["Id"]: each["MessageId"] for each in answer["Successful"]}
    traces = {
        ids.get(each.get("Id")): system["AWSTraceHeader"]["StringValue"]
        for each in entries
        if "AWSTraceHeader" in (system := each.get("MessageSystemAttributes") or {})
    }
    for message in queue["messages"] if traces else ():
        if message["id"] in traces:
            message["sys"]["AWSTraceHeader"] = traces[message["id"]]


def _receive_refusal(data: Parameters) -> Refusal | None:
    wait, hidden = data.get("WaitTimeSeconds"), data.get("VisibilityTimeout")
    if wait is not None and not 0 <= int(wait) <= LONGEST_WAIT_SECONDS:
        reason = f"Must be >= 0 and <= {LONGEST_WAIT_SECONDS}, if provided."  # (recorded)
        return invalid_parameter(wait, "WaitTimeSeconds", reason)
    return None if hidden is None else _visibility_refusal(int(hidden))


def _visibility_refusal(seconds: int) -> Refusal | None:
    if 0 <= seconds <= LONGEST_SECONDS:
        return None
    reason = f"Must be between 0 and {LONGEST_SECONDS}, if provided."
    return invalid_parameter(seconds, "VisibilityTimeout", reason)


def _single(action: str, act: Act) -> Callable[[Parameters, str], dict[str, Any]]:
    def handle(data: Parameters, url: str) -> dict[str, Any]:
        queue = sqs._get_q(data.get("QueueUrl") or url, f"sqs:{action}")
        if not data.get("ReceiptHandle"):
            message = "The request must contain the parameter ReceiptHandle."
            raise sqs._Err("MissingParameter", message)
        act(queue, data)
        return {}

    return handle


def _batch(action: str, act: Act) -> Callable[[Parameters, str], dict[str, Any]]:
    """Answer 200 whatever became of the entries."""

    def handle(data: Parameters, url: str) -> dict[str, Any]:
        queue = sqs._get_q(data.get("QueueUrl") or url, f"sqs:{action}")
        entries = data.get("Entries") or []
        sqs._validate_batch_entries(entries, f"{action}BatchRequestEntry")
        done, failed = [], []
        for entry in entries:
            try:
                act(queue, entry)
            except sqs._Err as error:
                code = sqs._QUERY_COMPAT_CODES.get(error.code, error.code)
                said = {"Code": code, "Message": error.message, "SenderFault": True}
                failed.append({"Id": entry["Id"], **said})
            else:
                done.append({"Id": entry["Id"]})
        return {"Successful": done, "Failed": failed}

    return handle


def _delete(queue: Queue, entry: Parameters) -> None:
    with sqs._queues_lock:
        receipt, message = _look_up(queue, entry)
        if refusal := receipt.delete_refusal():
            raise raised(refusal)
        if receipt.message_exists and receipt.is_latest:
            queue["messages"] = [each for each in queue["messages"] if each is not message]


def _change(queue: Queue, entry: Parameters) -> None:
    seconds = int(entry.get("VisibilityTimeout") or 0)
    with sqs._queues_lock:
        receipt, message = _look_up(queue, entry)
        if refusal := receipt.change_refusal(seconds):
            raise raised(refusal)
        if receipt.holds:
            message["visible_at"] = time.time() + seconds
    if seconds == 0:
        esm_wake.set()


def _look_up(queue: Queue, entry: Parameters) -> tuple[Receipt, Message]:
    """What a handle is worth now, and its message; raise UNKNOWN where the queue never gave it."""
    handle = entry.get("ReceiptHandle", "")
    message = queue.get(_BOOK, {}).get(handle)
    if message is None:
        raise raised(UNKNOWN)
    now = time.time()
    receipt = Receipt(
        handle=handle,
        is_fifo=queue["is_fifo"],
        message_exists=any(each is message for each in queue["messages"]),
        is_latest=message["receipt_handle"] == handle,
        is_in_flight=message["visible_at"] > now,
        received_seconds_ago=now - (message.get("first_receive_at") or now),
    )
    return receipt, message
