"""What a command ends with; scripts rely on the numbers."""

from __future__ import annotations

from enum import IntEnum


class Exit(IntEnum):
    """One number each."""

    DONE = 0
    FAILED = 1
    USAGE = 2
    OVERRIDDEN = 3
    NOT_FOUND = 4


class CommandError(Exception):
    """The command ends here, with one line that names what is wrong and the remedy.

    `word` is what scripts read: AWS's or Mendq's own code where there is one, else the exit's name.
    """

    def __init__(self, line: str, code: Exit = Exit.FAILED, error_code: str = "") -> None:
        super().__init__(line)
        self.code = code
        self.error_code = error_code or code.name.lower()

    def document(self) -> dict[str, dict[str, str]]:
        """As --json says it."""
        return error_document(self.error_code, str(self))


def error_document(word: str, line: str) -> dict[str, dict[str, str]]:
    """What went wrong, for scripts: a word to branch on, a line to log."""
    return {"error": {"code": word, "message": line}}
