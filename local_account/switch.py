"""What can be told to the account while it runs, and how it says that it cannot be done."""

from __future__ import annotations

from typing import Any, Protocol


class SwitchRefused(Exception):
    """What was asked of the running account cannot be done; the text is one line with the
    remedy.
    """


class NotFired(Exception):
    """The reason why a schedule's target was not invoked."""


class Switch(Protocol):
    """One thing that is off at first; it stands at a path of its own."""

    def replace(self, asked: object) -> None:
        """Have exactly what was asked for; raises SwitchRefused and changes nothing."""

    def end(self) -> None:
        """Have it off."""

    def as_json(self) -> dict[str, Any]:
        """What is on now."""
