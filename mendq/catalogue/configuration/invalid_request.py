"""Symptom `invalid_request`: a caller or a template asks for what AWS does not accept.

The fault: the mistake is in the caller's program, such as a wait of 21 seconds, a malformed receipt
handle or an empty batch. The queue is as it should be. Or it is in a template: SQS or Lambda
refuses a queue or a mapping with such settings, so the template cannot be deployed.

How it shows: CloudTrail records the failed call with an error code that only a caller can cause.
`mendq lint` compares a template with the values that SQS and Lambda accept
(`mendq/model/queue_limits.py` and `mendq/model/mapping.py`).

What Mendq does: it counts the calls for the weekly report, and lint reports the template. It
changes nothing and notifies nobody, because no attribute of the queue would help.
"""

from __future__ import annotations

from mendq.catalogue.examples import failed_call, make_call_with_refused_value
from mendq.catalogue.symptom import (
    CallExample,
    CallNearMiss,
    EvidenceKind,
    ReportedSymptom,
    make_code_patterns,
)
from mendq.model.failed_call import DELETED_MESSAGE_REASON, EXPIRED_HANDLE_REASON
from mendq.model.severity_class import SeverityClass

# SQS's sentences for calls that look alike and belong to other symptoms. Their entries use them
# too.
LATE_DELETE_CALL = make_call_with_refused_value(
    "DeleteMessage", "ReceiptHandle", EXPIRED_HANDLE_REASON
)
EXTENSION_CALL_AFTER_DELETE = make_call_with_refused_value(
    "ChangeMessageVisibility", "ReceiptHandle", DELETED_MESSAGE_REASON
)
_WAIT_TIME_ABOVE_20_REASON = "Must be >= 0 and <= 20, if provided."

REFUSED_IN_TEMPLATE = EvidenceKind(
    SeverityClass.STANDING_STILL,
    "in a template: SQS refuses the queue, Lambda the mapping, or SAM the template",
    is_of_template=True,
)

INVALID_REQUEST = ReportedSymptom(
    name="invalid_request",
    sentence="A caller or a template asks for what AWS does not accept.",
    plan_in_words="Count the calls for the weekly report; nothing about the queue would help.",
    first_step="Correct the request: AWS's error message names the field.",
    aws_page="https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/"
    "CommonErrors.html",
    evidence_kinds=(REFUSED_IN_TEMPLATE,),
    seen_as=make_code_patterns("invalid_request"),
    examples=lambda: (
        CallExample(
            "a wait of 21 s",
            make_call_with_refused_value(
                "ReceiveMessage", "WaitTimeSeconds", _WAIT_TIME_ABOVE_20_REASON
            ),
        ),
        CallExample("an extension after the caller's own delete", EXTENSION_CALL_AFTER_DELETE),
        CallExample("too many permissions on one queue", failed_call("AddPermission", "OverLimit")),
        CallNearMiss("a receipt handle that expired", LATE_DELETE_CALL),
        CallNearMiss("too many messages in flight", failed_call("ReceiveMessage", "OverLimit")),
        CallNearMiss(
            "a code that SQS does not document", failed_call("SendMessage", "NeverHeardOf")
        ),
    ),
)
