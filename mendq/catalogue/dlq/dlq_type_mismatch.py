"""Symptom `dlq_type_mismatch`: a FIFO queue names a standard DLQ, or the other way round.

The fault: SQS moves messages only between queues of the same type. So the DLQ takes no message, and
a message that always fails is received again and again until it expires.

How it shows: in the queue's RedrivePolicy alone. The name of a FIFO queue ends with `.fifo`.

What Mendq does: it reports the queue. It changes nothing: a queue's type cannot be changed, so
people must create a DLQ of the right type.
"""

from __future__ import annotations

from mendq.catalogue.examples import DLQ_ARN, QUEUE_ARN, queue, queue_with_dlq
from mendq.catalogue.symptom import (
    DLQ_GUIDE,
    DetectedFault,
    Detection,
    EvidenceKind,
    QueueExample,
    QueueNearMiss,
    ReportedSymptom,
)
from mendq.model.facts import Facts
from mendq.model.queue import FIFO_SUFFIX, queue_arn_or_none
from mendq.model.severity_class import SeverityClass


def detect(facts: Facts) -> DetectedFault | None:
    """Report the queue if only one of the queue and the DLQ that it names is a FIFO queue."""
    dlq_arn = queue_arn_or_none(facts.dlq_arn)
    if dlq_arn is None or dlq_arn.endswith(FIFO_SUFFIX) == facts.is_fifo:
        return None
    queue_type = "FIFO" if facts.is_fifo else "standard"
    dlq_type = "standard" if facts.is_fifo else "FIFO"
    return DetectedFault(
        f"it is a {queue_type} queue and names {dlq_arn}, a {dlq_type} one: nothing can go there"
    )


_FIFO_DLQ_ARN = f"{DLQ_ARN}{FIFO_SUFFIX}"

DLQ_TYPE_MISMATCH = ReportedSymptom(
    name="dlq_type_mismatch",
    sentence="A FIFO queue names a standard DLQ, or the other way round.",
    plan_in_words="Report it; a queue's type cannot be changed.",
    first_step="Attach a DLQ of the queue's own type.",
    aws_page=DLQ_GUIDE,
    evidence_kinds=(
        EvidenceKind(SeverityClass.WILL_LOSE, "on a queue that exists"),
        EvidenceKind(
            SeverityClass.STANDING_STILL,
            "in a template: SQS refuses the queue",
            is_of_template=True,
        ),
    ),
    detection=Detection(detect, is_of_configuration=True),
    examples=lambda: (
        QueueExample("FIFO to standard", queue_with_dlq(queue_arn=QUEUE_ARN)),
        QueueExample("standard to FIFO", queue_with_dlq(dlq_arn=_FIFO_DLQ_ARN)),
        QueueNearMiss("both FIFO", queue_with_dlq(dlq_arn=_FIFO_DLQ_ARN, queue_arn=QUEUE_ARN)),
        QueueNearMiss("none is named", queue()),
        QueueNearMiss("what it names is no queue", queue_with_dlq(dlq_arn="orders")),
    ),
)
