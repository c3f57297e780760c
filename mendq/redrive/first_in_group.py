"""Find the message that blocked a FIFO group, from the messages of that group in the DLQ.

SQS returns the messages of a group in order. So a message that always fails is the first of its
group until it moves to the DLQ. It reaches the DLQ together with the messages that SQS returned in
the same receives, and before them. So the first message of the group in the DLQ is the one that
failed, if these three conditions are met:

1. The messages of the group reached the DLQ together. If they came at different times, the group
   was blocked more than once, so more than one message may have failed.
2. No messages of another group reached the DLQ at the same time. A receive may return messages of
   several groups. If a consumer gives a whole batch back, first messages of other groups move
   together with the message that failed.
3. All messages of the group came from the source queue. A message that a person sent to the DLQ
   never blocked the group.

If a condition is not met, only the consumer's log can tell which message failed.
https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/FIFO-queues-understanding-logic.html
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime, timedelta

from msgspec import Struct

from mendq.notifications.text import format_count
from mendq.redrive.messages import Message

# Messages that reach the DLQ within this time may be of one batch: they become visible at the same
# moment, and SQS moves them at the next receives. The next message that blocks the group arrives
# later, because it must first be received maxReceiveCount times.
LONGEST_ARRIVAL_TIME_OF_BATCH = timedelta(seconds=60)


class GroupInDlq(Struct):
    """A message group in a DLQ: its first message, and when its messages arrived.

    Attributes:
        first_message_id: The id of the first message.
        first_arrived_at: When the earliest message arrived in the DLQ.
        last_arrived_at: When the latest message arrived in the DLQ.
        has_messages_of_other_sources: True if a message did not come from the source queue.
        has_messages_of_source: True if a message came from the source queue.
    """

    first_message_id: str
    first_arrived_at: datetime
    last_arrived_at: datetime
    has_messages_of_other_sources: bool = False
    has_messages_of_source: bool = False

    @classmethod
    def begin_with(cls, message: Message) -> GroupInDlq:
        """Return the group with this message as its first one."""
        return cls(message.message_id, message.sent_at, message.sent_at)

    def add_message(self, message: Message, *, is_from_source: bool) -> None:
        """Add a message of the group. In a FIFO DLQ, its `sent_at` is the time of its arrival."""
        self.first_arrived_at = min(self.first_arrived_at, message.sent_at)
        self.last_arrived_at = max(self.last_arrived_at, message.sent_at)
        self.has_messages_of_other_sources = (
            self.has_messages_of_other_sources or not is_from_source
        )
        self.has_messages_of_source = self.has_messages_of_source or is_from_source

    def may_share_batch_with(self, other_group: GroupInDlq) -> bool:
        """Return True if messages of both groups may have arrived in the DLQ in one batch."""
        return (
            self.first_arrived_at <= other_group.last_arrived_at + LONGEST_ARRIVAL_TIME_OF_BATCH
            and other_group.first_arrived_at <= self.last_arrived_at + LONGEST_ARRIVAL_TIME_OF_BATCH
        )


class UnclearGroup(Struct, frozen=True):
    """A group for which the DLQ does not show which message failed.

    Attributes:
        group_id: The message group.
        reason: The reason, for operators.
        can_person_confirm: True if the only open question is whether this group was blocked, or
            moved together with a blocked group. If a person knows that it was blocked, its first
            message is the one that failed.
    """

    group_id: str
    reason: str
    can_person_confirm: bool = False


def find_unclear_groups(
    group_by_id: Mapping[str, GroupInDlq],
    compared_group_ids: Collection[str],
    sent_group_ids: Collection[str],
) -> list[UnclearGroup]:
    """Return the groups whose first message may not be the one that failed, sorted by group id.

    For condition 2 of the module's docstring, a group is compared only with groups in
    `compared_group_ids` that have a message of the source, because a receive returns messages of
    one queue.

    Args:
        group_by_id: All groups that were seen in the DLQ, by message group id.
        compared_group_ids: All groups, or only the groups that the operator named.
        sent_group_ids: Groups with messages that would be sent back.
    """
    unclear_groups = list[UnclearGroup]()
    for group_id in sorted(sent_group_ids):
        group = group_by_id[group_id]
        ids_of_groups_arrived_together = [
            other_group_id
            for other_group_id in compared_group_ids
            if other_group_id != group_id
            and group_by_id[other_group_id].has_messages_of_source
            and group.may_share_batch_with(group_by_id[other_group_id])
        ]
        if group.has_messages_of_other_sources:
            reason = "some of its messages came from another queue, or a person sent them there"
            unclear_groups.append(UnclearGroup(group_id, reason))
        elif group.last_arrived_at - group.first_arrived_at > LONGEST_ARRIVAL_TIME_OF_BATCH:
            arrival_times_text = (
                f"{group.first_arrived_at:%Y-%m-%d %H:%M:%S} to "
                f"{group.last_arrived_at:%Y-%m-%d %H:%M:%S} UTC"
            )
            reason = f"its messages came to the DLQ at different times, from {arrival_times_text}"
            unclear_groups.append(UnclearGroup(group_id, reason))
        elif ids_of_groups_arrived_together:
            other_group_count_text = format_count(
                len(ids_of_groups_arrived_together), "other group"
            )
            reason = (
                f"messages of {other_group_count_text} came to the DLQ at the same time, maybe "
                "from one batch"
            )
            unclear_groups.append(UnclearGroup(group_id, reason, can_person_confirm=True))
    return unclear_groups
