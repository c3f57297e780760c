"""Output of the commands: one JSON document for scripts, or text for people.

JSON goes to standard output. With `--json`, text for people goes to standard error, so that
standard output is exactly one JSON document.
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
from mendq.notifications.links import break_terminal_links, has_terminal_link
from mendq.notifications.text import terminal_command_or_note, to_terminal_text

# Longest line of text, equal to the longest reason in a notification. The end of a line is as
# important as its beginning: people must read it before they approve.
_MAX_LINE_CHARACTERS = 2_000
# Width if there is neither a terminal nor COLUMNS: a program must get whole lines.
_UNLIMITED_WIDTH = 10_000
# Text is wrapped to at least this width, however narrow the terminal is.
_MIN_TEXT_WIDTH = 20
_TRAILING_BLANKS_PATTERN = re.compile(r"[ \t]+$", re.MULTILINE)
_NOTE_ON_ADDED_LINK = (
    "(the diff is not shown: it would add a link. Check whose link it is; --json has the diff)"
)
_NOTE_ON_LINK_IN_DIFF = (
    "(the diff is not shown here: the template has a link close to the change. Add `> fix.diff` to "
    "the command, then `git apply fix.diff`)"
)
# A label, its style, and the text behind it.
LabelledLine = tuple[str, str, str]


class Output(Struct, frozen=True, dict=True):
    """Standard output and standard error of one command."""

    as_json: bool

    @cached_property
    def _people_console(self) -> Console:
        """Console for text that people read: standard output, or standard error with `--json`.

        If it is not a terminal, lines are not wrapped unless COLUMNS is set.
        """
        plain_text_options: Any = {"highlight": False, "markup": False, "emoji": False}
        console = Console(stderr=self.as_json, **plain_text_options)
        if not console.is_terminal:
            console.width = get_terminal_size((_UNLIMITED_WIDTH, 0)).columns
        return console

    @property
    def text_width(self) -> int:
        """Characters on a line for people. Very many if the output is not a terminal."""
        return self._people_console.width

    @cached_property
    def progress(self) -> Console:
        """Console for progress and errors. It always writes to standard error."""
        return Console(stderr=True, highlight=False, markup=False, emoji=False)

    def print_json(self, document: Any) -> None:
        """Print the command's result for a script. Print nothing without `--json`."""
        if self.as_json:
            sys.stdout.write(to_json(document, indent=2) + "\n")

    def show(self, renderable: RenderableType) -> None:
        """Print a table or styled text for people. In a pipe, remove blanks at line ends."""
        if self._people_console.is_terminal:
            self._people_console.print(renderable)
            return
        with self._people_console.capture() as capture:
            self._people_console.print(renderable)
        self._people_console.file.write(_TRAILING_BLANKS_PATTERN.sub("", capture.get()))

    def say(self, line: str, style: str = "") -> None:
        """Print a sentence for people, cut at 2,000 characters.

        Line breaks, links and control characters in it have no effect (see `to_terminal_text`).
        """
        self._print_wrapped(to_terminal_text(line, _MAX_LINE_CHARACTERS), style)

    def _print_wrapped(
        self, text: str, style: str, label: Text | None = None, indent: int = 0
    ) -> None:
        """Print text on as many lines as needed, indented, with `label` before the first line.

        No word is broken, so that a long ARN or policy can be copied.
        """
        width = max(_MIN_TEXT_WIDTH, self._people_console.width - indent)
        wrapped_lines = wrap(text, width, break_long_words=False, break_on_hyphens=False)
        wrapped_text = Text(f"\n{' ' * indent}".join(wrapped_lines), style=style)
        line_start = Text(" " * indent) if label is None else label
        self._people_console.print(Text.assemble(line_start, wrapped_text), soft_wrap=True)

    def say_command(self, line: str) -> None:
        """Print a shell command that people copy: it is neither wrapped nor cut.

        A name in it that would become a link is quoted. If that is not possible, or if a character
        cannot be printed, a note is printed instead.
        """
        command = terminal_command_or_note(line)
        self._people_console.print(Text(f"  {command}", style="bold"), soft_wrap=True)

    def say_template_line(self, line: str) -> None:
        """Print a line for a template, which people copy: it keeps its indentation.

        Links in it are broken, and characters that cannot be printed are made visible.
        """
        self._print_with_blanks(f"  {line}", "bold")

    def say_own_document_line(self, line: str) -> None:
        """Print a line of a document that comes with Mendq, with its links and blanks."""
        self._people_console.print(Text(line), soft_wrap=True)

    def say_table_line(self, line: str) -> None:
        """Print a line of a table whose columns are aligned by blanks.

        Links and characters are treated as in `say_template_line`.
        """
        self._print_with_blanks(line, "")

    def _print_with_blanks(self, line: str, style: str) -> None:
        text = break_terminal_links(_make_printable(line))
        self._people_console.print(Text(text, style=style), soft_wrap=True)

    def say_diff(self, diff_lines: Sequence[str]) -> None:
        """Print a unified diff that people and `git apply` copy, with its blanks and tabs.

        Other characters that cannot be printed are escaped. A link cannot be broken in a diff,
        because it would then set another value or not apply. So a note is printed instead if an
        added line has a link, and at a terminal also if another line has one. In a pipe, lines of
        the operator's own template stay as they are.
        """
        lines_with_link = [line for line in diff_lines if has_terminal_link(line)]
        if any(line.startswith("+") for line in lines_with_link):
            self.say(_NOTE_ON_ADDED_LINK, "yellow")
        elif lines_with_link and self._people_console.is_terminal:
            self.say(_NOTE_ON_LINK_IN_DIFF, "yellow")
        else:
            for line in diff_lines:
                self._people_console.print(Text(_make_printable(line)), soft_wrap=True)

    def say_unwrapped(self, text: str, style: str = "dim", *, indent: int = 0) -> None:
        """Print a name that people copy, such as an ARN, on one line that is never wrapped."""
        line = Text(" " * indent + to_terminal_text(text, _MAX_LINE_CHARACTERS), style=style)
        self._people_console.print(line, soft_wrap=True)

    def say_indented(self, text: str, style: str = "", *, indent: int = 2) -> None:
        """Print a sentence that belongs to the line above it, indented and wrapped."""
        self._print_wrapped(to_terminal_text(text, _MAX_LINE_CHARACTERS), style, indent=indent)

    def say_labelled(self, lines: Iterable[LabelledLine], *, indent: int = 2) -> None:
        """Print labels and texts in two columns. A long text is wrapped inside its column."""
        labelled_lines = list(lines)
        label_width = max((len(label) for label, _, _ in labelled_lines), default=0)
        text_column_start = indent + label_width + 2
        for label, style, text in labelled_lines:
            label_text = Text(f"{' ' * indent}{label}".ljust(text_column_start), style=style)
            self._print_wrapped(
                to_terminal_text(text, _MAX_LINE_CHARACTERS), "", label_text, text_column_start
            )

    def say_heading(self, heading: str) -> None:
        self.show(Text(f"\n{heading}", style="bold underline"))

    def report_error(self, error: CommandError) -> None:
        """Print an error as one line on standard error, and as JSON if `--json` was given.

        A terminal wraps the line at any character; in a log it stays one line. The error may quote
        text that others wrote, so control characters are made visible and links are broken.
        """
        line = f"mendq: {to_terminal_text(error, _MAX_LINE_CHARACTERS)}"
        self.progress.print(Text(line, style="red"), soft_wrap=not self.progress.is_terminal)
        # Standard output itself may be what failed.
        with suppress(OSError):
            self.print_json(error.document())

    @contextmanager
    def show_progress(self, description: str, total_count: int) -> Iterator[Callable[[int], None]]:
        """Show a progress bar up to `total_count`. Yield a function that takes the count so far.

        Without a terminal nothing is shown.
        """
        with Progress(
            *Progress.get_default_columns(),
            MofNCompleteColumn(),
            console=self.progress,
            transient=True,
            disable=not self.progress.is_terminal,
        ) as progress_bar:
            progress_task = progress_bar.add_task(to_terminal_text(description), total=total_count)
            yield lambda done_count: progress_bar.update(
                progress_task, completed=done_count, total=max(done_count, total_count)
            )

    @contextmanager
    def show_waiting(self, description: str) -> Iterator[None]:
        """Show a spinner while the block runs. Without a terminal nothing is shown."""
        with self.progress.status(Text(to_terminal_text(description))):
            yield


