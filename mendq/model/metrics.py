"""Metrics of a queue: what Mendq asks CloudWatch for, over which time, and the results."""

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
# CloudWatch has the datapoint of a minute one or two minutes after the minute has ended.
CLOUDWATCH_LAG = timedelta(minutes=3)
# SQS sends one datapoint per minute. A longer period would blur both ends of a backlog.
PERIOD = timedelta(minutes=1)
# No window begins longer ago than this.
REACHES_BACK = LONGEST + CLOUDWATCH_LAG + PERIOD


class QueueMetric(NamedTuple):
    """A metric of one queue, as GetMetricData reads it. CloudWatch bills each one separately."""

    metric: str
    statistic: str
    namespace: str = "AWS/SQS"
    period_seconds: int = 60


# The metrics by kind, and within a kind by the series name that Mendq uses.
METRICS_BY_KIND: Mapping[str, Mapping[str, QueueMetric]] = {
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
    # Sends that SQS dropped as duplicates.
    "repeated sends": {"deduplicated": QueueMetric("NumberOfDeduplicatedSentMessages", "Sum")},
    "message groups": {
        "noisy": QueueMetric("ApproximateNumberOfNoisyGroups", "Maximum"),
        "quiet": QueueMetric("ApproximateNumberOfMessagesVisibleInQuietGroups", "Maximum"),
        "quiet_age": QueueMetric("ApproximateAgeOfOldestMessageInQuietGroups", "Maximum"),
    },
    "processing": {"processing": QueueMetric("ProcessingSeconds", "p99", "Mendq/Consumer", 3600)},
}
# Only CloudWatch knows which queues have metrics of these kinds. To find them, Mendq lists the
# first metric of each kind.
LISTED_KINDS = ("message groups", "processing")


def series_of(kinds: Iterable[str]) -> Mapping[str, QueueMetric]:
    """Return the metrics of these kinds, by the series name that Mendq uses."""
    metrics: dict[str, QueueMetric] = {}
    for kind in kinds:
        metrics.update(METRICS_BY_KIND[kind])
    return metrics


@dataclass(frozen=True)
class Window:
    """A time in whole minutes that is measured: from `since` up to, but not including, `until`.

    Attributes:
        since: The first second of the first minute.
        until: The first second of the minute after the last one.
        begins_empty: True if the queue was created in the first minute and not changed since.
        at_once: True if the running minute is included, so that backlogs are measured after all
            counts. Only the local account answers so early.
        kinds: The kinds of metrics to ask for, from METRICS_BY_KIND.
    """

    since: datetime
    until: datetime
    begins_empty: bool = False
    at_once: bool = False
    kinds: tuple[str, ...] = ("every queue",)

    @classmethod
    def choose(
        cls,
        now: datetime,
        settled_at: datetime | None,
        shortest: timedelta,
        *,
        is_new: bool = False,
    ) -> Window | None:
        """Return the last hours, at most LONGEST, in which the queue's configuration did not
        change.

        Args:
            now: The present time.
            settled_at: When the queue's last change had taken effect; None if it is not known.
            shortest: The least time that is enough to judge a queue. Less than CLOUDWATCH_LAG is
                only for the local account, whose CloudWatch has no lag.
            is_new: True if the queue was never changed since it was created.

        Returns:
            None if the time is too short to judge.
        """
        at_once = shortest < CLOUDWATCH_LAG
        # The end is in the future, so that the window contains the running minute with its last
        # backlog and all deletes before that.
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
        """The metrics to ask for, by series name."""
        return series_of(self.kinds)


def _to_the_minute(moment: datetime) -> datetime:
    return moment.replace(second=0, microsecond=0)


# SQS's counters are not exact. They may differ by this number of messages, or by this share of the
# sends.
SURPLUS_MESSAGES = 20
SURPLUS_SHARE = 0.05
# If the age of the oldest message grew by this share of the elapsed time, it is the same message.
STANDS_STILL_SHARE = 0.9
# SQS moves a message to the DLQ after a number of receives. Messages that left count as moved only
# if at least this share of those receives was counted.
TRIED_SHARE = 0.9
# With this number of receives and deletes per send or more, consumers may fail at first, receive
# the message again and delete it twice in the end.
TRIED_TWICE = 2
DELETED_OFTEN = 1.5
# If messages were deleted within this time, consumers may still be working.
LATELY = timedelta(minutes=15)
# Deletes have stopped before that, if the pause since the last delete is longer than SHORTEST_PAUSE
# and longer than TIMES_LONGEST_PAUSE times any pause before.
SHORTEST_PAUSE = timedelta(minutes=3)
TIMES_LONGEST_PAUSE = 2
# The window is divided into parts of this length, to tell steady receives from short peaks.
STRETCH = timedelta(minutes=30)


