"""`mendq redrive QUEUE`: send DLQ messages that an operator chooses back to their source."""

from __future__ import annotations

import shlex
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from secrets import token_bytes
from threading import Event
from typing import Annotated

import typer
from msgspec import Struct, structs

from mendq.aws.queue import queue_url
from mendq.cases.receivers import read_receiver_facts
from mendq.catalogue.dlq.time_left import compute_time_left
from mendq.cli.account import Account
from mendq.cli.commands import (
    CASE_LOOKUP_ACTIONS,
    CLAIM_ACTION,
    DLQ_ACTIONS,
    SEND_BACK_MESSAGES_ACTIONS,
    CommandKind,
    command,
)
from mendq.cli.exit_codes import CommandError, Exit
from mendq.cli.invocation import Invocation
from mendq.cli.queues import make_queue_argument, resolve_queue_arn
from mendq.cli.redrive.choice import MessageChoice, with_choice_options
from mendq.cli.redrive.hold import DlqHold, hold_dlq
from mendq.cli.redrive.preview import MessageTally
from mendq.cli.redrive.route import Route, find_route_to_replacement, find_route_to_source
from mendq.cli.redrive.work import DlqWork, MessageAction, WaitForTurn
from mendq.model.facts import Facts, QueueFacts
from mendq.model.receiver import Receiver, list_changed_parts
from mendq.model.seal import SealKey
from mendq.notifications.text import format_count, format_duration
from mendq.redrive.messages import Message, MoveResult, RedriveMarker
from mendq.redrive.mover import Destination, MessageMover

QueueName = Annotated[str, make_queue_argument("The source; with --to, the DLQ:")]
_TO_OPTION = typer.Option(
    "--to", metavar="OTHER", help="The queue that takes messages whose source was deleted."
)
_FROM_OPTION = typer.Option(
    "--from", metavar="SOURCE", help="With --to: take only messages from this source queue."
)
_LEAVE_FIRST_OPTION = typer.Option(
    "--leave-first", help="Leave the first message of each FIFO group."
)
ToOption = Annotated[str | None, _TO_OPTION]
FromOption = Annotated[str | None, _FROM_OPTION]
LeaveFirstOption = Annotated[bool, _LEAVE_FIRST_OPTION]
_UNSEALED_OPTION = typer.Option(
    "--unsealed", help="From a quarantine: take messages without Mendq's seal too."
)
UnsealedOption = Annotated[bool, _UNSEALED_OPTION]


@command(
    1,
    CommandKind.MESSAGES,
    CASE_LOOKUP_ACTIONS | SEND_BACK_MESSAGES_ACTIONS | DLQ_ACTIONS | {CLAIM_ACTION},
)
@with_choice_options
def redrive(  # noqa: PLR0913, PLR0917 - each is one option of the command
    call: Invocation,
    queue: QueueName,
    choice: MessageChoice,
    to: ToOption = None,
    died_in: FromOption = None,
    leave_first: LeaveFirstOption = False,
    unsealed: UnsealedOption = False,
) -> Exit:
    """Send DLQ messages back to their source.

    Looking at a message is a receive: its receive count rises, with --dry-run too.

    Examples:
      mendq redrive orders --where "body.type == 'order'" --limit 5
      mendq redrive steps.fifo --all --leave-first --dry-run
      mendq redrive orders-dlq --to orders-new --all --rate 10/s
    """
    command_words = ["mendq", "redrive", queue]
    if to:
        command_words.extend(["--to", to])
    if died_in:
        command_words.extend(["--from", died_in])
    if unsealed:
        command_words.append("--unsealed")
    choice = structs.replace(choice, leave_first=leave_first, command=shlex.join(command_words))
    if to is not None:
        find_route = partial(
            find_route_to_replacement, call.account, queue, to, died_in, takes_unsealed=unsealed
        )
        return send_back(call, choice, find_route)
    if unsealed:
        problem = "--unsealed is for messages of a quarantine: give --to as well"
        raise CommandError(f"{problem}, or use `mendq quarantine return`", Exit.USAGE)
    if died_in is not None:
        raise CommandError(
            "--from says whose messages go --to another queue: give both", Exit.USAGE
        )
    source_arn = resolve_queue_arn(call.account, queue)
    return send_back(call, choice, partial(find_route_to_source, call.account, source_arn))


def send_back(call: Invocation, choice: MessageChoice, find_route: Callable[[], Route]) -> Exit:
    """Send back the chosen messages. Return the exit code of the command.

    `find_route` returns the queue with the messages and the queue to send them to. It is called
    again just before the messages are sent. Raises CommandError if --leave-first is given for a
    standard queue.
    """
    with call.out.show_waiting("looking at the queues and their messages"):
        route = find_route()
    if choice.leave_first and not route.messages_queue.is_fifo:
        problem = (
            f"--leave-first is for FIFO queues: the messages of {route.source.name} have no order"
        )
        raise CommandError(f"{problem}; leave some with --where", Exit.USAGE)
    return SendBackWork(call, route, choice, datetime.now(UTC), find_route).carry_out()


