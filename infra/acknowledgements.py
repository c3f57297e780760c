"""What the rules of cdk-nag (AwsSolutions) find here and we mean, each with its reason."""

from __future__ import annotations

from aws_cdk import Acknowledgment, Stack, Validations

REASONS: dict[str, str] = {}


def acknowledge(stack: Stack) -> None:
    """Note the reasons on the stack, for whoever runs the rules."""
    Validations.of(stack).acknowledge(
        *(Acknowledgment(id=rule, reason=reason) for rule, reason in REASONS.items())
    )
