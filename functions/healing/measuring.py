"""What is asked of CloudWatch about a queue, over which while, and what its answer amounts to.

https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-available-cloudwatch-metrics.html
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from math import isfinite

from functions.healing.backlog_ends import BACKLOG, BacklogEnds, Points
from functions.healing.measured import LATELY, Measured

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
