"""DLQ messages come back to where they died, and circle until they expire; reported.

https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-dead-letter-queues.html
"""

from __future__ import annotations

from dataclasses import replace

from mendq.catalogue import examples
from mendq.catalogue.symptom import NOT_FOUND, Detected, Detection, Found, NearMiss, Symptom
from mendq.model.facts import DlqFacts, Facts, Need, SourceQueue
from mendq.model.queue import Redrive, redrive_of


def detect(facts: Facts) -> Found | None:
    """A circle of one, two or three queues; more than that is not looked at."""
    first = facts.dlq_arn
    if first is None:
        return None
    second = _next_after(facts)
    back = {each.queue_arn for each in facts.dlq_sources or ()}
    if first == facts.queue_arn:
        around: tuple[str, ...] = (first,)
    elif second == facts.queue_arn:
        around = (first, second)
    elif second is not None and second in back:
        around = (first, second, facts.queue_arn)
    else:
        return None
    return Found(f"its DLQ messages come back to it: {' -> '.join((facts.queue_arn, *around))}")


def _next_after(facts: Facts) -> str | None:
    there = facts.dlq.attributes if facts.dlq else None
    redrive = redrive_of((there or {}).get("RedrivePolicy", ""))
    return redrive.dlq_arn if redrive else None


def _queue(dlq_arn: str, next_arn: str = "", *sources: str) -> Facts:
    """Its messages go to the one, and that one's to the next."""
    after = {"RedrivePolicy": Redrive(next_arn, 5).text} if next_arn else {}
    facts = examples.queue(queue_arn=examples.STANDARD_ARN, RedrivePolicy=Redrive(dlq_arn, 5).text)
    return replace(
        facts,
        dlq=DlqFacts(dlq_arn, after),
        dlq_sources=tuple(SourceQueue(each, {}) for each in sources),
    )


_DEAD = examples.DLQ_ARN
_LAST = f"{_DEAD}-of-{_DEAD.rpartition(':')[2]}"

REDRIVE_CYCLE = Symptom(
    name="redrive_cycle",
    sentence="DLQ messages come back to the queue they died in, so nobody ever looks at them.",
    plan_in_words="Report it; which of the queues is the last is for people to say.",
    aws_page="https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/"
    "sqs-dead-letter-queues.html",
    detection=Detection(
        detect,
        needs=frozenset({Need.QUEUE, Need.DLQ, Need.DLQ_SOURCES}),
        of_configuration=True,
    ),
    detected=(
        Detected("its own DLQ", _queue(examples.STANDARD_ARN)),
        Detected("each is the other's", _queue(_DEAD, examples.STANDARD_ARN, _DEAD)),
        Detected("three in a circle", _queue(_DEAD, _LAST, _LAST)),
    ),
    near_misses=(
        NearMiss("its messages stay where they are", NOT_FOUND, facts=_queue(_DEAD)),
        NearMiss("messages of messages", NOT_FOUND, facts=_queue(_DEAD, _LAST)),
        NearMiss("two queues share one", NOT_FOUND, facts=_queue(_DEAD, _LAST, f"{_LAST}-2")),
        NearMiss("no DLQ", NOT_FOUND, facts=examples.queue()),
    ),
)
