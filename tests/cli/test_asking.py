from __future__ import annotations

import io
import os
import pty
import sys
from collections.abc import Callable
from typing import NoReturn

import pytest

from mendq.cli import output
from mendq.cli.exit_codes import Exit, Stopped
from mendq.cli.output import confirm, require_answer


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


def test_what_was_typed_before_the_question_is_no_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    keyboard, terminal = pty.openpty()
    asked = output._answered_yes

    def typed_now(question: str) -> bool:
        os.write(keyboard, b"n\n")
        return asked(question)

    monkeypatch.setattr(output, "_answered_yes", typed_now)
    with os.fdopen(keyboard, "wb", buffering=0), os.fdopen(terminal) as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        os.write(keyboard, b"y\n")
        with pytest.raises(Stopped, match="nothing was changed"):
            confirm("Do it?", yes=False)


def test_where_nobody_can_be_asked_it_says_so_beforehand(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("y\n"))
    with pytest.raises(Stopped, match="--yes confirms") as stopped:
        require_answer(yes=False)
    assert stopped.value.code is Exit.USAGE
    require_answer(yes=True)
