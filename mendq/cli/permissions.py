"""What each command asks of AWS, in IAM's words: what whoever runs it has to be allowed.

`sts:GetCallerIdentity` is left out: everybody may ask who they are.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

EVERYBODYS = frozenset({"sts:GetCallerIdentity"})
STACK = frozenset({"cloudformation:DescribeStacks"})
CASE_STORE = STACK | {"dynamodb:GetItem"}
CASES = CASE_STORE | {"dynamodb:Query"}
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
DLQ = frozenset({"sqs:ListDeadLetterSourceQueues", "sqs:ListMessageMoveTasks"})
TAKING = QUEUE | {"sqs:ReceiveMessage", "sqs:ChangeMessageVisibility"}
DROPPING = TAKING | {"sqs:DeleteMessage"}
RETURNING = DROPPING | {"sqs:SendMessage", "sqs:ListQueueTags", "sqs:ListMessageMoveTasks"}

DRILLING = frozenset(f"sqs:{each}Queue" for each in ("Create", "Delete", "Tag")) | frozenset(
    {"sqs:DeleteMessage", "sqs:GetQueueUrl", "sqs:ReceiveMessage", "sqs:SendMessage"}
)

CLAIM = "dynamodb:UpdateItem"

LOOKING: Mapping[str, frozenset[str]] = {
    "doctor": frozenset().union(CASES, MANAGED, TRAILS, QUEUE, FROZEN)
    | {
        "cloudformation:ListStackResources",
        "cloudwatch:DescribeAlarms",
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
    "scan": frozenset().union(MANAGED, QUEUE, CASES, FROZEN, DLQ)
    | {"lambda:ListEventSourceMappings", "cloudwatch:GetMetricData", "sqs:ListQueueTags"},
    "report": STACK | {"s3:GetObject", "s3:ListBucket"},
    "cost": MANAGED | TRAILS | {"cloudformation:GetTemplate", "cloudwatch:GetMetricData"},
    "resources": frozenset(
        {
            "cloudformation:DescribeStackEvents",
            "cloudformation:ListStackResources",
            "cloudformation:ListStacks",
            "dynamodb:DescribeTable",
            "s3:ListAllMyBuckets",
            "s3:ListBucket",
        }
    ),
    "policy show": CASE_STORE | QUEUE | {"cloudtrail:LookupEvents"},
    "quarantine list": MANAGED | QUEUE | {"cloudwatch:GetMetricStatistics"},
}

STEERING: Mapping[str, frozenset[str]] = {
    "approve": SHOWN | {INVOKE},
    "decline": SHOWN | {INVOKE},
    "close": SHOWN | {INVOKE},
    "rollback": EVERY_CASE | QUEUE | {INVOKE},
    "policy pin": CASE_STORE | QUEUE | {"dynamodb:PutItem"},
    "policy unpin": CASE_STORE | {"dynamodb:PutItem"},
    "drill": CASES | SETTINGS | TRAILS | QUEUE | {INVOKE} | DRILLING,
    "freeze": STACK | {"dynamodb:PutItem"},
    "thaw": CASE_STORE | {"dynamodb:DeleteItem"},
}

# With messages in hand: on which queues, docs/redrive.md says.
MESSAGES: Mapping[str, frozenset[str]] = {
    "redrive": CASE_STORE | RETURNING | DLQ | {CLAIM},
    "quarantine peek": CASE_STORE | TAKING,
    "quarantine return": CASE_STORE | RETURNING | {CLAIM},
    "quarantine drop": CASE_STORE | DROPPING,
}

# These ask AWS nothing.
OFFLINE: Mapping[str, frozenset[str]] = {"explain": frozenset(), "lint": frozenset()}
RIGHTS = {**LOOKING, **STEERING, **MESSAGES, **OFFLINE}
_HERE = "REGION:ACCOUNT"
_TABLE = f"arn:aws:dynamodb:{_HERE}:table/Mendq-*"

# What is named here is Mendq's own; every other action is about queues and functions of yours,
# or knows no resource.
_OF: Mapping[str, tuple[str, ...]] = {
    "cloudformation:ListStacks": ("*",),
    "cloudformation:": (f"arn:aws:cloudformation:{_HERE}:stack/Mendq/*",),
    "dynamodb:Query": (_TABLE, f"{_TABLE}/index/*"),
    "dynamodb:": (_TABLE,),
    "events:": tuple(f"arn:aws:events:{_HERE}:rule/{bus}Mendq-*" for bus in ("", "default/")),
    "iam:": ("arn:aws:iam::ACCOUNT:role/mendq-*",),
    INVOKE: tuple(
        f"arn:aws:lambda:{_HERE}:function:Mendq-{each}*" for each in ("Approve", "Rollback")
    ),
    "s3:GetObject": ("arn:aws:s3:::mendq-*/*",),
    "s3:ListBucket": ("arn:aws:s3:::mendq-*",),
    "scheduler:": (f"arn:aws:scheduler:{_HERE}:schedule/*/Mendq-*",),
    "sns:": (f"arn:aws:sns:{_HERE}:Mendq-*",),
    **dict.fromkeys(sorted(DRILLING), (f"arn:aws:sqs:{_HERE}:mendq-drill-*",)),
}

_READS = frozenset().union(*LOOKING.values())


def look() -> dict[str, Any]:
    """The policy of whoever may see everything and change nothing."""
    return _policy(_READS)


def steer() -> dict[str, Any]:
    """The policy of whoever may steer Mendq, beside `look`."""
    return _policy(frozenset().union(*STEERING.values()) - _READS)


def _policy(actions: Iterable[str]) -> dict[str, Any]:
    on = defaultdict[tuple[str, ...], list[str]](list)
    for each in sorted(actions):
        service, _, _ = each.partition(":")
        on[_OF.get(each) or _OF.get(f"{service}:", ("*",))].append(each)
    statements = [
        {"Effect": "Allow", "Action": actions, "Resource": list(where)}
        for where, actions in on.items()
    ]
    return {"Version": "2012-10-17", "Statement": statements}
