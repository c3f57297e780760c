"""Dead letters come back to where they died, and circle until they expire; reported.

https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-dead-letter-queues.html
"""

from __future__ import annotations

from dataclasses import replace

from functions.catalogue.symptom import (
    NOT_FOUND,
    Detected,
    Detection,
    Found,
    NearMiss,
    Symptom,
)
from functions.healing import examples
from functions.healing.dead_letters import Redrive, redrive_of
from functions.healing.facts import DeadLetterQueue, Facts, Need, SourceQueue


def detect(facts: Facts) -> Found | None:
    """A circle of one, two or three queues; more than that is not looked at."""
    first = facts.dead_letter_arn
    if first is None:
        return None
    second = _next_after(facts)
    back = {each.queue_arn for each in facts.dead_letter_sources or ()}
    if first == facts.queue_arn:
        around: tuple[str, ...] = (first,)
    elif second == facts.queue_arn:
        around = (first, second)
    elif second is not None and second in back:
        around = (first, second, facts.queue_arn)
    else:
        return None
    return Found(f"its dead letters come back to it: {' -> '.join((facts.queue_arn, *around))}")


def _next_after(facts: Facts) -> str | None:
    there = facts.dead_letter_queue.attributes if facts.dead_letter_queue else None
    redrive = redrive_of((there or {}).get("RedrivePolicy", ""))
    return redrive.dead_letter_arn if redrive else None


def _queue(dead_letter_arn: str, next_arn: str = "", *sources: str) -> Facts:
    """Its letters go to the one, and that one's to the next."""
    after = {"RedrivePolicy": Redrive(next_arn, 5).text} if next_arn else {}
    facts = examples.queue(
        queue_arn=examples.STANDARD_ARN, RedrivePolicy=Redrive(dead_letter_arn, 5).text
    )
    return replace(
        facts,
        dead_letter_queue=DeadLetterQueue(dead_letter_arn, after),
        dead_letter_sources=tuple(SourceQueue(each, {}) for each in sources),
    )


_DEAD = examples.DEAD_LETTER_ARN
_LAST = f"{_DEAD}-of-{_DEAD.rpartition(':')[2]}"

REDRIVE_CYCLE = Symptom(
    name="redrive_cycle",
    sentence="Dead letters come back to the queue they died in, so nobody ever looks at them.",
    plan_in_words="Report it; which of the queues is the last is for people to say.",
    aws_page="https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/"
    "sqs-dead-letter-queues.html",
    detection=Detection(
        detect,
        needs=frozenset({Need.QUEUE, Need.DEAD_LETTER_QUEUE, Need.DEAD_LETTER_SOURCES}),
        of_configuration=True,
    ),
    detected=(
        Detected("its own dead-letter queue", _queue(examples.STANDARD_ARN)),
        Detected("each is the other's", _queue(_DEAD, examples.STANDARD_ARN, _DEAD)),
        Detected("three in a circle", _queue(_DEAD, _LAST, _LAST)),
    ),
    near_misses=(
        NearMiss("its letters stay where they are", NOT_FOUND, facts=_queue(_DEAD)),
        NearMiss("letters of letters", NOT_FOUND, facts=_queue(_DEAD, _LAST)),
        NearMiss("two queues share one", NOT_FOUND, facts=_queue(_DEAD, _LAST, f"{_LAST}-2")),
        NearMiss("no dead-letter queue", NOT_FOUND, facts=examples.queue()),
    ),
)
