"""Every receipt handle that a queue gave out: MiniStack itself remembers only the latest."""

from __future__ import annotations

import time
from collections import OrderedDict
from typing import Any

from local_account.sqs.receipts import Receipt

Queue = dict[str, Any]
Message = dict[str, Any]
# Beyond this the oldest are forgotten, and count as handles that never were.
MOST_HANDLES = 200_000
_BOOK = "local_account_receipts"


def note(queue: Queue, messages: list[Message]) -> None:
    """Remember the handles under which messages have just been received."""
    book: OrderedDict[str, Message] = queue.setdefault(_BOOK, OrderedDict())
    for message in messages:
        book[message["receipt_handle"]] = message
    while len(book) > MOST_HANDLES:
        book.popitem(last=False)


def look_up(queue: Queue, handle: str) -> tuple[Receipt, Message] | None:
    """What a handle is worth now, and its message; None for one that the queue never gave."""
    message = queue.get(_BOOK, {}).get(handle)
    if message is None:
        return None
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
