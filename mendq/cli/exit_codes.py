"""Exit codes of the commands. Scripts rely on the numbers."""

from __future__ import annotations

from enum import IntEnum


class Exit(IntEnum):
    """Exit code of a command. `mendq --help` lists the meanings."""

    DONE = 0
    FAILED = 1
    # The command was called in a wrong way, or the operator did not confirm it.
    USAGE = 2
    # Another person or program has changed a value since. The command kept that value.
    OVERRIDDEN = 3
    NOT_FOUND = 4


class CommandError(Exception):
    """End the command with an exit code and one line that says what is wrong and what to do.

    `error_code` is for scripts: AWS's or Mendq's own error code, else the name of the exit code.
    """

    def __init__(self, message: str, exit_code: Exit = Exit.FAILED, error_code: str = "") -> None:
        super().__init__(message)
        self.code = exit_code
        self.error_code = error_code or exit_code.name.lower()

    def document(self) -> dict[str, dict[str, str]]:
        """Return the error as `--json` prints it."""
        return error_document(self.error_code, str(self))


def error_document(error_code: str, message: str) -> dict[str, dict[str, str]]:
    """Return an error for scripts: a code to branch on and a line to log."""
    return {"error": {"code": error_code, "message": message}}
