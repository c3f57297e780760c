"""Files transitions in the case bucket, which the night reads.

The ledger holds a transition first, with its time, and owes it to the bucket until it lies there.
So a run that died between the two, and one that comes after midnight, leave one and the same
object; and of two runs that move a case at once only the one that did is filed.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from datetime import datetime

from botocore.exceptions import BotoCoreError, ClientError

from functions.aws.desk import Desk
from functions.aws.errors import LedgerUnreadable
from functions.healing.case import Case
from functions.healing.ledger_view import LedgerView


def file_owed(view: LedgerView, desk: Desk) -> LedgerView:
    """The view with nothing owed any more.

    Raises the bucket's error, LedgerUnavailable, or LedgerUnreadable for a transition that is none
    of ours.
    """
    if view.case is None or not view.unfiled:
        return view
    for case_id, n in sorted(view.unfiled):
        is_newest = (case_id, n) == (view.case.case_id, view.case.n)
        owed = view.case if is_newest else desk.open_cases.transition(case_id, n)
        if owed is not None:
            desk.case_bucket.put(owed)
    desk.open_cases.all_filed(view.case)
    return replace(view, unfiled=frozenset())


def try_to_file_owed(view: LedgerView, desk: Desk) -> LedgerView:
    """As `file_owed`; what cannot be filed keeps nobody: follow_up comes by."""
    with suppress(BotoCoreError, ClientError, LedgerUnreadable):
        return file_owed(view, desk)
    return view


def file_new(
    case: Case, seen: LedgerView, due_at: datetime, instead_of: datetime, desk: Desk
) -> None:
    """What this run has just recorded on `seen`; what cannot be filed, follow_up files."""
    with suppress(BotoCoreError, ClientError):
        desk.case_bucket.put(case)
        if seen.unfiled:
            desk.open_cases.filed(case)
        else:
            desk.open_cases.all_filed(case, due_at, instead_of)
