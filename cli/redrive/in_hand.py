"""Letters that are kept from everybody else, and how they are let go of when it ends."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Event

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn
from rich.text import Text

from cli.exit_codes import Stopped
from cli.output import Output
from functions.aws.hand import LEASE_SECONDS, Hand
from functions.healing.plain_text import counted

ENDING = (
    "interrupted: it ends after the batch under way, and lets go of what is in hand; "
    "Ctrl-C again leaves at once"
)


@dataclass(frozen=True)
class Bar:
    """How far something has come, over `total` letters: where somebody looks."""

    progress: Progress
    task: TaskID
    words: str
    total: int

    def done(self, letters: int) -> None:
        self._tell(self.words, letters)

    def looked_again(self, letters: int) -> None:
        """What was let go of for a question is received anew before anything else is done."""
        self._tell(f"{self.words}: looking at them again", letters)

    def _tell(self, words: str, letters: int) -> None:
        total = max(letters, self.total)
        self.progress.update(self.task, description=words, completed=letters, total=total)


@contextmanager
def holding(hand: Hand, out: Output, words: str, total: int, stop: Event) -> Iterator[Bar]:
    """Show how far the work comes, and at its end how what is in hand is let go of.

    Raises Stopped where somebody could not wait for that, with the number that stays hidden.
    """
    with hand:
        try:
            try:
                with _bar(out, words, total) as bar:
                    yield bar
            except Exception:
                _let_go(hand, out, stop)
                raise
            _let_go(hand, out, stop)
        except KeyboardInterrupt as twice:
            raise Stopped(_left_hidden(hand.abandon()), word="interrupted") from twice


def _let_go(hand: Hand, out: Output, stop: Event) -> None:
    if not (letters := hand.in_hand):
        return
    words = f"letting go of {counted(letters, 'letter')}"
    if stop.is_set():
        out.progress.print(Text(words))
    with _bar(out, words, letters) as bar:
        for released in hand.let_go():
            bar.done(released)


def _left_hidden(letters: int) -> str:
    stay = "stays" if letters == 1 else "stay"
    return (
        f"interrupted twice: {counted(letters, 'letter')} {stay} hidden for up to "
        f"{LEASE_SECONDS} seconds, and can be seen again then"
    )


@contextmanager
def _bar(out: Output, words: str, total: int) -> Iterator[Bar]:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    console = out.progress
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as progress:
        yield Bar(progress, progress.add_task(words, total=total), words, total)
