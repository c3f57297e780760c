"""The progress of one redrive as the case store holds it, and a sample of the DLQ's messages.

`mendq.redrive.machine` decides which stage comes next. This file says what the stored numbers mean
and how a sample, a move to quarantine and a move to the source change them.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, Self

from msgspec import Meta, Struct, convert, to_builtins
from msgspec.structs import replace

from mendq.model.facts import Facts
from mendq.redrive.messages import Message, MoveResult, RedriveMarker

# No count of a queue and no rate is larger, and none is negative.
_IN_BOUNDS = Meta(ge=0, lt=10**12)
Count = Annotated[int, _IN_BOUNDS]
Rate = Annotated[float, _IN_BOUNDS]
Moment = Annotated[datetime, Meta(tz=True)]


class Stage(StrEnum):
    """The stages of a redrive; DONE and HALTED are its ends."""

    CANARY = "canary"
    SOAK = "soak"
    RAMP = "ramp"
    DONE = "done"
    HALTED = "halted"


SENDING = (Stage.CANARY, Stage.RAMP)
GOING_ON = (Stage.CANARY, Stage.SOAK, Stage.RAMP)
ENDED = (Stage.DONE, Stage.HALTED)


class RedriveQueues(Struct, frozen=True):
    """The DLQ, the source, and when each was created. A queue created again is another queue."""

    dlq_arn: str
    source_arn: str
    dlq_made_at: Moment | None = None
    source_made_at: Moment | None = None


class StageProgress(Struct, frozen=True):
    """The numbers of the current stage.

    Attributes:
        size: The most messages that this stage may move.
        number: The number of stages before this one.
        moved: Messages that this stage may have moved, including the `unsure` ones.
        unsure: Messages that may not have gone: SQS did not answer, or the run died while they were
            in flight. They prove nothing.
        in_flight: Messages that a run is sending now.
        expected: Messages that should be left in the DLQ if none came back.
        stood: Messages in the source at the end of the stage, including those that it moved.
        soak_ends_at: The end of the stage's soak, None before it begins.
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
    def remaining(self) -> int:
        """Messages that this stage may still move."""
        return max(0, self.size - self.moved)


class Waits(Struct, frozen=True):
    """Waits that end the redrive if they last too long.

    Attributes:
        consumers_since: Start of the time in which the source's consumers deleted nothing.
        refused_since: Start of the time in which SQS refused every message.
        is_refused: True if SQS refused messages in this stage too.
        blocked_since: Start of the time in which queues or messages could not be read.
        fruitless: Consecutive ticks that found no message to send, or died.
    """

    consumers_since: Moment | None = None
    refused_since: Moment | None = None
    is_refused: bool = False
    blocked_since: Moment | None = None
    fruitless: Count = 0


