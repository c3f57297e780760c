"""A change that Mendq made, as the possible cause of a fault that came after it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True)
class OwnChange:
    """A step that Mendq wrote and that may have caused a fault.

    `queue_arn` is the queue that Mendq changed; the fault may be on its DLQ. `did` and `effect`
    are parts of a sentence, `take_back` says what `mendq rollback` does for this kind of step.
    `is_reported`: the case itself has told people already that its change may do harm.
    """

    case_id: str
    queue_arn: str
    written_at: datetime
    did: str
    effect: str
    take_back: str
    is_reported: bool = False
