"""The names of our own roles: literal, with the region, so that patterns need no reference to them.

A role's name holds in all regions of an account, so two stacks of one account must not share it.
"""

from __future__ import annotations

from aws_cdk import Stack

HEAL = "heal"
# Left out by the rule and the trail, so that a failing call of ours never starts a fix. The role of
# the pulse is not among them: its call is meant to be seen.
LEFT_OUT = (HEAL,)


def role_name(purpose: str, region: str) -> str:
    """The role of one Lambda, e.g. `mendq-heal-eu-west-1`."""
    return f"mendq-{purpose}-{region}"


def role_arns(stack: Stack) -> tuple[str, ...]:
    """The roles left out, as `sessionIssuer.arn` names them."""
    return tuple(
        stack.format_arn(
            service="iam", region="", resource="role", resource_name=role_name(each, stack.region)
        )
        for each in LEFT_OUT
    )


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
