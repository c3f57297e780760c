"""Records of messages that left a DLQ: SQS's own redrives, and the deletes of other readers."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True)
class MoveTask:
    """A message movement task, which is SQS's own redrive.

    Attributes:
        started_at: When it was started.
        moved_messages: The approximate number of messages that it has moved so far.
    """

    started_at: datetime
    moved_messages: int


@dataclass(frozen=True)
class Redrives:
    """What is known about messages that left a DLQ in the measured time of its source.

    Attributes:
        move_tasks: The newest message movement tasks to this source or to the original sources, at
            most ten.
        dlq_deletes: The minutes in which messages were deleted from the DLQ, with the number of
            deletes, oldest first. Empty if this was not asked for.
    """

    move_tasks: tuple[MoveTask, ...] = ()
    dlq_deletes: tuple[tuple[datetime, int], ...] = ()
