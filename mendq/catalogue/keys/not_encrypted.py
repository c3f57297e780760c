"""Symptom `not_encrypted`: SQS stores the queue's messages without encryption.

The fault: the queue has neither a KMS key (SSE-KMS) nor SQS's own encryption (SSE-SQS).

How it shows: in the queue's attributes alone. `SqsManagedSseEnabled` is `false`, and there is no
`KmsMasterKeyId`. New queues have SSE-SQS, so somebody has switched it off.

What Mendq does: it reports the queue. It changes nothing, because encryption with a KMS key needs
grants for every sender and consumer, and only their owners can give these.
"""

from __future__ import annotations

from mendq.catalogue.examples import queue
from mendq.catalogue.symptom import (
    SQS_GUIDE,
    DetectedFault,
    Detection,
    EvidenceKind,
    QueueExample,
    QueueNearMiss,
    ReportedSymptom,
)
from mendq.model.facts import Facts
from mendq.model.severity_class import SeverityClass


def detect(facts: Facts) -> DetectedFault | None:
    """Report the queue if SQS says that no key encrypts its messages.

    SQS reports `SqsManagedSseEnabled` for every queue. If the attribute is missing, nothing is
    certain, so the result is None.
    """
    if facts.kms_key is not None or facts.attributes.get("SqsManagedSseEnabled") != "false":
        return None
    return DetectedFault("its messages are encrypted neither with a KMS key nor with SQS's own")


NOT_ENCRYPTED = ReportedSymptom(
    name="not_encrypted",
    sentence="Messages in the queue are not encrypted.",
    plan_in_words="Report it; never change encryption.",
    first_step="Turn on SSE-SQS, which costs nothing.",
    aws_page=f"{SQS_GUIDE}/sqs-server-side-encryption.html",
    evidence_kinds=(EvidenceKind(SeverityClass.HYGIENE),),
    detection=Detection(detect, is_of_configuration=True),
    examples=lambda: (
        QueueExample("neither of the two", queue(SqsManagedSseEnabled="false")),
        QueueExample(
            "its key was taken off", queue(SqsManagedSseEnabled="false", KmsMasterKeyId="")
        ),
        QueueNearMiss("SQS's own keys", queue(SqsManagedSseEnabled="true")),
        QueueNearMiss(
            "a KMS key", queue(SqsManagedSseEnabled="false", KmsMasterKeyId="alias/orders")
        ),
        QueueNearMiss("SQS does not say", queue()),
    ),
)
