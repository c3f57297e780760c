"""Modes: how far Mendq may go on a queue."""

from __future__ import annotations

from enum import Enum
from functools import total_ordering


@total_ordering
class Mode(Enum):
    """How far Mendq may go on a queue, from the lowest mode to the highest.

    Modes can be compared: `min` returns the mode that limits Mendq most.
    """

    OBSERVE = "observe"
    PROPOSE = "propose"
    HEAL = "heal"

    def __str__(self) -> str:
        return self.value

    def __lt__(self, other: Mode) -> bool:
        modes_from_lowest = list(Mode)
        return modes_from_lowest.index(self) < modes_from_lowest.index(other)


# The modes as settings and tags spell them. Any other spelling, such as upper case, is not a mode.
MODE_BY_TEXT = {mode.value: mode for mode in Mode}
