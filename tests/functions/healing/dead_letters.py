"""Two hundred dead letters, and what is different about their source."""

from __future__ import annotations

from dataclasses import replace

from functions.healing import examples
from functions.healing import letter_examples as lying
from functions.healing.examples import case
from functions.healing.facts import Facts, SourceQueue
from functions.healing.states import State

DAY = 86_400
WATCHED = lying.letters()
SHORT = lying.letters(lying.KMS, MessageRetentionPeriod=str(4 * DAY))
BY_A_PERSON = lying.letters(lying.BY_A_PERSON)


def with_source(facts: Facts, **attributes: str) -> Facts:
    (source,) = facts.dead_letter_sources or ()
    changed = SourceQueue(source.queue_arn, {**source.attributes, **attributes})
    return replace(facts, dead_letter_sources=(changed,))


def fifo() -> Facts:
    source = f"{examples.STANDARD_ARN}.fifo"
    assert WATCHED.sole_source is not None
    return replace(
        WATCHED,
        queue_arn=f"{examples.DEAD_LETTER_ARN}.fifo",
        dead_letter_sources=(
            SourceQueue(source, (WATCHED.dead_letter_sources or ())[0].attributes),
        ),
        sole_source=replace(WATCHED.sole_source, queue_arn=source),
        source_cases=(case("lease_expired", State.WATCHING, queue_arn=source),),
    )
