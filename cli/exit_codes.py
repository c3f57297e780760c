"""What a command ends with; scripts rely on the numbers."""

from __future__ import annotations

from enum import IntEnum


class Exit(IntEnum):
    """One number each."""

    DONE = 0
    FAILED = 1
    USAGE = 2
    KEPT = 3
    NOT_FOUND = 4


class Stopped(Exception):
    """The command ends here, with one line that names what is wrong and the cure."""

    def __init__(self, line: str, code: Exit = Exit.FAILED) -> None:
        super().__init__(line)
        self.code = code
