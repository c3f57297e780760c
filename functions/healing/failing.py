"""Consumers that receive messages and do not finish them, as it shows in what was counted.

https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-available-cloudwatch-metrics.html
"""

from __future__ import annotations

from functions.healing.facts import Facts
from functions.healing.measured import Measured
from functions.healing.plain_text import counted

# A few messages that are given back again and again make many receives: many messages have to
# pass, and many receives to fail, unless Lambda itself counted that its function fails.
FEWEST_MESSAGES = 100
# A case of it explains what is received again.
EXPLAINED_BY = frozenset({"lease_expired"})


def failing_in(facts: Facts) -> str | None:
    """In a sentence: received at least twice as often as deleted, and no delete too many."""
    measured = facts.measured
    if measured is None or _is_another_s(facts, measured):
        return None
    fruitless, deleted = measured.fruitless_receives, measured.deleted
    if fruitless < max(deleted, measured.inexact_by) or not _concerns_many(facts, measured):
        return None
    held = measured.in_flight_now
    still_held = f", {held:,} are still held" if held else ""
    return (
        f"{fruitless:,} of {measured.received:,} receives in {measured.hours:.1f} h ended in no "
        f"delete{still_held}: {counted(measured.sent, 'message')} came and {deleted:,} went by a "
        "delete"
    )


def _is_another_s(facts: Facts, measured: Measured) -> bool:
    """A lease that ends too early, one message at the head of a group, or people who look."""
    return (
        measured.has_surplus
        or measured.one_group_blocks
        or facts.move_task_running
        or facts.takes_dead_letters
        or bool(EXPLAINED_BY & facts.open_symptoms)
    )


def _concerns_many(facts: Facts, measured: Measured) -> bool:
    if any(each.fails_fast for each in facts.lambda_consumers):
        return True
    messages = measured.backlog_before + measured.sent
    return min(messages, measured.fruitless_receives) >= FEWEST_MESSAGES
