"""Two hundred DLQ messages, and what is different about their source."""

from __future__ import annotations

from dataclasses import replace

from mendq.catalogue import examples
from mendq.catalogue import examples as lying
from mendq.catalogue.examples import case
from mendq.model.case import State
from mendq.model.facts import Facts, SourceQueue

DAY = 86_400
WATCHED = lying.messages()
SHORT = lying.messages(lying.KMS, MessageRetentionPeriod=str(4 * DAY))
BY_A_PERSON = lying.messages(lying.BY_A_PERSON)


def with_source(facts: Facts, **attributes: str) -> Facts:
    (source,) = facts.dlq_sources or ()
    changed = SourceQueue(source.queue_arn, {**source.attributes, **attributes})
    return replace(facts, dlq_sources=(changed,))


def fifo() -> Facts:
    source = f"{examples.STANDARD_ARN}.fifo"
    assert WATCHED.sole_source is not None
    return replace(
        WATCHED,
        queue_arn=f"{examples.DLQ_ARN}.fifo",
        dlq_sources=(SourceQueue(source, (WATCHED.dlq_sources or ())[0].attributes),),
        sole_source=replace(WATCHED.sole_source, queue_arn=source),
        source_cases=(case("visibility_timeout_too_short", State.WATCHING, queue_arn=source),),
    )
