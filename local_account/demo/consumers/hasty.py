"""An idempotent consumer that needs more time than its visibility timeout gives it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from local_account.demo.traffic import MAXIMUM_BATCH_ENTRIES, Caller
from mendq.consumer.idempotent import Busy, Once

Order = Mapping[str, Any]


class MissingAddress(Exception):
    """Raised for an order without an address. No consumer can handle such an order."""


@dataclass(frozen=True)
class HastyConsumer:
    """A consumer that extends a message's visibility timeout while it works on a batch.

    It extends only the message of the batch's first order, and only if this message was not
    received before. A batch without an order is deleted without any work.

    Attributes:
        caller: Receives, deletes and changes the visibility of messages.
        once_per_order: Makes `charge_order` handle each order at most once.
        charge_order: Handles one order.
        seconds_before_extension: Work time before it extends the visibility timeout.
        seconds_after_extension: Work time afterwards.
    """

    caller: Caller
    once_per_order: Once
    charge_order: Callable[[Order], object]
    seconds_before_extension: float = 1.7
    seconds_after_extension: float = 0.6

    def consume(self) -> None:
        """Receive a batch, work on it, and delete it if the work and all orders succeeded."""
        messages = self.caller.receive(
            MaxNumberOfMessages=MAXIMUM_BATCH_ENTRIES,
            MessageSystemAttributeNames=["ApproximateReceiveCount"],
        )
        if not messages:
            return
        order_messages = [
            message for message in messages if "order_id" in json.loads(message["Body"])
        ]
        if order_messages and not self._work_on_batch(order_messages[0]):
            return
        if self._charge_all(order_messages):
            # SQS also answers success for messages that are in the DLQ by now.
            self.caller.sqs.delete_message_batch(
                QueueUrl=self.caller.queue_url,
                Entries=[
                    {"Id": f"{position}", "ReceiptHandle": message["ReceiptHandle"]}
                    for position, message in enumerate(messages)
                ],
            )

    def _work_on_batch(self, first_message: Mapping[str, Any]) -> bool:
        """Work, extend the visibility timeout of `first_message`, and continue to work.

        The timeout is extended only if the message was not received before. Return False if SQS
        refused to extend the timeout, or if the consumer must stop.
        """
        if self.caller.stop_requested.wait(self.seconds_before_extension):
            return False
        extend_timeout = partial(
            self.caller.sqs.change_message_visibility,
            QueueUrl=self.caller.queue_url,
            ReceiptHandle=first_message["ReceiptHandle"],
            VisibilityTimeout=round(self.seconds_before_extension),
        )
        is_first_receive = first_message["Attributes"]["ApproximateReceiveCount"] == "1"
        if is_first_receive and not self.caller.attempt_call(extend_timeout):
            return False
        return not self.caller.stop_requested.wait(self.seconds_after_extension)

    def _charge_all(self, messages: list[dict[str, Any]]) -> bool:
        """Handle the orders in `messages`. Return True if all of them are handled.

        Stop and return False at the first order that has no address, or that another consumer is
        handling.
        """
        try:
            for message in messages:
                order = json.loads(message["Body"])
                self.once_per_order.run(order["order_id"], partial(self.charge_order, order))
        except (Busy, MissingAddress):
            return False
        return True
