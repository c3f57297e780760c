"""KMS keys: refuse keys and key policies that KMS refuses and MiniStack accepts.

A key policy must let the caller change it later, unless the call bypasses that check, and its
principals in this account must exist. Setting tags needs kms:TagResource.
https://docs.aws.amazon.com/kms/latest/APIReference/API_CreateKey.html
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from typing import Any

import ministack.app
from ministack.core import iam_evaluator
from ministack.core.responses import error_response_json, get_account_id
from ministack.services import iam, kms
from ministack.services.cloudformation import provisioners

from local_account.hooks import around
from local_account.permissions import context_of

MALFORMED = "MalformedPolicyDocumentException"
LOCKED_OUT = "The new key policy will not allow you to update the key policy in the future."
NO_SUCH_PRINCIPAL = "Policy contains a statement with one or more invalid principals."
Answer = tuple[int, dict[str, str], bytes]
# True while CloudFormation creates a key. It uses its execution role, which `cdk bootstrap` gives
# every permission, and not the permissions of the caller who deploys.
# https://docs.aws.amazon.com/cdk/v2/guide/bootstrapping-env.html
_BY_CLOUDFORMATION = ContextVar("_BY_CLOUDFORMATION", default=False)


def install() -> None:
    """Make MiniStack refuse the keys and key policies that KMS refuses. Call once per process."""

    @around(kms, "_create_key")
    def create_key(inner: Any, data: Mapping[str, Any]) -> Any:
        return _refusal_of_tags(data) or _refusal_of_policy(data) or inner(data)

    @around(provisioners._RESOURCE_HANDLERS["AWS::KMS::Key"], "create", "update")
    def provision(inner: Any, *arguments: Any) -> Any:
        token = _BY_CLOUDFORMATION.set(True)
        try:
            return inner(*arguments)
        finally:
            _BY_CLOUDFORMATION.reset(token)

    @around(kms, "_put_key_policy")
    def put_key_policy(inner: Any, data: Mapping[str, Any]) -> Any:
        return _refusal_of_policy(data) or inner(data)


def _refusal_of_policy(data: Mapping[str, Any]) -> Any:
    """Return KMS's error answer if it refuses the key policy, else None."""
    if "Policy" not in data:
        return None  # CreateKey then uses a default policy, which allows the account everything
    try:
        document = json.loads(data["Policy"])
        statements = document["Statement"]
    except (ValueError, LookupError, TypeError):
        return error_response_json(MALFORMED, "The policy is no JSON policy document.")
    if not ministack.app.AUTH:
        return None
    if isinstance(statements, dict):
        statements = [statements]
    if not all(_exists(arn) for arn in _principals(statements)):
        return error_response_json(MALFORMED, NO_SUCH_PRINCIPAL)
    has_lockout_check = not data.get("BypassPolicyLockoutSafetyCheck")
    if has_lockout_check and not _lets_caller_change_it(document):
        return error_response_json(MALFORMED, LOCKED_OUT)
    return None


def _lets_caller_change_it(key_policy: Mapping[str, Any]) -> bool:
    context = context_of(iam_evaluator.caller_arn(), "User", "kms:PutKeyPolicy", "*")
    result = iam_evaluator.evaluate_resource_policy(dict(key_policy), context)
    return bool(result.decision == "Allow")


def _principals(statements: list[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the ARNs of all AWS principals that a policy's statements name."""
    for statement in statements:
        principal = statement.get("Principal")
        arns = principal.get("AWS", []) if isinstance(principal, dict) else []
        yield from [arns] if isinstance(arns, str) else arns


def _exists(arn: str) -> bool:
    """Return False if a principal is a role or user of this account that IAM does not have."""
    for kind, stored in (("role", iam._roles), ("user", iam._users)):
        if arn.startswith(f"arn:aws:iam::{get_account_id()}:{kind}/"):
            return any(principal["Arn"] == arn for principal in stored.values())
    return True


def _refusal_of_tags(data: Mapping[str, Any]) -> Any:
    """Return KMS's error answer if the caller may not tag the new key, else None."""
    if not data.get("Tags") or not ministack.app.AUTH or _BY_CLOUDFORMATION.get():
        return None
    caller = iam_evaluator.caller_arn()
    policies = _policies_of(caller)
    if policies is None:
        return None
    context = context_of(caller, "User", "kms:TagResource", "*")
    if iam_evaluator.evaluate(context, policies).decision == "Allow":
        return None
    message = f"User: {caller} is not authorized to perform: kms:TagResource"
    return error_response_json("AccessDeniedException", message)


def _policies_of(caller: str) -> Any:
    """Return the IAM policies of a user or role; None for the root user, who may do everything."""
    name = caller.rpartition("/")[2]
    if ":assumed-role/" in caller:
        name = caller.split("/")[1]
        return iam_evaluator._gather_role_policies(name, get_account_id())
    if ":user/" in caller:
        return iam_evaluator._gather_user_policies(name, get_account_id())
    return None
