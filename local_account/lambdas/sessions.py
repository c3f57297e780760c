"""The role session that a Lambda calls with, whether or not permissions are enforced.

With AUTH=false MiniStack would let Lambdas call as the account's root, and nothing could tell
their calls in the trail from anybody else's.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Any

from ministack.core import lambda_runtime
from ministack.services import sts


def install() -> None:
    """Hook MiniStack's warm workers; once per process."""
    lambda_runtime.execution_credentials = execution_credentials


def execution_credentials(function: Mapping[str, Any]) -> dict[str, str]:
    """Credentials of a session of the function's role, new for every process."""
    account, _ = lambda_runtime._account_region_from_function_config(function)
    role_name = str(function.get("Role", "")).rpartition("/")[2]
    return session_credentials(account, role_name, str(function.get("FunctionName", ""))[:64])


def session_credentials(account: str, role_name: str, session_name: str) -> dict[str, str]:
    """The variables of a new session of a role, as the SDKs read them."""
    access_key = f"ASIA{secrets.token_hex(8).upper()}"
    secret, token = secrets.token_urlsafe(30), secrets.token_urlsafe(96)
    sts.register_session(
        access_key,
        {
            "Arn": f"arn:aws:sts::{account}:assumed-role/{role_name}/{session_name}",
            "UserId": f"{role_name}:{session_name}",
            "SecretAccessKey": secret,
            "SessionToken": token,
        },
    )
    return {
        "AWS_ACCESS_KEY_ID": access_key,
        "AWS_SECRET_ACCESS_KEY": secret,
        "AWS_SESSION_TOKEN": token,
    }
