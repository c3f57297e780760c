"""The steps that all commands that move or delete messages have in common.

1. Look at all messages and release them (`look_at_messages`). Each look counts as a receive.
2. Print the preview, ask for a confirmation.
3. Receive the messages again and move or delete those that were chosen. Release the others.
4. Print the result.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime
from sys import maxsize
from threading import Event
from typing import Any, ClassVar

from msgspec import Struct, field
from msgspec.structs import replace

from mendq.aws.clients import CallRateLimit
from mendq.aws.errors import FactsUnavailable
from mendq.aws.queue import read_sqs_time
from mendq.cli.decide.freeze import warn_if_frozen
from mendq.cli.exit_codes import CommandError, Exit
from mendq.cli.interrupts import stop_on_signal
from mendq.cli.invocation import Invocation
from mendq.cli.output import confirm
from mendq.cli.redrive.choice import MessageChoice
from mendq.cli.redrive.preview import MessageTally, print_preview, print_unclear_groups
from mendq.cli.redrive.route import Route, explain_refusals, find_remedy
from mendq.notifications.commands import redrive_elsewhere_command
from mendq.notifications.text import format_count, to_terminal_text
from mendq.redrive.messages import REDRIVE_MARK_NAME, Message, MoveResult
from mendq.redrive.mover import (
    MAXIMUM_HELD_MESSAGES,
    MOST_MESSAGES_PER_RECEIVE,
    VISIBILITY_SECONDS,
    MessageMover,
)

INTERRUPT_NOTICE = "interrupted: it ends after the batch under way; Ctrl-C again leaves at once"
# Messages are processed before more are received once these many bytes are in hand.
MOST_BYTES_IN_HAND = 64 * 1024**2
_MOST_PRINTED_FAILURES = 5
_MOST_PRINTED_GROUP_IDS = 3


# Function that shows how many messages are done.
ShowProcessedCount = Callable[[int], None]
# Function that waits until the given number of messages may go. It returns False if the work was
# interrupted.
WaitForTurn = Callable[[int], bool]


class MessageAction(Struct, frozen=True):
    """The action of a command on the messages that it received: send them, or delete them."""

    @abstractmethod
    def process(
        self, mover: MessageMover, messages: Sequence[Message], wait_for_turn: WaitForTurn
    ) -> Iterator[MoveResult]:
        """Move or delete the messages. Yield the result of each batch.

        `wait_for_turn` is called before each batch. If it returns False, no more are processed.
        """


@contextmanager
def use_mover(
    call: Invocation, route: Route, mover: MessageMover, progress_text: str, expected_count: int
) -> Iterator[ShowProcessedCount]:
    """Use `mover` in the block to receive and move messages, and show the progress.

    At the end of the block, the messages that the mover still holds become visible again, except
    after a second interrupt.

    Raises CommandError if AWS returns an error (see `explain_refusals`), and FactsUnavailable if it
    does not answer. Raises CommandError also if the operator interrupts a second time, with the
    number of messages that stay hidden.
    """
    with (
        explain_refusals(route),
        call.out.show_progress(progress_text, expected_count) as show_processed_count,
    ):
        try:
            with mover:
                yield show_processed_count
        except KeyboardInterrupt as second_interrupt:
            still_hidden_text = format_count(
                mover.held_message_count, "message stays", "messages stay"
            )
            problem = f"interrupted twice: {still_hidden_text} hidden for up to "
            problem += f"{VISIBILITY_SECONDS} seconds"
            raise CommandError(problem, error_code="interrupted") from second_interrupt


def look_at_messages(
    call: Invocation,
    route: Route,
    handle_message: Callable[[Message], object],
    most_messages: int = maxsize,
) -> bool:
    """Receive at most `most_messages`, call `handle_message` with each, and release them.

    Return True if the look ended because it reached `most_messages`: there may be more then.

    Raises CommandError if the operator interrupts, and the errors of `use_mover`.
    """
    with stop_on_signal(INTERRUPT_NOTICE) as stop_event:
        mover = route.make_mover(call.account, stop_event)
        seen_count = 0
        expected_count = min(most_messages, route.messages_queue.visible)
        with use_mover(
            call, route, mover, "looking at messages", expected_count
        ) as show_processed_count:
            while not stop_event.is_set() and seen_count < most_messages:
                messages = mover.receive_new_messages(
                    min(MOST_MESSAGES_PER_RECEIVE, most_messages - seen_count)
                )
                if not messages:
                    break
                for message in messages:
                    handle_message(message)
                seen_count += len(messages)
                show_processed_count(seen_count)
        if stop_event.is_set():
            raise CommandError("interrupted: nothing was moved, every message is visible again")
    return seen_count >= most_messages


class WorkResult(Struct, frozen=True):
    """The result of a redrive or a deletion, even if it ended early."""

    move_result: MoveResult
    # Number of messages that the filter chose.
    matched_message_count: int
    # Number of all messages of the queue.
    total_message_count: int
    # Number of messages that could not be read, because another consumer held them.
    hidden_count: int = 0
    # Why the work ended early; empty if it did not.
    fault: str = ""
    # Ids of the messages that stay because they are the first of their groups.
    first_message_ids: tuple[str, ...] = ()
    # Number of messages of a quarantine that stay because they have no seal of Mendq.
    unsealed_count: int = 0
    # Number of matching messages that stay because they are older than the source.
    older_message_count: int = 0
    # Number of matching messages that stay because they came in the second of the question or
    # later.
    late_message_count: int = 0
    # True if the pass ended early, because more messages came than SQS had counted.
    is_bounded: bool = False

    @property
    def moved_count(self) -> int:
        """Number of messages that were sent or deleted.

        Messages that were sent but could not be deleted from the queue are included.
        """
        return self.move_result.moved_count + self.move_result.copied_count

    @property
    def remaining_message_count(self) -> int:
        """Number of messages that are still in the queue and were not tried."""
        return self.total_message_count - self.moved_count - len(self.move_result.unmoved_messages)

    @property
    def exit_code(self) -> Exit:
        """Exit code of the command."""
        return Exit.FAILED if self.fault or self.move_result.unmoved_messages else Exit.DONE


class _SecondPass(Struct):
    """State of the second pass, in which messages are received again and moved or deleted."""

    # The messages of the first pass, before the operator agreed.
    preview_tally: MessageTally
    # The messages of the second pass.
    tally: MessageTally
    # At most this many messages are processed.
    most_messages: int
    # A message that the FIFO queue hid in the first pass may be processed if it came to the queue
    # by this time, just before the question. None: no such message may be processed.
    hidden_messages_until: datetime | None = None
    # Ids of the hidden messages that may be processed, and of those that came in the second of the
    # question or later.
    hidden_message_ids: set[str] = field(default_factory=set)
    late_message_ids: set[str] = field(default_factory=set)
    # Number of all messages that came too late, also of those that do not match.
    late_seen_count: int = 0
    move_result: MoveResult = field(default_factory=MoveResult)
    # True if no further message is received: all messages that the operator agreed to were seen, or
    # more messages came than SQS had counted.
    is_over: bool = False
    # True if it is over because of the number of messages.
    is_bounded: bool = False

    @property
    def processable_message_count(self) -> int:
        """Number of messages that may still be processed."""
        return self.most_messages - self.move_result.attempt_count

    @property
    def matched_message_count(self) -> int:
        """Number of messages that the operator agreed to, before --limit is applied."""
        return len(self.preview_tally.chosen_message_ids) + len(self.hidden_message_ids)

    def add(self, message: Message) -> bool:
        """Count a received message. Return True if the operator agreed that it is processed.

        The operator agreed to the messages that the preview chose. In a FIFO queue without
        --leave-first, they also agreed to matching messages that were hidden behind others at the
        time of the question.
        """
        self.tally.add(message)
        self.late_seen_count += self._is_late(message)
        message_id = message.message_id
        if message_id in self.preview_tally.chosen_message_ids:
            return True
        if (
            self.hidden_messages_until is None
            or message_id in self.preview_tally.seen_message_ids
            or message_id not in self.tally.chosen_message_ids
        ):
            return False
        if message.sent_at > self.hidden_messages_until:
            self.late_message_ids.add(message_id)
            return False
        self.hidden_message_ids.add(message_id)
        return True

    def end_if_only_late_messages_come(self, received_messages: Sequence[Message]) -> None:
        """Set `is_over` if a further receive can bring only messages that came too late.

        Otherwise somebody who keeps sending would keep the pass running for ever, with the messages
        in hand hidden. Call this after each receive, when its messages were added.
        """
        route = self.tally.route
        if len(self.tally.seen_message_ids) >= route.most_messages_to_look_at:
            self.is_over = True
            self.is_bounded = True
        elif all(map(self._is_late, received_messages)) and self._was_everything_agreed_to_seen:
            self.is_over = True

    def _is_late(self, message: Message) -> bool:
        """Return True if the message came after the preview or, if hidden ones go, the question."""
        if message.message_id in self.preview_tally.seen_message_ids:
            return False
        return self.hidden_messages_until is None or message.sent_at > self.hidden_messages_until

    @property
    def _was_everything_agreed_to_seen(self) -> bool:
        """True if this pass has seen all chosen messages and, if hidden ones go, as many as SQS
        counted.
        """
        seen_message_ids = self.tally.seen_message_ids
        if not self.preview_tally.chosen_message_ids.keys() <= seen_message_ids:
            return False
        if self.hidden_messages_until is None:
            return True
        counted = self.tally.route.messages_queue.visible
        return len(seen_message_ids) - self.late_seen_count >= counted


class DlqWork(Struct, frozen=True):
    """A command's work on messages. The subclasses say what to do: send back, or drop."""

    call: Invocation
    route: Route
    choice: MessageChoice
    now: datetime

    # Key of the number of processed messages in the JSON result.
    result_key: ClassVar[str]
    # Words for the finished work, such as `sent back`, and for the work in progress.
    finished_work_text: ClassVar[str]
    progress_text: ClassVar[str]

    @abstractmethod
    def make_question(self, chosen_count: int) -> str:
        """Return the question that the operator must confirm, about the chosen messages."""

    @abstractmethod
    def start(self, stop_event: Event, faults: list[str]) -> AbstractContextManager[MessageAction]:
        """Return a context manager that prepares the work and yields the action that does it.

        If something goes wrong during the work, the reason is appended to `faults` and
        `stop_event` is set.
        """

    def require_allowed(self, preview_tally: MessageTally) -> None:
        """Raise CommandError if the work must not be done on the messages of the preview.

        A subclass may override this. Here all work is allowed.
        """

    def make_extra_document(self) -> dict[str, Any]:
        """Return what `--json` prints besides the numbers. A subclass may override this."""
        return {}

    def carry_out(self) -> Exit:
        """Print a preview, ask, process the messages, and print the result. Return the exit code.

        From a standard queue, or with --leave-first, only messages that were seen before the
        question are processed. A message that was sent back and failed again has a new id, so it is
        not sent twice. From a FIFO queue without --leave-first, messages hidden behind the first of
        their group are processed too, if they arrived before the question by SQS's clock. No more
        messages are processed in all than the question says.
        """
        preview_tally = self._make_tally()
        out = self.call.out
        preview_tally.is_look_bounded = look_at_messages(
            self.call, self.route, preview_tally.add, self.route.most_messages_to_look_at
        )
        print_preview(out, preview_tally, self.choice)
        warn_if_frozen(self.call)
        self._require_clear_groups(preview_tally)
        matched_message_count = len(preview_tally.chosen_message_ids)
        if self.choice.dry_run or not matched_message_count:
            result = self._make_result(MoveResult(), matched_message_count, preview_tally)
            out.print_json(self._make_result_document(result))
            if not matched_message_count:
                reason = "no message that can be seen matches"
                if preview_tally.first_message_id_by_group_id:
                    reason = "no message stands behind the first of its group"
                out.say(f"{reason}: there is nothing to do", "yellow")
            summary = f"nothing was {self.result_key}"
            out.say(f"{summary}; each message that was looked at counts a receive more", "dim")
            return Exit.DONE
        self.require_allowed(preview_tally)
        hidden_messages_until = self._read_time_of_question()
        confirm(self.make_question(matched_message_count), yes=self.choice.yes)
        faults: list[str] = []
        with (
            stop_on_signal(INTERRUPT_NOTICE) as stop_event,
            self.start(stop_event, faults) as action,
        ):
            second_pass = _SecondPass(
                preview_tally,
                self._make_tally(),
                self.find_most_processable_messages(matched_message_count),
                hidden_messages_until,
            )
            result = self._process_messages(second_pass, action, stop_event, faults)
        return self._print_result(result)

    def _require_clear_groups(self, preview_tally: MessageTally) -> None:
        """Raise CommandError if the first message of a group may not be the one that failed.

        This is checked only with --leave-first.
        """
        unclear_groups = preview_tally.unclear_groups
        if not unclear_groups:
            return
        print_unclear_groups(self.call.out, preview_tally, self.choice)
        group_ids = ", ".join(
            to_terminal_text(group.group_id, 60)
            for group in unclear_groups[:_MOST_PRINTED_GROUP_IDS]
        )
        group_count_text = format_count(len(unclear_groups), "group")
        problem = f"for {group_count_text} ({group_ids}) it is not clear which message failed"
        reason = unclear_groups[0].reason
        remedy = "find the failed message in the consumer's log and leave it with --where"
        raise CommandError(
            f"{problem}: {reason}. Nothing was moved; {remedy}", error_code="first_unclear"
        )

    def _make_tally(self) -> MessageTally:
        return MessageTally(
            self.route, self.choice.message_filter, self.now, self.choice.leave_first
        )

    def _process_messages(
        self,
        second_pass: _SecondPass,
        action: MessageAction,
        stop_event: Event,
        faults: list[str],
    ) -> WorkResult:
        """Receive the messages again and move or delete them. Return the result, even if stopped.

        A CommandError or an interrupt ends the work, and so does AWS if it does not answer. Each
        fault is appended to `faults`, and the first one is part of the result. Raises
        FactsUnavailable if AWS does not answer before a message was processed.
        """
        preview_tally = second_pass.preview_tally
        tally = second_pass.tally
        try:
            self._receive_and_process(second_pass, action, stop_event)
        except CommandError as error:
            faults.append(str(error))
        except FactsUnavailable as error:
            if not second_pass.move_result.attempt_count:
                raise
            # The operator must hear which messages went before AWS stopped answering.
            hidden_text = f"messages in hand stay hidden for up to {VISIBILITY_SECONDS} seconds"
            faults.append(
                f"AWS stopped answering: {error}; {hidden_text}: run the command again after that"
            )
        except KeyboardInterrupt:
            stop_event.set()
        if stop_event.is_set():
            faults.append("interrupted: messages still held are visible again")
        faults += self._describe_changed_groups(preview_tally, tally)
        tally.seen_message_ids |= preview_tally.seen_message_ids
        # The second pass ends early if there is a limit.
        tally.unsealed_staying_count = max(
            tally.unsealed_staying_count, preview_tally.unsealed_staying_count
        )
        tally.older_message_count = max(
            tally.older_message_count, preview_tally.older_message_count
        )
        result = self._make_result(
            second_pass.move_result,
            second_pass.matched_message_count,
            tally,
            faults[0] if faults else "",
        )
        return replace(
            result,
            late_message_count=len(second_pass.late_message_ids),
            is_bounded=second_pass.is_bounded,
        )

    def _receive_and_process(
        self, second_pass: _SecondPass, action: MessageAction, stop_event: Event
    ) -> None:
        """Receive messages and process them, until there are no more or `stop_event` is set.

        It also ends if only messages that came too late are left (`_SecondPass.is_over`).
        `second_pass.move_result` has the result so far, also if an error ends the work.
        """
        is_fifo = self.route.messages_queue.is_fifo
        processing_pace = CallRateLimit(self.choice.messages_per_second, stop_event.wait)
        expected_count = self.choice.apply_limit(len(second_pass.preview_tally.chosen_message_ids))
        mover = self.route.make_mover(self.call.account, stop_event)
        with use_mover(
            self.call, self.route, mover, self.progress_text, expected_count
        ) as show_processed_count:
            while (
                not stop_event.is_set()
                and not second_pass.is_over
                and second_pass.processable_message_count > 0
            ):
                messages, message_ids_to_release = self._take_messages(
                    mover, second_pass, stop_event
                )
                if not messages and not message_ids_to_release:
                    return
                if self.choice.leave_first:
                    messages = self._select_unchanged_groups(messages, second_pass)
                if not is_fifo:
                    # In a FIFO queue they are released at the end, because SQS returns no
                    # message behind a released one of the same group.
                    mover.release(message_ids_to_release)
                for batch in self._split_into_batches(messages):
                    for batch_result in action.process(mover, batch, processing_pace.wait):
                        second_pass.move_result += batch_result
                        show_processed_count(second_pass.move_result.attempt_count)
                        self._require_source_exists(batch_result, second_pass.move_result)

    def _split_into_batches(self, messages: Sequence[Message]) -> Iterator[Sequence[Message]]:
        """Yield the messages in batches, so that the rate can be limited between batches.

        The messages of a FIFO queue are one batch: the mover keeps the order of each group.
        """
        batch_size = len(messages) if self.route.messages_queue.is_fifo else self.choice.batch_size
        for first_index in range(0, len(messages), max(1, batch_size)):
            yield messages[first_index : first_index + batch_size]

    @property
    def _may_take_hidden_messages(self) -> bool:
        """True if messages that a FIFO queue hides behind others may be processed too.

        With --leave-first they stay, because a hidden group may begin with another failed message.
        """
        return self.route.messages_queue.is_fifo and not self.choice.leave_first

    def find_most_processable_messages(self, chosen_count: int) -> int:
        """Return how many messages may be processed at most, as the question says.

        These are the chosen messages. If hidden ones may go too, it is the number of messages that
        SQS counted in the queue before the question. --limit may make it smaller.
        """
        most_messages = chosen_count
        if self._may_take_hidden_messages:
            most_messages = max(chosen_count, self.route.messages_queue.visible)
        return self.choice.apply_limit(most_messages)

    def describe_hidden_messages(self, chosen_count: int) -> str:
        """Return the question's words about hidden messages that will be processed as well.

        Empty if none may be.
        """
        limit = self.choice.limit
        if not self._may_take_hidden_messages or (limit is not None and limit <= chosen_count):
            return ""
        most_messages = self.find_most_processable_messages(chosen_count)
        return f", and what matches behind them now (at most {most_messages:,} in all),"

    def _read_time_of_question(self) -> datetime | None:
        """Return the time by SQS's clock just before the question, rounded down to the second.

        None if no hidden messages may be processed, or if SQS's answer has no time. Raises
        CommandError if SQS refuses the read.
        """
        if not self._may_take_hidden_messages:
            return None
        with explain_refusals(self.route):
            return read_sqs_time(self.call.account.clients, self.route.messages_queue.queue_arn)

    def _select_unchanged_groups(
        self, messages: Sequence[Message], second_pass: _SecondPass
    ) -> list[Message]:
        """Return the messages whose group still begins with the message that the preview showed."""
        previewed_first_id_by_group_id = second_pass.preview_tally.first_message_id_by_group_id
        groups_in_dlq = second_pass.tally.groups_in_dlq
        unchanged_messages = []
        for message in messages:
            group_id = message.group_id
            if groups_in_dlq[group_id].first_message_id == previewed_first_id_by_group_id[group_id]:
                unchanged_messages.append(message)
        return unchanged_messages

    def _describe_changed_groups(
        self, preview_tally: MessageTally, current_tally: MessageTally
    ) -> list[str]:
        """Return one line if chosen groups begin with another message than in the preview.

        Return an empty list if there are no such groups, or without --leave-first.
        """
        if not self.choice.leave_first:
            return []
        previewed_first_id_by_group_id = preview_tally.first_message_id_by_group_id
        groups_in_dlq = current_tally.groups_in_dlq
        changed_group_ids = [
            group_id
            for group_id in sorted(preview_tally.chosen_group_ids & groups_in_dlq.keys())
            if groups_in_dlq[group_id].first_message_id != previewed_first_id_by_group_id[group_id]
        ]
        if not changed_group_ids:
            return []
        group_ids = ", ".join(
            to_terminal_text(group_id, 60)
            for group_id in changed_group_ids[:_MOST_PRINTED_GROUP_IDS]
        )
        group_count_text = format_count(len(changed_group_ids), "group")
        fault = f"the first message of {group_count_text} ({group_ids}) is another one now"
        return [f"{fault}: nothing of it was moved; look again"]

    def _require_source_exists(self, batch_result: MoveResult, total_result: MoveResult) -> None:
        """Raise CommandError if the errors of the last batch show that the source was deleted.

        Messages that were sent before may be lost: a queue takes messages for 60 seconds after it
        was deleted.
        https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_DeleteQueue.html
        """
        source_name = self.route.source.name
        if any(failure.code == "NonExistentQueue" for failure in batch_result.unmoved_messages):
            sent_count = total_result.moved_count + total_result.copied_count
            lost_messages_text = (
                f"Of {format_count(sent_count, 'message')} sent there, those that no consumer had "
                "received are lost"
            )
            elsewhere_command = redrive_elsewhere_command(self.route.messages_queue.queue_arn)
            remedy = f"send the messages that are left to another queue: `{elsewhere_command}`"
            raise CommandError(f"{source_name} is gone: stopped. {lost_messages_text}; {remedy}")

    def _take_messages(
        self, mover: MessageMover, second_pass: _SecondPass, stop_event: Event
    ) -> tuple[list[Message], list[str]]:
        """Receive messages. Return those to process, and the ids of those to release.

        At most `processable_message_count` messages are returned to process. In a standard queue,
        messages are received until there are enough, until the mover can hold no more, until their
        size is MOST_BYTES_IN_HAND, or until SQS returns none: a message that was released early
        would be received again at once. In a FIFO queue only a few are received, because SQS
        returns more of a group only when these are deleted.
        """
        messages: list[Message] = []
        message_ids_to_release: list[str] = []
        most_messages = second_pass.processable_message_count
        most_held_messages = 1 if self.route.messages_queue.is_fifo else MAXIMUM_HELD_MESSAGES
        bytes_in_hand = 0
        while (
            not stop_event.is_set()
            and not second_pass.is_over
            and len(messages) < most_messages
            and bytes_in_hand < MOST_BYTES_IN_HAND
        ):
            if len(messages) + len(message_ids_to_release) >= most_held_messages:
                break
            received_messages = mover.receive_new_messages(MOST_MESSAGES_PER_RECEIVE)
            if not received_messages:
                break
            for message in received_messages:
                is_allowed = second_pass.add(message)
                if is_allowed and len(messages) < most_messages:
                    messages.append(message)
                    bytes_in_hand += message.size_bytes
                else:
                    message_ids_to_release.append(message.message_id)
            second_pass.end_if_only_late_messages_come(received_messages)
        return messages, message_ids_to_release

    def _make_result(
        self,
        move_result: MoveResult,
        matched_message_count: int,
        tally: MessageTally,
        fault: str = "",
    ) -> WorkResult:
        """Return the result, with the number of all messages of the queue.

        That number includes messages that other consumers hold and, in a FIFO queue, messages
        behind those that were seen.
        """
        messages_queue = self.route.messages_queue
        seen_count = len(tally.seen_message_ids)
        if messages_queue.is_fifo:
            seen_count = max(seen_count, messages_queue.visible)
        hidden_count = self.route.count_hidden_messages(seen_count)
        first_message_ids = tuple(tally.first_message_id_by_group_id.values())
        total_message_count = seen_count + hidden_count
        return WorkResult(
            move_result,
            matched_message_count,
            total_message_count,
            hidden_count,
            fault,
            first_message_ids,
            tally.unsealed_staying_count,
            tally.older_message_count,
        )

    def _make_result_document(self, result: WorkResult) -> dict[str, Any]:
        """Return the numbers of the result, as `--json` prints them."""
        document: dict[str, Any] = {
            "matched": result.matched_message_count,
            self.result_key: result.moved_count,
            "left": result.remaining_message_count,
            "failed": len(result.move_result.unmoved_messages),
        }
        if self.choice.leave_first:
            document["staying_first"] = list(result.first_message_ids)
        if self.route.is_from_quarantine:
            document["unsealed"] = result.unsealed_count
        if result.older_message_count:
            document["staying_older"] = result.older_message_count
        return document

    def _summarize(self, result: WorkResult, unprocessed_match_count: int) -> str:
        """Return the line with the numbers of the result."""
        summary = f"{format_count(result.moved_count, 'message')} {self.finished_work_text}"
        summary += f", {len(result.move_result.unmoved_messages):,} failed"
        summary += f", {result.remaining_message_count:,} left in {self.route.messages_queue.name}"
        if unprocessed_match_count:
            match_verb = "matches" if unprocessed_match_count == 1 else "match"
            summary += f", {unprocessed_match_count:,} of them {match_verb}"
        if result.hidden_count:
            summary += f", {result.hidden_count:,} of them held by another consumer"
        if result.unsealed_count:
            summary += f", {result.unsealed_count:,} of them without a seal of Mendq"
        if result.older_message_count:
            source_name = self.route.source.name
            summary += f", {result.older_message_count:,} of them older than {source_name}"
        if result.late_message_count:
            late_text = "came in the second of the question or later"
            summary += f", {result.late_message_count:,} of them {late_text}"
        return summary

    def _print_result(self, result: WorkResult) -> Exit:
        """Print the numbers, the failed messages and remedies for them. Return the exit code."""
        out = self.call.out
        move_result = result.move_result
        queue_name = self.route.messages_queue.name
        out.print_json({**self._make_result_document(result), **self.make_extra_document()})
        unprocessed_match_count = max(
            0,
            min(
                result.remaining_message_count,
                result.matched_message_count - move_result.attempt_count,
            ),
        )
        summary = self._summarize(result, unprocessed_match_count)
        out.say(summary, "green" if result.exit_code is Exit.DONE else "red")
        if result.is_bounded:
            out.say(
                f"it ended there: more messages came to {queue_name} than SQS had counted. If "
                "messages that match are left, run the command again",
                "yellow",
            )
        if move_result.copied_count:
            warning = f"are in {queue_name} as well: delete them there, or they are handled twice"
            out.say(f"{move_result.copied_count:,} of them {warning}", "yellow")
        if move_result.unmarked_count:
            unmarked_count_text = f"{move_result.unmarked_count:,} of them"
            out.say(
                f"{unmarked_count_text} went without {REDRIVE_MARK_NAME}: no room for it", "yellow"
            )
        for failure in move_result.unmoved_messages[:_MOST_PRINTED_FAILURES]:
            failure_text = f"{failure.message_id}: {failure.code}: {failure.reason}"
            out.say_indented(to_terminal_text(failure_text, 400), "red")
        unprinted_failure_count = len(move_result.unmoved_messages) - _MOST_PRINTED_FAILURES
        if unprinted_failure_count > 0:
            out.say_indented(f"and {unprinted_failure_count:,} more", "red")
        remedies = []
        for failure in move_result.unmoved_messages:
            remedy = find_remedy(failure.code, failure.reason, self.route)
            if remedy and remedy not in remedies:
                remedies.append(remedy)
        for remedy in remedies:
            out.say_indented(remedy)
        if result.fault:
            out.say(result.fault, "red")
        return result.exit_code
