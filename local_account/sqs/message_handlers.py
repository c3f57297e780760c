"""SQS actions on messages, as AWS answers them, in MiniStack's terms."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from ministack.core.concurrency import esm_wake
from ministack.services import sqs

from local_account.sqs import receipts
from local_account.sqs.receipt_book import Queue, look_up
from local_account.sqs.refusal import Refusal, invalid_parameter

Parameters = Mapping[str, Any]
Act = Callable[[Queue, Parameters], None]
LONGEST_WAIT_SECONDS = 20


def raised(refusal: Refusal) -> Exception:
    """The refusal as MiniStack's own exception, which it writes in either protocol."""
    error: Exception = sqs._Err(refusal.name, refusal.message, refusal.status)
    return error


def delete_message(data: Parameters, url: str) -> dict[str, Any]:
    """DeleteMessage."""
    return _single(data, url, "sqs:DeleteMessage", _delete)


def delete_message_batch(data: Parameters, url: str) -> dict[str, Any]:
    """DeleteMessageBatch."""
    return _batch(data, url, "DeleteMessage", _delete)


def change_message_visibility(data: Parameters, url: str) -> dict[str, Any]:
    """ChangeMessageVisibility."""
    return _single(data, url, "sqs:ChangeMessageVisibility", _change)


def change_message_visibility_batch(data: Parameters, url: str) -> dict[str, Any]:
    """ChangeMessageVisibilityBatch."""
    return _batch(data, url, "ChangeMessageVisibility", _change)


def receive_refusal(data: Parameters) -> Refusal | None:
    """Why ReceiveMessage refuses its numbers."""
    wait = data.get("WaitTimeSeconds")
    if wait is not None and not 0 <= int(wait) <= LONGEST_WAIT_SECONDS:
        return invalid_parameter(  # (recorded)
            wait, "WaitTimeSeconds", f"Must be >= 0 and <= {LONGEST_WAIT_SECONDS}, if provided."
        )
    hidden = data.get("VisibilityTimeout")
    if hidden is not None and not 0 <= int(hidden) <= receipts.LONGEST_SECONDS:
        return invalid_parameter(
            hidden,
            "VisibilityTimeout",
            f"Must be between 0 and {receipts.LONGEST_SECONDS}, if provided.",
        )
    return None


def _single(data: Parameters, url: str, action: str, act: Act) -> dict[str, Any]:
    queue = sqs._get_q(data.get("QueueUrl") or url, action)
    if not data.get("ReceiptHandle"):
        raise sqs._Err("MissingParameter", "The request must contain the parameter ReceiptHandle.")
    act(queue, data)
    return {}


def _batch(data: Parameters, url: str, action: str, act: Act) -> dict[str, Any]:
    """Answers 200 whatever became of the entries."""
    queue = sqs._get_q(data.get("QueueUrl") or url, f"sqs:{action}")
    entries = data.get("Entries") or []
    sqs._validate_batch_entries(entries, f"{action}BatchRequestEntry")
    done, failed = [], []
    for entry in entries:
        try:
            act(queue, entry)
        except sqs._Err as error:
            code = sqs._QUERY_COMPAT_CODES.get(error.code, error.code)
            failed.append(
                {"Id": entry["Id"], "Code": code, "Message": error.message, "SenderFault": True}
            )
        else:
            done.append({"Id": entry["Id"]})
    return {"Successful": done, "Failed": failed}


def _delete(queue: Queue, entry: Parameters) -> None:
    with sqs._queues_lock:
        found = look_up(queue, entry.get("ReceiptHandle", ""))
        if found is None:
            raise raised(receipts.UNKNOWN)
        receipt, message = found
        if refusal := receipts.delete_refusal(receipt):
            raise raised(refusal)
        if receipts.deletes(receipt):
            queue["messages"] = [each for each in queue["messages"] if each is not message]


def _change(queue: Queue, entry: Parameters) -> None:
    seconds = int(entry.get("VisibilityTimeout") or 0)
    with sqs._queues_lock:
        found = look_up(queue, entry.get("ReceiptHandle", ""))
        if found is None:
            raise raised(receipts.UNKNOWN)
        receipt, message = found
        if refusal := receipts.change_refusal(receipt, seconds):
            raise raised(refusal)
        if receipt.holds:
            message["visible_at"] = time.time() + seconds
    if seconds == 0:
        esm_wake.set()