class RedriveProgress(Struct, frozen=True):
    """The progress of one redrive.

    Attributes:
        n: The number of times it was stored.
        moved: Messages that went back for certain.
        moved_at: The last time messages went back.
        returned: Messages that came back to the DLQ and were counted.
        quarantined: Messages that came back and are in quarantine.
        because: The reason to wait or to end, for operators.
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
    def start(cls, case_id: str, queues: RedriveQueues, *, size: int, now: datetime) -> Self:
        """Return the progress of a new redrive with a canary of `size` messages."""
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
        """Return the document that the case store holds."""
        return to_builtins(self)  # type: ignore[no-any-return]

    @classmethod
    def from_document(cls, document: object) -> Self:
        """Read a document of the case store.

        Raises:
            ValueError: A value is missing, has another type or is out of bounds.
        """
        progress = convert(document, cls)
        if progress.stage is Stage.SOAK and progress.current.soak_ends_at is None:
            raise ValueError("a soak that never ends")
        return progress

    def enter_stage(self, stage: Stage, now: datetime, because: str = "") -> Self:
        """Return the progress at the start of `stage`, which begins now."""
        current = replace(self.current, began_at=now)
        return replace(self, stage=stage, current=current, because=because)

    def with_stage(self, **changes: Any) -> Self:
        """Return the progress with other numbers of the current stage."""
        return replace(self, current=replace(self.current, **changes))

    def with_waits(self, **changes: Any) -> Self:
        """Return the progress with other waits."""
        return replace(self, waits=replace(self.waits, **changes))

    def count_sample(self, sample: DlqSample) -> Self:
        """Count the messages that came back, before any of them moves.

        A run that dies after this counts a message twice, and never misses one.
        """
        return replace(self, returned=self.returned + len(sample.returned))

    def count_quarantine(self, sample: DlqSample) -> Self:
        """Count the messages that went to quarantine, and end the tick's sample.

        Messages that could not go to quarantine are counted again by the next sample.
        """
        progress = self
        if sample.quarantined or not sample.still_back:
            progress = progress.with_waits(blocked_since=None)
        progress = progress.with_waits(fruitless=max(0, progress.waits.fruitless - 1))
        returned = progress.returned - sample.still_back
        quarantined = progress.quarantined + sample.quarantined
        return replace(progress, returned=returned, quarantined=quarantined)

    def count_move(
        self, result: MoveResult, now: datetime, *, is_short: bool, because: str = ""
    ) -> Self:
        """Count the messages that went back.

        Args:
            result: The mover's result.
            now: The time of this tick.
            is_short: True if the DLQ showed fewer messages than the stage may move. The stage is
                full then.
            because: The reason why there was no message to send, empty if there was one.
        """
        current = self.current
        spent = current.moved + result.moved + result.unsure
        progress = self.with_stage(
            moved=spent,
            unsure=current.unsure + result.unsure,
            expected=max(0, current.expected - result.moved),
            size=spent if is_short else current.size,
            in_flight=0,
        )
        progress = replace(progress, moved=self.moved + result.moved, because=because)
        if result.moved:
            return progress.with_waits(refused_since=None, is_refused=False, fruitless=0)
        if not result.failed:
            return progress.with_waits(fruitless=self.waits.fruitless + 1)
        refused_since = self.waits.refused_since or now
        progress = progress.with_waits(refused_since=refused_since, is_refused=True, fruitless=0)
        return replace(progress, because=result.reason)


class DlqSample(Struct, frozen=True):
    """Received messages of the DLQ, sorted by what may happen to them. The order of receive is
    kept.

    Attributes:
        returned: Messages that this redrive sent back and that failed again.
        waiting: Messages that may be sent back.
        stays: Messages that stay in the DLQ. They did not die in this source, are too long for it,
            or have no room for the mark by which they are known when they come back.
        newly_dead: The number of messages without Mendq's mark that came since the redrive began.
        is_whole: True if SQS returned no other message.
        quarantined: The number of messages of `returned` that went to quarantine.
    """

    returned: tuple[Message, ...] = ()
    waiting: tuple[Message, ...] = ()
    stays: tuple[Message, ...] = ()
    newly_dead: int = 0
    is_whole: bool = True
    quarantined: int = 0

    @property
    def size(self) -> int:
        """Number of messages in the sample."""
        return len(self.returned) + len(self.waiting) + len(self.stays)

    @property
    def still_back(self) -> int:
        """Number of messages that came back and are not in quarantine."""
        return len(self.returned) - self.quarantined


def sort_messages(
    messages: Iterable[Message], progress: RedriveProgress, source: Facts, marker: RedriveMarker
) -> DlqSample:
    """Sort messages of the DLQ by what may happen to them.

    If a message of a FIFO group stays, all later messages of the group stay too, because they must
    not overtake it.

    Args:
        messages: The messages, in the order in which they were received.
        progress: The redrive's progress.
        source: The queue that messages go back to.
        marker: Recognizes the messages that this redrive has sent back before.
    """
    returned = list[Message]()
    waiting = list[Message]()
    stays = list[Message]()
    newly_dead = 0
    blocked_groups = set[str]()
    for message in messages:
        if marker.knows(message):
            returned.append(message)
            continue
        is_from_source = message.source_arn == progress.source_arn
        is_new = message.sent_at > progress.began_at
        if is_new and (is_from_source or not message.source_arn):
            newly_dead += 1
        can_go = is_from_source and marker.mark_redriven(message).fits(source.maximum_message_bytes)
        if can_go and message.group_id not in blocked_groups:
            waiting.append(message)
            continue
        stays.append(message)
        if source.is_fifo:
            blocked_groups.add(message.group_id)
    return DlqSample(tuple(returned), tuple(waiting), tuple(stays), newly_dead)
