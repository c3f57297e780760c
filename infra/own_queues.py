"""Mendq's own queues: how they are made, and how they are named where they must be forbidden."""

from __future__ import annotations

from aws_cdk import Duration, RemovalPolicy, Stack
from aws_cdk import aws_sqs as sqs
from constructs import Construct

# The pulse's queue comes with its name, because the trail names it before it is there.
PULSE_PREFIX = "mendq-pulse"


def queue_arn(stack: Stack, name: str) -> str:
    """The ARN of a queue of this account and region, or of all whose names a pattern fits."""
    return stack.format_arn(service="sqs", resource=name)


def dead_letter_queue(scope: Construct, name: str) -> sqs.Queue:
    """Kept as long as SQS can: what lies here is read by a person."""
    return sqs.Queue(
        scope,
        name,
        encryption=sqs.QueueEncryption.SQS_MANAGED,
        enforce_ssl=True,
        retention_period=Duration.days(14),
        removal_policy=RemovalPolicy.DESTROY,
    )
