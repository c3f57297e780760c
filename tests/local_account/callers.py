"""Users, roles and Lambda functions for tests, with exactly the permissions that they name."""

from __future__ import annotations

import io
import json
import uuid
import zipfile
from dataclasses import dataclass
from typing import Any

from local_account.process import LocalAccount
from local_account.where import ACCOUNT, ACCOUNT_BY_PROFILE, read_credentials
from tests.local_account.accounts import TINY_ASSEMBLY

# An account besides the one that holds the stack.
OTHER_ACCOUNT = "111111111111"
ALL_OF_SQS = {"Effect": "Allow", "Action": "sqs:*", "Resource": "*"}


def policy(*statements: dict[str, Any]) -> str:
    return json.dumps({"Version": "2012-10-17", "Statement": list(statements)})


def allow(action: str | list[str], resource: str) -> dict[str, Any]:
    """A statement."""
    return {"Effect": "Allow", "Action": action, "Resource": resource}


def root(account: LocalAccount, of: str) -> dict[str, str]:
    """The credentials of an account's root user."""
    profile = next(name for name, account_id in ACCOUNT_BY_PROFILE.items() if account_id == of)
    return read_credentials(account.endpoint_url, profile)


def user(
    account: LocalAccount, *statements: dict[str, Any], of: str = ACCOUNT
) -> tuple[str, dict[str, str]]:
    """(ARN, credentials for `account.client`) of a new user with these permissions."""
    iam = account.client("iam", **root(account, of))
    name = f"user-{uuid.uuid4().hex[:8]}"
    arn = iam.create_user(UserName=name)["User"]["Arn"]
    if statements:
        iam.put_user_policy(UserName=name, PolicyName="p", PolicyDocument=policy(*statements))
    key = iam.create_access_key(UserName=name)["AccessKey"]
    return arn, {
        "aws_access_key_id": key["AccessKeyId"],
        "aws_secret_access_key": key["SecretAccessKey"],
    }


def new_role(
    account: LocalAccount, principal: dict[str, str], *statements: dict[str, Any], of: str = ACCOUNT
) -> str:
    """The ARN of a new role that `principal` (e.g. {"Service": ..}) may take on."""
    iam = account.client("iam", **root(account, of))
    name = f"role-{uuid.uuid4().hex[:8]}"
    trust = {"Effect": "Allow", "Principal": principal, "Action": "sts:AssumeRole"}
    role = iam.create_role(RoleName=name, AssumeRolePolicyDocument=policy(trust))["Role"]
    if statements:
        iam.put_role_policy(RoleName=name, PolicyName="p", PolicyDocument=policy(*statements))
    return str(role["Arn"])


def session_of(account: LocalAccount, role_arn: str, of: str = ACCOUNT) -> dict[str, str]:
    """The credentials of a session of the role, for `account.client`."""
    sts = account.client("sts", **root(account, of))
    given = sts.assume_role(RoleArn=role_arn, RoleSessionName="one")["Credentials"]
    return {
        "aws_access_key_id": given["AccessKeyId"],
        "aws_secret_access_key": given["SecretAccessKey"],
        "aws_session_token": given["SessionToken"],
    }


@dataclass(frozen=True)
class Function:
    """A Lambda function and how to call it."""

    client: Any
    name: str

    def invoke(self, event: object, **options: str) -> tuple[str | None, Any]:
        """Its answer: FunctionError and payload."""
        answer = self.client.invoke(
            FunctionName=self.name, Payload=json.dumps(event).encode(), **options
        )
        return answer.get("FunctionError"), json.loads(answer["Payload"].read() or "null")


def new_function(account: LocalAccount, *statements: dict[str, Any], **settings: Any) -> Function:
    """A function that does what its event says, with a role that may do this much."""
    code = io.BytesIO()
    name = f"test-{uuid.uuid4().hex[:8]}"
    with zipfile.ZipFile(code, "w") as archive:
        archive.write(TINY_ASSEMBLY / "asset_code" / "index.py", "index.py")
    client = account.client("lambda")
    client.create_function(
        FunctionName=name,
        Runtime="python3.13",
        Handler="index.handler",
        Role=new_role(account, {"Service": "lambda.amazonaws.com"}, *statements),
        Code={"ZipFile": code.getvalue()},
        **{"Timeout": 20, **settings},
    )
    return Function(client, name)


def invoke_function(account: LocalAccount, name: str, event: dict[str, Any]) -> Any:
    """What one of the stack's functions answers; it does not fail."""
    function = Function(account.client("lambda"), account.outputs[f"{name}Function"])
    error, answer = function.invoke(event)
    assert error is None, answer
    return answer
