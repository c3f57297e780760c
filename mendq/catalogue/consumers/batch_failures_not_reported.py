"""Symptom `batch_failures_not_reported`: one message that fails brings its whole batch back.

The fault: an event source mapping gives a Lambda function several messages at once, and lacks
ReportBatchItemFailures, so the function cannot say which of them failed. If one fails, the run
fails as a whole. All of its messages come back, and those that were done are done again. Each
return counts as a receive, so good messages can reach the DLQ with the bad one.

How it shows: in the event source mapping. Its batch size is above 1, and it has no
ReportBatchItemFailures.

What Mendq does: it reports the queue. It changes nothing, because the function's code must return
the messages that failed: only its owner can write that.
https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-errorhandling.html#services-sqs-batchfailurereporting
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from mendq.catalogue.examples import LAMBDA_FUNCTION, queue_with_dlq, standard_queue
from mendq.catalogue.symptom import (
    DetectedFault,
    Detection,
    EvidenceKind,
    QueueExample,
    QueueNearMiss,
    ReportedSymptom,
)
from mendq.model.facts import Facts, Need
from mendq.model.severity_class import SeverityClass


def detect(facts: Facts) -> DetectedFault | None:
    """Report the first Lambda function that gets several messages and cannot return one of them."""
    for consumer in facts.lambda_consumers:
        if consumer.batch_size > 1 and not consumer.reports_item_failures:
            return DetectedFault(
                f"the event source mapping of {consumer.name} lacks ReportBatchItemFailures. If "
                f"one of up to {consumer.batch_size:,} messages fails, the whole batch comes back, "
                "also the messages that were finished",
                mapping_id=consumer.mapping_id,
            )
    return None


def _with_consumer(**values: Any) -> dict[str, Any]:
    """Return the example's Lambda function, with other values of its mapping, as a fact."""
    return {"lambda_consumers": (replace(LAMBDA_FUNCTION, **values),)}


BATCH_FAILURES_NOT_REPORTED = ReportedSymptom(
    name="batch_failures_not_reported",
    sentence="If one message of a batch fails, the Lambda function gets all of them again.",
    plan_in_words="Report it; the function's code must return the messages that failed.",
    first_step="Return batchItemFailures, and set ReportBatchItemFailures.",
    aws_page="https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-errorhandling.html"
    "#services-sqs-batchfailurereporting",
    evidence_kinds=(EvidenceKind(SeverityClass.MAY_LOSE),),
    detection=Detection(detect, frozenset({Need.LAMBDA_CONSUMERS}), is_of_configuration=True),
    examples=lambda: (
        QueueExample("batches of ten", queue_with_dlq(5, **_with_consumer(batch_size=10))),
        QueueExample("batches of two, and no DLQ", standard_queue(**_with_consumer(batch_size=2))),
        QueueNearMiss("one message at a time", queue_with_dlq(5, **_with_consumer(batch_size=1))),
        QueueNearMiss(
            "the mapping has ReportBatchItemFailures",
            queue_with_dlq(5, **_with_consumer(batch_size=10, reports_item_failures=True)),
        ),
        QueueNearMiss("no Lambda function reads it", queue_with_dlq(5)),
    ),
)
