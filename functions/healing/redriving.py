"""Plans to send dead letters back, where nothing speaks against it; nothing is asked here.

https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-configure-dead-letter-queue-redrive.html
"""

from __future__ import annotations

from collections.abc import Iterator

from functions.healing.facts import Facts
from functions.healing.mode import Mode
from functions.healing.plan import Plan, Refusal
from functions.healing.redrive_refusals import first_against
from functions.healing.redrive_step import HELD, RedriveDeadLetters
from functions.healing.redrive_words import Outlook
from functions.healing.sole_source import SoleSource
from functions.healing.steps import SetMessageRetention
from functions.healing.waiting_letters import age_is_known, explained, time_left


def send_back(facts: Facts, because: str) -> Plan | Refusal:
    """All of them to where they died, and before that the longest retention where it is close."""
    if (refusal := first_against(facts)) is not None:
        return refusal
    (queue,), source = facts.dead_letter_sources or (), facts.sole_source
    assert source is not None  # noqa: S101 - `first_against` speaks against the others
    outlook = Outlook(facts, queue, source, time_left(facts))
    steps = [RedriveDeadLetters(HELD, queue.queue_arn), *_kept_longer(facts, outlook)]
    doubts = tuple(_doubts(facts, source))
    reason = ". ".join((because, *doubts, *outlook.sentences(raised=len(steps) > 1)))
    seen_first = Mode.PROPOSE if doubts else Mode.HEAL
    return Plan(tuple(steps), reason, at_most=min(seen_first, source.mode or Mode.OBSERVE))


def _kept_longer(facts: Facts, outlook: Outlook) -> Iterator[SetMessageRetention]:
    longest = SetMessageRetention.maximum
    if outlook.could_lose and facts.retention_seconds < longest:
        yield SetMessageRetention(facts.retention_seconds, longest)


def _doubts(facts: Facts, source: SoleSource) -> Iterator[str]:
    """What a person is to see first."""
    if not age_is_known(facts):
        yield "Nobody has measured since when letters wait: a person has to see this first"
    for case in explained(facts).said:
        yield (
            f"Nothing proves {case.symptom} mended ({case.reason[:80]}): "
            "a person has to see this first"
        )
    if facts.is_fifo:
        yield (
            f"Order will mix: {facts.visible:,} go in behind and among others, of which "
            f"{source.deletes_per_second:.1f} a second are handled"
        )
