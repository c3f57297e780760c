"""Roles with fixed names, and IAM policy statements.

A role's name is a literal that contains the region, so that patterns and policies can name the role
without a reference to it. IAM role names are unique in an account, across all regions, so two
stacks of one account in different regions must not share a name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from aws_cdk import Stack
from aws_cdk import aws_iam as iam
from constructs import Construct

from mendq.model.names import role_name
from mendq.model.partitions import list_service_names


def make_account_condition(stack: Stack) -> dict[str, dict[str, str]]:
    """Return the IAM condition that a service acts on behalf of the stack's account."""
    return {"StringEquals": {"aws:SourceAccount": stack.account}}


def make_role(
    scope: Construct, name: str, *, purpose: str, service: str, description: str
) -> iam.Role:
    """Make a role that one AWS service may assume.

    Every service except Lambda may assume it only on behalf of the stack's account.

    Args:
        scope: the construct that holds the role.
        name: the id of the role's construct.
        purpose: the word that the role's name ends with, before the region.
        service: the AWS service, such as `lambda`.
        description: the role's description.
    """
    stack = Stack.of(scope)
    # Lambda sends no aws:SourceAccount when it assumes a function's role.
    conditions = {} if service == "lambda" else make_account_condition(stack)
    return iam.Role(
        scope,
        name,
        role_name=role_name(purpose, stack.region),
        description=description,
        assumed_by=iam.ServicePrincipal(f"{service}.amazonaws.com", conditions=conditions),
    )


def allow(
    actions: Iterable[str],
    *resources: str,
    service: str = "",
    conditions: Mapping[str, Any] | None = None,
) -> iam.PolicyStatement:
    """Return a statement that allows actions on resources.

    Args:
        actions: IAM actions, such as `sqs:SendMessage`.
        resources: ARNs or patterns of ARNs.
        service: the AWS service that may act, in a resource's own policy. Empty in a role's policy.
        conditions: IAM conditions by operator.
    """
    return _make_statement(iam.Effect.ALLOW, actions, resources, service, conditions)


def deny(
    actions: Iterable[str], *resources: str, conditions: Mapping[str, Any] | None = None
) -> iam.PolicyStatement:
    """Return a statement of a role's policy that denies actions on resources.

    Args:
        actions: IAM actions, such as `sqs:SendMessage`.
        resources: ARNs or patterns of ARNs.
        conditions: IAM conditions by operator.
    """
    return _make_statement(iam.Effect.DENY, actions, resources, "", conditions)


def allow_keys_through(service: str, stack: Stack, actions: Iterable[str]) -> iam.PolicyStatement:
    """Return a statement that allows the use of any KMS key of the account, through one service.

    The keys are not named, because a queue or topic can get another key without a deployment.
    """
    key_arn_pattern = stack.format_arn(service="kms", resource="key", resource_name="*")
    service_condition = {
        "kms:ViaService": unpack_single(list_service_names(service, stack.region)),
        "kms:CallerAccount": stack.account,
    }
    return allow(actions, key_arn_pattern, conditions={"StringEquals": service_condition})


def unpack_single(values: list[str]) -> str | list[str]:
    """Return the only value, as people write it in a policy, or the list of several."""
    return values[0] if len(values) == 1 else values


def _make_statement(
    effect: iam.Effect,
    actions: Iterable[str],
    resources: Iterable[str],
    service: str,
    conditions: Mapping[str, Any] | None,
) -> iam.PolicyStatement:
    """Return a policy statement. An empty `service` names no principal."""
    principals = [iam.ServicePrincipal(f"{service}.amazonaws.com")] if service else None
    return iam.PolicyStatement(
        effect=effect,
        principals=principals,
        actions=list(actions),
        resources=list(resources),
        conditions=conditions,
    )
