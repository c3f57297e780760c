"""Symptom `redrive_cycle`: the DLQs of some queues form a circle.

The fault: a queue is its own DLQ, or its DLQ's DLQ leads back to it. A message that always fails
goes round until it expires, and nobody ever sees it in a DLQ.

How it shows: in the RedrivePolicies of up to three queues.

What Mendq does: it reports the circle. It changes nothing, because people must decide which of the
queues is the last one.
"""

from __future__ import annotations

from mendq.catalogue.examples import DLQ_ARN, STANDARD_ARN, queue, queue_with_dlq, sources
from mendq.catalogue.symptom import (
    DLQ_GUIDE,
    DetectedFault,
    Detection,
    EvidenceKind,
    QueueExample,
    QueueNearMiss,
    ReportedSymptom,
)
from mendq.model.facts import Facts, Need, QueueFacts
from mendq.model.queue import RedrivePolicy
from mendq.model.severity_class import SeverityClass


def detect(facts: Facts) -> DetectedFault | None:
    """Find a circle of one, two or three queues. Longer ones are not looked for."""
    first_dlq_arn = facts.dlq_arn
    if first_dlq_arn is None:
        return None
    second_dlq_arn = facts.dlq.dlq_arn if facts.dlq else None
    if first_dlq_arn == facts.queue_arn:
        queue_arns_of_cycle = [facts.queue_arn, first_dlq_arn]
    elif second_dlq_arn == facts.queue_arn:
        queue_arns_of_cycle = [facts.queue_arn, first_dlq_arn, second_dlq_arn]
    elif second_dlq_arn is not None and second_dlq_arn in facts.source_arns:
        queue_arns_of_cycle = [facts.queue_arn, first_dlq_arn, second_dlq_arn, facts.queue_arn]
    else:
        return None
    return DetectedFault(f"its DLQ messages come back to it: {' -> '.join(queue_arns_of_cycle)}")


def _make_example_queue(dlq_arn: str, next_dlq_arn: str = "", *source_arns: str) -> Facts:
    """Return a queue whose DLQ is `dlq_arn`.

    That DLQ has the DLQ `next_dlq_arn`, or none if this is empty.
    `source_arns` are the queues that name the example queue as their DLQ.
    """
    dlq_attributes = {"RedrivePolicy": RedrivePolicy(next_dlq_arn, 5).text} if next_dlq_arn else {}
    source_queues = sources(*source_arns)
    return queue_with_dlq(
        dlq_arn=dlq_arn, dlq=QueueFacts(dlq_arn, dlq_attributes), dlq_sources=source_queues
    )


_LAST_DLQ_ARN = f"{DLQ_ARN}-of-{DLQ_ARN.rpartition(':')[2]}"

REDRIVE_CYCLE = ReportedSymptom(
    name="redrive_cycle",
    sentence="DLQ messages come back to the queue they died in, so nobody ever looks at them.",
    plan_in_words="Report it; which of the queues is the last is for people to say.",
    first_step="Detach one queue, so that the last DLQ has no DLQ.",
    aws_page=DLQ_GUIDE,
    evidence_kinds=(EvidenceKind(SeverityClass.WILL_LOSE),),
    detection=Detection(
        detect, frozenset({Need.QUEUE, Need.DLQ, Need.DLQ_SOURCES}), is_of_configuration=True
    ),
    examples=lambda: (
        QueueExample("its own DLQ", _make_example_queue(STANDARD_ARN)),
        QueueExample("each is the other's", _make_example_queue(DLQ_ARN, STANDARD_ARN, DLQ_ARN)),
        QueueExample(
            "three in a circle", _make_example_queue(DLQ_ARN, _LAST_DLQ_ARN, _LAST_DLQ_ARN)
        ),
        QueueNearMiss("its messages stay where they are", _make_example_queue(DLQ_ARN)),
        QueueNearMiss("messages of messages", _make_example_queue(DLQ_ARN, _LAST_DLQ_ARN)),
        QueueNearMiss(
            "two queues share one",
            _make_example_queue(DLQ_ARN, _LAST_DLQ_ARN, f"{_LAST_DLQ_ARN}-2"),
        ),
        QueueNearMiss("no DLQ", queue()),
    ),
)
