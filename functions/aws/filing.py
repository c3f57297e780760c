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
from functions.healing.case import Case
from functions.healing.ledger_view import LedgerView


def file_owed(view: LedgerView, desk: Desk) -> LedgerView:
    """The view with nothing owed any more; raises the bucket's error, or LedgerUnavailable."""
    if view.case is None or not view.unfiled:
        return view
    desk.case_bucket.put(view.case)
    desk.open_cases.filed(view.case)
    return replace(view, unfiled=False)


def try_to_file_owed(view: LedgerView, desk: Desk) -> LedgerView:
    """As `file_owed`; a bucket that cannot be written keeps nobody, for follow_up comes by."""
    with suppress(BotoCoreError, ClientError):
        return file_owed(view, desk)
    return view


def file_new(case: Case, due_at: datetime, instead_of: datetime, desk: Desk) -> None:
    """What this run has just recorded; where the bucket cannot be written, follow_up files it."""
    with suppress(BotoCoreError, ClientError):
        desk.case_bucket.put(case)
        desk.open_cases.filed(case, due_at, instead_of)
