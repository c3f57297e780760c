"""What SQS takes an attribute for that it was never told.

https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SetQueueAttributes.html
"""

from __future__ import annotations

from collections.abc import Mapping

DEFAULTS: Mapping[str, int] = {
    "DelaySeconds": 0,
    "KmsDataKeyReusePeriodSeconds": 300,
    "MaximumMessageSize": 1_048_576,
    "MessageRetentionPeriod": 345_600,
    "ReceiveMessageWaitTimeSeconds": 0,
    "VisibilityTimeout": 30,
}


def number_in(attributes: Mapping[str, str], name: str) -> int:
    """The attribute's value, or SQS's own where `attributes` do not say."""
    return int(attributes.get(name, DEFAULTS[name]))
