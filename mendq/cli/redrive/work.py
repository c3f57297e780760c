"""Something that a person asks of messages: looked at, shown, confirmed, done, and what came of it.

Each message is looked at once a pass; what was not chosen is let go before anything is done.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime
from sys import maxsize
from threading import Event
from typing import Any, ClassVar

from msgspec import Struct

from mendq.aws.clients import Pace
from mendq.cli.decide.freeze import warn_if_frozen
from mendq.cli.exit_codes import CommandError, Exit
from mendq.cli.interrupts import stop_on_signal
from mendq.cli.invocation import Invocation
from mendq.cli.output import confirm
from mendq.cli.redrive.choice import Choice
from mendq.cli.redrive.preview import Tally, print_preview, print_unclear_groups
from mendq.cli.redrive.route import Route, remedy, with_remedies
from mendq.notifications.text import format_count, plain
from mendq.redrive.messages import REDRIVEN, Message, MoveResult
from mendq.redrive.mover import MOST_HELD, MOST_RECEIVED, VISIBILITY_SECONDS, MessageMover

ENDING = "interrupted: it ends after the batch under way; Ctrl-C again leaves at once"
_MOST_FAILURES = 5
_MOST_NAMED = 3


Tell = Callable[[int], None]
MayGo = Callable[[int], bool]
Act = Callable[[MessageMover, Sequence[Message], MayGo], Iterator[MoveResult]]


@contextmanager
def holding(
    call: Invocation, route: Route, mover: MessageMover, words: str, total: int
) -> Iterator[Tell]:
    """Show how far the work with a mover comes.

    Raises CommandError where a queue could not be looked at, or where somebody could not wait for
    the end, with the number that stays hidden.
    """
    with with_remedies(route), call.out.show_progress(words, total) as tell:
        try:
            with mover:
                yield tell
        except KeyboardInterrupt as twice:
            left = format_count(mover.in_flight_here, "message stays", "messages stay")
            line = f"interrupted twice: {left} hidden for up to {VISIBILITY_SECONDS} seconds"
            raise CommandError(line, error_code="interrupted") from twice


def look_at(
    call: Invocation, route: Route, note: Callable[[Message], object], most: int = maxsize
) -> None:
    """Have `note` see at most so many messages, then let go of them.

    Raises CommandError if interrupted.
    """
    with stop_on_signal(ENDING) as stop:
        mover, seen = route.mover(call.account, stop), 0
        total = min(most, route.messages.visible)
        with holding(call, route, mover, "looking at messages", total) as tell:
            while not stop.is_set() and (more := mover.take(min(MOST_RECEIVED, most - seen))):
                for each in more:
                    note(each)
                seen += len(more)
                tell(seen)
        if stop.is_set():
            raise CommandError("interrupted: nothing was moved, every message is visible again")


class Ended(Struct, frozen=True):
    """The result of a redrive or a deletion, also if it ended early.

    `matched` counts the messages that the filter chose, `there` all messages of the queue. `hidden`
    of these could not be read, because another consumer held them. `fault` says why it ended early;
    empty if it did not. `staying_first` are the ids of messages that stay as the first of their
    groups.
    """

    done: MoveResult
    matched: int
    there: int
    hidden: int = 0
    fault: str = ""
    staying_first: tuple[str, ...] = ()

    @property
    def moved(self) -> int:
        return self.done.moved + self.done.copied

    @property
    def left(self) -> int:
        """Those that are still there and that were not tried."""
        return self.there - self.moved - len(self.done.failed)

    @property
    def exit(self) -> Exit:
        return Exit.FAILED if self.fault or self.done.failed else Exit.DONE


class Work(Struct, frozen=True):
    """What a person asks of messages now; whoever implements it says what is done with them."""

    call: Invocation
    route: Route
    choice: Choice
    now: datetime

    # What the messages are that did not stay: for scripts, for people, and while it goes on.
    done: ClassVar[str]
    said: ClassVar[str]
    doing: ClassVar[str]

    @abstractmethod
    def question(self, chosen: int) -> str:
        """What is confirmed."""

    @abstractmethod
    def begun(self, stop: Event, faults: list[str]) -> AbstractContextManager[Act]:
        """For as long as it lasts; a fault that comes meanwhile is added, and sets `stop`."""

    def require(self, before: Tally) -> None:
        """CommandError where what was seen forbids it."""

    def more(self) -> dict[str, Any]:
        """What scripts are told beside the numbers."""
        return {}

    def carry_out(self) -> Exit:
        """Show what there is, ask, do it to what was seen before the question, and say what came.

        Of a FIFO queue it is done to what was hidden behind that as well. A message that was sent
        back and died again bears a new id: it is not sent twice.
        """
        before, out = self._tally(), self.call.out
        look_at(self.call, self.route, before.add)
        print_preview(out, before, self.choice.limit)
        warn_if_frozen(self.call)
        self._require_clear_groups(before)
        matched = len(before.chosen)
        if self.choice.dry_run or not matched:
            ended = self._ended(MoveResult(), matched, before)
            out.print_json(self._document(ended))
            if not matched:
                none = "no message that can be seen matches"
                if before.staying_first:
                    none = "no message stands behind the first of its group"
                out.say(f"{none}: there is nothing to do", "yellow")
            line = f"nothing was {self.done}; each message that was looked at counts a receive more"
            out.say(line, "dim")
            return Exit.DONE
        self.require(before)
        confirm(self.question(matched), yes=self.choice.yes)
        faults = list[str]()
        with stop_on_signal(ENDING) as stop, self.begun(stop, faults) as act:
            ended = self._act_upon(before, act, stop, faults)
        return self._say(ended)

    def _require_clear_groups(self, before: Tally) -> None:
        """CommandError where the first message of a group may not be the one that failed."""
        unclear = before.unclear_groups
        if not unclear:
            return
        print_unclear_groups(self.call.out, before, self.choice.command)
        which = ", ".join(plain(group.group_id, 60) for group in unclear[:_MOST_NAMED])
        line = (
            f"for {format_count(len(unclear), 'group')} ({which}) it is not clear which message "
            "failed"
        )
        why = unclear[0].reason
        look = "find the failed message in the consumer's log and leave it with --where"
        raise CommandError(f"{line}: {why}. Nothing was moved; {look}", error_code="first_unclear")

    def _tally(self) -> Tally:
        return Tally(self.route, self.choice.messages, self.now, self.choice.leave_first)

    def _act_upon(self, before: Tally, act: Act, stop: Event, faults: list[str]) -> Ended:
        """What came of it, however it ended."""
        tally, done, is_fifo = self._tally(), MoveResult(), self.route.messages.is_fifo
        chosen, choice = before.chosen, self.choice
        # Do not move messages that arrived after the person agreed. Exception: messages that a FIFO
        # queue had hidden behind others. With `leave_first` there is no exception, because a hidden
        # group may begin with another failed message.
        takes_hidden = is_fifo and not choice.leave_first
        wanted = tally.chosen if takes_hidden else chosen
        most = self._most_to_move(len(chosen), takes_hidden=takes_hidden)
        pace = Pace(choice.per_second, stop.wait)
        total = choice.going(len(chosen))
        try:
            mover = self.route.mover(self.call.account, stop)
            with holding(self.call, self.route, mover, self.doing, total) as tell:
                while not stop.is_set() and done.attempts < most:
                    going, others = self._taken(mover, tally, wanted, most - done.attempts, stop)
                    if not going and not others:
                        break
                    if choice.leave_first:
                        going = self._behind_the_same_first(going, before, tally)
                    if not is_fifo:
                        # Else at the end: of a group nothing is shown behind what was let go.
                        mover.release(others)
                    # Of a FIFO queue all at once: the mover keeps each group's order.
                    size = len(going) if is_fifo else choice.batch
                    for at in range(0, len(going), max(1, size)):
                        for moved in act(mover, going[at : at + size], pace.wait):
                            done += moved
                            tell(done.attempts)
                            self._require_there(moved, done)
        except CommandError as stopped:
            faults.append(str(stopped))
        except KeyboardInterrupt:
            stop.set()
        if stop.is_set():
            faults.append("interrupted: what was in hand is visible again")
        faults += self._changed_groups(before, tally)
        matched = len(chosen.keys() | wanted.keys())
        tally.seen |= before.seen
        return self._ended(done, matched, tally, next(iter(faults), ""))

    def _most_to_move(self, chosen: int, *, takes_hidden: bool) -> int:
        """Return how many messages may be moved. A limit of 0 moves none."""
        if self.choice.limit is not None:
            return self.choice.limit
        return maxsize if takes_hidden else chosen

    def _behind_the_same_first(
        self, going: Sequence[Message], before: Tally, now: Tally
    ) -> list[Message]:
        """Return the messages whose group still begins with the message that the preview showed."""
        agreed, found = before.staying_first, now.groups_in_dlq
        return [each for each in going if found[each.group_id].first_id == agreed[each.group_id]]

    def _changed_groups(self, before: Tally, now: Tally) -> list[str]:
        """Return a line for the operator if a group's first message is not the previewed one."""
        agreed, found = before.staying_first, now.groups_in_dlq
        changed = [
            group_id
            for group_id in sorted(before.groups & found.keys())
            if self.choice.leave_first and found[group_id].first_id != agreed[group_id]
        ]
        if not changed:
            return []
        which = ", ".join(plain(group_id, 60) for group_id in changed[:_MOST_NAMED])
        line = (
            f"the first message of {format_count(len(changed), 'group')} ({which}) is another one "
            "now"
        )
        return [f"{line}: nothing of it was moved; look again"]

    def _require_there(self, moved: MoveResult, done: MoveResult) -> None:
        """CommandError at the first send that finds the source gone; what is in hand is let go
        then.

        What was sent may be lost: a queue takes messages for 60 seconds after it was deleted.
        https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_DeleteQueue.html
        """
        source, messages = self.route.source.name, self.route.messages.name
        if any(each.code == "NonExistentQueue" for each in moved.failed):
            lost = f"Of {done.moved + done.copied:,} sent there, what nobody had taken went with it"
            others = f"`mendq redrive {messages} --to OTHER --all` sends all others elsewhere"
            raise CommandError(f"{source} is gone: stopped. {lost}; {others}")

    def _taken(
        self, mover: MessageMover, tally: Tally, wanted: Collection[str], left: int, stop: Event
    ) -> tuple[list[Message], list[str]]:
        """At most `left` that are wanted, and the ids of the others that were met.

        As many as can be held: so the others are let go once, not again and again. Of a FIFO queue
        a few: more of a group come only when these have gone.
        """
        going, others = list[Message](), list[str]()
        most = 1 if self.route.messages.is_fifo else MOST_HELD
        while not stop.is_set() and len(going) < left and len(going) + len(others) < most:
            if not (messages := mover.take(MOST_RECEIVED)):
                break
            for each in messages:
                tally.add(each)
                if each.message_id in wanted and len(going) < left:
                    going.append(each)
                else:
                    others.append(each.message_id)
        return going, others

    def _ended(self, done: MoveResult, matched: int, tally: Tally, fault: str = "") -> Ended:
        """There were those in others' hands as well, and in a FIFO queue those behind the seen."""
        messages, seen = self.route.messages, len(tally.seen)
        shown = max(seen, messages.visible) if messages.is_fifo else seen
        hidden = self.route.hidden(shown)
        first = tuple(tally.staying_first.values())
        return Ended(done, matched, shown + hidden, hidden, fault, first)

    def _document(self, ended: Ended) -> dict[str, Any]:
        numbers = {"matched": ended.matched, self.done: ended.moved, "left": ended.left}
        document: dict[str, Any] = {**numbers, "failed": len(ended.done.failed)}
        if self.choice.leave_first:
            document["staying_first"] = list(ended.staying_first)
        return document

    def _say(self, ended: Ended) -> Exit:
        """What became of the messages: what did not go and why, and what would let it."""
        out, done, name = self.call.out, ended.done, self.route.messages.name
        out.print_json({**self._document(ended), **self.more()})
        matching = max(0, min(ended.left, ended.matched - done.attempts))
        went = f"{format_count(ended.moved, 'message')} {self.said}, {len(done.failed):,} failed"
        went += f", {ended.left:,} left in {name}"
        if matching:
            went += f", {matching:,} of them {'matches' if matching == 1 else 'match'}"
        if ended.hidden:
            went += f", {ended.hidden:,} of them hidden in somebody else's hand"
        out.say(went, "green" if ended.exit is Exit.DONE else "red")
        if done.copied:
            twice = f"are in {name} as well: delete them there, or they are handled twice"
            out.say(f"{done.copied:,} of them {twice}", "yellow")
        if done.unmarked:
            out.say(f"{done.unmarked:,} of them went without {REDRIVEN}: no room for it", "yellow")
        for each in done.failed[:_MOST_FAILURES]:
            out.say_indented(plain(f"{each.message_id}: {each.code}: {each.reason}", 400), "red")
        if len(done.failed) > _MOST_FAILURES:
            out.say_indented(f"and {len(done.failed) - _MOST_FAILURES:,} more", "red")
        remedies = (remedy(each.code, each.reason, self.route) for each in done.failed)
        for words in dict.fromkeys(each for each in remedies if each):
            out.say_indented(words)
        if ended.fault:
            out.say(ended.fault, "red")
        return ended.exit
