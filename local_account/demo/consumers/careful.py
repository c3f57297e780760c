"""A consumer that may be killed, slow or handed a message twice, and does each order once."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from local_account.demo.consumers.once import Busy, Once
from mendq.consumer import VisibilityHeartbeat

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

Order = Mapping[str, Any]
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class Careful:
    """`work` does one order; `seconds` is how long a message stays hidden when this one dies."""

    sqs: SQSClient
    queue_url: str
    once: Once
    work: Callable[[Order], object]
    seconds: int = 30

    def consume(self) -> None:
        """Receive once, and do what came; a message is deleted when its order is done."""
        failed_groups: set[str] = set()
        # The last of ten is held while the first is worked on.
        with VisibilityHeartbeat(self.sqs, self.queue_url, seconds=self.seconds) as visibility:
            messages = visibility.receive(
                MaxNumberOfMessages=10,
                WaitTimeSeconds=1,
                MessageSystemAttributeNames=["MessageGroupId"],
            )
            for message in messages:
                group = message.get("Attributes", {}).get("MessageGroupId", "")
                # What stands behind a FIFO message that failed must not overtake it.
                if self._is_fifo and group in failed_groups:
                    visibility.release(message["MessageId"])
                elif message["MessageId"] in visibility.held:
                    self._handle(message, visibility, failed_groups, group)

    def _handle(
        self,
        message: Mapping[str, Any],
        visibility: VisibilityHeartbeat,
        failed_groups: set[str],
        group: str,
    ) -> None:
        try:
            order = json.loads(message["Body"])
            # Never the message id: who sends again, and who redrives, makes a new one.
            self.once.run(order["order_id"], lambda: self.work(order))
        except Busy:
            failed_groups.add(group)
        except Exception:  # noqa: BLE001 - one order's failure is not its neighbours'
            # It stays, comes again, and after maxReceiveCount is a DLQ message: nothing is lost.
            _LOG.exception("an order failed", extra={"message_id": message["MessageId"]})
            failed_groups.add(group)
        else:
            visibility.delete(message["MessageId"])

    @property
    def _is_fifo(self) -> bool:
        return self.queue_url.endswith(".fifo")
