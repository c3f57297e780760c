"""The steps that all commands that move or delete messages have in common.

1. Look at all messages and release them (`look_at_messages`). Each look counts as a receive.
2. Print the preview, ask for a confirmation.
3. Receive the messages again and move or delete those that were chosen. Release the others.
4. Print the result.
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
from mendq.cli.redrive.route import Route, explain_refusals, find_remedy
from mendq.notifications.text import format_count, plain
from mendq.redrive.messages import REDRIVE_MARK_NAME, Message, MoveResult
from mendq.redrive.mover import (
    MOST_HELD_MESSAGES,
    MOST_MESSAGES_PER_RECEIVE,
    VISIBILITY_SECONDS,
    MessageMover,
)

ENDING = "interrupted: it ends after the batch under way; Ctrl-C again leaves at once"
_MOST_FAILURES = 5
_MOST_NAMED = 3


# Shows how many messages are done.
Tell = Callable[[int], None]
# Waits until that many messages may go. Returns False if the work was interrupted.
MayGo = Callable[[int], bool]
# Moves or deletes messages in batches. Yields the result of each batch.
Act = Callable[[MessageMover, Sequence[Message], MayGo], Iterator[MoveResult]]


@contextmanager
def use_mover(
    call: Invocation, route: Route, mover: MessageMover, words: str, total: int
) -> Iterator[Tell]:
    """Use `mover` in the block to receive and move messages, and show the progress.

    At the end of the block, the messages that the mover still holds become visible again.

    Raises CommandError if AWS refuses a call. Also raises it if the operator interrupts a second
    time, with the number of messages that stay hidden.
    """
    with explain_refusals(route), call.out.show_progress(words, total) as tell:
        try:
            with mover:
                yield tell
        except KeyboardInterrupt as twice:
            left = format_count(mover.held_message_count, "message stays", "messages stay")
            line = f"interrupted twice: {left} hidden for up to {VISIBILITY_SECONDS} seconds"
            raise CommandError(line, error_code="interrupted") from twice


def look_at_messages(
    call: Invocation, route: Route, note: Callable[[Message], object], most: int = maxsize
) -> None:
    """Receive at most `most` messages, call `note` with each, and release them.

    Raises CommandError if interrupted.
    """
    with stop_on_signal(ENDING) as stop:
        mover = route.make_mover(call.account, stop)
        seen = 0
        total = min(most, route.messages.visible)
        with use_mover(call, route, mover, "looking at messages", total) as tell:
            while not stop.is_set():
                messages = mover.receive_new_messages(min(MOST_MESSAGES_PER_RECEIVE, most - seen))
                if not messages:
                    break
                for message in messages:
                    note(message)
                seen += len(messages)
                tell(seen)
        if stop.is_set():
            raise CommandError("interrupted: nothing was moved, every message is visible again")


class WorkResult(Struct, frozen=True):
    """The result of a redrive or a deletion, also if it ended early."""

    done: MoveResult
    # Messages that the filter chose.
    matched: int
    # All messages of the queue.
    there: int
    # Messages that could not be read, because another consumer held them.
    hidden: int = 0
    # Why it ended early; empty if it did not.
    fault: str = ""
    # Ids of the messages that stay because they are the first of their groups.
    staying_first: tuple[str, ...] = ()

    @property
    def moved_count(self) -> int:
        """Number of messages that were moved or deleted.

        Messages that were sent and could not be deleted from the queue are included.
        """
        return self.done.moved_count + self.done.copied_count

    @property
    def left_count(self) -> int:
        """Messages that are still in the queue and were not tried."""
        return self.there - self.moved_count - len(self.done.unmoved_messages)

    @property
    def exit(self) -> Exit:
        """Exit code of the command."""
        return Exit.FAILED if self.fault or self.done.unmoved_messages else Exit.DONE


class DlqWork(Struct, frozen=True):
    """A command's work on messages. The subclasses say what to do: send back, or drop."""

    call: Invocation
    route: Route
    choice: Choice
    now: datetime

    # Key of the number of processed messages in the JSON result.
    result_key: ClassVar[str]
    # What was done to the messages, and what is being done, in words.
    past_text: ClassVar[str]
    progress_text: ClassVar[str]

    @abstractmethod
    def question(self, chosen: int) -> str:
        """Return the question to confirm, about that many chosen messages."""

    @abstractmethod
    def start(self, stop: Event, faults: list[str]) -> AbstractContextManager[Act]:
        """Return a context that prepares the work and gives the function that does it.

        If something goes wrong during the work, the reason is appended to `faults` and `stop` is
        set.
        """

    def require_allowed(self, before: Tally) -> None:
        """Raise CommandError if the messages that were seen forbid the work."""

    def extra_document(self) -> dict[str, Any]:
        """Return what `--json` prints besides the numbers."""
        return {}

    def carry_out(self) -> Exit:
        """Show the messages, ask, process them, and print the result. Return the exit code.

        Only messages that were seen before the question are processed. Exception: messages that a
        FIFO queue hid behind them. A message that was sent back and failed again has a new id, so
        it is not sent twice.
        """
        before = self._new_tally()
        out = self.call.out
        look_at_messages(self.call, self.route, before.add)
        print_preview(out, before, self.choice.limit)
        warn_if_frozen(self.call)
        self._require_clear_groups(before)
        matched = len(before.chosen)
        if self.choice.dry_run or not matched:
            result = self._make_result(MoveResult(), matched, before)
            out.print_json(self._result_document(result))
            if not matched:
                none = "no message that can be seen matches"
                if before.staying_first:
                    none = "no message stands behind the first of its group"
                out.say(f"{none}: there is nothing to do", "yellow")
            line = f"nothing was {self.result_key}"
            out.say(f"{line}; each message that was looked at counts a receive more", "dim")
            return Exit.DONE
        self.require_allowed(before)
        confirm(self.question(matched), yes=self.choice.yes)
        faults: list[str] = []
        with stop_on_signal(ENDING) as stop, self.start(stop, faults) as act:
            result = self._process(before, act, stop, faults)
        return self._report(result)

    def _require_clear_groups(self, before: Tally) -> None:
        """Raise CommandError if the first message of a group may not be the one that failed."""
        unclear = before.unclear_groups
        if not unclear:
            return
        print_unclear_groups(self.call.out, before, self.choice.command)
        which = ", ".join(plain(group.group_id, 60) for group in unclear[:_MOST_NAMED])
        groups = format_count(len(unclear), "group")
        line = f"for {groups} ({which}) it is not clear which message failed"
        why = unclear[0].reason
        look = "find the failed message in the consumer's log and leave it with --where"
        raise CommandError(f"{line}: {why}. Nothing was moved; {look}", error_code="first_unclear")

    def _new_tally(self) -> Tally:
        return Tally(self.route, self.choice.messages, self.now, self.choice.leave_first)

    def _process(self, before: Tally, act: Act, stop: Event, faults: list[str]) -> WorkResult:
        """Receive the messages again and move or delete them. Return the result, also if stopped.

        `before` is the tally of the preview. A fault ends the work and is part of the result.
        """
        tally = self._new_tally()
        done = MoveResult()
        is_fifo = self.route.messages.is_fifo
        choice = self.choice
        # Do not move messages that arrived after the person agreed. Exception: messages that a FIFO
        # queue had hidden behind others. With `leave_first` there is no exception, because a hidden
        # group may begin with another failed message.
        takes_hidden = is_fifo and not choice.leave_first
        wanted = tally.chosen if takes_hidden else before.chosen
        most = self._most_to_move(len(before.chosen), takes_hidden=takes_hidden)
        pace = Pace(choice.per_second, stop.wait)
        total = choice.apply_limit(len(before.chosen))
        try:
            mover = self.route.make_mover(self.call.account, stop)
            with use_mover(self.call, self.route, mover, self.progress_text, total) as tell:
                while not stop.is_set() and done.attempt_count < most:
                    messages, other_ids = self._take_messages(
                        mover, tally, wanted, most - done.attempt_count, stop
                    )
                    if not messages and not other_ids:
                        break
                    if choice.leave_first:
                        messages = self._behind_the_same_first(messages, before, tally)
                    if not is_fifo:
                        # In a FIFO queue they are released at the end, because SQS returns no
                        # message behind a released one of the same group.
                        mover.release(other_ids)
                    for batch in self._split_into_batches(messages):
                        for result in act(mover, batch, pace.wait):
                            done += result
                            tell(done.attempt_count)
                            self._require_there(result, done)
        except CommandError as stopped:
            faults.append(str(stopped))
        except KeyboardInterrupt:
            stop.set()
        if stop.is_set():
            faults.append("interrupted: what was in hand is visible again")
        faults += self._changed_groups(before, tally)
        matched = len(before.chosen.keys() | wanted.keys())
        tally.seen |= before.seen
        fault = faults[0] if faults else ""
        return self._make_result(done, matched, tally, fault)

    def _split_into_batches(self, messages: Sequence[Message]) -> Iterator[Sequence[Message]]:
        """Yield the messages in batches, so that the rate can be limited between batches.

        The messages of a FIFO queue are one batch: the mover keeps the order of each group.
        """
        size = len(messages) if self.route.messages.is_fifo else self.choice.batch
        for start in range(0, len(messages), max(1, size)):
            yield messages[start : start + size]

    def _most_to_move(self, chosen: int, *, takes_hidden: bool) -> int:
        """Return how many messages may be moved. A limit of 0 moves none."""
        if self.choice.limit is not None:
            return self.choice.limit
        return maxsize if takes_hidden else chosen

    def _behind_the_same_first(
        self, messages: Sequence[Message], before: Tally, now: Tally
    ) -> list[Message]:
        """Return the messages whose group still begins with the message that the preview showed."""
        first_ids = before.staying_first
        return [
            message
            for message in messages
            if now.groups_in_dlq[message.group_id].first_message_id == first_ids[message.group_id]
        ]

    def _changed_groups(self, before: Tally, now: Tally) -> list[str]:
        """Return a line for the operator if a group's first message is not the previewed one."""
        if not self.choice.leave_first:
            return []
        first_ids = before.staying_first
        changed = [
            group_id
            for group_id in sorted(before.groups & now.groups_in_dlq.keys())
            if now.groups_in_dlq[group_id].first_message_id != first_ids[group_id]
        ]
        if not changed:
            return []
        which = ", ".join(plain(group_id, 60) for group_id in changed[:_MOST_NAMED])
        groups = format_count(len(changed), "group")
        line = f"the first message of {groups} ({which}) is another one now"
        return [f"{line}: nothing of it was moved; look again"]

    def _require_there(self, result: MoveResult, done: MoveResult) -> None:
        """Raise CommandError if a message of `result` found that the source was deleted.

        Messages that were sent before may be lost: a queue takes messages for 60 seconds after it
        was deleted.
        https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_DeleteQueue.html
        """
        source = self.route.source.name
        messages = self.route.messages.name
        if any(failure.code == "NonExistentQueue" for failure in result.unmoved_messages):
            sent_count = done.moved_count + done.copied_count
            lost = f"Of {sent_count:,} sent there, what nobody had taken went with it"
            others = f"`mendq redrive {messages} --to OTHER --all` sends all others elsewhere"
            raise CommandError(f"{source} is gone: stopped. {lost}; {others}")

    def _take_messages(
        self, mover: MessageMover, tally: Tally, wanted: Collection[str], left: int, stop: Event
    ) -> tuple[list[Message], list[str]]:
        """Return at most `left` wanted messages, and the ids of the other messages received.

        It takes as many as the mover can hold, so that the others are released once and not again
        and again. In a FIFO queue it takes only a few: SQS returns more of a group only when these
        are gone.
        """
        messages: list[Message] = []
        other_ids: list[str] = []
        most = 1 if self.route.messages.is_fifo else MOST_HELD_MESSAGES
        while not stop.is_set() and len(messages) < left and len(messages) + len(other_ids) < most:
            received = mover.receive_new_messages(MOST_MESSAGES_PER_RECEIVE)
            if not received:
                break
            for message in received:
                tally.add(message)
                if message.message_id in wanted and len(messages) < left:
                    messages.append(message)
                else:
                    other_ids.append(message.message_id)
        return messages, other_ids

    def _make_result(
        self, done: MoveResult, matched: int, tally: Tally, fault: str = ""
    ) -> WorkResult:
        """Return the result, with the number of all messages of the queue.

        That number also counts messages that other consumers hold and, in a FIFO queue, messages
        behind the ones that were seen.
        """
        messages = self.route.messages
        seen = len(tally.seen)
        if messages.is_fifo:
            seen = max(seen, messages.visible)
        hidden = self.route.count_hidden(seen)
        first_ids = tuple(tally.staying_first.values())
        return WorkResult(done, matched, seen + hidden, hidden, fault, first_ids)

    def _result_document(self, result: WorkResult) -> dict[str, Any]:
        """Return the numbers of the result, as `--json` prints them."""
        document: dict[str, Any] = {
            "matched": result.matched,
            self.result_key: result.moved_count,
            "left": result.left_count,
            "failed": len(result.done.unmoved_messages),
        }
        if self.choice.leave_first:
            document["staying_first"] = list(result.staying_first)
        return document

    def _report(self, result: WorkResult) -> Exit:
        """Print the numbers, the failed messages and remedies for them. Return the exit code."""
        out = self.call.out
        done = result.done
        name = self.route.messages.name
        out.print_json({**self._result_document(result), **self.extra_document()})
        matching = max(0, min(result.left_count, result.matched - done.attempt_count))
        line = f"{format_count(result.moved_count, 'message')} {self.past_text}"
        line += f", {len(done.unmoved_messages):,} failed, {result.left_count:,} left in {name}"
        if matching:
            line += f", {matching:,} of them {'matches' if matching == 1 else 'match'}"
        if result.hidden:
            line += f", {result.hidden:,} of them hidden in somebody else's hand"
        out.say(line, "green" if result.exit is Exit.DONE else "red")
        if done.copied_count:
            twice = f"are in {name} as well: delete them there, or they are handled twice"
            out.say(f"{done.copied_count:,} of them {twice}", "yellow")
        if done.unmarked_count:
            out.say(
                f"{done.unmarked_count:,} of them went without {REDRIVE_MARK_NAME}: no room for it",
                "yellow",
            )
        for failure in done.unmoved_messages[:_MOST_FAILURES]:
            text = f"{failure.message_id}: {failure.code}: {failure.reason}"
            out.say_indented(plain(text, 400), "red")
        if len(done.unmoved_messages) > _MOST_FAILURES:
            out.say_indented(f"and {len(done.unmoved_messages) - _MOST_FAILURES:,} more", "red")
        remedies = []
        for failure in done.unmoved_messages:
            remedy = find_remedy(failure.code, failure.reason, self.route)
            if remedy and remedy not in remedies:
                remedies.append(remedy)
        for remedy in remedies:
            out.say_indented(remedy)
        if result.fault:
            out.say(result.fault, "red")
        return result.exit
