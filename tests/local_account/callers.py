"""Users and roles for tests, of this account and of another."""

from __future__ import annotations

import json
import uuid
from typing import Any

from local_account.process import LocalAccount

OTHER_ACCOUNT = "111111111111"
ALL_OF_SQS = {"Effect": "Allow", "Action": "sqs:*", "Resource": "*"}


def policy(*statements: dict[str, Any]) -> str:
    return json.dumps({"Version": "2012-10-17", "Statement": list(statements)})


def user(
    account: LocalAccount, *statements: dict[str, Any], of: str | None = None
) -> tuple[str, dict[str, str]]:
    """(ARN, credentials for `account.client`) of a new user with these permissions."""
    iam = account.client("iam", **({"aws_access_key_id": of} if of else {}))
    name = f"user-{uuid.uuid4().hex[:8]}"
    arn = iam.create_user(UserName=name)["User"]["Arn"]
    if statements:
        iam.put_user_policy(UserName=name, PolicyName="p", PolicyDocument=policy(*statements))
    key = iam.create_access_key(UserName=name)["AccessKey"]
    return arn, {
        "aws_access_key_id": key["AccessKeyId"],
        "aws_secret_access_key": key["SecretAccessKey"],
    }
