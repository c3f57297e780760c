"""One redrive that somebody has asked for: looked at first, then sent."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sized
from dataclasses import dataclass
from threading import Event

from cli.exit_codes import Exit, Stopped
from cli.interrupts import stoppable
from cli.invocation import Invocation
from cli.redrive.cures import with_cures
from cli.redrive.hold import Hold, held
from cli.redrive.in_hand import ENDING, holding
from cli.redrive.pace import Pace
from cli.redrive.passes import Act, Done, Taking, count
from cli.redrive.route import Route
from cli.redrive.selection import Selection, Tally
from cli.redrive.told import Ended, tell
from functions.aws.hand import Hand
from functions.healing.plain_text import counted

_UNBOUNDED = 10**9


@dataclass(frozen=True)
class Asked:
    """One redrive that somebody has asked for."""

    call: Invocation
    route: Route
    selection: Selection
    limit: int | None = None
    per_second: float | None = None

    def counted(self) -> Tally:
        """What there is; nothing is in hand when it returns. Stopped where it was interrupted."""
        tally = Tally(self.selection)
        hand, waiting = self._hand(), self.route.letters.waiting
        with (
            with_cures(self.route),
            stoppable(ENDING) as stop,
            holding(hand, self.call.out, "looking at letters", waiting, stop) as bar,
        ):
            count(hand, tally, bar.done, stop)
        if stop.is_set():
            raise Stopped("interrupted: nothing was moved, every letter is visible again")
        return tally

    def going(self, chosen: int) -> int:
        """How many at most."""
        return chosen if self.limit is None else min(chosen, self.limit)

    def question(self, chosen: int) -> str:
        speed = "as fast as it goes" if self.per_second is None else f"{self.per_second:g} a second"
        letters = counted(self.going(chosen), "letter")
        if self.hides_more(chosen):
            most = self.limit or max(chosen, self.route.letters.waiting)
            letters += f", and what matches behind them (some {most:,} in all at most),"
        return f"Send {letters} back to {self.route.source.name}, {speed}?"

    def hides_more(self, chosen: int) -> bool:
        """Whether letters may go that nobody has counted yet."""
        return self.route.letters.is_fifo and (self.limit is None or chosen < self.limit)

    def not_begun(self, before: Tally) -> Ended:
        """Where it goes no further than the look `before`."""
        return self._ended(Done(), len(before.chosen), before.seen)

    def sent(self, before: Tally, again: Callable[[], Route]) -> Exit:
        """Send back what was seen `before`, and of a FIFO queue also what was hidden behind it.

        `again` looks once more at what forbids it: somebody may have thought for long. Mendq's own
        redrives wait meanwhile. A letter that this has sent back and that died again bears a new
        id: it is not sent twice.
        """
        to = self.route.destination(uuid.uuid4().hex)
        with held(self.call.account, self.route.dead_letter_arn) as hold:
            with self.call.out.waiting("looking at the queues again"):
                self.route.require_same(again())
            ended = self.ended(
                before, lambda hand: lambda chosen: hand.put(chosen, to), "sending back", hold
            )
        return tell(self.call.out, self.route, ended)

    def ended(
        self,
        before: Tally,
        act_with: Callable[[Hand], Act],
        words: str,
        hold: Hold | None = None,
    ) -> Ended:
        """What came of doing that with the letters, however it ended."""
        tally = Tally(self.selection)
        is_fifo = self.route.letters.is_fifo
        wanted = None if is_fifo else frozenset(before.chosen)
        most = self.limit or (_UNBOUNDED if is_fifo else len(before.chosen))
        hand = self._hand()
        with stoppable(ENDING) as stop:
            if hold is not None:
                hold.ends(stop)
            pace = Pace(self.per_second, stop.wait)
            work = Taking(hand, tally, act_with(hand), is_fifo, pace, stop, wanted, most)
            fault = self._run(work, words, self.going(len(before.chosen)), stop)
            fault = hold.fault or fault if hold else fault
        # What came since the question was not asked for, but for what a FIFO queue had hidden.
        hidden = tally.chosen.keys() - before.chosen.keys() if is_fifo else ()
        matched = len(before.chosen) + len(hidden)
        return self._ended(work.done, matched, before.seen | tally.seen, fault)

    def _ended(self, done: Done, matched: int, seen: Sized, fault: str = "") -> Ended:
        """There were those in others' hands as well, and in a FIFO queue those behind the seen."""
        letters = self.route.letters
        shown = max(len(seen), letters.waiting) if letters.is_fifo else len(seen)
        hidden = letters.unseen(shown)
        return Ended(done, matched, shown + hidden, hidden, fault)

    def _run(self, work: Taking, words: str, total: int, stop: Event) -> str:
        """Why it ended before its time; what was done until then is in `work.done`."""
        in_hand = holding(work.hand, self.call.out, words, total, stop)
        try:
            with with_cures(self.route), in_hand as bar:
                work.run(bar.done, bar.looked_again)
        except Stopped as stopped:
            return str(stopped)
        except KeyboardInterrupt:
            stop.set()
        return "interrupted: what was in hand is visible again" if stop.is_set() else ""

    def _hand(self) -> Hand:
        return Hand(self.call.account.clients.sqs, self.route.letters.url)
