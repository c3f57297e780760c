"""Whether a service may take on a role, and what the role then lets it do.

MiniStack judges the calls that come in; these are made inside it, on a service's behalf.
With AUTH=false everything is allowed, as everywhere in the account.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import ministack.app
from ministack.core import iam_evaluator
from ministack.core.responses import get_account_id, get_region
from ministack.services import iam


def refusal_to_assume(role_arn: str, service: str) -> str | None:
    """Why `service` (e.g. scheduler.amazonaws.com) cannot take on the role, or None."""
    role = iam._roles.get(_name_of(role_arn))
    if role is None:
        return f"The role {role_arn} does not exist"
    if not ministack.app.AUTH:
        return None
    context = _context(service, "Service", "sts:AssumeRole", role_arn)
    context.service_context = {"aws:sourceaccount": get_account_id()}
    trust = _with_resources(role["AssumeRolePolicyDocument"])
    decided = iam_evaluator.evaluate_resource_policy(trust, context, service=service)
    if decided.decision == "Allow":
        return None
    return f"The role {role_arn} does not let {service} assume it"


def refusal_to_act(role_arn: str, action: str, resource_arn: str) -> str | None:
    """Why the role may not do `action` on a resource, or None; resource policies aside."""
    if not ministack.app.AUTH:
        return None
    name = _name_of(role_arn)
    session = f"arn:aws:sts::{get_account_id()}:assumed-role/{name}/service"
    policies = iam_evaluator._gather_role_policies(name, get_account_id())
    context = _context(session, "AssumedRole", action, resource_arn)
    if iam_evaluator.evaluate(context, policies).decision == "Allow":
        return None
    return f"{session} is not authorized to perform: {action} on resource: {resource_arn}"


def _name_of(role_arn: str) -> str:
    return role_arn.rpartition("/")[2]


def _context(principal: str, kind: str, action: str, resource_arn: str) -> Any:
    return iam_evaluator.EvalContext(
        principal_arn=principal,
        principal_type=kind,
        principal_account=get_account_id(),
        action=action,
        resource_arn=resource_arn,
        region=get_region(),
        secure_transport=True,
    )


def _with_resources(trust: str | Mapping[str, Any]) -> dict[str, Any]:
    """A trust policy names no resource, which is the role; the evaluator wants one."""
    document = json.loads(trust) if isinstance(trust, str) else trust
    statements = document["Statement"]
    listed = [statements] if isinstance(statements, dict) else statements
    return {**document, "Statement": [{"Resource": "*", **each} for each in listed]}