@dataclass(frozen=True)
class Gauges:
    """The state of a queue at one moment.

    Attributes:
        backlog: Messages that are visible, in flight or delayed.
        visible: Messages that a consumer could receive.
        in_flight: Messages that a consumer has received and not deleted.
        oldest_age_seconds: Age of the oldest message.
        groups_in_flight: Message groups with messages in flight; None if SQS did not report it.
        noisy_groups: Message groups of a standard queue that SQS calls noisy.
        quiet_visible: Visible messages of all other groups of a standard queue.
        quiet_oldest_age_seconds: Age of the oldest of those messages.
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

    Attributes:
        received: Receives of the last hour.
        deduplicated: Sends of the last hour that SQS dropped as duplicates; 0 if that was not read.
        standstill: The time since the present oldest message became the oldest; None if it only
            just became the oldest.
        before: The time until then; None too in that case.
        fruitless_by_minute: The receives minus the deletes of each minute of `standstill`.
        stretches: The half hours of the window, oldest first; the first may be shorter. They begin
            with the window, or after the last half hour for which CloudWatch has no data.
    """

    received: int = 0
    deduplicated: int = 0
    standstill: Measurement | None = None
    before: Measurement | None = None
    fruitless_by_minute: tuple[int, ...] = ()
    stretches: tuple[Measurement, ...] = ()


