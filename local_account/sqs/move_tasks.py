"""Move tasks: what StartMessageMoveTask starts, and what ListMessageMoveTasks tells of it.

https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_ListMessageMoveTasks.html
https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-configure-dead-letter-queue-redrive.html
"""

from __future__ import annotations

import base64
import binascii
import json
import uuid
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

Queue = dict[str, Any]
MOST_PER_SECOND = 500
LONGEST_SECONDS = 36 * 3600
# At one message a second six more moved between the cancel and its end (recorded).
CANCELLING_SECONDS = 6.0
# Whoever was held up for longer moves no burst afterwards.
CATCHES_UP_SECONDS = 0.25
MOST_LISTED = 10
_TASKS = "local_account_move_tasks"


class Status(StrEnum):
    """As ListMessageMoveTasks spells it."""

    RUNNING = "RUNNING"
    COMPLETED = "COMPLETED"
    CANCELLING = "CANCELLING"
    CANCELLED = "CANCELLED"
    FAILED = "FAILED"


@dataclass(eq=False)
class MoveTask:
    """One task; times in seconds since the epoch, `per_second` None where nobody set a rate."""

    source_arn: str
    destination_arn: str | None
    per_second: int | None
    to_move: int
    started_at: float
    task_id: str = field(default_factory=lambda: str(uuid.uuid4()))
    status: Status = Status.RUNNING
    moved: int = 0
    failure_reason: str = ""
    _next_at: float = 0.0
    _cancelled_at: float = 0.0

    @property
    def handle(self) -> str:
        return handle_of(self.task_id, self.source_arn)

    @property
    def is_active(self) -> bool:
        """Whether it still moves: for a moment it does although it was cancelled."""
        return self.status in (Status.RUNNING, Status.CANCELLING)

    def due(self, now: float) -> int:
        """How many messages may move now; the first one does at once.

        What SQS calls system optimised is here the fastest rate that one may ask for.
        """
        gap = 1 / (self.per_second or MOST_PER_SECOND)
        next_at = max(self._next_at or now, now - CATCHES_UP_SECONDS)
        if next_at > now:
            return 0
        count = int((now - next_at) / gap) + 1
        self._next_at = next_at + count * gap
        return count

    def cancel(self, now: float) -> None:
        """Have it end soon."""
        self.status, self._cancelled_at = Status.CANCELLING, now

    def ends_by_itself(self, now: float) -> bool:
        """End a task whose cancel has come through, or that has run for too long.

        Which status SQS gives the latter is not documented; messages are left, so it failed here.
        """
        if self.status is Status.CANCELLING and now - self._cancelled_at >= CANCELLING_SECONDS:
            self.status = Status.CANCELLED
        elif self.is_active and now - self.started_at >= LONGEST_SECONDS:
            self.fail("")
        return not self.is_active

    def drained(self) -> None:
        """Nothing visible is left to move."""
        is_running = self.status is Status.RUNNING
        self.status = Status.COMPLETED if is_running else Status.CANCELLED

    def fail(self, reason: str) -> None:
        self.status, self.failure_reason = Status.FAILED, reason

    def as_entry(self) -> dict[str, Any]:
        """As an entry of ListMessageMoveTasks: what was not asked for is not told."""
        told: dict[str, Any] = {
            "TaskHandle": self.handle if self.status is Status.RUNNING else None,
            "Status": self.status.value,
            "SourceArn": self.source_arn,
            "DestinationArn": self.destination_arn,
            "MaxNumberOfMessagesPerSecond": self.per_second,
            "ApproximateNumberOfMessagesMoved": self.moved,
            "ApproximateNumberOfMessagesToMove": self.to_move,
            "FailureReason": self.failure_reason or None,
            "StartedTimestamp": int(self.started_at * 1000),
        }
        return {name: value for name, value in told.items() if value is not None}


def handle_of(task_id: str, source_arn: str) -> str:
    """A TaskHandle, as AWS writes it: JSON in base64."""
    text = json.dumps({"taskId": task_id, "sourceArn": source_arn}, separators=(",", ":"))
    return base64.b64encode(text.encode()).decode()


def read_handle(handle: str) -> tuple[str, str] | None:
    """The id and the source's ARN that a TaskHandle names, or None."""
    try:
        named = json.loads(base64.b64decode(handle, validate=True))
    except (binascii.Error, ValueError):
        return None
    if not isinstance(named, dict) or not {"taskId", "sourceArn"} <= named.keys():
        return None
    return str(named["taskId"]), str(named["sourceArn"])


def tasks_of(queue: Queue) -> list[MoveTask]:
    """The tasks out of a queue, oldest first; they are gone when the queue is."""
    tasks: list[MoveTask] = queue.setdefault(_TASKS, [])
    return tasks


def remember(queue: Queue, task: MoveTask) -> None:
    """Add the newest task; SQS tells of the last ten."""
    tasks_of(queue).append(task)
    del tasks_of(queue)[:-MOST_LISTED]


def put_back_tasks(queue: Queue, seconds: float) -> None:
    """Have the tasks out of a queue have started so much earlier; they move as fast as before."""
    for task in tasks_of(queue):
        task.started_at -= seconds
