from __future__ import annotations

import io
import sys
from collections.abc import Callable
from typing import NoReturn

import pytest

from cli.asking import confirm
from cli.exit_codes import Exit, Stopped


class Terminal(io.StringIO):
    """Somebody sits there, and types what it was made with."""

    def isatty(self) -> bool:
        return True


class Interrupted(Terminal):
    """Ctrl-C at the question."""

    def readline(self, *_: object) -> NoReturn:
        raise KeyboardInterrupt


@pytest.mark.parametrize(
    "sitting",
    [lambda: Terminal("n\n"), lambda: Terminal("\n"), lambda: Terminal(""), Interrupted],
    ids=["no", "enter", "ctrl-d", "ctrl-c"],
)
def test_everything_but_yes_is_not_confirmed(
    monkeypatch: pytest.MonkeyPatch, sitting: Callable[[], Terminal]
) -> None:
    monkeypatch.setattr(sys, "stdin", sitting())
    with pytest.raises(Stopped, match="nothing was changed") as stopped:
        confirm("Do it?", yes=False)
    assert stopped.value.code is Exit.USAGE


def test_yes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", Terminal("y\n"))
    confirm("Do it?", yes=False)
