"""A change that Mendq made and that may have caused a later fault."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True)
class OwnChange:
    """A change by Mendq that may have caused a fault.

    Attributes:
        case_id: The case that made the change.
        queue_arn: The queue that Mendq changed. The fault may be on its DLQ.
        written_at: When Mendq wrote the change.
        change_text: The change in words, such as "attached the DLQ ...". In a sentence, it follows
            the word "Mendq".
        effect: The effect of the change, which may be harm, as a part of a sentence.
        rollback_introduction: Text before the command `mendq rollback`, such as "To take the change
            back".
        is_reported: True if the case itself already notified people that this change may do harm.
    """

    case_id: str
    queue_arn: str
    written_at: datetime
    change_text: str
    effect: str
    rollback_introduction: str
    is_reported: bool = False
