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


def reason_given(error_message: str, parameter: str) -> str | None:
    """SQS's reason for refusing `parameter`; None where the message has another form or is cut."""
    if not error_message.startswith("Value ") or len(error_message.encode()) >= _CUT_AT_BYTES:
        return None
    start = error_message.rfind(" for parameter ")
    found = _VALUE_FOR.match(error_message, start) if start >= 0 else None
    if not found or found.group(1) != parameter or "Reason: " in found.group(2):
        return None
    return found.group(2)


def says_anything(_error_message: str) -> bool:
    """For codes that leave nothing to the message."""
    return True
