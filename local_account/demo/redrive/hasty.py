"""A consumer that knows its orders again, and holds them for less time than they take."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

from local_account.demo.consumers.once import Busy, Once
from local_account.demo.redrive.orders import MOST_ENTRIES, NoAddress, Payments
from local_account.demo.silent_traffic import Nobody
from local_account.demo.traffic import Caller

RECEIVED = "ApproximateReceiveCount"
Messages = Sequence[dict[str, Any]]


@dataclass(frozen=True)
class Hasty:
    """It asks for more time in the middle of a batch with an order in it.

    Not for one that was handed out before: others have it by then, or it is dead.
    """

    caller: Caller
    once: Once
    payments: Payments
    asks_after_seconds: float = 1.7
    then_works_seconds: float = 0.6

    def consume(self) -> None:
        """Receive once; delete all of it at the end, if there is one."""
        answer = self.caller.sqs.receive_message(
            QueueUrl=self.caller.queue_url,
            MaxNumberOfMessages=MOST_ENTRIES,
            WaitTimeSeconds=1,
            MessageSystemAttributeNames=["ApproximateReceiveCount"],
        )
        messages: Messages = [dict(each) for each in answer.get("Messages", [])]
        orders = [each for each in messages if "order_id" in json.loads(each["Body"])]
        if (not orders or self._holds(orders)) and self._charges(orders):
            self._delete(messages)

    def _holds(self, orders: Messages) -> bool:
        """Work, ask for as much time again, work on; whether it was given."""
        caller, first = self.caller, orders[0]
        if caller.enough.wait(self.asks_after_seconds):
            return False
        is_new = first["Attributes"][RECEIVED] == "1"
        if is_new and not caller.attempt(
            lambda: caller.sqs.change_message_visibility(
                QueueUrl=caller.queue_url,
                ReceiptHandle=first["ReceiptHandle"],
                VisibilityTimeout=round(self.asks_after_seconds),
            )
        ):
            return False
        return not caller.enough.wait(self.then_works_seconds)

    def _charges(self, orders: Messages) -> bool:
        """One that cannot be handled takes along those behind it."""
        try:
            for each in orders:
                order = json.loads(each["Body"])
                self.once.run(order["order_id"], partial(self.payments.charge, order))
        except (Busy, NoAddress):
            return False
        return True

    def _delete(self, messages: Messages) -> None:
        """SQS answers success for those that are dead by now, too."""
        if messages:
            self.caller.sqs.delete_message_batch(
                QueueUrl=self.caller.queue_url,
                Entries=[
                    {"Id": f"{n}", "ReceiptHandle": each["ReceiptHandle"]}
                    for n, each in enumerate(messages)
                ],
            )


@dataclass(frozen=True)
class Extensions(Nobody):
    """What those consumers ask for; the act that has them work makes the calls."""

    convincing: int = 2
    noun: ClassVar[str] = "extension"
    well: ClassVar[str] = "given"
