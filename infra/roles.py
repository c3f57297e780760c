"""The names of our own roles: literal, with the region, so that patterns need no reference to them.

A role's name holds in all regions of an account, so two stacks of one account must not share it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

from aws_cdk import Stack
from aws_cdk import aws_iam as iam
from constructs import Construct

from mendq.model.names import role_name


def this_account(stack: Stack) -> dict[str, dict[str, str]]:
    """The condition that a service acts for the stack's account."""
    return {"StringEquals": {"aws:SourceAccount": stack.account}}


def own_role(
    scope: Construct, name: str, *, purpose: str, service: str, description: str
) -> iam.Role:
    """The role of one purpose, which `service` takes on for this account alone."""
    stack = Stack.of(scope)
    # Lambda sets no aws:SourceAccount when it takes on a function's role.
    conditions = {} if service == "lambda" else this_account(stack)
    return iam.Role(
        scope,
        name,
        role_name=role_name(purpose, stack.region),
        description=description,
        assumed_by=iam.ServicePrincipal(f"{service}.amazonaws.com", conditions=conditions),
    )


def _statement(
    effect: iam.Effect,
    actions: Iterable[str],
    *resources: str,
    service: str = "",
    conditions: Mapping[str, Any] | None = None,
) -> iam.PolicyStatement:
    """What is allowed, or denied, on which resources; to `service`, in a resource's own policy."""
    return iam.PolicyStatement(
        effect=effect,
        principals=[iam.ServicePrincipal(f"{service}.amazonaws.com")] if service else None,
        actions=list(actions),
        resources=list(resources),
        conditions=conditions,
    )


may, may_not = partial(_statement, iam.Effect.ALLOW), partial(_statement, iam.Effect.DENY)


def may_use_keys_by(service: str, stack: Stack, actions: Iterable[str]) -> iam.PolicyStatement:
    """Of any key of the account, as `service` asks for it: which, changes without a deployment."""
    keys = stack.format_arn(service="kms", resource="key", resource_name="*")
    via = {
        "kms:ViaService": f"{service}.{stack.region}.amazonaws.com",
        "kms:CallerAccount": stack.account,
    }
    return may(actions, keys, conditions={"StringEquals": via})
