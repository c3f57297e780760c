"""The codes of SQS that are the caller's own mistakes: they are only counted."""

from __future__ import annotations

from mendq.catalogue.examples import failed_call, refused_value
from mendq.catalogue.symptom import CallExample, CallNearMiss, ReportedSymptom, seen_as_labelled
from mendq.model.failed_call import OWN_DELETE

EXPIRED = "The receipt handle has expired."
LATE_DELETE = refused_value("DeleteMessage", "ReceiptHandle", EXPIRED)
AFTER_OWN_DELETE = refused_value("ChangeMessageVisibility", "ReceiptHandle", OWN_DELETE)
_AT_MOST_20 = "Must be >= 0 and <= 20, if provided."

INVALID_REQUEST = ReportedSymptom(
    name="invalid_request",
    sentence="A caller sends what SQS does not take; the queue is as it should be.",
    plan_in_words="Count them for the weekly report; nothing about the queue would help.",
    aws_page="https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/"
    "CommonErrors.html",
    seen_as=seen_as_labelled("invalid_request"),
    examples=lambda: (
        CallExample(
            "a wait of 21 s", refused_value("ReceiveMessage", "WaitTimeSeconds", _AT_MOST_20)
        ),
        CallExample("an extension after the caller's own delete", AFTER_OWN_DELETE),
        CallExample("too many permissions on one queue", failed_call("AddPermission", "OverLimit")),
        CallNearMiss("a receipt handle that expired", LATE_DELETE),
        CallNearMiss("too many messages in flight", failed_call("ReceiveMessage", "OverLimit")),
        CallNearMiss(
            "a code that SQS does not document", failed_call("SendMessage", "NeverHeardOf")
        ),
    ),
)
