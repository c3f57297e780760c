"""The one clear line with which a start ends that cannot succeed."""

from __future__ import annotations

WRONG_USE = 2
FAILED = 1


class CannotStart(Exception):
    """The account cannot start; the text is one line that names the cause and the remedy."""

    def __init__(self, line: str, exit_code: int = WRONG_USE) -> None:
        super().__init__(" ".join(line.split()))
        self.exit_code = exit_code
