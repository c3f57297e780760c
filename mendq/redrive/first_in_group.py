"""Tell which message blocked a FIFO group, from the messages of that group in the DLQ.

SQS returns the messages of a group in order. So a message that always fails is the first of its
group until it moves to the DLQ. It reaches the DLQ together with the messages that SQS returned in
the same receives, and before them. So the first message of the group in the DLQ is the one that
failed, if these three conditions hold:

1. the messages of the group reached the DLQ together. If they came at different times, the group
   was blocked more than once, so more than one of them may have failed;
2. no other group's messages reached it at the same time. A receive may return messages of several
   groups. If a consumer gives a whole batch back, first messages of other groups move with the one
   that failed;
3. all of them came from the source queue. A message that a person sent to the DLQ never blocked the
   group.

If one of these does not hold, only the consumer's log can tell which message failed.
https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/FIFO-queues-understanding-logic.html
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime, timedelta

from msgspec import Struct

from mendq.notifications.text import format_count
from mendq.redrive.messages import Message

# Messages that come to the DLQ within this time may be of one batch: they become visible at one
# moment, and SQS moves them at the next receives. Another message that blocks the group comes
# later, because it must be received maxReceiveCount times first.
TOGETHER = timedelta(seconds=60)


class GroupInDlq(Struct):
    """The first message of a message group in a DLQ, and when the group's messages came there.

    Attributes:
        first_id: The id of the first message.
        first_at: The time when the earliest message came to the DLQ.
        last_at: The time when the latest message came to the DLQ.
        has_others: True if a message did not come from the source queue.
    """

    first_id: str
    first_at: datetime
    last_at: datetime
    has_others: bool = False

    @classmethod
    def begun_by(cls, message: Message) -> GroupInDlq:
        """Return the group with this message as its first one."""
        return cls(message.message_id, message.sent_at, message.sent_at)

    def add(self, message: Message, *, is_from_source: bool) -> None:
        """Add a message of the group. In a FIFO DLQ, `sent_at` is the time when it came there."""
        self.first_at = min(self.first_at, message.sent_at)
        self.last_at = max(self.last_at, message.sent_at)
        self.has_others = self.has_others or not is_from_source

    def came_with(self, other: GroupInDlq) -> bool:
        """Return True if messages of both groups may have reached the DLQ in one batch."""
        return (
            self.first_at <= other.last_at + TOGETHER and other.first_at <= self.last_at + TOGETHER
        )


class UnclearGroup(Struct, frozen=True):
    """A group for which the DLQ does not show which message failed.

    Attributes:
        group_id: The message group.
        reason: The reason, for operators.
        can_be_named: True if only one thing is unknown: whether this group was blocked, or moved
            together with a blocked one. If a person knows that it was blocked, the first message is
            the one that failed.
    """

    group_id: str
    reason: str
    can_be_named: bool = False


def find_unclear_groups(
    groups: Mapping[str, GroupInDlq], chosen: Collection[str], going: Collection[str]
) -> list[UnclearGroup]:
    """Return the groups whose first message may not be the one that failed.

    Args:
        groups: All groups that were seen in the DLQ, by message group id.
        chosen: Groups with messages that match the person's filter.
        going: Groups with messages that would be sent back; a part of `chosen`.
    """
    unclear = list[UnclearGroup]()
    for group_id in sorted(going):
        group = groups[group_id]
        beside = [
            other_id
            for other_id in chosen
            if other_id != group_id and group.came_with(groups[other_id])
        ]
        if group.has_others:
            reason = "some of its messages came from another queue, or a person sent them there"
            unclear.append(UnclearGroup(group_id, reason))
        elif group.last_at - group.first_at > TOGETHER:
            came = f"{group.first_at:%Y-%m-%d %H:%M:%S} to {group.last_at:%Y-%m-%d %H:%M:%S} UTC"
            reason = f"its messages came to the DLQ at different times, from {came}"
            unclear.append(UnclearGroup(group_id, reason))
        elif beside:
            others = format_count(len(beside), "other group")
            reason = f"messages of {others} came to the DLQ at the same time, maybe from one batch"
            unclear.append(UnclearGroup(group_id, reason, can_be_named=True))
    return unclear
