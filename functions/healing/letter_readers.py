"""Whether somebody handles the letters of a dead-letter queue: then they are not only held.

Whoever handles them takes them away. To look is to receive, and people, previews and sweeps look at
every letter, as often as they like: so receives say nothing.
"""

from __future__ import annotations

from functions.healing.facts import Facts
from functions.healing.measured import LATELY
from functions.healing.plain_text import counted

# A person sends some back by hand, and is done; who deletes in so many hours comes again.
VISITS = 3


def who_reads(facts: Facts) -> str | None:
    """The function that an enabled mapping feeds from it; None where there is none."""
    consumers = facts.lambda_consumers
    return f"{consumers[0].function_arn} reads it" if consumers else None


def who_takes(facts: Facts) -> str | None:
    """What says that somebody deletes letters, now or again and again; None where nobody does."""
    measured = facts.measured
    if measured is None:
        return None
    if measured.deleted_lately:
        minutes = LATELY.total_seconds() / 60
        return f"{_deleted(measured.deleted_lately)} in the last {minutes:.0f} minutes"
    if measured.hours_with_deletes >= VISITS:
        return f"{_deleted(measured.deleted)} in {measured.hours_with_deletes} different hours"
    return None


def _deleted(letters: int) -> str:
    return counted(letters, "letter was", "letters were") + " deleted"
