"""The metrics of queues in namespace AWS/SQS: one value a minute of each, as SQS reports them.

https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-available-cloudwatch-metrics.html
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

NAMESPACE = "AWS/SQS"
SENT = "NumberOfMessagesSent"
RECEIVED = "NumberOfMessagesReceived"
DELETED = "NumberOfMessagesDeleted"
EMPTY_RECEIVES = "NumberOfEmptyReceives"
COUNTED = (SENT, RECEIVED, DELETED, EMPTY_RECEIVES)
VISIBLE = "ApproximateNumberOfMessagesVisible"
NOT_VISIBLE = "ApproximateNumberOfMessagesNotVisible"
DELAYED = "ApproximateNumberOfMessagesDelayed"
OLDEST_AGE = "ApproximateAgeOfOldestMessage"
GROUPS_IN_FLIGHT = "ApproximateNumberOfGroupsWithInflightMessages"  # of FIFO queues alone
MINUTE_SECONDS = 60
ACTIVE_SECONDS = 6 * 3600
POISON_AFTER_RECEIVES = 3

Point = dict[str, Any]  # as MiniStack's CloudWatch keeps one


@dataclass(frozen=True)
class Series:
    """One metric of one queue."""

    queue_arn: str
    metric: str
    points: list[Point] = field(default_factory=list)

    @property
    def dimensions(self) -> dict[str, str]:
        """What tells the queue from others of its account and Region."""
        return {"QueueName": self.queue_arn.rpartition(":")[2]}

    def point_at(self, at_seconds: float) -> Point:
        """The point of that minute, a new one of 0 where it is the minute's first."""
        minute = float(at_seconds // MINUTE_SECONDS * MINUTE_SECONDS)
        if not self.points or self.points[-1]["Timestamp"] < minute:
            unit = "Seconds" if self.metric == OLDEST_AGE else "Count"
            self.points.append(
                {"Timestamp": minute, "Unit": unit, "Dimensions": self.dimensions, "Value": 0.0}
            )
        return self.points[-1]


class QueueMetrics:
    """Every metric of every queue since the account started; for several threads."""

    def __init__(self) -> None:
        self._series: dict[tuple[str, str], Series] = {}
        self._lock = threading.Lock()

    def count(self, queue_arn: str, metric: str, how_many: int, at_seconds: float) -> None:
        """Add to what a minute has counted; 0 says that the queue was looked at."""
        with self._lock:
            self._of(queue_arn, metric).point_at(at_seconds)["Value"] += how_many

    def measure(self, queue_arn: str, values: Mapping[str, float], at_seconds: float) -> None:
        """Replace what has been measured in this minute."""
        with self._lock:
            for metric, value in values.items():
                self._of(queue_arn, metric).point_at(at_seconds)["Value"] = float(value)

    def put_back(self, queue_arn: str, seconds: float) -> None:
        """Have everything that is known of a queue be so much earlier; whole minutes."""
        with self._lock:
            for series in self._series.values():
                if series.queue_arn == queue_arn:
                    for point in series.points:
                        point["Timestamp"] -= seconds

    def series(self, account: str, region: str) -> Iterator[Series]:
        """The series of the queues of one account and Region."""
        prefix = f"arn:aws:sqs:{region}:{account}:"
        with self._lock:
            found = list(self._series.values())
        return (each for each in found if each.queue_arn.startswith(prefix))

    def _of(self, queue_arn: str, metric: str) -> Series:
        return self._series.setdefault((queue_arn, metric), Series(queue_arn, metric))


def is_active(*, has_messages: bool, accessed_at: float, now: float) -> bool:
    """Whether SQS still reports the queue: six hours after the last call, unless it is empty."""
    return has_messages or now - accessed_at < ACTIVE_SECONDS


def oldest_age_seconds(
    arrivals: Iterable[tuple[float, int]], *, is_fifo: bool, now: float
) -> float:
    """The age of the oldest message; (when it arrived, how often it was received) of each.

    A message that was received more than three times and not deleted no longer counts, except in a
    FIFO queue, whose order it holds up.
    """
    counted = [at for at, received in arrivals if is_fifo or received <= POISON_AFTER_RECEIVES]
    return float(int(now - min(counted))) if counted else 0.0
