"""Mendq's own queues: how they are made, and how they are named where they must be forbidden."""

from __future__ import annotations

import re

from aws_cdk import Duration, RemovalPolicy, Stack, Tags
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from mendq.model.limits import MODE_TAG, OFF

DLQ = "Dlq"


def queue_arn(stack: Stack, name: str) -> str:
    """The ARN of a queue of this account and region, or of all whose names a pattern fits."""
    return stack.format_arn(service="sqs", resource=name)


def every_queue(scope: Construct) -> list[sqs.Queue]:
    """Those that Mendq has by now."""
    return [each for each in scope.node.find_all() if isinstance(each, sqs.Queue)]


def dead_letter_queues(scope: Construct) -> dict[str, sqs.Queue]:
    """Those of them that hold what was given up, by whose they are, such as `start-nightly`."""
    return {owner_of(each): each for each in every_queue(scope) if each.node.id == DLQ}


def owner_of(part: Construct) -> str:
    """The capability that a queue or function of ours is of, such as `start-nightly`."""
    path = part.node.path.split("/")
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "-", path[-2]).lower()


def never_managed(scope: Construct) -> None:
    """Mendq's own by tag, whatever prefix of the settings fits their names."""
    for each in every_queue(scope):
        Tags.of(each).add(MODE_TAG, OFF)


def dlq(scope: Construct, name: str) -> sqs.Queue:
    """Kept as long as SQS can: what lies here is read by a person."""
    return sqs.Queue(
        scope,
        name,
        encryption=sqs.QueueEncryption.SQS_MANAGED,
        enforce_ssl=True,
        retention_period=Duration.days(14),
        removal_policy=RemovalPolicy.DESTROY,
    )
