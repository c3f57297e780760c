"""Refuse KMS keys and key policies that KMS refuses and MiniStack accepts.

A key policy must let the caller change it later, unless the call bypasses this check. If it names
roles or users of this account, these must exist. Tags for a new key need kms:TagResource, except in
a deployment by CloudFormation. With AUTH=false, only the policy's JSON is checked.
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

from local_account.hooks import replace_functions
from local_account.permissions import make_call_context

MALFORMED_POLICY_ERROR = "MalformedPolicyDocumentException"
LOCKOUT_MESSAGE = "The new key policy will not allow you to update the key policy in the future."
INVALID_PRINCIPAL_MESSAGE = "Policy contains a statement with one or more invalid principals."
# True while CloudFormation creates or changes a key. CloudFormation then uses its execution role,
# which has every permission after `cdk bootstrap`, and not the permissions of its caller.
# https://docs.aws.amazon.com/cdk/v2/guide/bootstrapping-env.html
_IS_CLOUDFORMATION_CALL = ContextVar("_IS_CLOUDFORMATION_CALL", default=False)


def install() -> None:
    """Make MiniStack refuse keys and key policies that KMS refuses. Call this once per process."""

    @replace_functions(kms, "_create_key")
    def create_key(original_function: Any, parameters: Mapping[str, Any]) -> Any:
        return (
            _find_tag_refusal(parameters)
            or _find_policy_refusal(parameters)
            or original_function(parameters)
        )

    @replace_functions(provisioners._RESOURCE_HANDLERS["AWS::KMS::Key"], "create", "update")
    def provision_key(original_function: Any, *arguments: Any) -> Any:
        context_token = _IS_CLOUDFORMATION_CALL.set(True)
        try:
            return original_function(*arguments)
        finally:
            _IS_CLOUDFORMATION_CALL.reset(context_token)

    @replace_functions(kms, "_put_key_policy")
    def put_key_policy(original_function: Any, parameters: Mapping[str, Any]) -> Any:
        return _find_policy_refusal(parameters) or original_function(parameters)


def _find_policy_refusal(parameters: Mapping[str, Any]) -> Any:
    """Return KMS's error response if KMS refuses the key policy, otherwise None."""
    if "Policy" not in parameters:
        return None  # CreateKey then uses a default policy, which allows the account everything
    try:
        document = json.loads(parameters["Policy"])
        statements = document["Statement"]
    except (ValueError, LookupError, TypeError):
        return error_response_json(MALFORMED_POLICY_ERROR, "The policy is no JSON policy document.")
    if not ministack.app.AUTH:
        return None
    if isinstance(statements, dict):
        statements = [statements]
    if not all(_principal_exists(arn) for arn in _list_principals(statements)):
        return error_response_json(MALFORMED_POLICY_ERROR, INVALID_PRINCIPAL_MESSAGE)
    has_lockout_check = not parameters.get("BypassPolicyLockoutSafetyCheck")
    if has_lockout_check and not _lets_caller_change_policy(document):
        return error_response_json(MALFORMED_POLICY_ERROR, LOCKOUT_MESSAGE)
    return None


def _lets_caller_change_policy(key_policy: Mapping[str, Any]) -> bool:
    call_context = make_call_context(iam_evaluator.caller_arn(), "User", "kms:PutKeyPolicy", "*")
    evaluation = iam_evaluator.evaluate_resource_policy(dict(key_policy), call_context)
    return bool(evaluation.decision == "Allow")


def _list_principals(statements: list[Mapping[str, Any]]) -> Iterator[str]:
    """Yield every value of the principal `AWS` in a policy's statements, such as a role's ARN."""
    for statement in statements:
        principal = statement.get("Principal")
        principal_arns = principal.get("AWS", []) if isinstance(principal, dict) else []
        yield from [principal_arns] if isinstance(principal_arns, str) else principal_arns


def _principal_exists(principal_arn: str) -> bool:
    """Return False if an ARN names a role or user of this account that does not exist.

    Return True for every other principal.
    """
    for principal_type, stored_principals in (("role", iam._roles), ("user", iam._users)):
        if principal_arn.startswith(f"arn:aws:iam::{get_account_id()}:{principal_type}/"):
            return any(
                principal["Arn"] == principal_arn for principal in stored_principals.values()
            )
    return True


def _find_tag_refusal(parameters: Mapping[str, Any]) -> Any:
    """Return KMS's error response if the caller may not tag the new key, otherwise None."""
    if not parameters.get("Tags") or not ministack.app.AUTH or _IS_CLOUDFORMATION_CALL.get():
        return None
    caller_arn = iam_evaluator.caller_arn()
    policies = _gather_policies(caller_arn)
    if policies is None:
        return None
    call_context = make_call_context(caller_arn, "User", "kms:TagResource", "*")
    if iam_evaluator.evaluate(call_context, policies).decision == "Allow":
        return None
    message = f"User: {caller_arn} is not authorized to perform: kms:TagResource"
    return error_response_json("AccessDeniedException", message)


def _gather_policies(caller_arn: str) -> Any:
    """Return the IAM policies of a user or role session; None for other callers, such as root."""
    principal_name = caller_arn.rpartition("/")[2]
    if ":assumed-role/" in caller_arn:
        principal_name = caller_arn.split("/")[1]
        return iam_evaluator._gather_role_policies(principal_name, get_account_id())
    if ":user/" in caller_arn:
        return iam_evaluator._gather_user_policies(principal_name, get_account_id())
    return None
