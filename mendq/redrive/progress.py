"""The stored progress of one redrive, and a sample of the DLQ's messages.

`mendq.redrive.machine` decides which stage comes next. This file defines the stored numbers, and
how a sample, a move to quarantine and a move to the source change them.
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

# Limits for counts and rates. No real count or rate is larger, and none is negative.
_COUNT_BOUNDS = Meta(ge=0, lt=10**12)
NonNegativeCount = Annotated[int, _COUNT_BOUNDS]
NonNegativeRate = Annotated[float, _COUNT_BOUNDS]
AwareDatetime = Annotated[datetime, Meta(tz=True)]


class Stage(StrEnum):
    """The stages of a redrive. It ends with DONE or HALTED."""

    CANARY = "canary"
    SECOND_CANARY = "second_canary"
    SOAK = "soak"
    RAMP = "ramp"
    DONE = "done"
    HALTED = "halted"


SENDING_STAGES = (Stage.CANARY, Stage.SECOND_CANARY, Stage.RAMP)
RUNNING_STAGES = (Stage.CANARY, Stage.SECOND_CANARY, Stage.SOAK, Stage.RAMP)
FINAL_STAGES = (Stage.DONE, Stage.HALTED)


class RedriveQueues(Struct, frozen=True):
    """The DLQ and the source, with their creation times; None until they were read.

    A different creation time shows that a queue was deleted and created again.

    Attributes:
        source_access_digest: The digest of the source's policy and KMS key when the redrive was
            planned (`make_access_digest`). If the case does not have it, because an earlier version
            of Mendq opened the case, it is the digest when the redrive began. Empty until they were
            read, and in progress that a version before this field stored.
    """

    dlq_arn: str
    source_arn: str
    dlq_made_at: AwareDatetime | None = None
    source_made_at: AwareDatetime | None = None
    source_access_digest: str = ""


class StageProgress(Struct, frozen=True):
    """The numbers of the current stage.

    Attributes:
        began_at: The time when the stage, or its soak, began.
        size: The most messages that this stage may move.
        number: The number of stages before this one.
        moved: The number of messages that this stage moved, including the `unsure` ones.
        unsure: The number of messages that may have moved or not: SQS did not answer, they were
            sent and could not be deleted, or the run died while they were in flight. They prove
            nothing.
        in_flight: The most messages that a run is sending now; 0 if no run is sending.
        expected: The number of messages that should be left in the DLQ if none came back.
        stood: The number of messages for the source's consumers to handle: those visible in the
            source at the start of the tick that ended the stage, plus those that the stage moved.
        soak_ends_at: The end of the stage's soak; None before the soak begins.
    """

    began_at: AwareDatetime
    size: NonNegativeCount
    number: NonNegativeCount = 0
    moved: NonNegativeCount = 0
    unsure: NonNegativeCount = 0
    in_flight: NonNegativeCount = 0
    expected: NonNegativeCount = 0
    stood: NonNegativeCount = 0
    soak_ends_at: AwareDatetime | None = None

    @property
    def remaining_message_count(self) -> int:
        """The number of messages that this stage may still move."""
        return max(0, self.size - self.moved)


class RedriveWaits(Struct, frozen=True):
    """Waits that halt the redrive if they last too long. A time is None if there is no such wait.

    Attributes:
        consumers_since: The start of the wait for the source's consumers, which delete nothing, or
            have not handled all messages that were sent.
        refused_since: The start of the time in which SQS refused every message.
        is_refused: True if the last send was in this stage, and SQS refused all its messages.
        blocked_since: The start of the time in which queues or messages could not be read, or
            messages could not be moved to quarantine.
        fruitless: The number of consecutive ticks that found no message to send, or whose run died.
    """

    consumers_since: AwareDatetime | None = None
    refused_since: AwareDatetime | None = None
    is_refused: bool = False
    blocked_since: AwareDatetime | None = None
    fruitless: NonNegativeCount = 0


class RedriveProgress(Struct, frozen=True):
    """The progress of one redrive.

    Attributes:
        n: The version number of this record. Each `RedriveStore.save` adds 1, and the next redrive
            of the same DLQ continues from this number.
        moved: The number of messages that certainly went back.
        moved_at: The time of the last send.
        returned: The number of messages that went back and then failed again.
        quarantined: The number of returned messages that were moved to quarantine.
        because: The reason why the redrive waits or has ended, for operators.
    """

    case_id: str
    queues: RedriveQueues
    stage: Stage
    began_at: AwareDatetime
    current: StageProgress
    n: NonNegativeCount = 0
    moved: NonNegativeCount = 0
    moved_at: AwareDatetime | None = None
    returned: NonNegativeCount = 0
    quarantined: NonNegativeCount = 0
    rate_per_second: NonNegativeRate = 0
    waits: RedriveWaits = RedriveWaits()
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
        return self.stage in FINAL_STAGES

    def document(self) -> dict[str, Any]:
        """Return the progress as a document for the case store."""
        return to_builtins(self)  # type: ignore[no-any-return]

    @classmethod
    def from_document(cls, document: object) -> Self:
        """Return the progress in a document of the case store.

        Raises:
            ValueError: A value is missing, has another type or is out of bounds.
        """
        progress = convert(document, cls)
        if progress.stage is Stage.SOAK and progress.current.soak_ends_at is None:
            raise ValueError("a soak that never ends")
        return progress

    def enter_stage(self, stage: Stage, now: datetime, because: str = "") -> Self:
        """Return the progress in `stage`, which begins at `now`."""
        current_stage = replace(self.current, began_at=now)
        return replace(self, stage=stage, current=current_stage, because=because)

    def change_current_stage(self, **changes: Any) -> Self:
        """Return the progress with these fields of the current stage changed."""
        return replace(self, current=replace(self.current, **changes))

    def change_waits(self, **changes: Any) -> Self:
        """Return the progress with these fields of its waits changed."""
        return replace(self, waits=replace(self.waits, **changes))

    def count_sample(self, sample: DlqSample) -> Self:
        """Return the progress with the sample's returned messages added to `returned`.

        The caller stores the progress before these messages move to quarantine. If the run dies in
        between, the next run counts them again. So a message may be counted twice, but none is
        missed.
        """
        return replace(self, returned=self.returned + len(sample.returned_messages))

    def count_quarantine(self, sample: DlqSample) -> Self:
        """Return the progress with the sample's messages that went to quarantine counted.

        - Messages that could not go to quarantine are subtracted from `returned`, because the next
          sample contains them again.
        - The tick no longer counts as one without a result.
        - The wait `blocked_since` ends, unless messages came back and none of them could go to
          quarantine.
        """
        progress = self
        if sample.quarantined_count or not sample.unquarantined_count:
            progress = progress.change_waits(blocked_since=None)
        progress = progress.change_waits(fruitless=max(0, progress.waits.fruitless - 1))
        returned_count = progress.returned - sample.unquarantined_count
        quarantined_count = progress.quarantined + sample.quarantined_count
        return replace(progress, returned=returned_count, quarantined=quarantined_count)

    def count_move(
        self, result: MoveResult, now: datetime, *, is_sample_short: bool, because: str = ""
    ) -> Self:
        """Return the progress with the numbers of a send's result added.

        Args:
            result: The mover's result.
            now: The time of this tick.
            is_sample_short: True if the sample had fewer messages than should be sent, and all of
                them were sent. The stage then ends with the messages that it has moved.
            because: Why there was no message to send; empty if there was one.
        """
        current_stage = self.current
        stage_moved_count = current_stage.moved + result.moved_count + result.unsure_message_count
        progress = self.change_current_stage(
            moved=stage_moved_count,
            unsure=current_stage.unsure + result.unsure_message_count,
            expected=max(0, current_stage.expected - result.moved_count),
            size=stage_moved_count if is_sample_short else current_stage.size,
            in_flight=0,
        )
        progress = replace(progress, moved=self.moved + result.moved_count, because=because)
        if result.moved_count:
            return progress.change_waits(refused_since=None, is_refused=False, fruitless=0)
        if not result.unmoved_messages:
            return progress.change_waits(fruitless=self.waits.fruitless + 1)
        refused_since = self.waits.refused_since or now
        progress = progress.change_waits(refused_since=refused_since, is_refused=True, fruitless=0)
        return replace(progress, because=result.first_failure_reason)


class DlqSample(Struct, frozen=True):
    """Messages that a tick received from the DLQ, in three groups in the order of receive.

    Attributes:
        returned_messages: Messages that this redrive sent back and that failed again.
        sendable_messages: Messages that may be sent back.
        staying_messages: Messages that stay in the DLQ. They did not fail in this source, are too
            large for it, have no room for the mark by which Mendq recognizes them later, or are
            behind such a message in their FIFO group.
        newly_dead_count: The number of messages that have no mark of this redrive and were sent
            after it began. They failed in the source, or SQS does not name their source.
        is_complete: True if SQS had no other message to return.
        quarantined_count: The number of messages of `returned_messages` that went to quarantine.
    """

    returned_messages: tuple[Message, ...] = ()
    sendable_messages: tuple[Message, ...] = ()
    staying_messages: tuple[Message, ...] = ()
    newly_dead_count: int = 0
    is_complete: bool = True
    quarantined_count: int = 0

    @property
    def message_count(self) -> int:
        """The number of messages in the sample."""
        return (
            len(self.returned_messages) + len(self.sendable_messages) + len(self.staying_messages)
        )

    @property
    def unquarantined_count(self) -> int:
        """The number of messages that came back and are not in quarantine."""
        return len(self.returned_messages) - self.quarantined_count


def classify_messages(
    messages: Iterable[Message], progress: RedriveProgress, source: Facts, marker: RedriveMarker
) -> DlqSample:
    """Return a sample: messages that came back, messages that may go back, and all others.

    A message that is older than the source stays in the DLQ: it failed in an earlier queue of that
    name, which may have had another owner. If a message of a FIFO group stays, all later messages
    of the group stay too, because they must not overtake it.

    Args:
        messages: The messages, in the order in which they were received.
        progress: The redrive's progress.
        source: The queue to which messages go back.
        marker: Recognizes the messages that this redrive has sent back before.
    """
    returned_messages = list[Message]()
    sendable_messages = list[Message]()
    staying_messages = list[Message]()
    newly_dead_count = 0
    blocked_group_ids = set[str]()
    for message in messages:
        if marker.recognizes(message):
            returned_messages.append(message)
            continue
        is_from_source = message.source_arn == progress.source_arn
        was_sent_after_redrive_start = message.sent_at > progress.began_at
        if was_sent_after_redrive_start and (is_from_source or not message.source_arn):
            newly_dead_count += 1
        is_from_earlier_queue = source.is_created_after(message.sent_at)
        can_be_sent_back = (
            is_from_source
            and not is_from_earlier_queue
            and marker.mark_redriven(message).fits(source.maximum_message_bytes)
        )
        if can_be_sent_back and message.group_id not in blocked_group_ids:
            sendable_messages.append(message)
            continue
        staying_messages.append(message)
        if source.is_fifo:
            blocked_group_ids.add(message.group_id)
    return DlqSample(
        tuple(returned_messages),
        tuple(sendable_messages),
        tuple(staying_messages),
        newly_dead_count,
    )
