"""`mendq quarantine`: the letters that came back after a redrive, kept until a person decides."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from cli.asking import Yes, confirm, require_answer
from cli.command_group import CommandGroup
from cli.commands.redrive import (
    DryRun,
    EveryLetter,
    Limit,
    Rate,
    WhereText,
    chosen_by,
    shown_and_sent,
)
from cli.exit_codes import Exit
from cli.frozen import warn_of_freeze
from cli.invocation import Invocation, with_invocation
from cli.output import age, table
from cli.redrive.asked import Asked, left_in, tell_faults, told_of_nothing
from cli.redrive.passes import Act, rate_of
from cli.redrive.preview import Selection, print_preview
from cli.redrive.quarantines import (
    DropFile,
    Quarantine,
    document_of,
    drop_file,
    place_of,
    quarantine_named,
    quarantines,
    route_out_of,
    show_letter,
)
from cli.redrive.route import Route, require_last, with_cures
from functions.aws.message_mover import MessageMover
from functions.aws.send_batches import MoveResult, NotMoved
from functions.healing.evidence import to_text
from functions.healing.letters import Letter
from functions.healing.marks import kept_because
from functions.healing.message_filter import MessageFilter
from functions.healing.plain_text import counted
from functions.healing.retention_clock import UNHURRIED, most_urgent_first, span

Named = Annotated[
    str, typer.Argument(metavar="QUEUE", help="The source or its quarantine: name, URL or ARN.")
]

quarantine = typer.Typer(
    cls=CommandGroup,
    help="See, send back or drop what is kept apart.",
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
    shown = table("LETTERS", "OLDEST", "EXPIRES", "QUARANTINE")
    for each in found:
        oldest = f"over {age(each.oldest_at, now)}" if each.oldest_at else "-"
        shown.add_row(f"{each.letters:,}", oldest, _expires(each, now), Text(each.queue.name))
    call.out.show(shown)


def _expires(found: Quarantine, now: datetime) -> Text:
    if found.expires_by is None:
        return Text("not known" if found.letters else "-")
    left = found.expires_by - now
    words = f"within {span(left)}" if left > timedelta() else "any moment"
    return Text(words, "yellow" if left < UNHURRIED else "")


def _expires_at(found: Quarantine) -> float | None:
    return None if found.expires_by is None else found.expires_by.timestamp()


def _summary(found: Quarantine) -> dict[str, object]:
    return {
        "queue_arn": found.queue.arn,
        "source_arn": found.source_arn,
        "letters": found.letters,
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
    """Why letters are there, since when, and their attributes.

    To look at a letter is to receive it, so its receive count rises.
    """
    now, found = datetime.now(UTC), quarantine_named(call.account, queue)
    require_last(found)
    with (
        call.out.waiting("looking at letters"),
        with_cures(Route(found, found)),
        MessageMover(call.account.clients.sqs, found.url) as hand,
    ):
        letters = hand.take(limit)
    call.out.document([document_of(each, with_body=bodies) for each in letters])
    for each in letters:
        show_letter(call.out, each, now, with_body=bodies)
    shown = (
        f"{len(letters):,} of about {max(len(letters), found.waiting):,} letters in {found.name}"
    )
    hidden = found.unseen(len(letters))
    more = f", and {hidden:,} more hidden in somebody else's hand" if hidden else ""
    call.out.say(f"{shown}{more}", "dim")


@quarantine.command("return")
@with_invocation
def return_(  # noqa: PLR0913, PLR0917 - the command line is the signature
    call: Invocation,
    queue: Named,
    expression: WhereText = None,
    every: EveryLetter = False,
    limit: Limit = None,
    rate: Rate = None,
    dry_run: DryRun = False,
    yes: Yes = False,
) -> Exit:
    """Send letters back to the queue they failed in."""
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
    every: EveryLetter = False,
    limit: Limit = None,
    file: Annotated[
        Path | None, typer.Option(help="Where they are written first; a new file here.")
    ] = None,
    dry_run: DryRun = False,
    yes: Yes = False,
) -> Exit:
    """Delete letters, once a file holds them."""
    chosen, now = chosen_by(expression, every=every), datetime.now(UTC)
    require_answer(yes=yes or dry_run)
    found = quarantine_named(call.account, queue)
    require_last(found)
    selection = Selection(chosen, found.arn, is_sole_source=True, now=now, died_in=lambda _: None)
    asked = Asked(call, Route(found, found), selection, limit)
    tally = asked.counted()
    going = counted(asked.going(len(tally.chosen)), "letter")
    print_preview(call.out, asked.route, tally, limit)
    warn_of_freeze(call)
    if dry_run or not tally.chosen:
        return told_of_nothing(call.out, asked.not_begun(tally), "dropped")
    path = place_of(file or Path(f"{found.name}-{now:%Y%m%dT%H%M%SZ}.jsonl"))
    call.out.whole(f"before any is deleted it is written to {path}")
    confirm(f"Delete {going} from {found.name}?", yes=yes)
    with drop_file(path) as kept:
        ended = asked.ended(tally, lambda hand: _dropping(hand, kept), "dropping")
    numbers = ended.document("dropped")
    call.out.document({**numbers, "file": str(path)})
    style = "green" if ended.exit is Exit.DONE else "red"
    words = f"{counted(numbers['dropped'], 'letter')} dropped, {numbers['failed']:,} failed"
    call.out.say(f"{words}, {left_in(asked.route, ended)}", style)
    tell_faults(call.out, asked.route, ended)
    return ended.exit


def _asked(
    call: Invocation, named: str, chosen: MessageFilter, limit: int | None, per_second: float | None
) -> Asked:
    """A letter that was marked for another source stays."""
    with call.out.waiting("looking at the quarantine and its source"):
        route = route_out_of(call.account, named)
    selection = Selection(
        chosen, route.source.arn, is_sole_source=True, now=datetime.now(UTC), died_in=_kept_for
    )
    return Asked(call, route, selection, limit, per_second)


def _kept_for(letter: Letter) -> str | None:
    kept = kept_because(letter)
    return None if kept is None else kept.source


def _dropping(hand: MessageMover, kept: DropFile) -> Act:
    """First written, then deleted."""

    def act(letters: Sequence[Letter]) -> Iterator[MoveResult]:
        kept.keep(letters)
        gone = hand.delete(letters)
        stays = (each for each in letters if each.message_id not in gone)
        reason = "SQS did not take the delete: it is in the file, and in the queue still"
        failed = tuple(NotMoved(each.message_id, "not_deleted", reason) for each in stays)
        yield MoveResult(moved=len(gone), failed=failed)

    return act
