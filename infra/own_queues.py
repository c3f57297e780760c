"""Mendq's own queues: how they are made, and how they are named where they must be forbidden."""

from __future__ import annotations

from typing import Any

from aws_cdk import Duration, RemovalPolicy, Stack, Tags
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from mendq.model.limits import MODE_TAG, OFF

DLQ = "Dlq"


def queue_arn(stack: Stack, name: str) -> str:
    """The ARN of a queue of this account and region, or of all whose names a pattern fits."""
    return stack.format_arn(service="sqs", resource=name)


def own_queue_arns(stack: Stack) -> list[str]:
    """The ARNs of those that Mendq has by now."""
    return [each.queue_arn for each in _every_queue(stack)]


def never_managed(stack: Stack) -> None:
    """Mendq's own by tag, whatever prefix of the settings fits their names."""
    for each in _every_queue(stack):
        Tags.of(each).add(MODE_TAG, OFF)


def _every_queue(stack: Stack) -> list[sqs.Queue]:
    return [each for each in stack.node.find_all() if isinstance(each, sqs.Queue)]


def own_queue(scope: Construct, name: str, retention: Duration, **more: Any) -> sqs.Queue:
    """A queue of ours: encrypted, over TLS alone, gone with the stack."""
    return sqs.Queue(
        scope,
        name,
        encryption=sqs.QueueEncryption.SQS_MANAGED,
        enforce_ssl=True,
        retention_period=retention,
        removal_policy=RemovalPolicy.DESTROY,
        **more,
    )


def dlq(scope: Construct, name: str) -> sqs.Queue:
    """Kept as long as SQS can: what lies here is read by a person."""
    return own_queue(scope, name, Duration.days(14))
