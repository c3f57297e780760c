"""What may be taken from a role although no call of our code then fails, each with its reason.

By role, the action and the resource; one of the template's is named without its hash.
"""

from __future__ import annotations

from collections.abc import Mapping

from mendq.model.queue import QUARANTINE_SUFFIX

Declared = Mapping[tuple[str, str], str]

_LOGS = "Lambda writes what the function logs"
_POLLER = "Lambda's poller reads the intake queue as the function's role"
_PARKED = "Lambda parks what it gives up as the function's role"
_WITH_POLLING = "CDK allows it to whatever polls; on the intake queue alone"
_WITH_PARKING = "CDK allows it to whatever sends; on the function's own DLQ alone"
_ENCRYPTED = "SNS encrypts a message as whoever publishes it"
_KEYS = "SQS asks for it on behalf of whoever moves messages of queues that a key encrypts"
_FIFO = "a FIFO queue's messages go into a quarantine of its kind, by the same call"
_VERIFIED = "SES asks on whatever is verified for an address, and on a configuration set"


def _runtime(function: str) -> Declared:
    """https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-configure.html"""
    return {
        ("logs:CreateLogStream", f"{function}Log"): _LOGS,
        ("logs:PutLogEvents", f"{function}Log"): _LOGS,
    }


def _parking(function: str) -> Declared:
    queue = f"{function}Dlq"
    return {
        **_runtime(function),
        ("sqs:SendMessage", queue): _PARKED,
        ("sqs:GetQueueAttributes", queue): _WITH_PARKING,
        ("sqs:GetQueueUrl", queue): _WITH_PARKING,
    }


# https://docs.aws.amazon.com/sns/latest/dg/sns-key-management.html
_PUBLISHING = {
    ("kms:GenerateDataKey", "TopicsKey"): _ENCRYPTED,
    ("kms:Decrypt", "TopicsKey"): _ENCRYPTED,
}

DECLARED: Mapping[str, Declared] = {
    "heal": {
        **_runtime("Heal"),
        **_PUBLISHING,
        ("sqs:ReceiveMessage", "IntakeQueue"): _POLLER,
        ("sqs:DeleteMessage", "IntakeQueue"): _POLLER,
        ("sqs:GetQueueAttributes", "IntakeQueue"): _POLLER,
        ("sqs:ChangeMessageVisibility", "IntakeQueue"): _WITH_POLLING,
        ("sqs:GetQueueUrl", "IntakeQueue"): _WITH_POLLING,
    },
    "attach_dlq": {**_runtime("AttachDlq"), **_PUBLISHING},
    "restore_policy": {**_runtime("RestorePolicy"), **_PUBLISHING},
    "redrive": {
        **_runtime("Redrive"),
        **_PUBLISHING,
        ("kms:GenerateDataKey", "key/*"): _KEYS,
        ("kms:Decrypt", "key/*"): _KEYS,
        ("sqs:CreateQueue", f"*{QUARANTINE_SUFFIX}.fifo"): _FIFO,
        ("sqs:SendMessage", f"*{QUARANTINE_SUFFIX}.fifo"): _FIFO,
    },
    "start_nightly": _parking("StartNightly"),
    "watch_nightly": _parking("WatchNightly"),
    "deliver_report": {
        **_parking("DeliverReport"),
        **_PUBLISHING,
        **{
            (action, verified): _VERIFIED
            for action in ("ses:SendEmail", "ses:SendRawEmail")
            for verified in (
                "configuration-set/*",
                "identity/example.com",
                "identity/example.org",
                "identity/mail.example.com",
            )
        },
    },
    "follow_up": {**_parking("FollowUp"), **_PUBLISHING},
    "approve": _runtime("Approve"),
    "rollback": {**_runtime("Rollback"), **_PUBLISHING},
    "scan": _parking("Scan"),
    "probe": {**_parking("Probe"), **_PUBLISHING},
    "schedule": {},
}
