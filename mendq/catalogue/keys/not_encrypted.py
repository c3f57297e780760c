"""Messages lie unencrypted; reported, because encryption concerns whoever sends and reads."""

from __future__ import annotations

from mendq.catalogue.examples import queue
from mendq.catalogue.symptom import (
    SQS_GUIDE,
    DetectedFault,
    Detection,
    QueueExample,
    QueueNearMiss,
    ReportedSymptom,
)
from mendq.model.facts import Facts


def detect(facts: Facts) -> DetectedFault | None:
    """SQS says of every queue whether its own keys encrypt it; where it is silent, so are we."""
    if facts.kms_key is not None or facts.attributes.get("SqsManagedSseEnabled") != "false":
        return None
    return DetectedFault("its messages are encrypted neither with a KMS key nor with SQS's own")


NOT_ENCRYPTED = ReportedSymptom(
    name="not_encrypted",
    sentence="Messages in the queue are not encrypted.",
    plan_in_words="Report it; never change encryption.",
    aws_page=f"{SQS_GUIDE}/sqs-server-side-encryption.html",
    detection=Detection(detect, of_configuration=True),
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
