"""The Change Calendars: one that is closed is somebody's word, one that cannot be read a fault.

Either freezes every change. Asked with the operator's rights, which are not heal's: who of the two
is denied is told apart by whose calendar it is.
https://docs.aws.amazon.com/systems-manager/latest/userguide/change-calendar-getstate.html
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from botocore.exceptions import ClientError

from cli.account import Account
from cli.doctor.check import Check, Status, guarded
from functions.aws.errors import PASSING, code_of
from functions.aws.freeze import is_closed


def look(account: Account) -> Iterator[Check]:
    """One check a calendar of the settings; none where there is none."""
    for arn in account.settings.freeze_calendars:
        name = f"calendar {arn.rpartition('/')[2]}"
        yield from guarded(name, partial(_one, account, name, arn))


def _one(account: Account, name: str, arn: str) -> list[Check]:
    """Raise what does not say that heal cannot read it either."""
    try:
        closed = is_closed(account.clients, [arn])
    except ClientError as error:
        owner = arn.split(":")[4]
        is_ours, code = owner == account.settings.account, code_of(error)
        if code in PASSING or (is_ours and "Denied" in code):
            raise
        says = f"{arn} cannot be read ({code}), so Mendq is frozen until it can"
        share = f"share it with account {account.settings.account} from {owner}, or "
        cure = f"{'' if is_ours else share}take it out of freezeCalendars and deploy"
        return [Check(name, Status.FAIL, says, cure)]
    if closed:
        says = f"{arn} is closed: nothing is changed"
        return [Check(name, Status.WARN, says, "nothing, if it is meant so")]
    return [Check(name, Status.OK, f"{arn} is open")]
