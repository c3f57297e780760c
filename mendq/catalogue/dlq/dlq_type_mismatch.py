"""A FIFO queue names a standard DLQ, or the other way round; reported."""

from __future__ import annotations

from mendq.catalogue.examples import DLQ_ARN, QUEUE_ARN, queue, with_dlq
from mendq.catalogue.symptom import (
    DLQ_GUIDE,
    DetectedFault,
    Detection,
    QueueExample,
    QueueNearMiss,
    ReportedSymptom,
)
from mendq.model.facts import Facts
from mendq.model.queue import FIFO, arn_of


def detect(facts: Facts) -> DetectedFault | None:
    named = arn_of(facts.dlq_arn)
    if named is None or named.endswith(FIFO) == facts.is_fifo:
        return None
    kinds = ("FIFO", "standard") if facts.is_fifo else ("standard", "FIFO")
    return DetectedFault(
        f"it is a {kinds[0]} queue and names {named}, a {kinds[1]} one: nothing can go there"
    )


_FIFO_DLQ = f"{DLQ_ARN}{FIFO}"

DLQ_TYPE_MISMATCH = ReportedSymptom(
    name="dlq_type_mismatch",
    sentence="A FIFO queue names a standard DLQ, or the other way round.",
    plan_in_words="Report it; a queue's type cannot be changed.",
    aws_page=DLQ_GUIDE,
    detection=Detection(detect, of_configuration=True),
    examples=lambda: (
        QueueExample("FIFO to standard", with_dlq(queue_arn=QUEUE_ARN)),
        QueueExample("standard to FIFO", with_dlq(dlq_arn=_FIFO_DLQ)),
        QueueNearMiss("both FIFO", with_dlq(dlq_arn=_FIFO_DLQ, queue_arn=QUEUE_ARN)),
        QueueNearMiss("none is named", queue()),
        QueueNearMiss("what it names is no queue", with_dlq(dlq_arn="orders")),
    ),
)
