"""Whether somebody has frozen Mendq: one item in the ledger."""

from __future__ import annotations

from dataclasses import dataclass

from cli.account import Account
from cli.exit_codes import Exit, Stopped
from cli.invocation import Invocation
from functions.aws.ledger_items import freeze_key


@dataclass(frozen=True)
class Freeze:
    by: str
    at: str
    reason: str

    def __str__(self) -> str:
        return f"frozen by {self.by} at {self.at}: {self.reason}"


def freeze_of(account: Account) -> Freeze | None:
    """None where changes are not frozen. Stopped where there is no stack."""
    item = account.clients.dynamodb.get_item(
        TableName=account.output("LedgerTable"), Key=freeze_key(), ConsistentRead=True
    ).get("Item")
    if item is None:
        return None
    return Freeze(*(item.get(name, {}).get("S", "not said") for name in ("by", "at", "reason")))


def warn_of_freeze(call: Invocation) -> None:
    """A freeze holds Mendq, and not people: they are told, and decide."""
    try:
        freeze = freeze_of(call.account)
    except Stopped as without:
        if without.code is not Exit.NOT_FOUND:
            raise
        return
    if freeze is not None:
        call.out.say(f"changes are {freeze}. That holds Mendq; this is by your hand", "yellow")
