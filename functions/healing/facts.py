"""What is true of a queue now; gathered from AWS, never from the event."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum


class Need(Enum):
    """What an entry of the catalogue asks to be gathered."""

    QUEUE = "queue"
    LAMBDA_CONSUMERS = "lambda_consumers"


@dataclass(frozen=True)
class LambdaConsumer:
    """A function that an enabled event source mapping feeds from the queue."""

    function_arn: str
    timeout_seconds: int
    batching_window_seconds: int
    duration_p99_seconds: float | None = None
    error_share: float | None = None


@dataclass(frozen=True)
class Facts:
    """A queue as it is; attributes and tags as SQS spells them.

    `person_visibility_seconds` is the visibility timeout that a person chose last (ours are not
    counted); `reader_visibility_seconds` the one that the readers themselves asked for in every
    failed call, None unless all of them did.
    """

    queue_arn: str
    attributes: Mapping[str, str]
    tags: Mapping[str, str]
    lambda_consumers: tuple[LambdaConsumer, ...] = ()
    person_visibility_seconds: int | None = None
    reader_visibility_seconds: int | None = None

    @property
    def visibility_seconds(self) -> int:
        return int(self.attributes["VisibilityTimeout"])

    @property
    def retention_seconds(self) -> int:
        return int(self.attributes["MessageRetentionPeriod"])

    @property
    def in_flight(self) -> int:
        return int(self.attributes.get("ApproximateNumberOfMessagesNotVisible", "0"))

    @property
    def max_receive_count(self) -> int | None:
        """None where no RedrivePolicy is set; SQS spells the count as a number or as a text."""
        text = self.attributes.get("RedrivePolicy")
        return int(json.loads(text)["maxReceiveCount"]) if text else None
