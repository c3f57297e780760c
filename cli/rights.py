"""What each command asks of AWS, in IAM's words: what whoever runs it has to be allowed.

`sts:GetCallerIdentity` is left out: everybody may ask who they are.
"""

from __future__ import annotations

from collections.abc import Mapping

EVERYBODYS = frozenset({"sts:GetCallerIdentity"})
STACK = frozenset({"cloudformation:DescribeStacks"})
LEDGER = STACK | {"dynamodb:GetItem"}
CASES = LEDGER | {"dynamodb:Query"}
EVERY_CASE = CASES | {"dynamodb:Scan"}
SETTINGS = STACK | {"lambda:GetFunctionConfiguration"}
MANAGED = SETTINGS | {"tag:GetResources", "sqs:ListQueues"}
QUEUE = frozenset({"sqs:GetQueueAttributes"})
SHOWN = EVERY_CASE | SETTINGS | QUEUE
TRAILS = frozenset(
    {"cloudtrail:DescribeTrails", "cloudtrail:GetEventSelectors", "cloudtrail:GetTrailStatus"}
)
FROZEN = SETTINGS | {"dynamodb:GetItem", "ssm:GetCalendarState"}
INVOKE = "lambda:InvokeFunction"
DEAD_LETTERS = frozenset({"sqs:ListDeadLetterSourceQueues", "sqs:ListMessageMoveTasks"})
TAKING = QUEUE | {"sqs:ReceiveMessage", "sqs:ChangeMessageVisibility"}
DROPPING = TAKING | {"sqs:DeleteMessage"}
RETURNING = DROPPING | {"sqs:SendMessage", "sqs:ListQueueTags", "sqs:ListMessageMoveTasks"}
DRILLING = frozenset(
    {
        "sqs:CreateQueue",
        "sqs:DeleteMessage",
        "sqs:DeleteQueue",
        "sqs:GetQueueUrl",
        "sqs:ReceiveMessage",
        "sqs:SendMessage",
        "sqs:TagQueue",
    }
)
CLAIM = "dynamodb:UpdateItem"

LOOKING: Mapping[str, frozenset[str]] = {
    "doctor": CASES
    | MANAGED
    | TRAILS
    | QUEUE
    | FROZEN
    | {
        "cloudformation:ListStackResources",
        "cloudwatch:DescribeAlarms",
        "cloudwatch:GetMetricData",
        "cloudwatch:GetMetricStatistics",
        "events:DescribeRule",
        "iam:GetRole",
        "lambda:GetEventSourceMapping",
        "s3:GetObject",
        "s3:ListBucket",
        "scheduler:GetSchedule",
        "sns:ListSubscriptionsByTopic",
    },
    "cases": EVERY_CASE,
    "show": SHOWN,
    "export": MANAGED | QUEUE,
    "sweep": MANAGED
    | QUEUE
    | CASES
    | FROZEN
    | DEAD_LETTERS
    | {
        "lambda:ListEventSourceMappings",
        "cloudwatch:GetMetricData",
        "sqs:ListQueueTags",
    },
    "report": STACK
    | {
        "cloudformation:ListStackResources",
        "s3:GetObject",
        "s3:ListBucket",
        "scheduler:GetSchedule",
    },
    "cost": MANAGED | TRAILS | {"cloudformation:GetTemplate", "cloudwatch:GetMetricData"},
    "kept": frozenset(
        {
            "cloudformation:DescribeStackEvents",
            "cloudformation:ListStackResources",
            "cloudformation:ListStacks",
            "dynamodb:DescribeTable",
            "s3:ListAllMyBuckets",
            "s3:ListBucket",
        }
    ),
    "quarantine list": MANAGED | QUEUE | {"cloudwatch:GetMetricStatistics"},
}
STEERING: Mapping[str, frozenset[str]] = {
    "approve": SHOWN | {INVOKE},
    "decline": SHOWN | {INVOKE},
    "close": SHOWN | {INVOKE},
    "roll-back": EVERY_CASE | QUEUE | {INVOKE},
    "pin": LEDGER | QUEUE | {"cloudtrail:LookupEvents", "dynamodb:PutItem"},
    "drill": CASES | SETTINGS | TRAILS | QUEUE | {INVOKE} | DRILLING,
    "freeze": STACK | {"dynamodb:PutItem"},
    "thaw": LEDGER | {"dynamodb:DeleteItem"},
}
# With letters in hand: on which queues, docs/redrive.md says.
LETTERS: Mapping[str, frozenset[str]] = {
    "redrive": LEDGER | RETURNING | DEAD_LETTERS | {CLAIM},
    "quarantine peek": LEDGER | TAKING,
    "quarantine return": LEDGER | RETURNING | {CLAIM},
    "quarantine drop": LEDGER | DROPPING,
}
# These ask AWS nothing.
OFFLINE: Mapping[str, frozenset[str]] = {"explain": frozenset(), "lint": frozenset()}
RIGHTS = {**LOOKING, **STEERING, **LETTERS, **OFFLINE}
