"""What CloudWatch counted and measured of one queue over a while; no error is needed to see it.

https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-available-cloudwatch-metrics.html
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

# A surplus within this is what counters that are not exact differ by.
SURPLUS_MESSAGES = 20
SURPLUS_SHARE = 0.05


@dataclass(frozen=True)
class Measured:
    """One queue between `since` and `until`: sums of what was counted, and both ends of the rest.

    The backlog is what is visible, in flight or delayed. `until` is early enough that CloudWatch
    has the last minute; `since` is never before the queue was last changed, so that what is
    measured speaks about the queue as it is now.
    """

    since: datetime
    until: datetime
    sent: int
    received: int
    deleted: int
    empty_receives: int
    backlog_before: int
    backlog_now: int
    visible_before: int
    visible_now: int
    least_visible: int
    in_flight_now: int
    oldest_age_seconds_before: int
    oldest_age_seconds_now: int
    groups_in_flight_now: int | None = None

    @property
    def hours(self) -> float:
        return (self.until - self.since).total_seconds() / 3600

    @property
    def surplus_deletes(self) -> int:
        """Deletes beyond the messages that went: each message is one delete, unless it was two."""
        return self.deleted + (self.backlog_now - self.backlog_before) - self.sent

    @property
    def has_surplus(self) -> bool:
        """Whether the surplus is more than inexact counters explain."""
        return self.surplus_deletes > max(SURPLUS_MESSAGES, SURPLUS_SHARE * self.sent)
