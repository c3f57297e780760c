"""What goes where: one JSON document on standard output, or text for people.

With --json people's text goes to standard error, so that standard output stays one document.
"""

from __future__ import annotations

import errno
import os
import re
import sys
import termios
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from functools import cached_property
from pathlib import Path
from shutil import get_terminal_size
from textwrap import wrap
from typing import Annotated, Any

import typer
from msgspec import Struct
from rich.console import Console, RenderableType
from rich.progress import MofNCompleteColumn, Progress
from rich.table import Table
from rich.text import Text

from mendq.cli.exit_codes import CommandError, Exit
from mendq.model.json_text import to_json
from mendq.notifications.text import plain, visible

# As long as the reason on a page: what a person has to know before they approve comes last.
_MOST_LINE = 2_000
# Where no terminal and no COLUMNS says how wide it is: a program reads whole lines.
_UNBOUND = 10_000
_LEAST_ROOM = 20
_BLANK_ENDS = re.compile(r"[ \t]+$", re.MULTILINE)
# A label, its style, and what it says.
LabelledLine = tuple[str, str, str]


class Output(Struct, frozen=True, dict=True):
    """Where one command writes."""

    as_json: bool

    @cached_property
    def _people(self) -> Console:
        plainly: Any = {"highlight": False, "markup": False, "emoji": False}
        console = Console(stderr=self.as_json, **plainly)
        if not console.is_terminal:
            console.width = get_terminal_size((_UNBOUND, 0)).columns
        return console

    @cached_property
    def progress(self) -> Console:
        """Where people see what goes on, and what went wrong."""
        return Console(stderr=True, highlight=False, markup=False, emoji=False)

    def print_json(self, document: Any) -> None:
        """The command's answer to a script; nothing where people read."""
        if self.as_json:
            sys.stdout.write(to_json(document, indent=2) + "\n")

    def show(self, what: RenderableType) -> None:
        """For people: a table, a styled text; in a pipe no line ends in blanks."""
        if self._people.is_terminal:
            self._people.print(what)
            return
        with self._people.capture() as drawn:
            self._people.print(what)
        self._people.file.write(_BLANK_ENDS.sub("", drawn.get()))

    def say(self, line: str, style: str = "") -> None:
        """A line for people; whatever is in it, it stays one line and does nothing else."""
        self._flow(plain(line, _MOST_LINE), style)

    def _flow(self, text: str, style: str, begins: Text | None = None, indent: int = 0) -> None:
        """As many lines as it takes, each but the first indented; no word is ever broken.

        So an ARN or a policy that is longer than a line can be copied.
        """
        room = max(_LEAST_ROOM, self._people.width - indent)
        lines = wrap(text, room, break_long_words=False, break_on_hyphens=False)
        said = Text(f"\n{' ' * indent}".join(lines), style=style)
        before = Text(" " * indent) if begins is None else begins
        self._people.print(Text.assemble(before, said), soft_wrap=True)

    def say_command(self, line: str) -> None:
        """A command to be copied: never wrapped, never cut."""
        self._people.print(Text(f"  {line}", style="bold"), soft_wrap=True)

    def say_verbatim(self, line: str) -> None:
        """Others' text to be copied with its blanks: what steers a terminal is spelled out."""
        seen = (e if e.isprintable() or e == "\t" else f"\\x{ord(e):02x}" for e in line)
        self._people.print(Text("".join(seen)), soft_wrap=True)

    def say_unwrapped(self, text: str, style: str = "dim", *, indent: int = 0) -> None:
        """A name to be copied, such as an ARN: on a line of its own, never wrapped, never cut."""
        line = Text(" " * indent + plain(text, _MOST_LINE), style=style)
        self._people.print(line, soft_wrap=True)

    def say_indented(self, text: str, style: str = "", *, indent: int = 2) -> None:
        """Indented under what was said last, on as many lines as it takes."""
        self._flow(plain(text, _MOST_LINE), style, indent=indent)

    def say_labelled(self, lines: Iterable[LabelledLine], *, indent: int = 2) -> None:
        """Indented under what was said last; what is long goes on under its own beginning."""
        every = list(lines)
        widest = indent + max((len(label) for label, _, _ in every), default=0) + 2
        for label, style, says in every:
            begins = Text(f"{' ' * indent}{label}".ljust(widest), style=style)
            self._flow(plain(says, _MOST_LINE), "", begins, widest)

    def say_heading(self, words: str) -> None:
        self.show(Text(f"\n{words}", style="bold underline"))

    def report_error(self, stopped: CommandError) -> None:
        """The one line of what went wrong; what it quotes is others' text.

        A terminal would break it anywhere; a log keeps it one line.
        """
        line = f"mendq: {visible(stopped, _MOST_LINE)}"
        self.progress.print(Text(line, style="red"), soft_wrap=not self.progress.is_terminal)
        with suppress(OSError):  # where standard output works
            self.print_json(stopped.document())

    @contextmanager
    def show_progress(self, what: str, number: int) -> Iterator[Callable[[int], None]]:
        """Show how many of `number` are done, as the function that comes back is told."""
        with Progress(
            *Progress.get_default_columns(),
            MofNCompleteColumn(),
            console=self.progress,
            transient=True,
            disable=not self.progress.is_terminal,
        ) as bar:
            task = bar.add_task(plain(what), total=number)
            yield lambda done: bar.update(task, completed=done, total=max(done, number))

    @contextmanager
    def show_waiting(self, for_what: str) -> Iterator[None]:
        """Show that something goes on; silent where nobody looks."""
        with self.progress.status(Text(plain(for_what))):
            yield