@dataclass(frozen=True)
class Measurement:
    """Metrics of one queue between two times: sums of the counts, and the gauges at both ends.

    A measurement only describes the queue's present configuration: `since` is never before the last
    change of the queue. `until` is early enough that CloudWatch has the data of the last minute.

    Attributes:
        since: Begin of the measured time.
        until: End of the measured time.
        sent: Sent messages.
        received: Receives. A message that is received twice counts twice.
        deleted: Deletes.
        empty_receives: Receive calls that returned no message; 0 if that was not read.
        before: The gauges at the beginning. If `began_silent`, the first ones that there are.
        now: The gauges at the end.
        least_visible: The smallest number of visible messages.
        began_silent: True if CloudWatch had no data about the queue at first.
        deleted_unsure: Deletes that may have come after the last backlog was measured.
        deleted_lately: Deletes of the last 15 minutes.
        hours_with_deletes: The number of hours with deletes, counted back from `until`.
        recent: Counts about the end of the time.
        processing_p99_seconds: How long messages took in the slowest hour, as their consumers
            publish it; None if no consumer does.
        fewest_messages: The smallest backlog of any minute; None if SQS reported no backlog.
        usual_messages: The median of the backlogs of all minutes; None likewise.
        sent_since_delete: Messages sent after the minute of the last delete; 0 if nothing was
            deleted.
        received_since_delete: Receives after the minute of the last delete; 0 likewise.
        pause: The time since the last delete; 0 if nothing was deleted.
        longest_pause: The longest time between two deletes.
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
        """The length of the measured time."""
        return self.until - self.since

    @property
    def hours(self) -> float:
        """The length of the measured time in hours."""
        return self.duration / timedelta(hours=1)

    @property
    def surplus_deletes(self) -> int:
        """Deletes beyond the number of messages that left. Each message needs one delete, so more
        deletes mean that messages were deleted twice. Negative if messages left without a delete.
        """
        deleted = self.deleted - self.deleted_unsure
        return deleted + (self.now.backlog - self.before.backlog) - self.sent

    @property
    def messages_arrived(self) -> int:
        """Messages that arrived without a send. In a DLQ these are messages that SQS moved there.

        SQS reports a queue for as long as it contains messages. If it was silent at first, it was
        empty.
        """
        return self.surplus_deletes + (self.before.backlog if self.began_silent else 0)

    @property
    def visible_growth(self) -> int:
        """The number of visible messages now, minus the number at the beginning. If SQS was silent
        at the beginning, that number is 0.
        """
        return self.now.visible - (0 if self.began_silent else self.before.visible)

    @property
    def counter_tolerance(self) -> float:
        """The number of messages by which SQS's inexact counters may differ."""
        return max(SURPLUS_MESSAGES, SURPLUS_SHARE * self.sent)

    @property
    def has_surplus(self) -> bool:
        """True if inexact counters cannot explain the surplus of deletes."""
        return self.surplus_deletes > self.counter_tolerance

    @property
    def has_race(self) -> bool:
        """True if messages were handled twice: received a second time, and deleted for each
        receive.

        More deletes than receives mean something else: one receive was deleted twice, which is
        harmless. Messages that expire, are purged or move to a DLQ lower the backlog without a
        delete. They may hide a race, but never look like one. A backlog that grew without sends is
        not a surplus of deletes. If every delete came too late and no message has left yet, all
        deletes are surplus.
        """
        twice_by_one = self.deleted > self.received + self.counter_tolerance
        return self.has_surplus and self.surplus_deletes <= self.deleted and not twice_by_one

    @property
    def may_be_retries(self) -> bool:
        """True if the same counts can come from consumers that fail at first, and delete twice in
        the end.
        """
        return (
            self.received >= TRIED_TWICE * self.sent and self.deleted >= DELETED_OFTEN * self.sent
        )

    @property
    def fruitless_receives(self) -> int:
        """Receives without a delete. Receives of messages in flight are left out, because a delete
        may follow.
        """
        return max(0, self.received - self.deleted - self.now.in_flight)

    @property
    def messages(self) -> int:
        """The number of messages that consumers could finish: the first backlog, and the sends
        since.
        """
        return self.before.backlog + self.sent

    @property
    def sent_minus_deleted(self) -> int:
        """The number of sends minus the number of deletes; negative if consumers worked the backlog
        off.
        """
        return self.sent - self.deleted

    def receives_per_finished(self, *, is_fifo: bool = False) -> float | None:
        """Return an upper bound for the mean number of receives per finished message.

        The mean includes receives of messages that never finish, because sums cannot tell them
        apart. It leaves out receives after the last delete: no finished message needed them. A
        message that was deleted twice counts once; in a FIFO queue that cannot happen. None if
        nothing was deleted.
        """
        if self.deleted == 0:
            return None
        deleted_twice = 0 if is_fifo else max(0, self.surplus_deletes)
        finished = max(1, self.deleted - deleted_twice)
        return max(1.0, (self.received - self.received_since_delete) / finished)

    @property
    def has_stopped_finishing(self) -> bool:
        """True if messages were sent and received since the last delete, and none was finished.

        If the last delete is only minutes ago, this needs a pause that is longer than consumers
        ever paused before. A single message is not enough: it may be the one that always comes
        back.
        """
        if self.deleted == 0:
            return self.sent > 1 and self.received > self.now.in_flight
        in_vain = self.received_since_delete - self.now.in_flight
        usual = max(SHORTEST_PAUSE, TIMES_LONGEST_PAUSE * self.longest_pause)
        has_paused = self.deleted_lately == 0 or self.pause > usual
        return has_paused and self.sent_since_delete > 1 and in_vain > 0

    def count_dead_messages(self, receives: int) -> int:
        """Return how many messages left after `receives` fruitless receives each, so that SQS moved
        them to the DLQ. Return 0 if too few receives were counted for that.

        Messages that expire or are purged leave without those receives.
        """
        left = -self.messages_arrived - self.deleted_unsure
        tried = self.fruitless_receives >= TRIED_SHARE * receives * left
        return left if receives and tried and left > self.counter_tolerance else 0

    @property
    def is_oldest_unchanged(self) -> bool:
        """True if one message was the oldest for the whole time."""
        grew_older_seconds = self.now.oldest_age_seconds - self.before.oldest_age_seconds
        return grew_older_seconds >= STANDS_STILL_SHARE * 3600 * self.hours


BACKLOG = ("visible", "in_flight", "delayed")
# Series of values at one moment, not of counts.
_GAUGES = (*BACKLOG, "age", *METRICS_BY_KIND["FIFO"], *METRICS_BY_KIND["message groups"])
# Many sends at once may be in the first backlog or not. One of the first minutes is quieter, and is
# a better start.
FIRST_MINUTES = timedelta(minutes=5)
# SQS may take this long to report a queue again after hours without use.
# https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-available-cloudwatch-metrics.html
SLOW_TO_BEGIN = timedelta(minutes=15)
# The longest visibility timeout: SQS keeps no message in flight for longer.
# https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-visibility-timeout.html
LONGEST_PROCESSING_SECONDS = 43_200
_AN_HOUR = timedelta(hours=1)
# Datapoints by the series names of METRICS_BY_KIND.
Series = Mapping[str, Points]


