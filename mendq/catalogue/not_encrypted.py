"""Messages lie unencrypted; reported, because a change of encryption concerns who sends and reads.

https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-server-side-encryption.html
"""

from __future__ import annotations

from mendq.catalogue import examples
from mendq.catalogue.symptom import NOT_FOUND, Detected, Detection, Found, NearMiss, Symptom
from mendq.model.facts import Facts, Need


def detect(facts: Facts) -> Found | None:
    """SQS says of every queue whether its own keys encrypt it; where it is silent, so are we."""
    if facts.kms_key is not None or facts.attributes.get("SqsManagedSseEnabled") != "false":
        return None
    return Found("its messages are encrypted neither with a KMS key nor with SQS's own")


NOT_ENCRYPTED = Symptom(
    name="not_encrypted",
    sentence="Messages in the queue are not encrypted.",
    plan_in_words="Report it; never change encryption.",
    aws_page="https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/"
    "sqs-server-side-encryption.html",
    detection=Detection(detect, needs=frozenset({Need.QUEUE}), of_configuration=True),
    detected=(
        Detected("neither of the two", examples.queue(SqsManagedSseEnabled="false")),
        Detected(
            "a key that was taken off",
            examples.queue(SqsManagedSseEnabled="false", KmsMasterKeyId=""),
        ),
    ),
    near_misses=(
        NearMiss("SQS's own keys", NOT_FOUND, facts=examples.queue(SqsManagedSseEnabled="true")),
        NearMiss(
            "a KMS key",
            NOT_FOUND,
            facts=examples.queue(SqsManagedSseEnabled="false", KmsMasterKeyId="alias/orders"),
        ),
        NearMiss("SQS does not say", NOT_FOUND, facts=examples.queue()),
    ),
)
