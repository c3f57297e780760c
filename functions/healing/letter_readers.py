"""Whether somebody reads a dead-letter queue: then its letters are not only held."""

from __future__ import annotations

from functions.healing.facts import Facts
from functions.healing.plain_text import counted

# A person who looks at letters receives a page of them a few times; a consumer asks all day.
A_LOOK = 100


def who_reads(facts: Facts) -> str | None:
    """By its Lambda consumers, and by what was measured there; None where only people look."""
    if facts.lambda_consumers:
        return f"{facts.lambda_consumers[0].function_arn} reads it"
    measured = facts.measured
    if measured is None:
        return None
    asked = measured.received + measured.empty_receives
    if not measured.deleted and asked <= A_LOOK + measured.visible_now:
        return None
    letters = counted(measured.deleted, "letter was", "letters were")
    return f"in {measured.hours:.1f} h it was read {asked:,} times, and {letters} deleted"
