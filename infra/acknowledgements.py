"""What the rules of cdk-nag (AwsSolutions) find here and we mean, each with its reason."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from aws_cdk import Acknowledgment, Stack, Validations
from constructs import Construct

from infra.settings import DeploymentSettings


class Meant(NamedTuple):
    """A finding on the construct at `path`, below the stack."""

    path: str
    rule: str
    reason: str


_ALWAYS = (
    Meant(
        "Trail/Bucket",
        "AwsSolutions-S1",
        "This bucket holds logs; who reads it shows in CloudTrail's S3 data events where wanted.",
    ),
    Meant(
        "Cases/Bucket",
        "AwsSolutions-S1",
        "Only the heal role may write here, under keys that are versioned; reads show in "
        "CloudTrail's S3 data events where wanted.",
    ),
    Meant(
        "Intake/Undelivered",
        "AwsSolutions-SQS3",
        "It is a dead-letter queue itself: EventBridge's, which the rule cannot see.",
    ),
    Meant(
        "Heal/Function",
        "AwsSolutions-L1",
        "Python 3.13 on purpose: the wheels in the zip are locked and tested for it.",
    ),
)
_ON_QUEUES = (
    "Which queues are managed is said by tags, which change without a deployment. "
    "Looking is harmless; writing takes the tag, and a Deny covers every other tag and our own."
)
_ON_PREFIXES = "The settings name the start of these queues' names."
_ON_FUNCTIONS = "Any function of the account may read a managed queue; its timeout is looked at."
_ON_CASES = "One object per transition, under one prefix of one bucket."
_ON_ALL = "These actions take no narrower resource."


def acknowledge(stack: Stack, settings: DeploymentSettings) -> None:
    """Note the reasons on the constructs they are about, for whoever runs the rules."""
    for meant in expected(stack, settings):
        note = Acknowledgment(id=meant.rule, reason=meant.reason)
        construct = _below(stack, meant.path)
        if construct is not None:
            Validations.of(construct).acknowledge(note)


def expected(stack: Stack, settings: DeploymentSettings) -> tuple[Meant, ...]:
    """What the rules find on this stack."""
    everywhere = (*_ALWAYS, *_wildcards(stack, settings))
    return tuple(meant for meant in everywhere if _below(stack, meant.path) is not None)


def _wildcards(stack: Stack, settings: DeploymentSettings) -> Iterator[Meant]:
    """The rule's name holds the resource, and so the account and the bucket's logical id."""
    here = f"{stack.region}:{_shown(stack.resolve(stack.account))}"
    partition = _shown(stack.resolve(stack.partition))
    found = {
        "*": _ON_ALL,
        f"arn:{partition}:sqs:{here}:*": _ON_QUEUES,
        f"arn:{partition}:lambda:{here}:function:*": _ON_FUNCTIONS,
        f"<{_logical_id(stack, 'Cases/Bucket/Resource')}.Arn>/cases/*": _ON_CASES,
    }
    prefixes = (each for each in settings.queues if each.endswith("*"))
    found.update({f"arn:{partition}:sqs:{here}:{each}": _ON_PREFIXES for each in prefixes})
    for resource, reason in found.items():
        yield Meant("HealRole/Role", f"AwsSolutions-IAM5[Resource::{resource}]", reason)


def _below(stack: Stack, path: str) -> Construct | None:
    found: Any = stack
    for name in path.split("/"):
        found = found.node.try_find_child(name) if found else None
    construct: Construct | None = found
    return construct


def _logical_id(stack: Stack, path: str) -> str:
    return str(stack.resolve(getattr(_below(stack, path), "logical_id", "")))


def _shown(resolved: Any) -> str:
    return f"<{resolved['Ref']}>" if isinstance(resolved, dict) else str(resolved)
