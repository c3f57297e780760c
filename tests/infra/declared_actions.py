"""What the Lambdas' roles allow although no call of our code shows it, each with its reason."""

from __future__ import annotations

_LOGS = "Lambda writes what the function logs"
_POLLER = "Lambda's poller reads the intake queue as the function's role"
_PARKED = "Lambda parks what it gives up as the function's role"
_WITH_POLLING = "CDK allows it to whatever polls; on the intake queue alone"
_WITH_PARKING = "CDK allows it to whatever sends; on the function's own dead-letter queue alone"
_ENCRYPTED = "SNS encrypts a message as whoever publishes it"

_RUNTIME = {"logs:CreateLogStream": _LOGS, "logs:PutLogEvents": _LOGS}
_PARKING = {
    "sqs:SendMessage": _PARKED,
    "sqs:GetQueueAttributes": _WITH_PARKING,
    "sqs:GetQueueUrl": _WITH_PARKING,
}
_PUBLISHING = {"kms:GenerateDataKey": _ENCRYPTED, "kms:Decrypt": _ENCRYPTED}

# https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-configure.html
# https://docs.aws.amazon.com/sns/latest/dg/sns-key-management.html
DECLARED = {
    "heal": {
        **_RUNTIME,
        **_PUBLISHING,
        "sqs:ReceiveMessage": _POLLER,
        "sqs:DeleteMessage": _POLLER,
        "sqs:ChangeMessageVisibility": _WITH_POLLING,
        "sqs:GetQueueUrl": _WITH_POLLING,
    },
    "attach_dead_letters": {**_RUNTIME, **_PUBLISHING},
    "restore_policy": {**_RUNTIME, **_PUBLISHING},
    "redrive": {**_RUNTIME, **_PUBLISHING},
    "start_night": {
        **_RUNTIME,
        **_PARKING,
        "iam:PassRole": "StartJobRun hands the job's role to EMR Serverless",
    },
    "watch_night": {**_RUNTIME, **_PARKING},
    "deliver_report": {**_RUNTIME, **_PUBLISHING, **_PARKING},
    "follow_up": {
        **_RUNTIME,
        **_PUBLISHING,
        "sqs:SendMessage": _PARKED,
        "sqs:GetQueueUrl": _WITH_PARKING,
    },
    "approve": _RUNTIME,
    "roll_back": {**_RUNTIME, **_PUBLISHING},
    "sweep": {**_RUNTIME, "sqs:SendMessage": _PARKED, "sqs:GetQueueUrl": _WITH_PARKING},
    "pulse": {
        **_RUNTIME,
        **_PUBLISHING,
        "sqs:GetQueueAttributes": _WITH_PARKING,
        "sqs:GetQueueUrl": _WITH_PARKING,
    },
}
