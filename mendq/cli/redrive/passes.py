"""Go through a queue of messages, once to count and once to act; let go of what is held at the end.

Each message is looked at once a pass; what was not chosen is let go before anything is done.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from threading import Event
from time import monotonic

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn
from rich.text import Text

from mendq.cli.exit_codes import Exit, Stopped
from mendq.cli.output import Output
from mendq.cli.redrive.preview import Tally
from mendq.notifications.text import counted
from mendq.redrive.messages import Message
from mendq.redrive.mover import MOST_HELD, MOST_RECEIVED, VISIBILITY_SECONDS, MessageMover
from mendq.redrive.send_batches import MoveResult

_RATE = re.compile(r"([0-9]{1,5}(?:\.[0-9]{1,3})?)(?:/s)?")
FULL_BATCH = 10


def rate_of(text: str | None) -> float | None:
    """`10/s`, `0.5/s`, `10`; Stopped where it is no rate above 0."""
    if text is None:
        return None
    found = _RATE.fullmatch(text.strip())
    rate = float(found.group(1)) if found else 0.0
    if not rate:
        raise Stopped(f"--rate {text[:40]!r} is no rate: say 10/s, or 0.5/s", Exit.USAGE)
    return rate


@dataclass
class Pace:
    """`wait` sleeps so many seconds, or less where somebody interrupts it."""

    per_second: float | None
    wait: Callable[[float], object]
    clock: Callable[[], float] = monotonic
    _due: float = field(default=0.0, init=False)

    @property
    def batch(self) -> int:
        """How many go at once, so that what goes slowly goes evenly."""
        return (
            FULL_BATCH if self.per_second is None else max(1, min(FULL_BATCH, int(self.per_second)))
        )

    def before(self, messages: int) -> None:
        """Return when so many more may go."""
        if self.per_second is None or not messages:
            return
        now = self.clock()
        if self._due > now:
            self.wait(self._due - now)
        self._due = max(self._due, now) + messages / self.per_second


ENDING = (
    "interrupted: it ends after the batch under way, and lets go of what is in hand; "
    "Ctrl-C again leaves at once"
)


@dataclass(frozen=True)
class Bar:
    """How far something has come, over `total` messages: where somebody looks."""

    progress: Progress
    task: TaskID
    words: str
    total: int

    def done(self, messages: int) -> None:
        self._tell(self.words, messages)

    def looked_again(self, messages: int) -> None:
        """What was let go of for a question is received anew before anything else is done."""
        self._tell(f"{self.words}: looking at them again", messages)

    def _tell(self, words: str, messages: int) -> None:
        total = max(messages, self.total)
        self.progress.update(self.task, description=words, completed=messages, total=total)


@contextmanager
def holding(mover: MessageMover, out: Output, words: str, total: int, stop: Event) -> Iterator[Bar]:
    """Show how far the work comes, and at its end how what is in hand is let go of.

    Raises Stopped where somebody could not wait for that, with the number that stays hidden.
    """
    with mover:
        try:
            try:
                with _bar(out, words, total) as bar:
                    yield bar
            except Exception:
                _let_go(mover, out, stop)
                raise
            _let_go(mover, out, stop)
        except KeyboardInterrupt as twice:
            raise Stopped(_left_hidden(mover.abandon()), word="interrupted") from twice


def _let_go(mover: MessageMover, out: Output, stop: Event) -> None:
    if not (messages := mover.in_flight_here):
        return
    words = f"letting go of {counted(messages, 'message')}"
    if stop.is_set():
        out.progress.print(Text(words))
    with _bar(out, words, messages) as bar:
        for released in mover.let_go():
            bar.done(released)


def _left_hidden(messages: int) -> str:
    stay = "stays" if messages == 1 else "stay"
    return (
        f"interrupted twice: {counted(messages, 'message')} {stay} hidden for up to "
        f"{VISIBILITY_SECONDS} seconds, and can be seen again then"
    )


@contextmanager
def _bar(out: Output, words: str, total: int) -> Iterator[Bar]:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    console = out.progress
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as progress:
        yield Bar(progress, progress.add_task(words, total=total), words, total)


Tell = Callable[[int], None]
Act = Callable[[Sequence[Message]], Iterator[MoveResult]]


def count(mover: MessageMover, tally: Tally, record_transition: Tell, stop: Event) -> None:
    """Look at every message that the queue shows, and let all go at the end."""
    while not stop.is_set() and (messages := mover.take(MOST_RECEIVED)):
        for each in messages:
            tally.add(each)
        record_transition(len(tally.seen))


@dataclass
class Taking:
    """`act` is done with what is chosen and says what came of it, batch by batch.

    `wanted` are the only messages that are taken, or None: all that the tally chooses. `most` are
    tried; `stop` ends it after the batch that is under way.
    """

    mover: MessageMover
    tally: Tally
    act: Act
    is_fifo: bool
    pace: Pace
    stop: Event
    wanted: Collection[str] | None
    most: int
    done: MoveResult = field(default_factory=MoveResult)

    def run(self, record_transition: Tell, looked: Tell) -> None:
        """Until nothing new is seen; every message that stays is in hand until the hand is left.

        Tells how many were tried, and how many have been looked at anew before that.
        """
        while not self._is_over and (messages := self._some(looked)):
            chosen = [each for each in messages if self._goes(each)][: self.most - self.done.tried]
            self._let_go(messages, {each.message_id for each in chosen})
            for moved in self._acted(chosen):
                self.done += moved
                record_transition(self.done.tried)

    @property
    def _is_over(self) -> bool:
        return self.stop.is_set() or self.done.tried >= self.most

    def _some(self, looked: Tell) -> list[Message]:
        """As many as a hand holds: so the others are let go once, not again and again.

        Of a FIFO queue a few: more of a group come only when these have gone.
        """
        found: list[Message] = []
        most, wanted = 1 if self.is_fifo else MOST_HELD, self.most - self.done.tried
        while not self.stop.is_set() and len(found) < most and wanted > 0:
            messages = self.mover.take(MOST_RECEIVED)
            if not messages:
                break
            found += [self._weighed(each) for each in messages]
            wanted -= sum(map(self._goes, messages))
            looked(len(found))
        return found

    def _weighed(self, message: Message) -> Message:
        """What stays is kept without its text: there may be thousands of it."""
        self.tally.add(message)
        return message if self._goes(message) else replace(message, body="", attributes={})

    def _goes(self, message: Message) -> bool:
        return message.message_id in (self.tally.chosen if self.wanted is None else self.wanted)

    def _let_go(self, messages: Sequence[Message], going: Collection[str]) -> None:
        """Of a FIFO queue at the end: the hand needs the first of a group to see those behind."""
        if not self.is_fifo:
            self.mover.release(each for each in messages if each.message_id not in going)

    def _acted(self, chosen: Sequence[Message]) -> Iterator[MoveResult]:
        """Of a FIFO queue all at once: whatever acts keeps each group's order."""
        size = len(chosen) if self.is_fifo else self.pace.batch
        for at in range(0, len(chosen), max(1, size)):
            going = chosen[at : at + size]
            self.pace.before(0 if self.is_fifo else len(going))
            if self.stop.is_set():
                return
            for moved in self.act(going):
                yield moved
                self.pace.before(moved.moved + moved.copied if self.is_fifo else 0)
                if self.stop.is_set():
                    return
