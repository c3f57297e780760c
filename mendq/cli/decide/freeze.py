"""Whether somebody has frozen Mendq: one item in the case store."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any

import typer
from msgspec import Struct
from msgspec.structs import asdict

from mendq.cases.items import freeze_key
from mendq.cli.account import Account
from mendq.cli.commands import CASE_STORE, STACK, Kind, command
from mendq.cli.exit_codes import Exit, Stopped
from mendq.cli.invocation import Invocation
from mendq.cli.output import Yes, confirm
from mendq.model.evidence import to_text
from mendq.notifications.text import plain


class Freeze(Struct, frozen=True):
    by: str
    at: str
    reason: str

    def __str__(self) -> str:
        return f"frozen by {self.by} at {self.at}: {self.reason}"


def freeze_of(account: Account) -> Freeze | None:
    """None where changes are not frozen. Stopped where there is no stack."""
    item = account.clients.dynamodb.get_item(
        TableName=account.output("CaseTable"), Key=freeze_key(), ConsistentRead=True
    ).get("Item")
    if item is None:
        return None
    return Freeze(*(item.get(name, {}).get("S", "not said") for name in ("by", "at", "reason")))


def warn_of_freeze(call: Invocation) -> None:
    """A freeze holds Mendq, and not people: they are told, and decide."""
    try:
        freeze = freeze_of(call.account)
    except Stopped as without:
        if without.code is Exit.NOT_FOUND:
            return
        raise
    if freeze is not None:
        call.out.say(f"changes are {freeze}. That holds Mendq; this is by your hand", "yellow")


NO_REASON = "no reason given"
MOST_REASON = 500


@command(3, Kind.STEERING, STACK | {"dynamodb:PutItem"})
def freeze(
    call: Invocation,
    reason: Annotated[str, typer.Argument(help="Shown with every refusal.")] = NO_REASON,
    yes: Yes = False,
) -> None:
    """Stop every change; rolling back stays possible."""
    table = call.account.output("CaseTable")
    reason = plain(reason, MOST_REASON) or NO_REASON
    by, at = call.account.identity, to_text(datetime.now(UTC))
    call.out.say(f"every change by Mendq in {call.account.account_id} {call.account.region} stops")
    confirm(f"Freeze ({reason})?", yes=yes)
    said = {"reason": reason, "by": by, "at": at}
    item: Any = {**freeze_key(), **{name: {"S": text} for name, text in said.items()}}
    call.account.clients.dynamodb.put_item(TableName=table, Item=item)
    call.out.document({"frozen": True, **said})
    call.out.say("frozen: `mendq thaw` ends it", "cyan")


@command(3, Kind.STEERING, CASE_STORE | {"dynamodb:DeleteItem"})
def thaw(call: Invocation, yes: Yes = False) -> None:
    """End a freeze; change calendars hold whatever this says."""
    was = freeze_of(call.account)
    if was is None:
        call.out.document({"frozen": False, "was": None})
        call.out.say("it was not frozen")
        return
    call.out.say(str(was))
    confirm("Thaw: let Mendq change queues again?", yes=yes)
    table = call.account.output("CaseTable")
    call.account.clients.dynamodb.delete_item(TableName=table, Key=freeze_key())
    call.out.document({"frozen": False, "was": asdict(was)})
    call.out.say("thawed", "green")
