"""One redrive that somebody has asked for: looked at first, then sent, and what came of it."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sized
from dataclasses import dataclass
from datetime import timedelta
from threading import Event

from mendq.catalogue._time_left import left_of, span
from mendq.cli.exit_codes import Exit, Stopped
from mendq.cli.interrupts import stoppable
from mendq.cli.invocation import Invocation
from mendq.cli.output import Output
from mendq.cli.redrive.hold import Hold, held
from mendq.cli.redrive.passes import ENDING, Act, Pace, Taking, count, holding
from mendq.cli.redrive.preview import Selection, Tally
from mendq.cli.redrive.route import Route, remedy, with_remedies
from mendq.notifications.text import counted, plain
from mendq.redrive.messages import REDRIVE_COUNT
from mendq.redrive.mover import MessageMover
from mendq.redrive.send_batches import MoveResult

_MOST_FAILURES = 5


@dataclass(frozen=True)
class Ended:
    """`matched` messages were asked for of all that are `there`; `fault` says why it ended early.

    `hidden` of those that are there were in somebody else's hand, and nobody could look at them.
    """

    done: MoveResult
    matched: int
    there: int
    hidden: int = 0
    fault: str = ""

    @property
    def moved(self) -> int:
        return self.done.moved + self.done.copied

    @property
    def left(self) -> int:
        """Those that are still there and that were not tried."""
        return self.there - self.moved - len(self.done.failed)

    @property
    def matching_left(self) -> int:
        """Those of them that are known to match."""
        return max(0, min(self.left, self.matched - self.done.tried))

    @property
    def exit(self) -> Exit:
        return Exit.FAILED if self.fault or self.done.failed else Exit.DONE

    def document(self, done: str = "moved") -> dict[str, int]:
        """`done` is what the messages were that did not stay."""
        failed = len(self.done.failed)
        return {"matched": self.matched, done: self.moved, "left": self.left, "failed": failed}


def says_nothing(out: Output, ended: Ended, done: str = "moved") -> Exit:
    """Where nothing is done: what would be, or that there is nothing."""
    out.document(ended.document(done))
    if not ended.matched:
        which = "message that can be seen" if ended.hidden else "message"
        out.say(f"no {which} matches: there is nothing to do", "yellow")
    out.say(f"nothing was {done}; each message that was looked at counts a receive more", "dim")
    return Exit.DONE


def record_transition(out: Output, route: Route, ended: Ended) -> Exit:
    """What became of the messages that were to go back."""
    out.document(ended.document())
    done = ended.done
    out.say(
        f"{counted(ended.moved, 'message')} sent back, {len(done.failed):,} failed, "
        f"{left_in(route, ended)}",
        "green" if ended.exit is Exit.DONE else "red",
    )
    if done.copied:
        out.say(
            f"{done.copied:,} of them could not be deleted from {route.messages.name} and are "
            "there "
            "as well: delete them there, or they are handled twice",
            "yellow",
        )
    if done.unmarked:
        out.say(
            f"{len(done.unmarked):,} of them had no room for {REDRIVE_COUNT} and went without it",
            "yellow",
        )
    tell_faults(out, route, ended)
    return ended.exit


def left_in(route: Route, ended: Ended) -> str:
    """How many stay, how many of them were asked for, and how many nobody could look at."""
    matching, hidden = ended.matching_left, ended.hidden
    verb = "matches" if matching == 1 else "match"
    more = [f"{matching:,} of them {verb}"] if matching else []
    more += [f"{hidden:,} of them hidden in somebody else's hand"] if hidden else []
    return ", ".join([f"{ended.left:,} left in {route.messages.name}", *more])


def tell_faults(out: Output, route: Route, ended: Ended) -> None:
    """What did not go and why, and what would let it."""
    done = ended.done
    for each in done.failed[:_MOST_FAILURES]:
        out.under(plain(f"{each.message_id}: {each.code}: {each.reason}", 400), "red")
    if len(done.failed) > _MOST_FAILURES:
        out.under(f"and {len(done.failed) - _MOST_FAILURES:,} more", "red")
    remedies = (remedy(each.code, each.reason, route) for each in done.failed)
    for words in dict.fromkeys(each for each in remedies if each):
        out.under(words)
    if ended.fault:
        out.say(ended.fault, "red")


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
        mover, waiting = self._mover(), self.route.messages.waiting
        with (
            with_remedies(self.route),
            stoppable(ENDING) as stop,
            holding(mover, self.call.out, "looking at messages", waiting, stop) as bar,
        ):
            count(mover, tally, bar.done, stop)
        if stop.is_set():
            raise Stopped("interrupted: nothing was moved, every message is visible again")
        return tally

    def going(self, chosen: int) -> int:
        """How many at most."""
        return chosen if self.limit is None else min(chosen, self.limit)

    def question(self, chosen: int) -> str:
        speed = "as fast as it goes" if self.per_second is None else f"{self.per_second:g} a second"
        messages = counted(self.going(chosen), "message")
        if self.hides_more(chosen):
            most = self.limit or max(chosen, self.route.messages.waiting)
            messages += f", and what matches behind them (some {most:,} in all at most),"
        return f"Send {messages} back to {self.route.source.name}, {speed}?"

    def hides_more(self, chosen: int) -> bool:
        """Whether messages may go that nobody has counted yet."""
        return self.route.messages.is_fifo and (self.limit is None or chosen < self.limit)

    def require_in_time(self, tally: Tally) -> None:
        """Stopped where, at the rate that was asked for, some would expire before they go."""
        oldest_at, retained = tally.oldest_chosen_at, self.route.messages.attributes
        if self.per_second is None or oldest_at is None:
            return
        going = self.going(len(tally.chosen))
        lasts = timedelta(seconds=going / self.per_second)
        left = left_of(oldest_at, int(retained["MessageRetentionPeriod"]), tally.selection.now)
        if lasts > left.at_most:
            raise Stopped(
                f"{counted(going, 'message')} at {self.per_second:g} a second take {span(lasts)}, "
                f"and the oldest expires {left}: nothing was moved; raise --rate or choose fewer",
                word="redrive_too_slow",
            )

    def not_begun(self, before: Tally) -> Ended:
        """Where it goes no further than the look `before`."""
        return self._ended(MoveResult(), len(before.chosen), before.seen)

    def sent(self, before: Tally, again: Callable[[], Route]) -> Exit:
        """Send back what was seen `before`, and of a FIFO queue also what was hidden behind it.

        `again` looks once more at what forbids it: somebody may have thought for long. Mendq's own
        redrives wait meanwhile. A message that this has sent back and that died again bears a new
        id: it is not sent twice.
        """
        to = self.route.destination(uuid.uuid4().hex)
        with held(self.call.account, self.route.dlq_arn) as hold:
            with self.call.out.waiting("looking at the queues again"):
                self.route.require_same(again())
            ended = self.ended(
                before, lambda mover: lambda chosen: mover.put(chosen, to), "sending back", hold
            )
        return record_transition(self.call.out, self.route, ended)

    def ended(
        self,
        before: Tally,
        act_with: Callable[[MessageMover], Act],
        words: str,
        hold: Hold | None = None,
    ) -> Ended:
        """What came of doing that with the messages, however it ended."""
        tally = Tally(self.selection)
        is_fifo = self.route.messages.is_fifo
        wanted = None if is_fifo else frozenset(before.chosen)
        most = self.limit or (_UNBOUNDED if is_fifo else len(before.chosen))
        mover = self._mover()
        with stoppable(ENDING) as stop:
            if hold is not None:
                hold.ends(stop)
            pace = Pace(self.per_second, stop.wait)
            work = Taking(mover, tally, act_with(mover), is_fifo, pace, stop, wanted, most)
            fault = self._run(work, words, self.going(len(before.chosen)), stop)
            fault = hold.fault or fault if hold else fault
        # What came since the question was not asked for, but for what a FIFO queue had hidden.
        hidden = tally.chosen.keys() - before.chosen.keys() if is_fifo else ()
        matched = len(before.chosen) + len(hidden)
        return self._ended(work.done, matched, before.seen | tally.seen, fault)

    def _ended(self, done: MoveResult, matched: int, seen: Sized, fault: str = "") -> Ended:
        """There were those in others' hands as well, and in a FIFO queue those behind the seen."""
        messages = self.route.messages
        shown = max(len(seen), messages.waiting) if messages.is_fifo else len(seen)
        hidden = messages.unseen(shown)
        return Ended(done, matched, shown + hidden, hidden, fault)

    def _run(self, work: Taking, words: str, total: int, stop: Event) -> str:
        """Why it ended before its time; what was done until then is in `work.done`."""
        in_flight_here = holding(work.mover, self.call.out, words, total, stop)
        try:
            with with_remedies(self.route), in_flight_here as bar:
                work.run(bar.done, bar.looked_again)
        except Stopped as stopped:
            return str(stopped)
        except KeyboardInterrupt:
            stop.set()
        return "interrupted: what was in hand is visible again" if stop.is_set() else ""

    def _mover(self) -> MessageMover:
        return MessageMover(self.call.account.clients.sqs, self.route.messages.url)
