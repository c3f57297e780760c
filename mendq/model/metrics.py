"""Metrics of a queue: what is asked of CloudWatch, over which window, and what that amounts to."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import pairwise
from math import isfinite
from statistics import median
from typing import NamedTuple

Points = Sequence[tuple[datetime, float]]

LONGEST = timedelta(hours=6)
# CloudWatch has the datapoint of a minute a minute or two after it has ended.
CLOUDWATCH_LAG = timedelta(minutes=3)
# SQS sends one datapoint a minute: longer periods would blur both ends of a backlog.
PERIOD = timedelta(minutes=1)
# No window begins earlier before now.
REACHES_BACK = LONGEST + CLOUDWATCH_LAG + PERIOD


class QueueMetric(NamedTuple):
    """A metric of one queue, which is billed by itself."""

    metric: str
    statistic: str
    namespace: str = "AWS/SQS"
    period_seconds: int = 60


# By what a series is called here.
KINDS: Mapping[str, Mapping[str, QueueMetric]] = {
    "every queue": {
        "sent": QueueMetric("NumberOfMessagesSent", "Sum"),
        "received": QueueMetric("NumberOfMessagesReceived", "Sum"),
        "deleted": QueueMetric("NumberOfMessagesDeleted", "Sum"),
        "visible": QueueMetric("ApproximateNumberOfMessagesVisible", "Maximum"),
        "in_flight": QueueMetric("ApproximateNumberOfMessagesNotVisible", "Maximum"),
        "delayed": QueueMetric("ApproximateNumberOfMessagesDelayed", "Maximum"),
        "age": QueueMetric("ApproximateAgeOfOldestMessage", "Maximum"),
    },
    "FIFO": {"groups": QueueMetric("ApproximateNumberOfGroupsWithInflightMessages", "Maximum")},
    "receives": {
        "received": QueueMetric("NumberOfMessagesReceived", "Sum"),
        "empty": QueueMetric("NumberOfEmptyReceives", "Sum"),
    },
    # Sends that SQS dropped.
    "repeated sends": {"deduplicated": QueueMetric("NumberOfDeduplicatedSentMessages", "Sum")},
    "message groups": {
        "noisy": QueueMetric("ApproximateNumberOfNoisyGroups", "Maximum"),
        "quiet": QueueMetric("ApproximateNumberOfMessagesVisibleInQuietGroups", "Maximum"),
        "quiet_age": QueueMetric("ApproximateAgeOfOldestMessageInQuietGroups", "Maximum"),
    },
    "processing": {"processing": QueueMetric("ProcessingSeconds", "p99", "Mendq/Consumer", 3600)},
}
# Nothing else tells of these which queues have them: CloudWatch lists the first series of each.
LISTED = ("message groups", "processing")


def series_of(kinds: Iterable[str]) -> Mapping[str, QueueMetric]:
    """What is asked about a queue that has these kinds of series."""
    return {key: each for kind in kinds for key, each in KINDS[kind].items()}


@dataclass(frozen=True)
class Window:
    """From the first second of a minute up to, and not with, that of another.

    `begins_empty`: the queue was made in the first minute, and is as it was made. `at_once`: the
    running minute counts, and backlogs are measured after all that is counted. `kinds` of series
    are asked for in it.
    """

    since: datetime
    until: datetime
    begins_empty: bool = False
    at_once: bool = False
    kinds: tuple[str, ...] = ("every queue",)

    @classmethod
    def ending(
        cls,
        now: datetime,
        settled_at: datetime | None,
        shortest: timedelta,
        *,
        is_new: bool = False,
    ) -> Window | None:
        """The last hours in which the queue was as it is; None where they are too few to judge.

        Less than CLOUDWATCH_LAG is asked of the local account alone, which answers at once.
        """
        at_once = shortest < CLOUDWATCH_LAG
        # Whoever asks within a minute has its last backlog and all deletes before that.
        until = _to_the_minute(now + (2 * PERIOD if at_once else -CLOUDWATCH_LAG))
        since = until - LONGEST
        begins_empty = is_new and settled_at is not None and settled_at > since
        if settled_at is not None and settled_at > since:
            rest = timedelta(0) if begins_empty else PERIOD - timedelta(microseconds=1)
            since = _to_the_minute(settled_at + rest)
        lasted = now - settled_at if at_once and settled_at else until - since
        is_long = min(lasted, until - since) >= max(shortest, PERIOD)
        return cls(since, until, begins_empty, at_once) if is_long else None

    @property
    def series(self) -> Mapping[str, QueueMetric]:
        return series_of(self.kinds)


def _to_the_minute(moment: datetime) -> datetime:
    return moment.replace(second=0, microsecond=0)


# A surplus within this is what counters that are not exact differ by.
SURPLUS_MESSAGES = 20
SURPLUS_SHARE = 0.05
# An oldest message that grew older by so much of the time is the one that was oldest before.
STANDS_STILL_SHARE = 0.9
# So many of the receives that killing these messages takes have to be counted.
TRIED_SHARE = 0.9
# From here on every message may be tried again, and be deleted twice with one handle.
TRIED_TWICE = 2
DELETED_OFTEN = 1.5
# What was deleted within it, somebody may still be deleting.
LATELY = timedelta(minutes=15)
# Deletes have stopped earlier if the pause since the last one is longer than this, and so many
# times longer than any pause before.
SHORTEST_PAUSE, TIMES_LONGEST_PAUSE = timedelta(minutes=3), 2
# Length of the stretches by which one tells steady receives from a burst.
STRETCH = timedelta(minutes=30)


@dataclass(frozen=True)
class Gauges:
    """How a queue stood at one moment; its backlog is what is visible, in flight or delayed.

    SQS counts noisy groups, and messages of all others as quiet, where standard queues have groups.
    """

    backlog: int = 0
    visible: int = 0
    in_flight: int = 0
    oldest_age_seconds: int = 0
    groups_in_flight: int | None = None
    noisy_groups: int = 0
    quiet_visible: int = 0
    quiet_oldest_age_seconds: int = 0


@dataclass(frozen=True)
class Recent:
    """Counts about the end of a window.

    `received` and `deduplicated` count receives of the last hour, and sends that SQS dropped as
    duplicates; `deduplicated` is 0 if it was not read.

    `standstill` covers the time since the present oldest message became the oldest, `before` the
    time until then; both are None if it only just did. `fruitless_by_minute` are the receives less
    the deletes in each minute of `standstill`.

    `stretches` are the half hours of the window, oldest first; the first may be shorter. They go
    back to the beginning of the window, or to a half hour without data in CloudWatch.
    """

    received: int = 0
    deduplicated: int = 0
    standstill: Measurement | None = None
    before: Measurement | None = None
    fruitless_by_minute: tuple[int, ...] = ()
    stretches: tuple[Measurement, ...] = ()


@dataclass(frozen=True)
class Measurement:
    """One queue between `since` and `until`: sums of what was counted, and both ends of the rest.

    `until` is early enough that CloudWatch has the last minute; `since` is never before the queue
    was last changed, so that what is measured speaks about the queue as it is now. `began_silent`:
    CloudWatch had no value of the queue at first, and those of `before` are the first that there
    are. `deleted_unsure`: so many of the deletes may have come after the last backlog was measured;
    `deleted_lately` in the last minutes of all, `hours_with_deletes` in how many hours, counted
    back from `until`, there were any. `processing_p99_seconds` is how long messages took in the
    slowest hour, as their consumers publish it, None where none do.

    `fewest_messages` and `usual_messages` are the least and the median of the backlogs of all
    minutes, None if there are no minutes to look at. `sent_since_delete` and
    `received_since_delete` count what came after the minute of the last delete; 0 if nothing was
    deleted. `pause` is how long nothing has been deleted since then, `longest_pause` the longest
    such time between two deletes before.
    """

    since: datetime
    until: datetime
    sent: int
    received: int
    deleted: int
    empty_receives: int
    before: Gauges
    now: Gauges
    least_visible: int
    began_silent: bool = False
    deleted_unsure: int = 0
    deleted_lately: int = 0
    hours_with_deletes: int = 0
    recent: Recent = Recent()
    processing_p99_seconds: float | None = None
    fewest_messages: int | None = None
    usual_messages: int | None = None
    sent_since_delete: int = 0
    received_since_delete: int = 0
    pause: timedelta = timedelta(0)
    longest_pause: timedelta = timedelta(0)

    @property
    def duration(self) -> timedelta:
        return self.until - self.since

    @property
    def hours(self) -> float:
        return self.duration / timedelta(hours=1)

    @property
    def surplus_deletes(self) -> int:
        """Deletes beyond the messages that went: each message is one delete, unless it was two."""
        deleted = self.deleted - self.deleted_unsure
        return deleted + (self.now.backlog - self.before.backlog) - self.sent

    @property
    def messages_arrived(self) -> int:
        """Messages beyond those that were there and were sent: DLQ messages, on a queue of them.

        SQS reports a queue for as long as messages are in it, so that silence was an empty queue.
        """
        return self.surplus_deletes + (self.before.backlog if self.began_silent else 0)

    @property
    def visible_growth(self) -> int:
        """How many more are visible than at first; none were where nothing was reported."""
        return self.now.visible - (0 if self.began_silent else self.before.visible)

    @property
    def counter_tolerance(self) -> float:
        """So many messages may be nothing but counters that are not exact."""
        return max(SURPLUS_MESSAGES, SURPLUS_SHARE * self.sent)

    @property
    def has_surplus(self) -> bool:
        """Whether the surplus is more than inexact counters explain."""
        return self.surplus_deletes > self.counter_tolerance

    @property
    def has_race(self) -> bool:
        """Whether messages were handled twice: received again, and deleted for each receive.

        Deletes beyond the receives are one receive that is deleted twice, which harms nobody. What
        expires, is purged or goes to a DLQ lowers the backlog without a delete, so
        it may hide a race and never makes one. A backlog that grew without being sent is no delete;
        where every delete came too late and no message is gone yet, all of them are surplus.
        """
        twice_by_one = self.deleted > self.received + self.counter_tolerance
        return self.has_surplus and self.surplus_deletes <= self.deleted and not twice_by_one

    @property
    def may_be_retries(self) -> bool:
        """Whether consumers that fail at first, and delete twice in the end, count the same."""
        return (
            self.received >= TRIED_TWICE * self.sent and self.deleted >= DELETED_OFTEN * self.sent
        )

    @property
    def fruitless_receives(self) -> int:
        """Receives that ended in no delete; those of messages still in flight may yet."""
        return max(0, self.received - self.deleted - self.now.in_flight)

    @property
    def messages(self) -> int:
        """Messages that consumers could finish: those waiting at the start and those sent since."""
        return self.before.backlog + self.sent

    @property
    def sent_minus_deleted(self) -> int:
        """How many more messages were sent than deleted; negative if the backlog was worked off."""
        return self.sent - self.deleted

    def receives_per_finished(self, *, is_fifo: bool = False) -> float | None:
        """Upper bound on the mean receives per finished message; None if nothing was deleted.

        The receives of messages that never finish are in this mean, because sums cannot tell them
        apart. Receives after the last delete are not: no finished message needed them. A message
        that was deleted twice counts once; a FIFO queue deletes none twice.
        """
        if self.deleted == 0:
            return None
        deleted_twice = 0 if is_fifo else max(0, self.surplus_deletes)
        finished = max(1, self.deleted - deleted_twice)
        return max(1.0, (self.received - self.received_since_delete) / finished)

    @property
    def has_stopped_finishing(self) -> bool:
        """True if messages came and were received since the last delete, and none was finished.

        While the last delete is only minutes ago, it says so only if consumers never paused for so
        long before. It says nothing of a single message: that may be the one that comes back.
        """
        if self.deleted == 0:
            return self.sent > 1 and self.received > self.now.in_flight
        in_vain = self.received_since_delete - self.now.in_flight
        usual = max(SHORTEST_PAUSE, TIMES_LONGEST_PAUSE * self.longest_pause)
        has_paused = self.deleted_lately == 0 or self.pause > usual
        return has_paused and self.sent_since_delete > 1 and in_vain > 0

    def count_dead_messages(self, receives: int) -> int:
        """How many left after so many receives each and no delete; 0 where the counts say no such.

        What expires or is purged leaves without those receives.
        """
        left = -self.messages_arrived - self.deleted_unsure
        tried = self.fruitless_receives >= TRIED_SHARE * receives * left
        return left if receives and tried and left > self.counter_tolerance else 0

    @property
    def is_oldest_unchanged(self) -> bool:
        """Whether one message was the oldest all the while."""
        grew_older_seconds = self.now.oldest_age_seconds - self.before.oldest_age_seconds
        return grew_older_seconds >= STANDS_STILL_SHARE * 3600 * self.hours


BACKLOG = ("visible", "in_flight", "delayed")
_GAUGED = (*BACKLOG, "age", *KINDS["FIFO"], *KINDS["message groups"])
# A burst of sends may be in the first backlog or not: one of these minutes is quieter.
FIRST_MINUTES = timedelta(minutes=5)
# SQS may need so long to report a queue that nobody has used for hours.
# https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-available-cloudwatch-metrics.html
SLOW_TO_BEGIN = timedelta(minutes=15)
# No message is in flight for longer.
# https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-visibility-timeout.html
LONGEST_PROCESSING_SECONDS = 43_200
_AN_HOUR = timedelta(hours=1)
Series = Mapping[str, Points]


def summarize_series(
    series: Series, window: Window, *, is_part: bool = False
) -> Measurement | None:
    """What the datapoints by key amount to; None where CloudWatch knows nothing of the queue.

    Of what `is_part` of a window nobody asks what was lately.

    None too where a value is none that a queue can have: then the others are not believed either.
    What consumers publish may be anybody's: a value that none can have costs itself.

    A minute without a datapoint counts nothing; of a backlog the first and the last that there are
    stand for its ends, because a queue that nobody uses for hours sends none; counting begins after
    the first, but where that is the only one.
    """
    points = defaultdict[str, Points](tuple)
    for key, some in series.items():
        points[key] = [each for each in sorted(some) if window.since <= each[0] < window.until]
    points.pop("processing", None)
    published = (value for _, value in series.get("processing", ()))
    possible = [value for value in published if 0 < value <= LONGEST_PROCESSING_SECONDS]
    values = [value for some in points.values() for _, value in some]
    if not values or not all(isfinite(value) and value >= 0 for value in values):
        return None
    first, last, began_silent = _ends_of_backlog(points, window)
    is_one, is_empty = first == last, window.begins_empty and first == window.since

    def total(key: str, since: datetime) -> int:
        return int(sum(value for at, value in points[key] if at >= since))

    counted_since = window.since if is_one or is_empty else first + datetime.resolution
    began = {key: [each for each in points[key] if each[0] >= first] for key in _GAUGED}
    deleted_at = [at for at, value in points["deleted"] if value]
    after_delete = deleted_at[-1] + datetime.resolution if deleted_at else window.until
    backlogs = _backlogs(points)
    return Measurement(
        since=window.since,
        until=window.until,
        # After silence all of them: the queue was empty.
        sent=total("sent", window.since if began_silent else first),
        received=total("received", counted_since),
        deleted=total("deleted", counted_since),
        deleted_unsure=total("deleted", window.since if is_one else last),
        deleted_lately=total("deleted", window.until - LATELY),
        hours_with_deletes=len({(window.until - at) // _AN_HOUR for at in deleted_at}),
        empty_receives=total("empty", counted_since),
        before=Gauges() if is_empty else _gauges(began),
        now=_gauges({key: points[key][-1:] for key in _GAUGED}),
        least_visible=min((round(value) for _, value in points["visible"]), default=0),
        began_silent=began_silent,
        recent=Recent() if is_part else _recent(points, window),
        processing_p99_seconds=max(possible, default=None),
        fewest_messages=min(backlogs, default=None),
        usual_messages=round(median(backlogs)) if backlogs else None,
        sent_since_delete=total("sent", after_delete),
        received_since_delete=total("received", max(after_delete, counted_since)),
        pause=next(iter(_pauses([*deleted_at[-1:], window.until])), timedelta(0)),
        longest_pause=max(_pauses(deleted_at), default=timedelta(0)),
    )


def _pauses(minutes: Sequence[datetime]) -> list[timedelta]:
    """How long it took from the end of each minute to the next one."""
    return [later - at - PERIOD for at, later in pairwise(minutes)]


def _backlogs(points: Series) -> list[int]:
    """The backlog of each minute that SQS reported; a gauge that it left out counts 0."""
    gauged = [dict(points[key]) for key in BACKLOG]
    minutes = {at for values in gauged for at in values}
    return [round(sum(values.get(at, 0) for values in gauged)) for at in sorted(minutes)]


def _stretches(points: Series, window: Window) -> tuple[Measurement, ...]:
    found = list[Measurement]()
    until = window.until
    while until > window.since:
        since = max(window.since, until - STRETCH)
        stretch = summarize_series(points, Window(since, until), is_part=True)
        if stretch is None:
            break
        # All of its minutes: what was sent in the first one may have been deleted in it.
        sums = {
            key: int(sum(value for at, value in points[key] if since <= at < until))
            for key in ("sent", "received", "deleted")
        }
        found.append(
            replace(
                stretch,
                sent=sums["sent"],
                received=sums["received"],
                deleted=sums["deleted"],
            )
        )
        until = since
    return tuple(reversed(found))


def _recent(points: Series, window: Window) -> Recent:
    # In the running minute the oldest message has not aged by a minute yet.
    whole = window.until - 2 * PERIOD if window.at_once else window.until
    began = _oldest_since([each for each in points["age"] if each[0] < whole])
    hour = window.until - _AN_HOUR
    received, dropped = (
        int(sum(value for at, value in points[key] if at >= hour))
        for key in ("received", "deduplicated")
    )
    stretches = _stretches(points, window)
    if began is None:
        return Recent(received, dropped, stretches=stretches)
    counts = {key: dict(points[key]) for key in ("received", "deleted")}
    minutes = (at for at, _ in points["age"] if at > began)
    in_vain = (counts["received"].get(at, 0) - counts["deleted"].get(at, 0) for at in minutes)
    parts = (Window(began, window.until), Window(window.since, began))
    still, before = (summarize_series(points, each, is_part=True) for each in parts)
    return Recent(received, dropped, still, before, tuple(map(int, in_vain)), stretches)


def _oldest_since(ages: Points) -> datetime | None:
    """Since when the oldest message was sent at one time, as near as SQS looks; None if new."""
    if not ages or not ages[-1][1]:
        return None
    last, age = ages[-1]
    passed = {at: ((last - at).total_seconds(), age - before) for at, before in ages[:-1]}
    same = (
        at
        for at, (seconds, older) in passed.items()
        if abs(seconds - older) <= min(60, (1 - STANDS_STILL_SHARE) * seconds)
    )
    return next(same, None)


def _ends_of_backlog(series: Series, window: Window) -> tuple[datetime, datetime, bool]:
    """The first and the last minute of a backlog, and whether silence went before the first.

    The first is where the fewest were sent, early on; both are `since` where there is none, and the
    first where the queue was made then and SQS reported it at once: all that went on is counted.
    """
    since = window.since
    gauged = sorted({at for key in BACKLOG for at, _ in series[key]})
    if not gauged:
        return since, since, False
    earliest, last = gauged[0], gauged[-1]
    if window.begins_empty and earliest - since <= PERIOD:
        return since, window.until if window.at_once else last, False
    if earliest - since > SLOW_TO_BEGIN:
        return earliest, last, True
    sent = dict(series["sent"])
    early = [at for at in gauged if at < min(earliest + FIRST_MINUTES, last)] or [earliest]
    return min(early, key=lambda at: (sent.get(at, 0.0), at)), last, False


def _gauges(series: Series) -> Gauges:
    """By the first datapoint of each; 0 where there is none."""
    read = {key: round(points[0][1]) for key, points in series.items() if points}
    backlog = sum(read.get(key, 0) for key in BACKLOG)
    visible, in_flight, age = (read.get(key, 0) for key in ("visible", "in_flight", "age"))
    of_groups = (read.get(key, 0) for key in KINDS["message groups"])
    return Gauges(backlog, visible, in_flight, age, read.get("groups"), *of_groups)
