"""What CloudWatch counted and measured of one queue over a while; no error is needed to see it.

https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-available-cloudwatch-metrics.html
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

# A surplus within this is what counters that are not exact differ by.
SURPLUS_MESSAGES = 20
SURPLUS_SHARE = 0.05
# An oldest message that grew older by so much of the time is the one that was oldest before.
STANDS_STILL_SHARE = 0.9
# AWS advises at least five receives before a message goes to a dead-letter queue:
# https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-configure.html
TRIED_OFTEN = 5
# From here on every message may be tried again, and be deleted twice with one handle.
TRIED_TWICE = 2
DELETED_OFTEN = 1.5
# What was deleted within it, somebody may still be deleting.
LATELY = timedelta(minutes=15)


@dataclass(frozen=True)
class Measured:
    """One queue between `since` and `until`: sums of what was counted, and both ends of the rest.

    The backlog is what is visible, in flight or delayed. `until` is early enough that CloudWatch
    has the last minute; `since` is never before the queue was last changed, so that what is
    measured speaks about the queue as it is now. `began_silent`: CloudWatch had no value of the
    queue at first, and those of before are the first that there are. `deleted_unsure`: so many of
    the deletes may have come after the last backlog was measured; `deleted_lately` in the last
    minutes of all, `hours_with_deletes` in how many hours, counted back from `until`, there were
    any.
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
    began_silent: bool = False
    deleted_unsure: int = 0
    deleted_lately: int = 0
    hours_with_deletes: int = 0

    @property
    def hours(self) -> float:
        return (self.until - self.since).total_seconds() / 3600

    @property
    def surplus_deletes(self) -> int:
        """Deletes beyond the messages that went: each message is one delete, unless it was two."""
        deleted = self.deleted - self.deleted_unsure
        return deleted + (self.backlog_now - self.backlog_before) - self.sent

    @property
    def letters_arrived(self) -> int:
        """Messages beyond those that were there and were sent: dead letters, on a queue of them.

        SQS reports a queue for as long as messages are in it, so that silence was an empty queue.
        """
        return self.surplus_deletes + (self.backlog_before if self.began_silent else 0)

    @property
    def letters_risen(self) -> int:
        """How many more are visible than at first; none were where nothing was reported."""
        return self.visible_now - (0 if self.began_silent else self.visible_before)

    @property
    def inexact_by(self) -> float:
        """So many messages may be nothing but counters that are not exact."""
        return max(SURPLUS_MESSAGES, SURPLUS_SHARE * self.sent)

    @property
    def has_surplus(self) -> bool:
        """Whether the surplus is more than inexact counters explain."""
        return self.surplus_deletes > self.inexact_by

    @property
    def shows_a_race(self) -> bool:
        """Whether messages were handled twice: received again, and deleted for each receive.

        Deletes beyond the receives are one receive that is deleted twice, which harms nobody. What
        expires, is purged or goes to a dead-letter queue lowers the backlog without a delete, so
        it may hide a race and never makes one. A backlog that grew without being sent is no delete;
        where every delete came too late and no message is gone yet, all of them are surplus.
        """
        twice_by_one = self.deleted > self.received + self.inexact_by
        by_deletes = self.surplus_deletes <= self.deleted
        return self.has_surplus and by_deletes and not twice_by_one

    @property
    def may_be_retries(self) -> bool:
        """Whether consumers that fail at first, and delete twice in the end, count the same."""
        return (
            self.received >= TRIED_TWICE * self.sent and self.deleted >= DELETED_OFTEN * self.sent
        )

    @property
    def fruitless_receives(self) -> int:
        """Receives that ended in no delete; those of messages still in flight may yet."""
        return max(0, self.received - self.deleted - self.in_flight_now)

    @property
    def oldest_stands_still(self) -> bool:
        """Whether one message was the oldest all the while."""
        grew_older_seconds = self.oldest_age_seconds_now - self.oldest_age_seconds_before
        return grew_older_seconds >= STANDS_STILL_SHARE * 3600 * self.hours

    @property
    def one_group_blocks(self) -> bool:
        """Whether one FIFO group alone is tried again and again, and nothing else gets through.

        A message that merely takes long is received once.
        """
        return (
            self.groups_in_flight_now == 1
            and self.oldest_stands_still
            and self.received >= TRIED_OFTEN * max(self.in_flight_now, 1)
            and self.deleted <= SURPLUS_SHARE * self.received
        )
