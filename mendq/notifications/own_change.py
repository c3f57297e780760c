"""Sentences that name a change by Mendq as a possible cause of a fault, with its rollback."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from shlex import quote

from mendq.model.own_change import OwnChange
from mendq.model.queue import parts_of
from mendq.notifications.commands import messages_of
from mendq.notifications.text import command_line, format_count, span


def rollback_command(change: OwnChange) -> str:
    """Return the command that takes the change back.

    For changes that Mendq cannot undo, the command prints how a person can.
    """
    region = parts_of(change.queue_arn).region
    return command_line(f"mendq rollback {quote(change.case_id)} --region {region}")


def describe_own_change(change: OwnChange, now: datetime) -> str:
    """Return a sentence with Mendq's change, its age, its effect and the rollback command.

    A finding begins with this sentence. It has no full stop at its end.
    """
    ago = span(max(now - change.written_at, timedelta()))
    return (
        f"Mendq {change.did} {ago} ago (case {change.case_id}): {change.effect}. "
        f"{change.take_back}: {rollback_command(change)}"
    )


def say_what_shows(change: OwnChange, shown: str, now: datetime) -> str:
    """Return sentences with Mendq's change and the sign that it may do harm.

    `shown` is the sign, such as a number that rose. The last sentence has no full stop.
    """
    return f"{describe_own_change(change, now)}. Since then {shown}"


def say_what_arrived(change: OwnChange, shown: str, now: datetime) -> str:
    """Return sentences about messages that moved to a DLQ since Mendq's change.

    A DLQ exists for bad messages, so a person must decide whether these are bad. `shown` is the
    measured number of messages. The last sentence has no full stop.
    """
    look = messages_of(change.queue_arn)
    region = parts_of(change.queue_arn).region
    close = command_line(f"mendq close {quote(change.case_id)} --region {region}")
    return (
        f"{say_what_shows(change, shown, now)}. Look at what moved: `{look}`. If "
        "consumers could have finished it, take the change back. If it fails at every try, the "
        f"change does what it is for: `{close}` ends the case"
    )


def describe_own_changes(changes: Sequence[OwnChange], now: datetime) -> tuple[str, ...]:
    """Return the line about Mendq's own changes for a notification about many queues.

    It describes the newest change and counts the others. Return no line if there are no changes.
    """
    if not changes:
        return ()
    newest = max(changes, key=lambda change: (change.written_at, change.case_id))
    others = len({change.case_id for change in changes}) - 1
    more = (
        f". {format_count(others, 'other change')} by Mendq may be the cause too" if others else ""
    )
    return (f"{describe_own_change(newest, now)}{more}",)
