"""Whether somebody has frozen Mendq: one item in the case store."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any

import typer
from msgspec.structs import asdict

from mendq.cases.items import FREEZES, NO_REASON, Item, freeze_key, freezes_in
from mendq.cases.transactions import Table, asked
from mendq.cli.account import Account
from mendq.cli.commands import CASE_STORE, STACK, Kind, command
from mendq.cli.exit_codes import Exit, Stopped
from mendq.cli.invocation import Invocation
from mendq.cli.output import Yes, confirm
from mendq.model.evidence import to_text
from mendq.notifications.text import plain


def frozen_item(account: Account) -> Item:
    """What freezes changes; empty where nothing does. Stopped where there is no stack."""
    return _table(account).get(freeze_key())


def _table(account: Account) -> Table:
    return Table(account.clients.dynamodb, account.output("CaseTable"))


def warn_of_freeze(call: Invocation) -> None:
    """A freeze holds Mendq, and not people: they are told, and decide."""
    try:
        item = frozen_item(call.account)
    except Stopped as without:
        if without.code is Exit.NOT_FOUND:
            return
        raise
    for each in freezes_in(item):
        call.out.say(f"changes are {each}. That holds Mendq; this is by your hand", "yellow")


MOST_REASON = 500


@command(3, Kind.STEERING, STACK | {"dynamodb:UpdateItem"})
def freeze(
    call: Invocation,
    reason: Annotated[str, typer.Argument(help="Shown with every refusal.")] = NO_REASON,
    yes: Yes = False,
) -> None:
    """Stop every change; rolling back stays possible."""
    table = _table(call.account)
    reason = plain(reason, MOST_REASON) or NO_REASON
    by, at = call.account.identity, to_text(datetime.now(UTC))
    call.out.say(f"every change by Mendq in {call.account.account_id} {call.account.region} stops")
    confirm(f"Freeze ({reason})?", yes=yes)
    holds = table.changed(freeze_key(), f"ADD {FREEZES} :one", one=[f"{at} {by} {reason}"]) or {}
    call.out.document({"frozen": True, "reason": reason, "by": by, "at": at})
    for each in freezes_in(holds):
        call.out.say(str(each))
    call.out.say("`mendq thaw` ends it", "cyan")


@command(3, Kind.STEERING, CASE_STORE | {"dynamodb:DeleteItem"})
def thaw(call: Invocation, yes: Yes = False) -> None:
    """End every freeze; change calendars still hold."""
    item = frozen_item(call.account)
    if not item:
        call.out.document({"frozen": False, "was": []})
        call.out.say("it was not frozen")
        return
    for each in freezes_in(item):
        call.out.say(str(each))
    confirm("Thaw: let Mendq change queues again?", yes=yes)
    shown = {"shown": item[FREEZES]} if FREEZES in item else {}
    as_shown = f"{FREEZES} = :shown" if shown else f"attribute_not_exists({FREEZES})"
    request: Any = asked(shown, ConditionExpression=as_shown)
    client, table = call.account.clients.dynamodb, call.account.output("CaseTable")
    try:
        client.delete_item(TableName=table, Key=freeze_key(), **request)
    except client.exceptions.ConditionalCheckFailedException as changed:
        line = "somebody else has just frozen or thawed it: nothing was done; look again"
        raise Stopped(line) from changed
    call.out.document({"frozen": False, "was": [asdict(each) for each in freezes_in(item)]})
    call.out.say("thawed", "green")
