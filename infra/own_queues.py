"""Mendq's own queues: make them, list their ARNs, and tag them so that Mendq never manages them."""

from __future__ import annotations

from typing import TypedDict, Unpack

from aws_cdk import Duration, RemovalPolicy, Stack, Tags
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from mendq.model.tags import MODE_OFF_VALUE, MODE_TAG

# Id of the construct of a DLQ.
DLQ_CONSTRUCT_ID = "Dlq"


def format_queue_arn(stack: Stack, name: str) -> str:
    """Return the ARN of a queue in the stack's account and region. `name` may be a pattern."""
    return stack.format_arn(service="sqs", resource=name)


def list_own_queue_arns(stack: Stack) -> list[str]:
    """Return the ARNs of all queues that the stack has when this function is called."""
    return [queue.queue_arn for queue in _list_queues(stack)]


def tag_own_queues(stack: Stack) -> None:
    """Tag the stack's queues so that Mendq never manages them.

    The tag counts even if a prefix in the settings matches a queue's name.
    """
    for queue in _list_queues(stack):
        Tags.of(queue).add(MODE_TAG, MODE_OFF_VALUE)


def _list_queues(stack: Stack) -> list[sqs.Queue]:
    return [construct for construct in stack.node.find_all() if isinstance(construct, sqs.Queue)]


class QueueOptions(TypedDict, total=False):
    """Properties of a queue. Without `queue_name`, CloudFormation chooses a name."""

    queue_name: str
    fifo: bool
    content_based_deduplication: bool
    visibility_timeout: Duration
    dead_letter_queue: sqs.DeadLetterQueue


def make_queue(
    scope: Construct, name: str, retention: Duration, **options: Unpack[QueueOptions]
) -> sqs.Queue:
    """Make a queue that is encrypted, accepts only TLS, and is deleted with the stack.

    Args:
        scope: the construct that holds the queue.
        name: the id of the queue's construct.
        retention: how long the queue keeps messages.
        options: further properties; a missing one has the default of SQS.
    """
    return sqs.Queue(
        scope,
        name,
        encryption=sqs.QueueEncryption.SQS_MANAGED,
        enforce_ssl=True,
        retention_period=retention,
        removal_policy=RemovalPolicy.DESTROY,
        **options,
    )


def make_dlq(scope: Construct, name: str) -> sqs.Queue:
    """Make a DLQ that keeps messages for 14 days, the longest time that SQS allows.

    A person must look at these messages.
    """
    return make_queue(scope, name, Duration.days(14))