def summarize_series(
    series: Series, window: Window, *, is_part: bool = False
) -> Measurement | None:
    """Summarize a queue's datapoints as one measurement.

    A minute without a datapoint counts as 0. The first and the last backlog that CloudWatch has
    stand for the two ends of the window, because SQS reports nothing about a queue that was unused
    for hours. Counting begins after the first backlog, except if there is only one.

    Args:
        series: Datapoints by series name, in any order. Those outside the window are left out.
        window: The time to summarize.
        is_part: True for a part of a longer window. Then `recent` is left empty.

    Returns:
        None if CloudWatch has no data about the queue. Also None if a value cannot be right, such
        as a negative one, because the other values cannot be trusted then either. An impossible
        processing time is only left out itself, because anyone may publish that metric.
    """
    points = _points_within(series, window)
    if not _are_plausible(points):
        return None
    first, last, began_silent = _ends_of_backlog(points, window)
    has_one_backlog = first == last
    is_empty = window.begins_empty and first == window.since
    # The count of the first minute may be in the first backlog already.
    counted_since = first + datetime.resolution
    if has_one_backlog or is_empty:
        counted_since = window.since
    began = {key: _points_from(points[key], first) for key in _GAUGES}
    ended = {key: points[key][-1:] for key in _GAUGES}
    deleted_at = [minute for minute, number in points["deleted"] if number]
    after_delete = deleted_at[-1] + datetime.resolution if deleted_at else window.until
    backlogs = _backlogs(points)
    return Measurement(
        since=window.since,
        until=window.until,
        # If SQS was silent at first, the queue was empty: every send counts.
        sent=_total(points["sent"], window.since if began_silent else first),
        received=_total(points["received"], counted_since),
        deleted=_total(points["deleted"], counted_since),
        deleted_unsure=_total(points["deleted"], window.since if has_one_backlog else last),
        deleted_lately=_total(points["deleted"], window.until - LATELY),
        hours_with_deletes=len({(window.until - minute) // _AN_HOUR for minute in deleted_at}),
        empty_receives=_total(points["empty"], counted_since),
        before=Gauges() if is_empty else _gauges(began),
        now=_gauges(ended),
        least_visible=min((round(number) for _, number in points["visible"]), default=0),
        began_silent=began_silent,
        recent=Recent() if is_part else _recent(points, window),
        processing_p99_seconds=_slowest_processing(series),
        fewest_messages=min(backlogs, default=None),
        usual_messages=round(median(backlogs)) if backlogs else None,
        sent_since_delete=_total(points["sent"], after_delete),
        received_since_delete=_total(points["received"], max(after_delete, counted_since)),
        pause=_pause_before(window.until, deleted_at),
        longest_pause=max(_pauses(deleted_at), default=timedelta(0)),
    )


def _points_within(series: Series, window: Window) -> Series:
    """Return the datapoints of the window in order, without processing times.

    A series without datapoints is empty.
    """
    points = defaultdict[str, Points](tuple)
    for key, unordered in series.items():
        if key != "processing":
            points[key] = [
                point for point in sorted(unordered) if window.since <= point[0] < window.until
            ]
    return points


def _are_plausible(points: Series) -> bool:
    """Return True if there are values and each is one that a queue can have."""
    numbers: list[float] = []
    for series in points.values():
        numbers += [number for _, number in series]
    return bool(numbers) and all(isfinite(number) and number >= 0 for number in numbers)


def _slowest_processing(series: Series) -> float | None:
    """Return the longest possible processing time in seconds; None if consumers publish none."""
    published_seconds = [seconds for _, seconds in series.get("processing", ())]
    possible_seconds = [
        seconds for seconds in published_seconds if 0 < seconds <= LONGEST_PROCESSING_SECONDS
    ]
    return max(possible_seconds, default=None)


def _points_from(points: Points, since: datetime) -> Points:
    """Return the datapoints from `since` on."""
    return [point for point in points if point[0] >= since]


def _total(points: Points, since: datetime, until: datetime | None = None) -> int:
    """Return the sum of the values from `since` up to, but not including, `until`."""
    total = 0.0
    for minute, number in points:
        if minute >= since and (until is None or minute < until):
            total += number
    return int(total)


def _pauses(minutes: Sequence[datetime]) -> list[timedelta]:
    """Return the time from the end of each minute to the beginning of the next one."""
    return [later - minute - PERIOD for minute, later in pairwise(minutes)]


def _pause_before(until: datetime, deleted_at: Sequence[datetime]) -> timedelta:
    """Return the time from the minute of the last delete to `until`; 0 without a delete."""
    if not deleted_at:
        return timedelta(0)
    return until - deleted_at[-1] - PERIOD


def _backlogs(points: Series) -> list[int]:
    """Return the backlog of each minute that SQS reported. A missing gauge counts as 0."""
    backlogs = defaultdict[datetime, float](float)
    for key in BACKLOG:
        for minute, number in points[key]:
            backlogs[minute] += number
    return [round(backlogs[minute]) for minute in sorted(backlogs)]


def _stretches(points: Series, window: Window) -> tuple[Measurement, ...]:
    """Measure each half hour of the window, oldest first. Stop at one without any data."""
    stretches = list[Measurement]()
    until = window.until
    while until > window.since:
        since = max(window.since, until - STRETCH)
        stretch = summarize_series(points, Window(since, until), is_part=True)
        if stretch is None:
            break
        # Count all minutes: a message sent in the first minute may be deleted in that minute.
        stretches.append(
            replace(
                stretch,
                sent=_total(points["sent"], since, until),
                received=_total(points["received"], since, until),
                deleted=_total(points["deleted"], since, until),
            )
        )
        until = since
    return tuple(reversed(stretches))


def _recent(points: Series, window: Window) -> Recent:
    """Return the counts about the end of the window."""
    # In the running minute, the age of the oldest message has not grown by a minute yet.
    ages_until = window.until - 2 * PERIOD if window.at_once else window.until
    began = _oldest_since([point for point in points["age"] if point[0] < ages_until])
    hour_ago = window.until - _AN_HOUR
    recent = Recent(
        received=_total(points["received"], hour_ago),
        deduplicated=_total(points["deduplicated"], hour_ago),
        stretches=_stretches(points, window),
    )
    if began is None:
        return recent
    received = dict(points["received"])
    deleted = dict(points["deleted"])
    fruitless: list[int] = []
    for minute, _ in points["age"]:
        if minute > began:
            fruitless.append(int(received.get(minute, 0) - deleted.get(minute, 0)))
    return replace(
        recent,
        standstill=summarize_series(points, Window(began, window.until), is_part=True),
        before=summarize_series(points, Window(window.since, began), is_part=True),
        fruitless_by_minute=tuple(fruitless),
    )


def _oldest_since(ages: Points) -> datetime | None:
    """Return the first minute in which the present oldest message was the oldest.

    Its age grows by a minute per minute, as exactly as SQS measures. None if it became the oldest
    in the last minute, or if the queue is empty.
    """
    if not ages or not ages[-1][1]:
        return None
    last, last_age = ages[-1]
    for minute, age in ages[:-1]:
        passed_seconds = (last - minute).total_seconds()
        tolerance_seconds = min(60, (1 - STANDS_STILL_SHARE) * passed_seconds)
        if abs(passed_seconds - (last_age - age)) <= tolerance_seconds:
            return minute
    return None


def _ends_of_backlog(series: Series, window: Window) -> tuple[datetime, datetime, bool]:
    """Return the backlog's first and last minute, and True if SQS was silent before the first.

    The first is the minute with the fewest sends among the first ones. It is `window.since` if the
    queue was made then and SQS reported it at once, so that everything is counted. Both are
    `window.since` if there is no backlog at all.
    """
    since = window.since
    reported: set[datetime] = set()
    for key in BACKLOG:
        reported.update(minute for minute, _ in series[key])
    if not reported:
        return since, since, False
    minutes = sorted(reported)
    earliest = minutes[0]
    last = minutes[-1]
    if window.begins_empty and earliest - since <= PERIOD:
        return since, window.until if window.at_once else last, False
    if earliest - since > SLOW_TO_BEGIN:
        return earliest, last, True
    sent = dict(series["sent"])
    first_minutes_end = min(earliest + FIRST_MINUTES, last)
    early = [minute for minute in minutes if minute < first_minutes_end] or [earliest]
    first = min(early, key=lambda minute: (sent.get(minute, 0.0), minute))
    return first, last, False


def _gauges(series: Series) -> Gauges:
    """Return the gauges by the first datapoint of each series; 0 for a series without any."""
    values = {key: round(points[0][1]) for key, points in series.items() if points}
    return Gauges(
        backlog=sum(values.get(key, 0) for key in BACKLOG),
        visible=values.get("visible", 0),
        in_flight=values.get("in_flight", 0),
        oldest_age_seconds=values.get("age", 0),
        groups_in_flight=values.get("groups"),
        noisy_groups=values.get("noisy", 0),
        quiet_visible=values.get("quiet", 0),
        quiet_oldest_age_seconds=values.get("quiet_age", 0),
    )
