"""The two kinds of queue, told apart by what a failed call names.

https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-queue-message-identifiers.html
"""

from __future__ import annotations


def on_fifo(queue_arn: str | None) -> bool:
    """A FIFO queue's name ends so, and no other's may."""
    return queue_arn is not None and queue_arn.endswith(".fifo")


def not_on_fifo(queue_arn: str | None) -> bool:
    """A standard queue, or none that the call names."""
    return not on_fifo(queue_arn)
