"""What is left of the codes that SQS documents: the caller's own mistakes. They are only counted.

https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/CommonErrors.html
"""

from __future__ import annotations

from mendq.catalogue import examples
from mendq.catalogue.symptom import Caught, NearMiss, Symptom, seen_as_labelled

INVALID_REQUEST = Symptom(
    name="invalid_request",
    sentence="A caller sends what SQS does not take; the queue is as it should be.",
    plan_in_words="Count them for the weekly report; nothing about the queue would help.",
    aws_page="https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/"
    "CommonErrors.html",
    seen_as=seen_as_labelled("invalid_request"),
    caught=(
        Caught(
            "a batch that is too large",
            examples.failed_call(
                "SendMessageBatch",
                "AWS.SimpleQueueService.TooManyEntriesInBatchRequest",
                "Maximum number of entries per request are 10. You have sent 20.",
            ),
        ),
        Caught(
            "a parameter out of range",
            examples.failed_call(
                "ReceiveMessage",
                "InvalidParameterValue",
                "Value 21 for parameter WaitTimeSeconds is invalid. "
                "Reason: Must be >= 0 and <= 20, if provided.",
            ),
        ),
        Caught(
            "an extension after the caller's own delete",
            examples.failed_call(
                "ChangeMessageVisibility",
                "InvalidParameterValue",
                "Value AQEB for parameter ReceiptHandle is invalid. Reason: "
                "Message does not exist or is not available for visibility timeout change.",
            ),
        ),
        Caught(
            "too many permissions on one queue",
            examples.failed_call("AddPermission", "OverLimit"),
        ),
    ),
    near_misses=(
        NearMiss(
            "a receipt handle that expired in the consumer's hands",
            "no_match",
            call=examples.failed_call(
                "DeleteMessage",
                "InvalidParameterValue",
                "Value AQEB for parameter ReceiptHandle is invalid. "
                "Reason: The receipt handle has expired.",
            ),
        ),
        NearMiss(
            "too many messages in flight",
            "no_match",
            call=examples.failed_call("ReceiveMessage", "OverLimit"),
        ),
        NearMiss(
            "a queue that is gone",
            "no_match",
            call=examples.failed_call("SendMessage", "QueueDoesNotExist"),
        ),
        NearMiss(
            "a code that SQS does not document",
            "no_match",
            call=examples.failed_call("SendMessage", "NeverHeardOf"),
        ),
    ),
)
