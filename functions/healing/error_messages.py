"""What an SQS error message says, where the caller's own text stands in its middle.

`Value <the caller's> for parameter <name> is invalid. Reason: <SQS's>`: only the part after the
last `Reason: ` is SQS's word.
"""

from __future__ import annotations

import re

_LOOKED_AT = 1_024
_VALUE_FOR = re.compile(
    r" for parameter ([A-Za-z]{1,40}) is invalid\. Reason: ([^\x00-\x1f]{1,400})\Z"
)


def reason_given(error_message: str, parameter: str) -> str | None:
    """SQS's reason for refusing `parameter`; None where the message has another form."""
    if not error_message.startswith("Value "):
        return None
    tail = error_message[-_LOOKED_AT:]
    start = tail.rfind(" for parameter ")
    found = _VALUE_FOR.match(tail, start) if start >= 0 else None
    if not found or found.group(1) != parameter or "Reason: " in found.group(2):
        return None
    return found.group(2)


def says_anything(_error_message: str) -> bool:
    """For codes that leave nothing to the message."""
    return True
