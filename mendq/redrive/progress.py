"""How far one redrive has come, as the case store keeps it, and what a sample of messages says.

All of it outlives the look that it was written down by: machine.py moves it on.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, Self

from msgspec import Meta, Struct, convert, to_builtins
from msgspec.structs import replace

from mendq.model.facts import Facts
from mendq.redrive.messages import Message, RedriveMarker

# Of no queue's counts, and no rate, is any number larger; nothing is counted below nothing.
_IN_BOUNDS = Meta(ge=0, lt=10**12)
Count = Annotated[int, _IN_BOUNDS]
Rate = Annotated[float, _IN_BOUNDS]
Moment = Annotated[datetime, Meta(tz=True)]


class Stage(StrEnum):
    """What a redrive is at; the last two are its ends."""

    CANARY = "canary"
    SOAK = "soak"
    RAMP = "ramp"
    DONE = "done"
    HALTED = "halted"


SENDING = (Stage.CANARY, Stage.RAMP)
GOING_ON = (Stage.CANARY, Stage.SOAK, Stage.RAMP)
ENDED = (Stage.DONE, Stage.HALTED)


class RedriveQueues(Struct, frozen=True):
    """From where to where; a queue that was made at another time is another queue."""

    dlq_arn: str
    source_arn: str
    dlq_made_at: Moment | None = None
    source_made_at: Moment | None = None


class StageProgress(Struct, frozen=True):
    """`size` is what this stage may move at most and `moved` what it may have moved: what a run
    that died had in flight (`in_flight`) counts here as `unsure` too, and proves nothing.

    `expected` are the messages that should be left in the DLQ while none is back,
    `stood` those that stood in the source when the stage had gone, its own among them.
    """

    began_at: Moment
    size: Count
    number: Count = 0
    moved: Count = 0
    unsure: Count = 0
    in_flight: Count = 0
    expected: Count = 0
    stood: Count = 0
    soak_ends_at: Moment | None = None

    @property
    def left(self) -> int:
        return max(0, self.size - self.moved)


class Waits(Struct, frozen=True):
    """Since when nobody was seen to handle the source's messages, SQS took no message any more
    (`is_refused`: in this stage too), or what it has to see could not be seen.

    `fruitless` counts the ticks in a row that found no message to send, or ended on their way.
    """

    consumers_since: Moment | None = None
    refused_since: Moment | None = None
    is_refused: bool = False
    blocked_since: Moment | None = None
    fruitless: Count = 0


class RedriveProgress(Struct, frozen=True):
    """How far one redrive has come, as the case store keeps it; `n` counts how often it was
    written.

    `moved` is known to be gone.
    """

    case_id: str
    queues: RedriveQueues
    stage: Stage
    began_at: Moment
    current: StageProgress
    n: Count = 0
    moved: Count = 0
    moved_at: Moment | None = None
    returned: Count = 0
    quarantined: Count = 0
    rate_per_second: Rate = 0
    waits: Waits = Waits()
    because: str = ""

    @classmethod
    def begun(cls, case_id: str, queues: RedriveQueues, *, size: int, now: datetime) -> Self:
        """One that nothing was moved in yet."""
        return cls(case_id, queues, Stage.CANARY, now, StageProgress(now, size))

    @property
    def dlq_arn(self) -> str:
        return self.queues.dlq_arn

    @property
    def source_arn(self) -> str:
        return self.queues.source_arn

    @property
    def is_over(self) -> bool:
        return self.stage in ENDED

    def document(self) -> dict[str, Any]:
        """The document that the case store holds."""
        return to_builtins(self)  # type: ignore[no-any-return]

    @classmethod
    def from_document(cls, document: object) -> Self:
        """Raise ValueError where it is none of ours: every value is to be of that very type."""
        progress = convert(document, cls)
        if progress.stage is Stage.SOAK and progress.current.soak_ends_at is None:
            raise ValueError("a soak that never ends")
        return progress

    def now_in(self, stage: Stage, now: datetime, because: str = "") -> Self:
        """The progress in another stage, since now."""
        current = replace(self.current, began_at=now)
        return replace(self, stage=stage, current=current, because=because)

    def with_stage(self, **over: Any) -> Self:
        return replace(self, current=replace(self.current, **over))

    def with_waits(self, **over: Any) -> Self:
        return replace(self, waits=replace(self.waits, **over))


class DlqSample(Struct, frozen=True):
    """What was seen of the messages in the DLQ, in the order they were received in.

    `newly_dead` came since it began and bear no mark of this redrive: they died in the source, or
    somebody sent them to the DLQ. `stays` are not ours to send back: they did not die in this
    source, are too long for it, or could not bear the mark that they are known by when they come
    back. `is_whole`: there were no more.
    """

    returned: tuple[Message, ...] = ()
    waiting: tuple[Message, ...] = ()
    stays: tuple[Message, ...] = ()
    newly_dead: int = 0
    is_whole: bool = True
    quarantined: int = 0

    @property
    def seen(self) -> int:
        return len(self.returned) + len(self.waiting) + len(self.stays)

    @property
    def still_back(self) -> int:
        """Those that came back and did not go to quarantine."""
        return len(self.returned) - self.quarantined


def sample_of(
    messages: Iterable[Message], progress: RedriveProgress, source: Facts, marker: RedriveMarker
) -> DlqSample:
    """Sort them out; what stands behind one that stays of its FIFO group stays: order is theirs."""
    returned, waiting, stays = list[Message](), list[Message](), list[Message]()
    newly_dead, blocked, most_bytes = 0, set[str](), source.maximum_message_bytes
    for each in messages:
        if marker.knows(each):
            returned.append(each)
            continue
        is_ours = each.source_arn == progress.source_arn
        newly_dead += each.sent_at > progress.began_at and (is_ours or not each.source_arn)
        if not is_ours or not marker.marked(each).fits(most_bytes) or each.group_id in blocked:
            stays.append(each)
            blocked |= {each.group_id} if source.is_fifo else set()
        else:
            waiting.append(each)
    return DlqSample(tuple(returned), tuple(waiting), tuple(stays), newly_dead)
