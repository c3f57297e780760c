"""Mendq's own change as the possible cause of a fault, in one sentence with its rollback."""

from __future__ import annotations

from datetime import datetime, timedelta
from shlex import quote

from mendq.model.own_change import OwnChange
from mendq.model.queue import parts_of
from mendq.notifications.text import command_line, span


def rollback_command(change: OwnChange) -> str:
    """The command that takes the change back, or says how."""
    region = parts_of(change.queue_arn).region
    return command_line(f"mendq rollback {quote(change.case_id)} --region {region}")


def named_first(change: OwnChange, now: datetime) -> str:
    """The sentence that a finding begins with, and the command to paste; without a full stop."""
    ago = span(max(now - change.written_at, timedelta()))
    return (
        f"Mendq {change.did} {ago} ago (case {change.case_id}): {change.effect}. "
        f"{change.take_back}: {rollback_command(change)}"
    )
