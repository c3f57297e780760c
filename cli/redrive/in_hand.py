"""Letters that are kept from everybody else, and how they are let go of when it ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.text import Text

from cli.exit_codes import Stopped
from cli.output import Output
from functions.aws.mover import LEASE_SECONDS, Hand
from functions.healing.plain_text import counted

ENDING = (
    "interrupted: it ends after the batch under way, and lets go of what is in hand; "
    "Ctrl-C again leaves at once"
)


@contextmanager
def holding(
    hand: Hand, out: Output, words: str, total: int, stop: Event
) -> Iterator[Callable[[int], None]]:
    """Show how far the work comes, and at its end how what is in hand is let go of.

    Raises Stopped where somebody could not wait for that, with the number that stays hidden.
    """
    with hand:
        try:
            try:
                with _bar(out, words, total) as tell:
                    yield tell
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
    with _bar(out, words, letters) as tell:
        for released in hand.let_go():
            tell(released)


def _left_hidden(letters: int) -> str:
    stay = "stays" if letters == 1 else "stay"
    return (
        f"interrupted twice: {counted(letters, 'letter')} {stay} hidden for up to "
        f"{LEASE_SECONDS} seconds, and can be seen again then"
    )


@contextmanager
def _bar(out: Output, words: str, total: int) -> Iterator[Callable[[int], None]]:
    """Over the letters, where somebody looks."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    console = out.progress
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as bar:
        task = bar.add_task(words, total=total)
        yield lambda done: bar.update(task, completed=done, total=max(done, total))
