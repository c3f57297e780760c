"""CloudWatch metrics of a queue: what is asked for, over which window, and what was measured."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from math import isfinite

# A surplus within this is what counters that are not exact differ by.
SURPLUS_MESSAGES = 20
SURPLUS_SHARE = 0.05
# An oldest message that grew older by so much of the time is the one that was oldest before.
STANDS_STILL_SHARE = 0.9
# AWS advises at least five receives before a message goes to a DLQ:
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
    def messages_arrived(self) -> int:
        """Messages beyond those that were there and were sent: DLQ messages, on a queue of them.

        SQS reports a queue for as long as messages are in it, so that silence was an empty queue.
        """
        return self.surplus_deletes + (self.backlog_before if self.began_silent else 0)

    @property
    def messages_risen(self) -> int:
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
        expires, is purged or goes to a DLQ lowers the backlog without a delete, so
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


Points = Sequence[tuple[datetime, float]]
BACKLOG = ("visible", "in_flight", "delayed")
# A burst of sends may be in the first backlog or not: one of these minutes is quieter.
FIRST_MINUTES = timedelta(minutes=5)
# SQS may need so long to report a queue that nobody has used for hours.
# https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-available-cloudwatch-metrics.html
SLOW_TO_BEGIN = timedelta(minutes=15)


@dataclass(frozen=True)
class BacklogEnds:
    """The first minutes of both; None where no backlog was measured."""

    first: datetime | None
    last: datetime | None
    began_silent: bool

    @classmethod
    def of(cls, series: Mapping[str, Points], since: datetime) -> BacklogEnds:
        """From what was measured since; the first is where the fewest were sent, early on."""
        gauged = sorted({at for key in BACKLOG for at, _ in series.get(key, ())})
        if not gauged:
            return cls(None, None, began_silent=False)
        earliest, last = gauged[0], gauged[-1]
        if earliest - since > SLOW_TO_BEGIN:
            return cls(earliest, last, began_silent=True)
        sent = dict(series.get("sent", ()))
        early = [at for at in gauged if at < min(earliest + FIRST_MINUTES, last)] or [earliest]
        first = min(early, key=lambda at: (sent.get(at, 0.0), at))
        return cls(first, last, began_silent=False)

    def before(self, points: Points) -> int:
        """A gauge's value at the first, or the next that it has."""
        return _rounded(value for at, value in points if self.first is None or at >= self.first)

    def now(self, points: Points) -> int:
        """A gauge's value at the last, or the one before."""
        return _rounded(value for _, value in reversed(points))

    def sent(self, points: Points) -> int:
        """After silence all of them: the queue was empty."""
        counts_all = self.first is None or self.began_silent
        return int(sum(value for at, value in points if counts_all or self._since_first(at)))

    def counted(self, points: Points) -> int:
        """After the first; all where that is the only minute in which a backlog was measured."""
        return int(sum(value for at, value in points if not self._has_both or self._is_after(at)))

    def unsure(self, points: Points) -> int:
        """Of what `counted` counts, what the last backlog may not show yet."""
        return int(sum(value for at, value in points if not self._has_both or self._is_late(at)))

    @property
    def _has_both(self) -> bool:
        return self.first != self.last

    def _since_first(self, at: datetime) -> bool:
        return self.first is None or at >= self.first

    def _is_after(self, at: datetime) -> bool:
        return self.first is None or at > self.first

    def _is_late(self, at: datetime) -> bool:
        return self.last is None or at >= self.last


def _rounded(values: Iterable[float]) -> int:
    """The first of them; 0 where there is none."""
    return round(next(iter(values), 0.0))


LONGEST = timedelta(hours=6)
# CloudWatch has the datapoint of a minute a minute or two after it has ended.
CLOUDWATCH_LAG = timedelta(minutes=3)
# SQS sends one datapoint a minute: longer periods would blur both ends of a backlog.
PERIOD = timedelta(minutes=1)
_AN_HOUR = timedelta(hours=1)
# No window begins earlier before now.
REACHES_BACK = LONGEST + CLOUDWATCH_LAG + PERIOD

