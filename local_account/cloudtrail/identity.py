"""userIdentity: who a call's signature belongs to, in the words of CloudTrail.

https://docs.aws.amazon.com/awscloudtrail/latest/userguide/cloudtrail-event-reference-user-identity.html
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from ministack.core import iam_evaluator
from ministack.services import iam, sts

from local_account.where import ACCOUNT


def account_of(access_key: str) -> str:
    """The account that an access key belongs to; this one for a key that is nobody's."""
    if session := sts._sessions.get(access_key):
        return str(session["Arn"]).split(":")[4]
    if iam_evaluator.is_root_access_key(access_key):
        return access_key if access_key.isdecimal() else ACCOUNT
    return iam_evaluator.find_iam_access_key_account(access_key) or ACCOUNT


def as_seen_by(identity: dict[str, Any], owner: str) -> dict[str, Any]:
    """Who called, as the records of `owner` say: of another account's callers no ARN."""
    if identity["accountId"] == owner:
        return identity
    return {
        "type": "AWSAccount",
        "principalId": identity["principalId"],
        "accountId": identity["accountId"],
    }


def identity_of(access_key: str, account: str) -> dict[str, Any]:
    """The identity behind an access key that MiniStack knows; a bare account for any other."""
    credential = iam_evaluator.resolve_credential(access_key, account)
    if isinstance(credential, iam_evaluator.CredentialResolutionError):
        return {"type": "AWSAccount", "principalId": account, "accountId": account}
    identity: dict[str, Any] = {
        "type": {"User": "IAMUser"}.get(credential.principal_type, credential.principal_type),
        "principalId": credential.principal_id,
        "arn": credential.principal_arn,
        "accountId": credential.account_id,
        "accessKeyId": access_key,
    }
    if credential.principal_type == "User":
        identity["userName"] = credential.principal_name
    if credential.principal_type == "AssumedRole":
        _, role_name, session_name = credential.principal_arn.split("/", 2)
        role = iam._roles.get_scoped(credential.account_id, None, role_name) or {}
        role_id = role.get("RoleId", role_name)
        identity["principalId"] = f"{role_id}:{session_name}"
        identity["sessionContext"] = {
            "sessionIssuer": {
                "type": "Role",
                "principalId": role_id,
                "arn": role.get("Arn", f"arn:aws:iam::{account}:role/{role_name}"),
                "accountId": credential.account_id,
                "userName": role_name,
            },
            "attributes": {
                "creationDate": _session_started(sts._sessions.get(access_key) or {}),
                "mfaAuthenticated": "false",
            },
        }
    return identity


def _session_started(session: Mapping[str, Any]) -> str:
    started = datetime.fromtimestamp(session.get("IssuedAt", 0), UTC)
    return started.strftime("%Y-%m-%dT%H:%M:%SZ")
