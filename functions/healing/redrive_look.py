"""What a redrive looks at, and what it may do next.

https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_ListMessageMoveTasksResultEntry.html
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from functions.healing.states import State

# Clocks differ by so much between us and SQS.
SKEW = timedelta(seconds=5)


class TaskStatus(StrEnum):
    """As SQS spells them."""

    RUNNING = "RUNNING"
    COMPLETED = "COMPLETED"
    CANCELLING = "CANCELLING"
    CANCELLED = "CANCELLED"
    FAILED = "FAILED"


ACTIVE = frozenset({TaskStatus.RUNNING, TaskStatus.CANCELLING})


@dataclass(frozen=True)
class MoveTask:
    """The newest move task of a dead-letter queue; SQS tells the handle only while it runs."""

    status: TaskStatus
    started_at: datetime
    moved: int = 0
    handle: str = ""
    failure: str = ""
    per_second: int | None = None
    destination_arn: str = ""

    @property
    def is_active(self) -> bool:
        return self.status in ACTIVE


@dataclass(frozen=True)
class Source:
    """The queue that letters go back to: what decides when a poison one is back.

    `deleted_since` are the messages deleted since letters last went there; None where nobody asked
    or CloudWatch does not say.
    """

    lease_seconds: int
    receives: int
    delay_seconds: int = 0
    visible: int = 0
    deletes_per_second: float | None = None
    deleted_since: int | None = None

    @property
    def is_handled(self) -> bool:
        """Whether anybody is known to work it off."""
        return bool(self.deletes_per_second)

    @property
    def drain_seconds(self) -> float:
        """How long what stands in it takes; 0 where nobody is known to work it off."""
        return self.visible / self.deletes_per_second if self.deletes_per_second else 0


@dataclass(frozen=True)
class Look:
    """All that is seen of it at one tick. `waiting` are the letters in the dead-letter queue.

    `frozen` says why nothing may be changed for now; `forbidden` why it may not go on at all:
    a queue is not managed any more, its tag says no, or its cause is back. `hindered` says why it
    cannot see what it has to, or keep apart what came back: that may pass. `tasks_unseen`: SQS does
    not say what runs, and `task` is None for that.
    """

    now: datetime
    waiting: int
    source: Source
    task: MoveTask | None = None
    is_fifo: bool = False
    frozen: str = ""
    forbidden: str = ""
    hindered: str = ""
    tasks_unseen: bool = False


@dataclass(frozen=True)
class Census:
    """What was seen of the letters: so many looked at, so many that came back.

    `newly_dead` were sent since it began and never sent back by us. `stuck` are not ours to send
    back: they did not die in this source, or are too long for it. `is_whole`: there were no more.
    `fingerprints` are those that letters which bear no mark were known by.
    """

    seen: int = 0
    returned: int = 0
    quarantined: int = 0
    newly_dead: int = 0
    stuck: int = 0
    is_whole: bool = True
    fingerprints: tuple[str, ...] = ()

    @property
    def still_back(self) -> int:
        """Those that came back and did not go to quarantine."""
        return self.returned - self.quarantined


@dataclass(frozen=True)
class TakeCensus:
    """Look at the letters; those that came back go to quarantine."""


@dataclass(frozen=True)
class MoveByHand:
    """The mover sends so many letters back, each with its mark."""

    letters: int


@dataclass(frozen=True)
class StartTask:
    """A move task of SQS's own, at so many a second."""

    per_second: int


@dataclass(frozen=True)
class CancelTask:
    """`handle` is empty where it was not seen yet."""

    handle: str


@dataclass(frozen=True)
class Rest:
    """Nothing more at this tick, and why."""

    because: str


@dataclass(frozen=True)
class End:
    """The case is over: `state` is where it goes."""

    state: State
    because: str


Action = TakeCensus | MoveByHand | StartTask | CancelTask | Rest | End
