"""A consumer that knows its orders again, and holds them for less time than they take."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from local_account.demo.traffic import MOST_ENTRIES, Caller
from mendq.consumer.idempotent import Busy, Once

Order = Mapping[str, Any]


class NoAddress(Exception):
    """An order that no consumer can handle, however often it comes."""


@dataclass(frozen=True)
class Hasty:
    """Asks for more time in the middle of a batch with an order in it.

    Not for one that was handed out before: others have it by then, or it is dead.
    """

    caller: Caller
    once: Once
    charge: Callable[[Order], object]
    asks_after_seconds: float = 1.7
    then_works_seconds: float = 0.6

    def consume(self) -> None:
        """Receive once; delete all of it at the end, if there is one."""
        messages = self.caller.receive(
            MaxNumberOfMessages=MOST_ENTRIES,
            MessageSystemAttributeNames=["ApproximateReceiveCount"],
        )
        held = [each for each in messages if "order_id" in json.loads(each["Body"])]
        if messages and (not held or self._holds(held[0])) and self._charges(held):
            # SQS answers success for those that are dead by now, too.
            handles = [each["ReceiptHandle"] for each in messages]
            self.caller.sqs.delete_message_batch(
                QueueUrl=self.caller.queue_url,
                Entries=[{"Id": f"{n}", "ReceiptHandle": each} for n, each in enumerate(handles)],
            )

    def _holds(self, first: Mapping[str, Any]) -> bool:
        """Work, ask for as much time again, work on; return whether it was given."""
        if self.caller.enough.wait(self.asks_after_seconds):
            return False
        more = partial(
            self.caller.sqs.change_message_visibility,
            QueueUrl=self.caller.queue_url,
            ReceiptHandle=first["ReceiptHandle"],
            VisibilityTimeout=round(self.asks_after_seconds),
        )
        is_new = first["Attributes"]["ApproximateReceiveCount"] == "1"
        if is_new and not self.caller.attempt(more):
            return False
        return not self.caller.enough.wait(self.then_works_seconds)

    def _charges(self, messages: list[dict[str, Any]]) -> bool:
        """Charge for each; one that cannot be handled takes along those behind it."""
        try:
            for each in messages:
                order = json.loads(each["Body"])
                self.once.run(order["order_id"], partial(self.charge, order))
        except (Busy, NoAddress):
            return False
        return True
