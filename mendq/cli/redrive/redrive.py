"""`mendq redrive QUEUE`: send DLQ messages back to where they died, those that a person chooses."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Annotated

import typer

from mendq.cli.decide.freeze import warn_of_freeze
from mendq.cli.exit_codes import Exit, Stopped
from mendq.cli.invocation import Invocation, with_invocation
from mendq.cli.output import Yes, confirm, require_answer
from mendq.cli.queues import queue_arn_of
from mendq.cli.redrive.asked import Asked, says_nothing
from mendq.cli.redrive.passes import rate_of
from mendq.cli.redrive.preview import Selection, print_preview
from mendq.cli.redrive.route import Route, route_from
from mendq.redrive.message_filter import EVERY_MESSAGE, MessageFilter, Misread, message_filter

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
    with call.out.waiting("looking at the queue and its DLQ messages"):
        route = route_from(call.account, arn)
    selection = Selection(chosen, arn, not route.others, datetime.now(UTC))
    asked = Asked(call, route, selection, limit, per_second)
    return shown_and_sent(asked, lambda: route_from(call.account, arn), dry_run=dry_run, yes=yes)


def shown_and_sent(asked: Asked, again: Callable[[], Route], *, dry_run: bool, yes: bool) -> Exit:
    """Show what would go, ask, send; `again` is the route as it is after the answer."""
    out, tally = asked.call.out, asked.counted()
    print_preview(out, asked.route, tally, asked.limit)
    warn_of_freeze(asked.call)
    if dry_run or not tally.chosen:
        return says_nothing(out, asked.not_begun(tally))
    asked.require_in_time(tally)
    confirm(asked.question(len(tally.chosen)), yes=yes)
    return asked.sent(tally, again)


def chosen_by(expression: str | None, *, every: bool) -> MessageFilter:
    """What a person has chosen; Stopped where that is nothing, both, or cannot be read."""
    if (expression is None) is not every:
        raise Stopped("give either --where JMESPATH or --all", Exit.USAGE)
    found = EVERY_MESSAGE if expression is None else message_filter(expression)
    if isinstance(found, Misread):
        raise Stopped(f"--where: {_where_in(expression or '', found)}", Exit.USAGE)
    return found


def _where_in(expression: str, found: Misread) -> str:
    before, behind = expression[: found.at][-_BEFORE:], expression[found.at :][:_BEHIND]
    return f"{found.reason}, at character {found.at + 1}: {before} >>> {behind}"
