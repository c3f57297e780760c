"""A DLQ, its source and their messages as data."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from msgspec import structs

from mendq.model.facts import Facts
from mendq.model.queue import RedrivePolicy
from mendq.model.seal import SealKey
from mendq.redrive.messages import Message, RedriveMarker
from mendq.redrive.progress import RedriveProgress, RedriveQueues

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
SOURCE = "arn:aws:sqs:us-east-1:123456789012:orders"
DEAD = "arn:aws:sqs:us-east-1:123456789012:orders-dlq"
MOST_BYTES = 262_144
RECEIVES = 3
MARKER = RedriveMarker(SOURCE, "case", SealKey(b"its key"))


def begin_progress(size: int = 5) -> RedriveProgress:
    return RedriveProgress.start("case", RedriveQueues(DEAD, SOURCE), size=size, now=NOW)


def message(name: str, **over: object) -> Message:
    """Return a message that died in the source an hour before."""
    old = Message(name, name, NOW - timedelta(hours=1), source_arn=SOURCE)
    return structs.replace(old, **over)


def queue(queue_arn: str, waiting: int = 0, delay: int = 0) -> Facts:
    """Return a queue's facts as SQS shows them."""
    attributes = {
        "ApproximateNumberOfMessages": str(waiting),
        "VisibilityTimeout": "30",
        "DelaySeconds": str(delay),
        "MaximumMessageSize": str(MOST_BYTES),
        "RedrivePolicy": RedrivePolicy(DEAD, RECEIVES).text,
    }
    return Facts(queue_arn, attributes, {})
