"""A FIFO queue names a standard DLQ, or the other way round; reported.

https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-dead-letter-queues.html
"""

from __future__ import annotations

from mendq.catalogue import examples
from mendq.catalogue.symptom import NOT_FOUND, Detected, Detection, Found, NearMiss, Symptom
from mendq.model.facts import Facts, Need
from mendq.model.queue import FIFO, Redrive, arn_of


def detect(facts: Facts) -> Found | None:
    named = arn_of(facts.dlq_arn)
    if named is None or named.endswith(FIFO) == facts.is_fifo:
        return None
    kinds = ("FIFO", "standard") if facts.is_fifo else ("standard", "FIFO")
    return Found(
        f"it is a {kinds[0]} queue and names {named}, a {kinds[1]} one: nothing can go there"
    )


def _queue(queue_arn: str, dlq_arn: str) -> Facts:
    return examples.queue(queue_arn=queue_arn, RedrivePolicy=Redrive(dlq_arn, 5).text)


_DEAD = examples.DLQ_ARN

DLQ_TYPE_MISMATCH = Symptom(
    name="dlq_type_mismatch",
    sentence="A FIFO queue names a standard DLQ, or the other way round.",
    plan_in_words="Report it; a queue's type cannot be changed.",
    aws_page="https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/"
    "sqs-dead-letter-queues.html",
    detection=Detection(detect, needs=frozenset({Need.QUEUE}), of_configuration=True),
    detected=(
        Detected("FIFO to standard", _queue(examples.QUEUE_ARN, _DEAD)),
        Detected("standard to FIFO", _queue(examples.STANDARD_ARN, f"{_DEAD}{FIFO}")),
    ),
    near_misses=(
        NearMiss("both standard", NOT_FOUND, facts=_queue(examples.STANDARD_ARN, _DEAD)),
        NearMiss("both FIFO", NOT_FOUND, facts=_queue(examples.QUEUE_ARN, f"{_DEAD}{FIFO}")),
        NearMiss("none is named", NOT_FOUND, facts=examples.queue()),
        NearMiss(
            "what it names is no queue", NOT_FOUND, facts=_queue(examples.QUEUE_ARN, "orders")
        ),
    ),
)
