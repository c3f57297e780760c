"""Nothing is changed unasked: the question, and who may answer it."""

from __future__ import annotations

import sys
import termios
from contextlib import suppress
from typing import Annotated

import typer

from cli.exit_codes import Exit, Stopped

Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do it without asking.")]


def confirm(question: str, *, yes: bool) -> None:
    """Return where the answer is yes; Stopped where it is no, or where nobody can be asked."""
    if yes:
        return
    require_answer(yes=yes)
    _forget_what_was_typed()
    if not _answered_yes(question):
        raise Stopped("not confirmed, nothing was changed", Exit.USAGE)


def require_answer(*, yes: bool) -> None:
    """Stopped where nobody has said yes, and nobody can be asked: before the work, not after it."""
    if not yes and not somebody_is_there():
        raise Stopped("not confirmed: there is no terminal to ask at; --yes confirms", Exit.USAGE)


def somebody_is_there() -> bool:
    return sys.stdin.isatty()


def _forget_what_was_typed() -> None:
    """What somebody typed before the question was there is no answer to it."""
    with suppress(OSError, termios.error):  # no terminal of the system's
        termios.tcflush(sys.stdin, termios.TCIFLUSH)


def _answered_yes(question: str) -> bool:
    """Ctrl-C and the end of the input are a no; the cursor still stands behind the question."""
    try:
        return typer.confirm(question, err=True)
    except typer.Abort:
        typer.echo(err=True)
        return False
