"""Which messages are held and until when, and which were lost; SQS is not asked here."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

# SQS counts from the receive, and no extension counts anew.
LONGEST_SECONDS = 43_200


@dataclass(eq=False)
class Hold:
    """A message by the handle that it was received with; times are the heartbeat's clock."""

    message_id: str
    handle: str
    received_at: float
    until: float

    @property
    def last_at(self) -> float:
        """When SQS gives it to others, whatever is extended."""
        return self.received_at + LONGEST_SECONDS


class Holds:
    """The messages that came: each is held until it is dropped, or lost when its time is over.

    `seconds` is how long a receive or an extension holds one; `now` is the heartbeat's clock.
    """

    def __init__(self, seconds: int) -> None:
        self._seconds = seconds
        self._by_id: dict[str, Hold] = {}
        self._lost: set[str] = set()

    @property
    def held(self) -> frozenset[str]:
        """Message ids."""
        return frozenset(self._by_id)

    @property
    def lost(self) -> frozenset[str]:
        """Message ids; none of them was dropped."""
        return frozenset(self._lost)

    def add(self, message_id: str, handle: str, received_at: float) -> None:
        """One that was received again is held by its newest handle."""
        until = received_at + self._seconds
        self._by_id[message_id] = Hold(message_id, handle, received_at, until)
        self._lost.discard(message_id)

    @property
    def every(self) -> list[Hold]:
        """The holds in the order in which they came."""
        return list(self._by_id.values())

    def among(self, message_ids: Iterable[str]) -> list[Hold]:
        """Those that are held of these, in this order."""
        return [self._by_id[each] for each in message_ids if each in self._by_id]

    def due(self, now: float) -> list[Hold]:
        """Those past the half of their time that an extension would hold for longer."""
        return [
            each
            for each in self.every
            if now >= each.until - self._seconds / 2 and each.last_at - each.until >= 1
        ]

    def has(self, hold: Hold, now: float) -> bool:
        """True while it is held still, and by this very handle."""
        return self._by_id.get(hold.message_id) is hold and hold.until > now

    def drop(self, holds: Iterable[Hold]) -> None:
        """They were deleted or released."""
        for each in holds:
            del self._by_id[each.message_id]

    def lose(self, holds: Iterable[Hold]) -> None:
        """They are somebody else's."""
        for each in holds:
            del self._by_id[each.message_id]
            self._lost.add(each.message_id)

    def lose_what_ran_out(self, now: float) -> None:
        self.lose(each for each in self.every if each.until <= now)
