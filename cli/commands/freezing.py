"""`mendq freeze [REASON]` and `mendq thaw`: the kill switch, one item in the ledger."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

import typer

from cli.asking import Yes, confirm
from cli.invocation import Invocation, with_invocation
from functions.aws import ledger_items as items
from functions.healing.evidence import to_text
from functions.healing.plain_text import plain

NO_REASON = "no reason given"
MOST_REASON = 500


@with_invocation
def freeze(
    call: Invocation,
    reason: Annotated[str, typer.Argument(help="Shown with every refusal.")] = NO_REASON,
    yes: Yes = False,
) -> None:
    """Stop every change; rolling back stays possible."""
    table = call.account.output("LedgerTable")
    reason = plain(reason, MOST_REASON) or NO_REASON
    by, at = call.account.identity, to_text(datetime.now(UTC))
    call.out.say(f"every change by Mendq in {call.account.account_id} {call.account.region} stops")
    confirm(f"Freeze ({reason})?", yes=yes)
    said = {"reason": reason, "by": by, "at": at}
    call.account.clients.dynamodb.put_item(
        TableName=table,
        Item={**items.freeze_key(), **{name: {"S": text} for name, text in said.items()}},
    )
    call.out.document({"frozen": True, **said})
    call.out.say("frozen: `mendq thaw` ends it", "cyan")


@with_invocation
def thaw(call: Invocation, yes: Yes = False) -> None:
    """End a freeze; change calendars hold whatever this says."""
    table = call.account.output("LedgerTable")
    client = call.account.clients.dynamodb
    item = client.get_item(TableName=table, Key=items.freeze_key(), ConsistentRead=True).get("Item")
    if item is None:
        call.out.document({"frozen": False, "was": None})
        call.out.say("it was not frozen")
        return
    was = {name: item.get(name, {}).get("S") for name in ("reason", "by", "at")}
    call.out.say(f"frozen by {was['by']} at {was['at']}: {was['reason']}")
    confirm("Thaw: let Mendq change queues again?", yes=yes)
    client.delete_item(TableName=table, Key=items.freeze_key())
    call.out.document({"frozen": False, "was": was})
    call.out.say("thawed", "green")
