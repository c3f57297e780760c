"""Which groups of a FIFO queue may go on behind what is in hand: SQS shows no more of those.

It hands out nothing of a group of which something is in flight, and ten letters at most at a time.
So a group is opened: let go, and received from its beginning while the others stay in hand.
https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/FIFO-queues-understanding-logic.html
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from functions.healing.letters import Letter


class GroupsInHand:
    """A group may go on for as long as looking at it brings something new, or letters leave it."""

    def __init__(self) -> None:
        self._ids: dict[str, set[str]] = {}
        self._may_go_on: dict[str, None] = {}

    def note(self, received: Iterable[Letter], new: Collection[str]) -> None:
        """`new` are the ids of those that were not seen before."""
        for each in received:
            self._ids.setdefault(each.group_id, set()).add(each.message_id)
            if each.message_id in new:
                self._may_go_on[each.group_id] = None

    def lose(self, letters: Iterable[Letter]) -> None:
        """They were deleted: others may be among the first ten now."""
        for each in letters:
            stay = self._ids.get(each.group_id, set())
            stay.discard(each.message_id)
            if stay:
                self._may_go_on[each.group_id] = None

    def next_to_open(self) -> frozenset[str] | None:
        """The ids of a group that was in hand; None where none can hide anything."""
        for group in self._may_go_on:
            del self._may_go_on[group]
            return frozenset(self._ids[group])
        return None

    def __bool__(self) -> bool:
        return bool(self._may_go_on)