@contextmanager
def report_write_errors() -> Iterator[None]:
    """Where standard output cannot be written, one line says so, and the exit is 1."""
    if sys.stderr is None:
        sys.stderr = Path(os.devnull).open("w")  # noqa: SIM115 - for as long as the process lives
    if sys.stdout is None:
        sys.stderr.write("mendq: standard output is closed: nothing was done\n")
        sys.exit(Exit.FAILED)
    try:
        try:
            yield
        finally:
            sys.stdout.flush()
    except OSError as error:
        # Python flushes once more at its end, and would complain again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if error.errno != errno.EPIPE:
            sys.stderr.write(f"mendq: standard output cannot be written: {error.strerror}\n")
        sys.exit(Exit.FAILED)


def make_table(*columns: str) -> Table:
    """A table without lines; its last column takes what room is left."""
    made = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for name in columns[:-1]:
        made.add_column(name, no_wrap=True)
    made.add_column(columns[-1], overflow="fold")
    return made


def format_minute(at: datetime) -> str:
    """Without the seconds, which nobody waits for."""
    return f"{at:%Y-%m-%d %H:%M} UTC"


def format_age(since: datetime, now: datetime) -> str:
    """How long ago, in the largest unit that it fills."""
    seconds = max(0, int((now - since).total_seconds()))
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= size:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"


def shorten_list(names: Sequence[str], most: int = 3) -> str:
    """The first of them, and how many more there are."""
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")


Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do it without asking.")]


def confirm(question: str, *, yes: bool) -> None:
    """Return where the answer is yes; CommandError where it is no, or where nobody can be asked."""
    if yes:
        return
    require_yes_or_terminal(yes=yes, question=question)
    _forget_what_was_typed()
    if not _answered_yes(question):
        raise CommandError("not confirmed, nothing was changed", Exit.USAGE)


def require_yes_or_terminal(*, yes: bool, question: str = "") -> None:
    """Raise CommandError where nobody has said yes, and nobody can be asked: before the
    work, not after it.
    """
    if not yes and not has_terminal():
        line = "not confirmed: there is no terminal to ask at; --yes confirms"
        raise CommandError(f"{line}: {question}" if question else line, Exit.USAGE)


def has_terminal() -> bool:
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
