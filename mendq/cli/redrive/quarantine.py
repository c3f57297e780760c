"""`mendq quarantine`: the messages that came back after a redrive, kept until a person decides."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from mendq.catalogue._time_left import UNHURRIED, most_urgent_first, span
from mendq.cli.command_group import CommandGroup
from mendq.cli.decide.freeze import warn_of_freeze
from mendq.cli.exit_codes import Exit
from mendq.cli.invocation import Invocation, with_invocation
from mendq.cli.output import Yes, age, confirm, require_answer, table
from mendq.cli.redrive.asked import Asked, left_in, says_nothing, tell_faults
from mendq.cli.redrive.passes import Act, rate_of
from mendq.cli.redrive.preview import Selection, print_preview
from mendq.cli.redrive.quarantines import (
    DropFile,
    Quarantine,
    document_of,
    drop_file,
    place_of,
    quarantine_named,
    quarantines,
    route_out_of,
    show_message,
)
from mendq.cli.redrive.redrive import (
    DryRun,
    EveryMessage,
    Limit,
    Rate,
    WhereText,
    chosen_by,
    shown_and_sent,
)
from mendq.cli.redrive.route import Route, require_last, with_remedies
from mendq.model.evidence import to_text
from mendq.notifications.text import counted
from mendq.redrive.message_filter import MessageFilter
from mendq.redrive.messages import Message, quarantine_reason
from mendq.redrive.mover import MessageMover
from mendq.redrive.send_batches import MoveResult, NotMoved

Named = Annotated[
    str, typer.Argument(metavar="QUEUE", help="The source or its quarantine: name, URL or ARN.")
]

quarantine = typer.Typer(
    name="quarantine",
    cls=CommandGroup,
    help="See, send back or drop quarantined messages.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@quarantine.command("list")
@with_invocation
def list_all(call: Invocation) -> None:
    """The quarantines beside the managed queues, what expires first at the top."""
    now = datetime.now(UTC)
    with call.out.waiting("looking for quarantines"):
        found = most_urgent_first(quarantines(call.account, now), _expires_at)
    call.out.document([_summary(each) for each in found])
    if not found:
        call.out.say("no managed queue has a quarantine")
        return
    shown = table("MESSAGES", "OLDEST", "EXPIRES", "QUARANTINE")
    for each in found:
        oldest = f"over {age(each.oldest_at, now)}" if each.oldest_at else "-"
        shown.add_row(f"{each.messages:,}", oldest, _expires(each, now), Text(each.queue.name))
    call.out.show(shown)


def _expires(found: Quarantine, now: datetime) -> Text:
    if found.expires_by is None:
        return Text("not known" if found.messages else "-")
    left = found.expires_by - now
    words = f"within {span(left)}" if left > timedelta() else "any moment"
    return Text(words, "yellow" if left < UNHURRIED else "")


def _expires_at(found: Quarantine) -> float | None:
    return None if found.expires_by is None else found.expires_by.timestamp()


def _summary(found: Quarantine) -> dict[str, object]:
    return {
        "queue_arn": found.queue.arn,
        "source_arn": found.source_arn,
        "messages": found.messages,
        "in_flight": found.in_flight,
        "oldest_at": found.oldest_at and to_text(found.oldest_at),
        "expires_by": found.expires_by and to_text(found.expires_by),
    }


@quarantine.command("peek")
@with_invocation
def peek(
    call: Invocation,
    queue: Named,
    limit: Annotated[int, typer.Option(help="Show at most so many.", min=1, max=1_000)] = 10,
    bodies: Annotated[
        bool, typer.Option("--bodies", help="Show the bodies as well: they may hold secrets.")
    ] = False,
) -> None:
    """Why messages are there, since when, and their attributes.

    To look at a message is to receive it, so its receive count rises.
    """
    now, found = datetime.now(UTC), quarantine_named(call.account, queue)
    require_last(found)
    with (
        call.out.waiting("looking at messages"),
        with_remedies(Route(found, found)),
        MessageMover(call.account.clients.sqs, found.url) as mover,
    ):
        messages = mover.take(limit)
    call.out.document([document_of(each, with_body=bodies) for each in messages])
    for each in messages:
        show_message(call.out, each, now, with_body=bodies)
    shown = (
        f"{len(messages):,} of about {max(len(messages), found.waiting):,} messages in {found.name}"
    )
    hidden = found.unseen(len(messages))
    more = f", and {hidden:,} more hidden in somebody else's hand" if hidden else ""
    call.out.say(f"{shown}{more}", "dim")


@quarantine.command("return")
@with_invocation
def return_(  # noqa: PLR0913, PLR0917 - the command line is the signature
    call: Invocation,
    queue: Named,
    expression: WhereText = None,
    every: EveryMessage = False,
    limit: Limit = None,
    rate: Rate = None,
    dry_run: DryRun = False,
    yes: Yes = False,
) -> Exit:
    """Send messages back to the queue they failed in."""
    chosen, per_second = chosen_by(expression, every=every), rate_of(rate)
    require_answer(yes=yes or dry_run)
    asked = _asked(call, queue, chosen, limit, per_second)
    return shown_and_sent(
        asked, lambda: route_out_of(call.account, queue), dry_run=dry_run, yes=yes
    )


@quarantine.command("drop")
@with_invocation
def drop(  # noqa: PLR0913, PLR0917 - the command line is the signature
    call: Invocation,
    queue: Named,
    expression: WhereText = None,
    every: EveryMessage = False,
    limit: Limit = None,
    file: Annotated[
        Path | None, typer.Option(help="Where they are written first; a new file here.")
    ] = None,
    dry_run: DryRun = False,
    yes: Yes = False,
) -> Exit:
    """Delete messages, once a file holds them."""
    chosen, now = chosen_by(expression, every=every), datetime.now(UTC)
    require_answer(yes=yes or dry_run)
    found = quarantine_named(call.account, queue)
    require_last(found)
    selection = Selection(chosen, found.arn, is_sole_source=True, now=now, died_in=lambda _: None)
    asked = Asked(call, Route(found, found), selection, limit)
    tally = asked.counted()
    going = counted(asked.going(len(tally.chosen)), "message")
    print_preview(call.out, asked.route, tally, limit)
    warn_of_freeze(call)
    if dry_run or not tally.chosen:
        return says_nothing(call.out, asked.not_begun(tally), "dropped")
    path = place_of(file or Path(f"{found.name}-{now:%Y%m%dT%H%M%SZ}.jsonl"))
    call.out.whole(f"before any is deleted it is written to {path}")
    confirm(f"Delete {going} from {found.name}?", yes=yes)
    with drop_file(path) as retained:
        ended = asked.ended(tally, lambda mover: _dropping(mover, retained), "dropping")
    numbers = ended.document("dropped")
    call.out.document({**numbers, "file": str(path)})
    style = "green" if ended.exit is Exit.DONE else "red"
    words = f"{counted(numbers['dropped'], 'message')} dropped, {numbers['failed']:,} failed"
    call.out.say(f"{words}, {left_in(asked.route, ended)}", style)
    tell_faults(call.out, asked.route, ended)
    return ended.exit


def _asked(
    call: Invocation, named: str, chosen: MessageFilter, limit: int | None, per_second: float | None
) -> Asked:
    """A message that was marked for another source stays."""
    with call.out.waiting("looking at the quarantine and its source"):
        route = route_out_of(call.account, named)
    selection = Selection(
        chosen, route.source.arn, is_sole_source=True, now=datetime.now(UTC), died_in=_retained_for
    )
    return Asked(call, route, selection, limit, per_second)


def _retained_for(message: Message) -> str | None:
    retained = quarantine_reason(message)
    return None if retained is None else retained.source


def _dropping(mover: MessageMover, retained: DropFile) -> Act:
    """First written, then deleted."""

    def act(messages: Sequence[Message]) -> Iterator[MoveResult]:
        retained.keep(messages)
        gone = mover.delete(messages)
        stays = (each for each in messages if each.message_id not in gone)
        reason = "SQS did not take the delete: it is in the file, and in the queue still"
        failed = tuple(NotMoved(each.message_id, "not_deleted", reason) for each in stays)
        yield MoveResult(moved=len(gone), failed=failed)

    return act
