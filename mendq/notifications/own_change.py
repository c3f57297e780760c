"""Sentences that name a change by Mendq as a possible cause of a fault, with its rollback."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from mendq.model.own_change import OwnChange
from mendq.notifications.commands import dlq_messages_command, mendq_case_id_command
from mendq.notifications.text import format_count, format_duration


def make_rollback_command(change: OwnChange) -> str:
    """Return the `mendq rollback` command that undoes the change.

    If Mendq cannot undo a change, this command prints how a person can undo it.
    """
    return mendq_case_id_command("rollback", change.case_id, change.queue_arn)


def describe_own_change(change: OwnChange, now: datetime) -> str:
    """Return a sentence with Mendq's change, its age, its effect and the rollback command.

    A finding begins with this sentence. The sentence has no full stop at its end.
    """
    age_text = format_duration(max(now - change.written_at, timedelta()))
    return (
        f"Mendq {change.change_text} {age_text} ago (case {change.case_id}): {change.effect}. "
        f"{change.rollback_introduction}: {make_rollback_command(change)}"
    )


def describe_change_and_sign(change: OwnChange, sign_text: str, now: datetime) -> str:
    """Return sentences with Mendq's change and the measured sign of its harm.

    `sign_text` is the end of a sentence that begins with "Since then" (`describe_measured_harm`).
    The last sentence has no full stop.
    """
    return f"{describe_own_change(change, now)}. Since then {sign_text}"


def describe_change_and_arrivals(change: OwnChange, arrivals_text: str, now: datetime) -> str:
    """Return sentences about messages that moved to a DLQ since Mendq's change.

    A DLQ exists for bad messages, so a person must decide whether these messages are bad.
    `arrivals_text` is a text with the number of messages (`describe_measured_harm`). The last
    sentence has no full stop.
    """
    messages_command = dlq_messages_command(change.queue_arn)
    close_command = mendq_case_id_command("close", change.case_id, change.queue_arn)
    return (
        f"{describe_change_and_sign(change, arrivals_text, now)}. Look at what moved: "
        f"`{messages_command}`. If consumers could have finished it, take the change back. If it "
        f"fails at every try, the change does what it is for: `{close_command}` ends the case"
    )


def describe_own_changes(changes: Sequence[OwnChange], now: datetime) -> tuple[str, ...]:
    """Return one line about Mendq's own changes, for a notification about many queues.

    The line describes the newest change and counts the other cases. The result is empty if there
    are no changes.
    """
    if not changes:
        return ()
    newest_change = max(changes, key=lambda change: (change.written_at, change.case_id))
    other_change_count = len({change.case_id for change in changes}) - 1
    other_changes_text = (
        f". {format_count(other_change_count, 'other change')} by Mendq may be the cause too"
        if other_change_count
        else ""
    )
    return (f"{describe_own_change(newest_change, now)}{other_changes_text}",)
