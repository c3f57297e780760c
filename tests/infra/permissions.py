"""Decide what a role may do, with the emulator's IAM evaluator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ministack.core.iam_evaluator import EvalContext, evaluate, parse_policy_document

from tests.infra.synthesized import ACCOUNT, REGION


def decision(
    statements: Sequence[Mapping[str, Any]],
    action: str,
    resource: str,
    tags: Mapping[str, str] | None = None,
    keys: Mapping[str, str] | None = None,
    *,
    principal: str = f"arn:aws:sts::{ACCOUNT}:assumed-role/mendq-heal-{REGION}/heal",
) -> str:
    """Return `Allow`, `Deny` or `ImplicitDeny` for a call on a resource with these tags.

    `keys` are further condition keys of the call, such as `iam:PassedToService`.
    """
    context = EvalContext(
        principal_arn=principal,
        principal_type="AssumedRole",
        principal_account=ACCOUNT,
        action=action,
        resource_arn=resource,
        region=REGION,
        secure_transport=(keys or {}).get("aws:SecureTransport") != "false",
        # A call that names no tags has no aws:TagKeys.
        service_context={"aws:tagkeys": None}
        | {f"aws:resourcetag/{k}": v for k, v in (tags or {}).items()}
        | {name.lower(): value for name, value in (keys or {}).items()},
    )
    document = {"Version": "2012-10-17", "Statement": list(statements)}
    answer: str = evaluate(context, [parse_policy_document(document)]).decision
    return answer
