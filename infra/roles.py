"""The names of our own roles: literal, with the region, so that patterns need no reference to them.

A role's name holds in all regions of an account, so two stacks of one account must not share it.
"""

from __future__ import annotations

from collections.abc import Iterable

from aws_cdk import Stack
from aws_cdk import aws_iam as iam
from constructs import Construct

HEAL = "heal"
ATTACH_DEAD_LETTERS = "attach-dead-letters"
RESTORE_POLICY = "restore-policy"
REDRIVE = "redrive"
START_NIGHT = "start-night"
WATCH_NIGHT = "watch-night"
SCHEDULE = "schedule"
NIGHT = "night"
DELIVER_REPORT = "deliver-report"
FOLLOW_UP = "follow-up"
APPROVE = "approve"
ROLL_BACK = "roll-back"
SWEEP = "sweep"
PULSE = "pulse"
# Left out by the rule and the trail, so that a failing call of ours never starts a fix. The role of
# the pulse is not among them: its call is meant to be seen.
LEFT_OUT = (
    HEAL,
    ATTACH_DEAD_LETTERS,
    RESTORE_POLICY,
    REDRIVE,
    START_NIGHT,
    WATCH_NIGHT,
    SCHEDULE,
    NIGHT,
    DELIVER_REPORT,
    FOLLOW_UP,
    APPROVE,
    ROLL_BACK,
    SWEEP,
)


def own_role(
    scope: Construct, name: str, *, purpose: str, service: str, description: str
) -> iam.Role:
    """The role of one purpose, which `service` takes on for this account alone."""
    stack = Stack.of(scope)
    this_account = {"StringEquals": {"aws:SourceAccount": stack.account}}
    # Lambda sets no aws:SourceAccount when it takes on a function's role.
    conditions = {} if service == "lambda" else this_account
    return iam.Role(
        scope,
        name,
        role_name=role_name(purpose, stack.region),
        description=description,
        assumed_by=iam.ServicePrincipal(f"{service}.amazonaws.com", conditions=conditions),
    )


def allow(role: iam.Role, actions: Iterable[str], *resources: str) -> None:
    """Let a role do `actions` on `resources`."""
    role.add_to_policy(iam.PolicyStatement(actions=list(actions), resources=list(resources)))


def role_name(purpose: str, region: str) -> str:
    """The name of a role, e.g. `mendq-heal-eu-west-1`."""
    return f"mendq-{purpose}-{region}"


def role_arn(stack: Stack, purpose: str) -> str:
    """A role as `sessionIssuer.arn` names it."""
    name = role_name(purpose, stack.region)
    return stack.format_arn(service="iam", region="", resource="role", resource_name=name)


def role_names(stack: Stack) -> tuple[str, ...]:
    """The roles left out, by name."""
    return tuple(role_name(each, stack.region) for each in LEFT_OUT)


def role_arns(stack: Stack) -> tuple[str, ...]:
    """The roles left out."""
    return tuple(role_arn(stack, each) for each in LEFT_OUT)


def session_arn_prefixes(stack: Stack) -> tuple[str, ...]:
    """How the ARN of every session of theirs begins, as `userIdentity.arn` names it."""
    return tuple(
        stack.format_arn(
            service="sts",
            region="",
            resource="assumed-role",
            resource_name=f"{role_name(each, stack.region)}/",
        )
        for each in LEFT_OUT
    )
