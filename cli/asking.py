"""Nothing is changed unasked: the question, and who may answer it."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from cli.exit_codes import Exit, Stopped

Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do it without asking.")]


def confirm(question: str, *, yes: bool) -> None:
    """Return where the answer is yes; Stopped where it is no, or where nobody can be asked."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise Stopped("not confirmed: there is no terminal to ask at; --yes confirms", Exit.USAGE)
    if not _answered_yes(question):
        raise Stopped("not confirmed, nothing was changed", Exit.USAGE)


def _answered_yes(question: str) -> bool:
    """Ctrl-C and the end of the input are a no; the cursor still stands behind the question."""
    try:
        return typer.confirm(question, err=True)
    except typer.Abort:
        typer.echo(err=True)
        return False