_COUNTS = {
    "sent": "NumberOfMessagesSent",
    "received": "NumberOfMessagesReceived",
    "deleted": "NumberOfMessagesDeleted",
    "empty": "NumberOfEmptyReceives",
}

_GAUGES = {
    "visible": "ApproximateNumberOfMessagesVisible",
    "in_flight": "ApproximateNumberOfMessagesNotVisible",
    "delayed": "ApproximateNumberOfMessagesDelayed",
    "age": "ApproximateAgeOfOldestMessage",
}

_OF_FIFO = {"groups": "ApproximateNumberOfGroupsWithInflightMessages"}
Series = Mapping[str, Points]


@dataclass(frozen=True)
class QueueMetric:
    """One metric of `AWS/SQS`; `key` is what its series is called here."""

    key: str
    name: str
    statistic: str


@dataclass(frozen=True)
class Window:
    """From the first second of a minute up to, and not with, that of another."""

    since: datetime
    until: datetime

    @classmethod
    def ending(
        cls, now: datetime, settled_at: datetime | None, shortest: timedelta
    ) -> Window | None:
        """The last hours in which the queue was as it is; None where they are too few to judge."""
        until = _to_the_minute(now - CLOUDWATCH_LAG)
        since = until - LONGEST
        if settled_at is not None and settled_at > since:
            since = _to_the_minute(settled_at + PERIOD - timedelta(microseconds=1))
        return cls(since, until) if until - since >= max(shortest, PERIOD) else None


def metrics_of(*, fifo: bool) -> tuple[QueueMetric, ...]:
    """What is asked about one queue; each is billed by itself."""
    gauges = {**_GAUGES, **(_OF_FIFO if fifo else {})}
    return (
        *(QueueMetric(key, name, "Sum") for key, name in _COUNTS.items()),
        *(QueueMetric(key, name, "Maximum") for key, name in gauges.items()),
    )


def measured(series: Series, window: Window) -> Measured | None:
    """What the datapoints by key amount to; None where CloudWatch knows nothing of the queue.

    None too where a value is none that a queue can have: then the others are not believed either.

    A minute without a datapoint counts nothing; of a backlog the first and the last that there are
    stand for its ends, because a queue that nobody uses for hours sends none; counting begins after
    the first.
    """
    within = {
        key: [(at, value) for at, value in sorted(points) if window.since <= at < window.until]
        for key, points in series.items()
    }
    if not any(within.values()) or not all(_are_counts(points) for points in within.values()):
        return None
    ends = BacklogEnds.of(within, window.since)
    points = defaultdict[str, Points](tuple, within)
    deleted_at = [(at, value) for at, value in points["deleted"] if value]
    before, now = ({key: end(points[key]) for key in _GAUGES} for end in (ends.before, ends.now))
    return Measured(
        since=window.since,
        until=window.until,
        sent=ends.sent(points["sent"]),
        received=ends.counted(points["received"]),
        deleted=ends.counted(points["deleted"]),
        deleted_unsure=ends.unsure(points["deleted"]),
        deleted_lately=int(sum(n for at, n in deleted_at if at >= window.until - LATELY)),
        hours_with_deletes=len({(window.until - at) // _AN_HOUR for at, _ in deleted_at}),
        empty_receives=ends.counted(points["empty"]),
        backlog_before=_backlog(before),
        backlog_now=_backlog(now),
        visible_before=before["visible"],
        visible_now=now["visible"],
        least_visible=min((round(value) for _, value in points["visible"]), default=0),
        in_flight_now=now["in_flight"],
        oldest_age_seconds_before=before["age"],
        oldest_age_seconds_now=now["age"],
        groups_in_flight_now=ends.now(points["groups"]) if points["groups"] else None,
        began_silent=ends.began_silent,
    )


def _are_counts(points: Points) -> bool:
    return all(isfinite(value) and value >= 0 for _, value in points)


def _backlog(gauges: Mapping[str, int]) -> int:
    return sum(gauges[key] for key in BACKLOG)


def _to_the_minute(moment: datetime) -> datetime:
    return moment.replace(second=0, microsecond=0)