class SendBackWork(DlqWork, frozen=True):
    """The work of `mendq redrive` and `quarantine return`: send messages back, with Mendq's mark.

    Mendq's own redrives of the DLQ wait meanwhile.
    """

    # Returns the route as it is now.
    find_route: Callable[[], Route]

    result_key = "moved"
    finished_work_text = "sent back"
    progress_text = "sending back"

    def require_allowed(self, preview_tally: MessageTally) -> None:
        """Raise CommandError if the oldest chosen message would expire before all are sent.

        Without --rate, nothing is checked.
        """
        oldest_chosen_sent_at = preview_tally.oldest_chosen_sent_at
        messages_per_second = self.choice.messages_per_second
        if messages_per_second is None or oldest_chosen_sent_at is None:
            return
        message_count = self.choice.apply_limit(len(preview_tally.chosen_message_ids))
        time_to_send_all_messages = timedelta(seconds=message_count / messages_per_second)
        retention_seconds = self.route.messages_queue.retention_seconds
        time_left = compute_time_left(oldest_chosen_sent_at, retention_seconds, self.now)
        if time_to_send_all_messages > time_left.upper_bound:
            message_text = format_count(message_count, "message")
            problem = f"{message_text} at {messages_per_second:g} a second take "
            problem += format_duration(time_to_send_all_messages)
            problem += f", and the oldest expires {time_left}: raise --rate or choose fewer"
            raise CommandError(problem, error_code="redrive_too_slow")

    def make_question(self, chosen_count: int) -> str:
        """Return the question that the operator must confirm."""
        messages_per_second = self.choice.messages_per_second
        messages_queue = self.route.messages_queue
        sending_rate_text = (
            "as fast as it goes"
            if messages_per_second is None
            else f"{messages_per_second:g} a second"
        )
        message_text = format_count(self.choice.apply_limit(chosen_count), "message")
        if self.choice.leave_first:
            destination_text = f"{self.route.source.name} in their order"
            return (
                f"Send {message_text} back to {destination_text}, {sending_rate_text}, "
                f"and leave the first message of each group in {messages_queue.name}?"
            )
        message_text += self.describe_hidden_messages(chosen_count)
        return f"Send {message_text} back to {self.route.source.name}, {sending_rate_text}?"

    @contextmanager
    def start(self, stop_event: Event, faults: list[str]) -> Iterator[MessageAction]:
        """Claim the DLQ while the block lasts, and yield the action that sends messages.

        If the claim is lost, `stop_event` is set and the reason is appended to `faults`. The queues
        are read again, because the operator may have waited long before the answer. Raises
        CommandError if they have changed, and the errors of `hold_dlq` and `find_route`.
        """
        account = self.call.account
        source = self.route.source
        run_id = uuid.uuid4().hex
        source_url = queue_url(account.clients, source.queue_arn)
        # The key of the mark is random and not stored, because Mendq does not follow up messages
        # that a person sends back.
        add_mark = RedriveMarker(source.queue_arn, run_id, SealKey(token_bytes())).mark_redriven
        destination = Destination(
            source.queue_arn, source_url, run_id, add_mark, source.maximum_message_bytes
        )
        with hold_dlq(account, self.route.dlq_arn, stop_event, faults) as dlq_hold:
            with self.call.out.show_waiting("looking at the queues again"):
                self.route.require_same(self.find_route())
            gate = SourceGate.make(account, source, stop_event, faults)
            yield _SendAction(destination, gate, dlq_hold)


class SourceGate(Struct, frozen=True):
    """Stops the work if the destination queue has changed since the operator agreed.

    A command may run for hours. Meanwhile another person may delete the queue and create it again,
    or change its policy, key or tags. Then others could read the messages.
    """

    account: Account
    # The queue as it was before the question.
    source_when_agreed: Receiver
    stop_event: Event
    faults: list[str]

    @classmethod
    def make(
        cls, account: Account, source: Facts, stop_event: Event, faults: list[str]
    ) -> SourceGate:
        """Return the gate for a queue. `source` are its facts from before the question."""
        source_when_agreed = Receiver.of_queue(
            source,
            recorded_at=datetime.now(UTC),
            recorded_by="the operator",
            is_made_by_mendq=False,
        )
        return cls(account, source_when_agreed, stop_event, faults)

    def may_send_batch(self) -> bool:
        """Return True if the queue has not changed. Otherwise stop the work and say why.

        Return True for a deleted queue too: the send fails then, and reports it.

        Raises FactsUnavailable or QueueRefusesUs if the queue cannot be read.
        """
        queue = read_receiver_facts(self.account.clients, self.source_when_agreed.queue_arn)
        change = find_change_since_agreed(self.source_when_agreed, queue) if queue.exists else None
        if change is None:
            return True
        self.faults.append(
            f"{change} since you agreed: stopped before the next batch. See who did that, then "
            "run the command again"
        )
        self.stop_event.set()
        return False


def find_change_since_agreed(source_when_agreed: Receiver, queue: QueueFacts) -> str | None:
    """Return how the queue differs from what the operator agreed to; None if it does not."""
    if queue.created_at != source_when_agreed.created_at:
        return f"{queue.name} was deleted and created again"
    changed_parts = list_changed_parts(source_when_agreed, queue)
    return f"the {' and '.join(changed_parts)} of {queue.name} changed" if changed_parts else None


class _SendAction(MessageAction, frozen=True):
    """Send messages to the destination, and only then delete them from their queue."""

    destination: Destination
    gate: SourceGate
    dlq_hold: DlqHold

    def process(
        self, mover: MessageMover, messages: Sequence[Message], wait_for_turn: WaitForTurn
    ) -> Iterator[MoveResult]:
        """Send the messages in batches. Yield the result of each batch."""

        def may_send_batch(message_count: int) -> bool:
            # The claim comes last, because it is only good for a short time.
            return (
                wait_for_turn(message_count)
                and self.gate.may_send_batch()
                and self.dlq_hold.may_send_batch()
            )

        return mover.move_messages(messages, self.destination, may_send_batch)
