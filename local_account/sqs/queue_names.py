"""When a queue may be created under a name: what SQS remembers of those that were deleted.

https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_CreateQueue.html
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from typing import Any

from local_account.sqs.refusal import Refusal

REUSE_AFTER_SECONDS = 60.0
# What a queue has without having been told.
DEFAULTS: Mapping[str, str] = {
    "DeduplicationScope": "queue",
    "FifoThroughputLimit": "perQueue",
    "KmsDataKeyReusePeriodSeconds": "300",
}
_DOCUMENTS = frozenset({"Policy", "RedrivePolicy", "RedriveAllowPolicy"})


class DeletedNames:
    """The names of queues that were deleted a moment ago, by account and Region."""

    def __init__(
        self,
        reuse_after_seconds: float = REUSE_AFTER_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.reuse_after_seconds = reuse_after_seconds
        self._clock = clock
        self._deleted_at: dict[str, float] = {}

    def deleted(self, queue_arn: str) -> None:
        """Note a queue that is gone from now on."""
        self._deleted_at[queue_arn] = self._clock()

    def refusal(self, queue_arn: str) -> Refusal | None:
        """Why no queue may be created under that ARN yet."""
        at = self._deleted_at.get(queue_arn)
        if at is None or self._clock() - at >= self.reuse_after_seconds:
            return None
        return Refusal(
            "QueueDeletedRecently",
            f"You must wait {REUSE_AFTER_SECONDS:.0f} seconds after deleting a queue before you "
            "can create another with the same name.",
        )


def name_refusal(existing: Mapping[str, Any], asked: Mapping[str, str]) -> Refusal | None:
    """Why CreateQueue does not answer with the queue that is there: it stands otherwise.

    An attribute that the call leaves out is not compared.
    """
    for name, value in asked.items():
        stands = existing.get(name, DEFAULTS.get(name, ""))
        if _content(name, stands) != _content(name, value):
            return Refusal(  # (recorded)
                "QueueNameExists",
                "A queue already exists with the same name and a different value for attribute "
                f"{name}",
            )
    return None


def _content(name: str, value: object) -> object:
    """Two spellings of one document are the same; CloudFormation leaves an object."""
    if name not in _DOCUMENTS or not isinstance(value, str) or not value:
        return value
    try:
        return json.loads(value)
    except ValueError:
        return value
