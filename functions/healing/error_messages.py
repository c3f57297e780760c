"""What an SQS error message says, where the caller's own text stands in its middle.

`Value <the caller's> for parameter <name> is invalid. Reason: <SQS's>`: only the part after the
last `Reason: ` is SQS's word.
"""

from __future__ import annotations

import re

# CloudTrail cuts a message here, and what is left at the end may be the caller's text.
# https://docs.aws.amazon.com/awscloudtrail/latest/userguide/cloudtrail-event-reference-record-contents.html
_CUT_AT_BYTES = 1_024
_VALUE_FOR = re.compile(
    r" for parameter ([A-Za-z]{1,40}) is invalid\. Reason: ([^\x00-\x1f]{1,400})\Z"
)
# These two hold nothing of the caller's, so the whole message is SQS's word.
_SHORTER_THAN = re.compile(
    r"One or more parameters are invalid\. Reason: "
    r"Message must be shorter than ([1-9][0-9]{0,8}) bytes\."
)
_NO_DEDUPLICATION_ID = (
    "The queue should either have ContentBasedDeduplication enabled "
    "or MessageDeduplicationId provided explicitly"
)


def may_be_cut(error_message: str) -> bool:
    """Whether CloudTrail may have cut it: then its end says nothing."""
    return len(error_message.encode()) >= _CUT_AT_BYTES


def reason_given(error_message: str, parameter: str) -> str | None:
    """SQS's reason for refusing `parameter`; None where the message has another form or is cut."""
    if not error_message.startswith("Value ") or may_be_cut(error_message):
        return None
    start = error_message.rfind(" for parameter ")
    found = _VALUE_FOR.match(error_message, start) if start >= 0 else None
    if not found or found.group(1) != parameter or "Reason: " in found.group(2):
        return None
    return found.group(2)


def size_limit_bytes(error_message: str) -> int | None:
    """The limit that a message was too long for; None where SQS says something else."""
    found = _SHORTER_THAN.fullmatch(error_message)
    return int(found.group(1)) if found else None


def asks_for_deduplication_id(error_message: str) -> bool:
    """Whether SQS could not tell a FIFO message from its duplicate."""
    return error_message == _NO_DEDUPLICATION_ID


def says_anything(_error_message: str) -> bool:
    """For codes that leave nothing to the message."""
    return True