def _make_printable(line: str) -> str:
    """Return the line with its blanks and tabs. Other unprintable characters are escaped."""
    characters = list[str]()
    for character in line:
        is_safe = character.isprintable() or character == "\t"
        characters.append(character if is_safe else f"\\x{ord(character):02x}")
    return "".join(characters)


@contextmanager
def report_write_errors() -> Iterator[None]:
    """Exit with 1 and one line of explanation if standard output is closed or cannot be written.

    A closed pipe (EPIPE), such as with `mendq cases | head -1`, exits with 1 without a line. Any
    OSError that leaves the block counts as a failed write.
    """
    if sys.stderr is None:
        sys.stderr = Path(os.devnull).open("w")  # noqa: SIM115 - until the process ends
    if sys.stdout is None:
        sys.stderr.write("mendq: standard output is closed: nothing was done\n")
        sys.exit(Exit.FAILED)
    try:
        try:
            yield
        finally:
            sys.stdout.flush()
    except OSError as error:
        # Python flushes standard output again when it ends, and would print a second error.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if error.errno != errno.EPIPE:
            sys.stderr.write(f"mendq: standard output cannot be written: {error.strerror}\n")
        sys.exit(Exit.FAILED)


def make_table(*column_names: str) -> Table:
    """Make a table without borders. Only the last column wraps its text."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for column_name in column_names[:-1]:
        table.add_column(column_name, no_wrap=True)
    table.add_column(column_names[-1], overflow="fold")
    return table


def format_minute(time: datetime) -> str:
    """Return a time to the minute, such as `2026-11-28 09:30 UTC`. `time` must be in UTC."""
    return f"{time:%Y-%m-%d %H:%M} UTC"


def format_age(start_time: datetime, now: datetime) -> str:
    """Return how long ago `start_time` was, in the largest full unit, such as `3 h`.

    A time in the future gives `0 s`.
    """
    age_seconds = max(0, int((now - start_time).total_seconds()))
    for unit_symbol, unit_seconds in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if age_seconds >= unit_seconds:
            return f"{age_seconds // unit_seconds} {unit_symbol}"
    return f"{age_seconds} s"


def shorten_list(names: Sequence[str], maximum_names: int = 3) -> str:
    """Join at most `maximum_names` names, such as `a, b, c and 4 more`."""
    shown_names_text = ", ".join(names[:maximum_names])
    left_out_name_count = len(names) - maximum_names
    return (
        f"{shown_names_text} and {left_out_name_count} more"
        if left_out_name_count > 0
        else shown_names_text
    )


YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Answer yes to every question.")]


def confirm(question: str, *, yes: bool) -> None:
    """Ask the operator, and return if the answer is yes. `yes` is the option --yes.

    Raises CommandError if the answer is no, or if there is no terminal to ask at.
    """
    if yes:
        return
    require_yes_or_terminal(yes=yes, question=question)
    _discard_typed_input()
    if not _is_answer_yes(question):
        raise CommandError("not confirmed, nothing was changed", Exit.USAGE)


def require_yes_or_terminal(*, yes: bool, question: str = "") -> None:
    """Raise CommandError if --yes is not given and there is no terminal to ask at.

    A command calls this before its work, so that the work is not done in vain.
    """
    if not yes and not has_terminal():
        message = "not confirmed: there is no terminal to ask at; --yes confirms"
        raise CommandError(f"{message}: {question}" if question else message, Exit.USAGE)


def has_terminal() -> bool:
    return sys.stdin.isatty()


def _discard_typed_input() -> None:
    """Discard keys that were pressed before the question was shown: they do not answer it."""
    # Standard input may say that it is a terminal without being one, as in a test.
    with suppress(OSError, termios.error):
        termios.tcflush(sys.stdin, termios.TCIFLUSH)


def _is_answer_yes(question: str) -> bool:
    """Ask a yes-or-no question on standard error. Ctrl-C and the end of the input mean no."""
    try:
        return typer.confirm(question, err=True)
    except typer.Abort:
        # The cursor is still behind the question.
        typer.echo(err=True)
        return False
