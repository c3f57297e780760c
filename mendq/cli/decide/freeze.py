"""`mendq freeze | thaw`: stop all changes by Mendq, or allow them again.

All freezes are texts in one item of the case store.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

import typer
from msgspec.structs import asdict

from mendq.cases.items import (
    DEFAULT_FREEZE_REASON,
    FREEZES_ATTRIBUTE,
    Item,
    freeze_key,
    read_freezes,
)
from mendq.cases.transactions import Table, make_expression_parameters
from mendq.cli.account import Account
from mendq.cli.commands import CASE_LOOKUP_ACTIONS, STACK_ACTIONS, CommandKind, command
from mendq.cli.exit_codes import CommandError
from mendq.cli.invocation import Invocation
from mendq.cli.output import YesOption, confirm
from mendq.model.time_text import format_time
from mendq.notifications.text import to_terminal_text


def read_freeze_item(account: Account) -> Item:
    """Return the item with the freezes, empty if nothing is frozen.

    Raises CommandError if there is no stack.
    """
    return account.open_store(Table).get(freeze_key())


def warn_if_frozen(call: Invocation) -> None:
    """Warn the operator if people have frozen Mendq. A freeze stops no command of an operator."""
    case_table = call.account.open_store_if_deployed(Table)
    if case_table is None:
        return
    for current_freeze in read_freezes(case_table.get(freeze_key())):
        warning = f"changes are {current_freeze}. That holds Mendq; this is by your hand"
        call.out.say(warning, "yellow")


class _FreezeTable(Table, frozen=True):
    """Table access that ends freezes. Only this command has it: no Lambda may end a freeze."""

    def delete_all_freezes(self, shown_freeze_item: Item) -> bool:
        """Delete all freezes and return True, if they are still those in `shown_freeze_item`.

        Otherwise change nothing and return False.
        """
        condition_values = (
            {"shown": shown_freeze_item[FREEZES_ATTRIBUTE]}
            if FREEZES_ATTRIBUTE in shown_freeze_item
            else {}
        )
        unchanged_condition = (
            f"{FREEZES_ATTRIBUTE} = :shown"
            if condition_values
            else f"attribute_not_exists({FREEZES_ATTRIBUTE})"
        )
        request_parameters = make_expression_parameters(
            condition_values, ConditionExpression=unchanged_condition
        )
        return (
            self._write_if_condition_holds(
                self.client.delete_item, Key=freeze_key(), **request_parameters
            )
            is not None
        )


# Longest reason of a freeze, in characters.
MAXIMUM_REASON_CHARACTERS = 500


@command(3, CommandKind.STEERING, STACK_ACTIONS | {"dynamodb:UpdateItem"})
def freeze(
    call: Invocation,
    reason: Annotated[
        str, typer.Argument(help="The reason, which every refusal then shows.")
    ] = DEFAULT_FREEZE_REASON,
    yes: YesOption = False,
) -> None:
    """Stop every change by Mendq. Rolling back stays possible.

    Examples:
      mendq freeze "the sale begins at noon"
      mendq freeze --yes               # at once, for a script
    """
    call.account.require_whole_stack("freeze")
    case_table = call.account.open_store(Table)
    reason = to_terminal_text(reason, MAXIMUM_REASON_CHARACTERS) or DEFAULT_FREEZE_REASON
    identity = call.account.identity
    frozen_at_text = format_time(datetime.now(UTC))
    call.out.say(f"every change by Mendq in {call.account.account_id} {call.account.region} stops")
    confirm(f"Freeze ({reason})?", yes=yes)
    freeze_item = (
        case_table.change_and_read(
            freeze_key(),
            f"ADD {FREEZES_ATTRIBUTE} :one",
            one=[f"{frozen_at_text} {identity} {reason}"],
        )
        or {}
    )
    call.out.print_json({"frozen": True, "reason": reason, "by": identity, "at": frozen_at_text})
    for current_freeze in read_freezes(freeze_item):
        call.out.say(str(current_freeze))
    call.out.say("`mendq thaw` ends it", "cyan")


@command(3, CommandKind.STEERING, CASE_LOOKUP_ACTIONS | {"dynamodb:DeleteItem"})
def thaw(call: Invocation, yes: YesOption = False) -> None:
    """End every freeze. Change calendars still apply.

    Examples:
      mendq thaw
      mendq thaw --yes
    """
    freeze_item = read_freeze_item(call.account)
    for current_freeze in read_freezes(freeze_item):
        call.out.say(str(current_freeze))
    if freeze_item:
        confirm("Thaw: let Mendq change queues again?", yes=yes)
        if not call.account.open_store(_FreezeTable).delete_all_freezes(freeze_item):
            raise CommandError(
                "somebody has just frozen or thawed it: nothing was done; look again"
            )
    call.out.print_json(
        {
            "frozen": False,
            "was": [asdict(ended_freeze) for ended_freeze in read_freezes(freeze_item)],
        }
    )
    call.out.say("thawed" if freeze_item else "it was not frozen", "green" if freeze_item else "")
