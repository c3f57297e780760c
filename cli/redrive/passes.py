"""Two ways through a queue of letters: one that only counts, one that does something with some.

Each letter is looked at once a pass; what was not chosen is let go before anything is done.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from threading import Event

from cli.redrive.pace import Pace
from cli.redrive.selection import Tally
from functions.aws.hand import MOST_IN_HAND, Hand
from functions.aws.letter_batches import NotMoved
from functions.aws.letters_shown import MOST_RECEIVED
from functions.aws.moved import Moved
from functions.healing.letters import Letter

Tell = Callable[[int], None]
Act = Callable[[Sequence[Letter]], Iterator[Moved]]


@dataclass
class Done:
    """What came of a pass that sends letters; `copied` went and could not be deleted here."""

    moved: int = 0
    copied: int = 0
    unmarked: int = 0
    failed: dict[str, NotMoved] = field(default_factory=dict)

    @property
    def tried(self) -> int:
        return self.moved + self.copied + len(self.failed)

    def add(self, moved: Moved) -> None:
        self.moved += moved.moved
        self.copied += moved.copied
        self.unmarked += len(moved.unmarked)
        self.failed |= {each.message_id: each for each in moved.failed}


def count(hand: Hand, tally: Tally, tell: Tell, stop: Event) -> None:
    """Look at every letter that the queue shows, and let all go at the end."""
    while not stop.is_set() and (letters := hand.take(MOST_RECEIVED)):
        for each in letters:
            tally.add(each)
        tell(len(tally.seen))


@dataclass
class Taking:
    """`act` is done with what is chosen and says what came of it, batch by batch.

    `wanted` are the only letters that are taken, or None: all that the tally chooses. `most` are
    tried; `stop` ends it after the batch that is under way.
    """

    hand: Hand
    tally: Tally
    act: Act
    is_fifo: bool
    pace: Pace
    stop: Event
    wanted: Collection[str] | None
    most: int
    done: Done = field(default_factory=Done)

    def run(self, tell: Tell, looked: Tell) -> None:
        """Until nothing new is seen; every letter that stays is in hand until the hand is left.

        Tells how many were tried, and how many have been looked at anew before that.
        """
        while not self._is_over and (letters := self._some(looked)):
            chosen = [each for each in letters if self._goes(each)][: self.most - self.done.tried]
            self._let_go(letters, {each.message_id for each in chosen})
            for moved in self._acted(chosen):
                self.done.add(moved)
                tell(self.done.tried)

    @property
    def _is_over(self) -> bool:
        return self.stop.is_set() or self.done.tried >= self.most

    def _some(self, looked: Tell) -> list[Letter]:
        """As many as a hand holds: so the others are let go once, not again and again.

        Of a FIFO queue a few: more of a group come only when these have gone.
        """
        found: list[Letter] = []
        most, wanted = 1 if self.is_fifo else MOST_IN_HAND, self.most - self.done.tried
        while not self.stop.is_set() and len(found) < most and wanted > 0:
            letters = self.hand.take(MOST_RECEIVED)
            if not letters:
                break
            found += [self._weighed(each) for each in letters]
            wanted -= sum(map(self._goes, letters))
            looked(len(found))
        return found

    def _weighed(self, letter: Letter) -> Letter:
        """What stays is kept without its text: there may be thousands of it."""
        self.tally.add(letter)
        return letter if self._goes(letter) else replace(letter, body="", attributes={})

    def _goes(self, letter: Letter) -> bool:
        return letter.message_id in (self.tally.chosen if self.wanted is None else self.wanted)

    def _let_go(self, letters: Sequence[Letter], going: Collection[str]) -> None:
        """Of a FIFO queue at the end: the hand needs the first of a group to see those behind."""
        if not self.is_fifo:
            self.hand.release(each for each in letters if each.message_id not in going)

    def _acted(self, chosen: Sequence[Letter]) -> Iterator[Moved]:
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
