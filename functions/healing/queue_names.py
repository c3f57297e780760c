"""SQS's names for a queue: name, URL, ARN.

https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-queue-message-identifiers.html
"""

from __future__ import annotations

import re
from typing import NamedTuple

_NAME = r"(?=.{1,80}\Z)[A-Za-z0-9_-]{1,80}(?:\.fifo)?"
_ACCOUNT = r"[0-9]{12}"
_REGION = r"[a-z0-9-]{1,32}"
_ARN = re.compile(rf"arn:(aws[a-z-]{{0,16}}):sqs:({_REGION}):({_ACCOUNT}):({_NAME})")
_URL = re.compile(rf"https?://[A-Za-z0-9.:\[\]-]{{1,255}}/({_ACCOUNT})/({_NAME})")
_REFUSED = re.compile(
    r"\bon resource: (arn:aws[a-z-]{0,16}:sqs:[a-z0-9-]{1,32}:[0-9]{12}:[A-Za-z0-9_.-]{1,80})"
    r"(?=\s|\Z)"
)


class QueueArn(NamedTuple):
    """The parts of a queue's ARN."""

    partition: str
    region: str
    account: str
    name: str


def parts_of(queue_arn: str) -> QueueArn:
    """Raise ValueError where `queue_arn` is none."""
    found = _ARN.fullmatch(queue_arn)
    if not found:
        raise ValueError(f"not the ARN of a queue: {queue_arn[:120]!r}")
    return QueueArn(*found.groups())


def arn_of(text: object) -> str | None:
    """`text` if it is exactly the ARN of a queue."""
    return text if isinstance(text, str) and _ARN.fullmatch(text) else None


def arn_of_name(name: object, region: str, account: str) -> str | None:
    """The ARN of a queue's name; None where a part is not legal."""
    if not isinstance(name, str):
        return None
    return arn_of(f"arn:{partition_of(region)}:sqs:{region}:{account}:{name}")


def arn_of_url(url: object, region: str) -> str | None:
    """The ARN behind a queue URL; its host is not looked at, because nothing is ever sent there."""
    found = _URL.fullmatch(url) if isinstance(url, str) else None
    return arn_of_name(found.group(2), region, found.group(1)) if found else None


def public_url(queue_arn: str) -> str:
    """The URL that the queue has for everybody; raises ValueError where `queue_arn` is none.

    https://docs.aws.amazon.com/general/latest/gr/sqs-service.html
    """
    queue = parts_of(queue_arn)
    suffix = "amazonaws.com.cn" if queue.region.startswith("cn-") else "amazonaws.com"
    return f"https://sqs.{queue.region}.{suffix}/{queue.account}/{queue.name}"


def arn_refused_in(error_message: str) -> str | None:
    """The queue that IAM's refusal names; the text may be the caller's: the ARN must be exact."""
    found = _REFUSED.search(error_message[-1024:])
    return arn_of(found.group(1)) if found else None


def partition_of(region: str) -> str:
    """AWS's partition of a region."""
    if region.startswith("cn-"):
        return "aws-cn"
    return "aws-us-gov" if region.startswith("us-gov-") else "aws"
