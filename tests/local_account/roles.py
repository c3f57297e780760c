"""Roles for tests, with exactly the permissions that they name."""

from __future__ import annotations

import uuid
from typing import Any

from local_account.process import LocalAccount
from local_account.where import ACCOUNT
from tests.local_account.callers import policy


def new_role(account: LocalAccount, service: str, *statements: dict[str, Any]) -> str:
    """The ARN of a new role that `service` (e.g. lambda.amazonaws.com) may take on."""
    iam, name = account.client("iam"), f"role-{uuid.uuid4().hex[:8]}"
    trust = {"Effect": "Allow", "Principal": {"Service": service}, "Action": "sts:AssumeRole"}
    iam.create_role(RoleName=name, AssumeRolePolicyDocument=policy(trust))
    if statements:
        iam.put_role_policy(RoleName=name, PolicyName="p", PolicyDocument=policy(*statements))
    return f"arn:aws:iam::{ACCOUNT}:role/{name}"


def allow(action: str | list[str], resource: str) -> dict[str, Any]:
    """A statement."""
    return {"Effect": "Allow", "Action": action, "Resource": resource}
