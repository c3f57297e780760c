"""CloudTrail's event history of a queue's policy, as LookupEvents answers it."""

from __future__ import annotations

import json
from typing import Any

from mendq.model.queue import make_public_queue_url
from tests.account.account import ACCOUNT, REGION, Account

ALICE = f"arn:aws:iam::{ACCOUNT}:role/operators"
DEPLOYS = f"arn:aws:iam::{ACCOUNT}:role/deploys"


def make_identity(role_arn: str, **over: Any) -> dict[str, Any]:
    """Return the `userIdentity` of a session of the role."""
    name = role_arn.rpartition("/")[2]
    return {
        "type": "AssumedRole",
        "arn": f"arn:aws:sts::{ACCOUNT}:assumed-role/{name}/session",
        "sessionContext": {"sessionIssuer": {"type": "Role", "arn": role_arn}},
        **over,
    }


def make_policy_event(
    account: Account, queue_arn: str, event_name: str = "SetQueueAttributes", **over: Any
) -> dict[str, Any]:
    """Return a CloudTrail event in which Alice sets the queue's policy now. `over` replaces fields
    of the record.
    """
    record = {
        "eventName": event_name,
        "eventSource": "sqs.amazonaws.com",
        "awsRegion": REGION,
        "userIdentity": make_identity(ALICE),
        "sourceIPAddress": "192.0.2.7",
        "userAgent": "aws-cli/2",
        "requestParameters": {
            "queueUrl": make_public_queue_url(queue_arn),
            "attributes": {"Policy": "{}"},
        },
        "responseElements": None,
        **over,
    }
    return {"EventTime": account.now, "CloudTrailEvent": json.dumps(record)}


def cloudformation_fields(role_arn: str = ALICE) -> dict[str, Any]:
    """Return the record's fields for a call that CloudFormation made for a role."""
    invoked = "cloudformation.amazonaws.com"
    return {
        "userIdentity": make_identity(role_arn, invokedBy=invoked),
        "sourceIPAddress": invoked,
        "userAgent": invoked,
    }
