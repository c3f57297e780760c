"""`mendq redrive QUEUE`: send DLQ messages back to where they died, those that a person chooses."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from operator import attrgetter
from threading import Event
from typing import Annotated

import typer

from mendq.catalogue._time_left import left_of, span
from mendq.cli.commands import CASE_STORE, CLAIM, DLQ, RETURNING, Commands
from mendq.cli.exit_codes import Exit, Stopped
from mendq.cli.invocation import Invocation, with_invocation
from mendq.cli.output import Yes, require_answer
from mendq.cli.queues import queue_arn_of
from mendq.cli.redrive.hold import held
from mendq.cli.redrive.preview import Selection, Tally
from mendq.cli.redrive.route import Route, route_from
from mendq.cli.redrive.work import Act, Work, rate_of
from mendq.notifications.text import counted
from mendq.redrive.message_filter import EVERY_MESSAGE, MessageFilter, Misread, message_filter
from mendq.redrive.messages import Message
from mendq.redrive.mover import MessageMover
from mendq.redrive.send_batches import MoveResult

_BEFORE, _BEHIND = 60, 20
QueueName = Annotated[str, typer.Argument(metavar="QUEUE", help="The source: name, URL or ARN.")]
WhereText = Annotated[
    str | None, typer.Option("--where", metavar="JMESPATH", help="Which messages: docs/redrive.md.")
]
EveryMessage = Annotated[bool, typer.Option("--all", help="All messages of this source.")]
Limit = Annotated[int | None, typer.Option(help="Send at most so many.", min=1)]
Rate = Annotated[
    str | None, typer.Option(metavar="R/s", help="At most so many a second, such as 10/s.")
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only show what would be sent.")]


COMMANDS = Commands(1, messages={"redrive": CASE_STORE | RETURNING | DLQ | {CLAIM}})


@with_invocation
def redrive(  # noqa: PLR0913, PLR0917 - the command line is the signature
    call: Invocation,
    queue: QueueName,
    expression: WhereText = None,
    every: EveryMessage = False,
    limit: Limit = None,
    rate: Rate = None,
    dry_run: DryRun = False,
    yes: Yes = False,
) -> Exit:
    """Send DLQ messages back to their source.

    Looking at a message is a receive: its receive count rises, with --dry-run too.
    """
    chosen, per_second = chosen_by(expression, every=every), rate_of(rate)
    require_answer(yes=yes or dry_run)
    arn = queue_arn_of(call.account, queue)

    def look() -> Route:
        return route_from(call.account, arn)

    work = send_back(call, look, chosen, limit, per_second)
    return work.carry_out(dry_run=dry_run, yes=yes)


def chosen_by(expression: str | None, *, every: bool) -> MessageFilter:
    """What a person has chosen; Stopped where that is nothing, both, or cannot be read."""
    if (expression is None) is not every:
        raise Stopped("give either --where JMESPATH or --all", Exit.USAGE)
    found = EVERY_MESSAGE if expression is None else message_filter(expression)
    if isinstance(found, Misread):
        text = expression or ""
        before, behind = text[: found.at][-_BEFORE:], text[found.at :][:_BEHIND]
        where = f"at character {found.at + 1}: {before} >>> {behind}"
        raise Stopped(f"--where: {found.reason}, {where}", Exit.USAGE)
    return found


def send_back(  # noqa: PLR0913, PLR0917 - what a person has asked for
    call: Invocation,
    look: Callable[[], Route],
    chosen: MessageFilter,
    limit: int | None,
    per_second: float | None,
    died_in: Callable[[Message], str | None] = attrgetter("source_arn"),
) -> SendBack:
    """What somebody asks for; `look` says from where to where, and is asked again at the end."""
    with call.out.waiting("looking at the queues and their messages"):
        route = look()
    now, is_sole_source = datetime.now(UTC), not route.others
    selection = Selection(chosen, route.source.arn, is_sole_source, now, died_in)
    return SendBack(call, route, selection, limit, per_second, look)


@dataclass(frozen=True)
class SendBack(Work):
    """Messages that go back to their source, marked; Mendq's own redrives wait meanwhile.

    `look` is the route as it is when somebody has said yes.
    """

    look: Callable[[], Route]

    done, said, doing = "moved", "sent back", "sending back"

    def require(self, before: Tally) -> None:
        """Stopped where, at the rate that was asked for, some would expire before they go."""
        oldest_at, retained = before.oldest_chosen_at, self.route.messages.attributes
        if self.per_second is None or oldest_at is None:
            return
        going = self.going(len(before.chosen))
        lasts = timedelta(seconds=going / self.per_second)
        left = left_of(oldest_at, int(retained["MessageRetentionPeriod"]), self.selection.now)
        if lasts > left.at_most:
            raise Stopped(
                f"{counted(going, 'message')} at {self.per_second:g} a second take {span(lasts)}, "
                f"and the oldest expires {left}: nothing was moved; raise --rate or choose fewer",
                word="redrive_too_slow",
            )

    def question(self, chosen: int) -> str:
        speed = "as fast as it goes" if self.per_second is None else f"{self.per_second:g} a second"
        messages, waiting = counted(self.going(chosen), "message"), self.route.messages
        if waiting.is_fifo and (self.limit is None or chosen < self.limit):
            most = self.limit or max(chosen, waiting.waiting)
            messages += f", and what matches behind them (some {most:,} in all at most),"
        return f"Send {messages} back to {self.route.source.name}, {speed}?"

    @contextmanager
    def begun(self, stop: Event, faults: list[str]) -> Iterator[Act]:
        """Stopped where what forbids it has come since: somebody may have thought for long."""
        to = self.route.destination(uuid.uuid4().hex)

        def act(mover: MessageMover, messages: Sequence[Message]) -> Iterator[MoveResult]:
            return mover.put(messages, to)

        with held(self.call.account, self.route.dlq_arn, stop, faults):
            with self.call.out.waiting("looking at the queues again"):
                self.route.require_same(self.look())
            yield act
