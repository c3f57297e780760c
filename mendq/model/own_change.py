"""A change that Mendq made, as the possible cause of a fault that came after it."""

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
        did: Mendq's change in words, such as "attached the DLQ ...". Part of a sentence.
        effect: The harm that the change can do, in words. Part of a sentence.
        take_back: Text before the command `mendq rollback`, such as "To take the change back".
        is_reported: True if the case itself has told people already that its change may do harm.
    """

    case_id: str
    queue_arn: str
    written_at: datetime
    did: str
    effect: str
    take_back: str
    is_reported: bool = False
