"""Name a change by Mendq as a possible cause of a fault, in one sentence with its rollback."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from shlex import quote

from mendq.model.own_change import OwnChange
from mendq.model.queue import parts_of
from mendq.notifications.text import command_line, counted, span


def rollback_command(change: OwnChange) -> str:
    """Return the rollback command. For some changes it only prints how to undo them by hand."""
    region = parts_of(change.queue_arn).region
    return command_line(f"mendq rollback {quote(change.case_id)} --region {region}")


def named_first(change: OwnChange, now: datetime) -> str:
    """Return the first sentence of a finding and the command to paste, without a full stop."""
    ago = span(max(now - change.written_at, timedelta()))
    return (
        f"Mendq {change.did} {ago} ago (case {change.case_id}): {change.effect}. "
        f"{change.take_back}: {rollback_command(change)}"
    )


def named_of_many(changes: Sequence[OwnChange], now: datetime) -> tuple[str, ...]:
    """Return the line about Mendq's own changes for a page about many queues; empty if none.

    It names the newest change in full and counts the others.
    """
    if not changes:
        return ()
    newest = max(changes, key=lambda change: (change.written_at, change.case_id))
    others = len({change.case_id for change in changes}) - 1
    more = f". {counted(others, 'other change')} by Mendq may be the cause too" if others else ""
    return (f"{named_first(newest, now)}{more}",)
