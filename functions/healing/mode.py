"""How far Mendq may go on a queue: observe < propose < heal."""

from __future__ import annotations

from enum import IntEnum


class Mode(IntEnum):
    """The order matters: the lowest of several modes is the one that holds."""

    OBSERVE = 0
    PROPOSE = 1
    HEAL = 2

    def __str__(self) -> str:
        return self.name.lower()

    @classmethod
    def read(cls, text: str) -> Mode | None:
        """`text` as settings and tags spell it; None for anything else, upper case among it."""
        return MODES.get(text)


MODES = {str(mode): mode for mode in Mode}
