"""Metrics of a queue: which ones Mendq reads, over which time, and how it summarizes them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import pairwise
from math import isfinite
from statistics import median
from typing import NamedTuple

Datapoints = Sequence[tuple[datetime, float]]

LONGEST_WINDOW = timedelta(hours=6)
# CloudWatch has the datapoint of a minute one or two minutes after the minute has ended.
CLOUDWATCH_LAG = timedelta(minutes=3)
# SQS sends one datapoint per minute. A longer period would blur both ends of a backlog.
DATAPOINT_PERIOD = timedelta(minutes=1)
_ONE_HOUR = timedelta(hours=1)
# No window begins longer ago than this.
OLDEST_WINDOW_START_AGE = LONGEST_WINDOW + CLOUDWATCH_LAG + DATAPOINT_PERIOD


class QueueMetric(NamedTuple):
    """A metric of one queue, as GetMetricData reads it. CloudWatch bills each metric separately."""

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
    # What a scan reads first, to choose the queues that it measures (`mendq/model/traffic.py`).
    "sums": {
        "sent": QueueMetric("NumberOfMessagesSent", "Sum"),
        "received": QueueMetric("NumberOfMessagesReceived", "Sum"),
        "deleted": QueueMetric("NumberOfMessagesDeleted", "Sum"),
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
METRIC_KINDS_OF_SOME_QUEUES = ("message groups", "processing")


# CloudWatch is asked for this much hourly traffic to tell how a queue is usually read.
DAYS_OF_TRAFFIC = timedelta(days=4)
# A wait of consumers for their deletes is usual if so many others in these days were as long: a
# consumer that failed once and was repaired is no habit.
LEAST_LONG_WAITS = 2
# The metrics of these days: receives and deletes. CloudWatch bills each.
DAYS_OF_TRAFFIC_METRICS = ("NumberOfMessagesReceived", "NumberOfMessagesDeleted")


@dataclass(frozen=True)
class DaysOfTraffic:
    """The hours of the last four days in which a queue was read.

    Hours without a datapoint count as hours without receives. So pauses are rather too long than
    too short.

    Attributes:
        hours_with_receives: The begin of each hour with receives, oldest first.
        hours_with_deletes: The begin of each hour with deletes, oldest first.
        reported_since: The begin of the first hour for which CloudWatch has a count, also of 0;
            None if it is not known.
    """

    hours_with_receives: tuple[datetime, ...] = ()
    hours_with_deletes: tuple[datetime, ...] = ()
    reported_since: datetime | None = None

    @property
    def longest_pause(self) -> timedelta:
        """The longest time between an hour with receives and the next one; 0 if there is none.

        The time from `reported_since` to the first receive counts too: in it nobody read the queue.
        """
        pauses = [
            next_hour - hour - _ONE_HOUR for hour, next_hour in pairwise(self.hours_with_receives)
        ]
        if self.reported_since is not None and self.hours_with_receives:
            pauses.append(self.hours_with_receives[0] - self.reported_since)
        return max(pauses, default=timedelta(0))

    @property
    def is_wait_usual(self) -> bool:
        """True if the present wait since the last delete is usual for the queue's consumers.

        A wait is the number of hours with receives between two hours with deletes. The present
        wait is usual if at least LEAST_LONG_WAITS others were as long.
        """
        if not self.hours_with_deletes:
            return False
        waits = [
            self._count_hours_with_receives(after, before)
            for after, before in pairwise(self.hours_with_deletes)
        ]
        present_wait = self._count_hours_with_receives(self.hours_with_deletes[-1], None)
        return sum(wait >= present_wait for wait in waits) >= LEAST_LONG_WAITS

    def _count_hours_with_receives(self, after: datetime, before: datetime | None) -> int:
        """Count the hours with receives between two hours; up to the last one without `before`."""
        return sum(
            hour > after and (before is None or hour < before) for hour in self.hours_with_receives
        )

    def measure_pause_at(self, now: datetime) -> timedelta | None:
        """Return the time since the end of the last hour with receives; None without receives."""
        if not self.hours_with_receives:
            return None
        return max(timedelta(0), now - self.hours_with_receives[-1] - _ONE_HOUR)


def select_series(kinds: Iterable[str]) -> Mapping[str, QueueMetric]:
    """Return the metrics of these kinds of METRICS_BY_KIND, by Mendq's name of the series."""
    metrics: dict[str, QueueMetric] = {}
    for kind in kinds:
        metrics.update(METRICS_BY_KIND[kind])
    return metrics


@dataclass(frozen=True)
class Window:
    """The time that a measurement covers: from `since` up to, but not including, `until`.

    Attributes:
        since: The first second of the first minute.
        until: The first second of the minute after the last one.
        begins_empty: True if the queue was created in the first minute and not changed since.
        includes_running_minute: True if the window includes the running minute. Then the last
            backlog is measured after all counted sends and deletes. Only the local account reports
            this minute.
        kinds: The kinds of metrics to ask for, from METRICS_BY_KIND.
        shortest_duration: The shortest time that is enough to judge the queue. A part of the window
            that is shorter is not measured.
    """

    since: datetime
    until: datetime
    begins_empty: bool = False
    includes_running_minute: bool = False
    kinds: tuple[str, ...] = ("every queue",)
    shortest_duration: timedelta = field(default=DATAPOINT_PERIOD, compare=False)

    @classmethod
    def choose(
        cls,
        now: datetime,
        settled_at: datetime | None,
        shortest_duration: timedelta,
        *,
        is_new: bool = False,
    ) -> Window | None:
        """Return the window to measure: the time since the queue's last change.

        The window is at most LONGEST_WINDOW long.

        Args:
            now: The present time.
            settled_at: When the queue's last change had taken effect; None if it is not known.
            shortest_duration: The shortest time that is enough to judge a queue. A time below
                CLOUDWATCH_LAG is only for the local account, whose CloudWatch has no lag.
            is_new: True if the queue was never changed since it was created.

        Returns:
            None if the window would be shorter than `shortest_duration` or a minute.
        """
        includes_running_minute = shortest_duration < CLOUDWATCH_LAG
        # The end is in the future, so that the window contains the running minute with its last
        # backlog and all deletes before that.
        until = _round_down_to_minute(
            now + (2 * DATAPOINT_PERIOD if includes_running_minute else -CLOUDWATCH_LAG)
        )
        since = until - LONGEST_WINDOW
        begins_empty = is_new and settled_at is not None and settled_at > since
        if settled_at is not None and settled_at > since:
            time_to_full_minute = (
                timedelta(0) if begins_empty else DATAPOINT_PERIOD - timedelta(microseconds=1)
            )
            since = _round_down_to_minute(settled_at + time_to_full_minute)
        measured_duration = (
            now - settled_at if includes_running_minute and settled_at else until - since
        )
        shortest_duration = max(shortest_duration, DATAPOINT_PERIOD)
        if min(measured_duration, until - since) < shortest_duration:
            return None
        return cls(
            since,
            until,
            begins_empty,
            includes_running_minute,
            shortest_duration=shortest_duration,
        )

    @property
    def series(self) -> Mapping[str, QueueMetric]:
        """The metrics to ask for, by series name."""
        return select_series(self.kinds)


def _round_down_to_minute(time: datetime) -> datetime:
    return time.replace(second=0, microsecond=0)


# SQS's counters are not exact. They may differ by this number of messages, or by this share of the
# sends.
COUNTER_TOLERANCE_MESSAGES = 20
COUNTER_TOLERANCE_SHARE_OF_SENDS = 0.05
# SQS reports backlogs once a minute, so a balance of messages is off by this number of messages and
# by the messages of a minute.
BALANCE_TOLERANCE_MESSAGES = 3
# If the age of the oldest message grew by at least this share of the elapsed time, it is still the
# same message.
UNCHANGED_MESSAGE_AGE_SHARE = 0.9
# SQS moves a message to the DLQ after a number of receives. Messages that left count as moved only
# if at least this share of those receives was counted.
LEAST_COUNTED_SHARE_OF_RECEIVES = 0.9
# If there are at least RETRY_RECEIVES_PER_SEND receives and RETRY_DELETES_PER_SEND deletes per
# send, consumers may have failed at first, received the messages again, and deleted them twice in
# the end.
RETRY_RECEIVES_PER_SEND = 2
RETRY_DELETES_PER_SEND = 1.5
# If messages were deleted within this time, consumers may still be working.
RECENT_DELETES_PERIOD = timedelta(minutes=15)
# Even if the last delete is less than RECENT_DELETES_PERIOD ago, deletes have stopped if the pause
# since then is longer than SHORTEST_PAUSE_WITHOUT_DELETES and longer than
# PAUSE_WITHOUT_DELETES_FACTOR times any pause before.
SHORTEST_PAUSE_WITHOUT_DELETES = timedelta(minutes=3)
PAUSE_WITHOUT_DELETES_FACTOR = 2
# A few messages that were handled twice count if both halves of the window show them, and if the
# halves are at least this long.
SHORTEST_HALF = timedelta(hours=1)
# SQS's gauges differ from the number of messages by about this share.
INEXACT_SHARE_OF_GAUGES = 0.03
# The window is divided into parts of this length, to tell steady receives from short peaks.
HALF_HOUR = timedelta(minutes=30)


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
        quiet_visible: Visible messages of a standard queue that belong to no noisy group.
        quiet_oldest_age_seconds: Age of the oldest of these messages.
    """

    backlog: int = 0
    visible: int = 0
    in_flight: int = 0
    oldest_age_seconds: int = 0
    groups_in_flight: int | None = None
    noisy_groups: int = 0
    quiet_visible: int = 0
    quiet_oldest_age_seconds: int = 0


class MinuteCounts(NamedTuple):
    """The number of messages sent, of receives, and of deletes in one minute."""

    sent: int = 0
    received: int = 0
    deleted: int = 0


@dataclass(frozen=True)
class RecentCounts:
    """Counts about the end of a window.

    Attributes:
        received: Receives of the last hour.
        deduplicated: Sends of the last hour that SQS dropped as duplicates; 0 if that was not read.
        standstill: The measurement of the time since the present oldest message became the oldest;
            None if it became the oldest in the last minute, or if there is no message.
        before: The measurement of the time before `standstill`; None in the same cases, and if
            CloudWatch has no data of that time.
        fruitless_receives_by_minute: The receives minus the deletes of each minute of `standstill`
            for which SQS reported an age, except its first minute.
        half_hours: The half hours of the window, oldest first; the first may be shorter. They begin
            with the window, or after the last half hour for which CloudWatch has no data.
        minutes: The counts of each minute of the window, oldest first. A minute without a datapoint
            counts as 0.
        halves: The first and the second half of the window; empty if a half is shorter than
            SHORTEST_HALF, or has no data.
    """

    received: int = 0
    deduplicated: int = 0
    standstill: Measurement | None = None
    before: Measurement | None = None
    fruitless_receives_by_minute: tuple[int, ...] = ()
    half_hours: tuple[Measurement, ...] = ()
    minutes: tuple[MinuteCounts, ...] = ()
    halves: tuple[Measurement, ...] = ()


@dataclass(frozen=True)
class Measurement:
    """The metrics of one queue between two times: sums of counts, and the gauges at both ends.

    A gauge is a value at one moment, such as the backlog. To describe only the queue's present
    configuration, callers choose a window that begins when the last change has taken effect, or
    when Mendq wrote its fix. `until` is so early that CloudWatch has the data of the last minute.

    Attributes:
        since: The begin of the measured time.
        until: The end of the measured time.
        sent: The number of sends.
        received: The number of receives. A message that is received twice counts twice.
        deleted: The number of deletes.
        empty_receives: Receive calls that returned no message; 0 if that was not read.
        before: The gauges at the beginning. If `was_unreported_at_start`, the first ones that SQS
            reported.
        now: The gauges at the end.
        fewest_visible_messages: The smallest number of visible messages of any minute; 0 without
            data.
        was_unreported_at_start: True if SQS did not report the queue at the beginning, because the
            queue was unused and empty.
        deletes_after_last_backlog: Deletes that may have come after the last backlog was measured.
        deletes_of_last_15_minutes: Deletes of the last 15 minutes.
        hours_with_deletes: The number of hours with deletes, counted back from `until`.
        recent: Counts about the end of the measured time.
        processing_p99_seconds: The 99th percentile of the time that consumers need per message, in
            the slowest hour; None if no consumer publishes it.
        fewest_messages: The smallest backlog of any minute; None if SQS reported no backlog.
        usual_messages: The median of the backlogs of all minutes; None in the same case.
        sent_since_delete: Messages sent after the minute of the last delete; 0 if nothing was
            deleted.
        received_since_delete: Receives after the minute of the last delete; 0 in the same case.
        pause: The time since the last delete; 0 if nothing was deleted.
        longest_pause_between_deletes: The longest time between a delete and the next one; 0 if all
            deletes were in one minute.
        usual_in_flight: The median number of messages in flight; None if SQS did not report it.
        in_flight_seconds: How long all messages together were in flight: each minute counts 60 s
            for each message that was in flight then. It covers the minutes whose receives count in
            `received`. Minutes for which SQS reported no receives, not even 0, are left out.
        highest_oldest_age_seconds: The highest age of the oldest message in any minute; 0 without
            data. On a standard queue, SQS leaves out messages that were received more than three
            times.
        minutes_with_receives: The number of minutes with receives; 0 if the minutes are not known.
        pause_since_receive: The time since the last receive; None if nothing was received, or if
            the minutes are not known.
        reported_minutes: The number of minutes for which SQS reported the number of visible
            messages, also 0. SQS reports this number each minute for a queue that is in use, and
            the other metrics only if there is something to report.
        pause_since_report: The time since the last of these minutes; None if there is none.
    """

    since: datetime
    until: datetime
    sent: int
    received: int
    deleted: int
    empty_receives: int
    before: Gauges
    now: Gauges
    fewest_visible_messages: int
    was_unreported_at_start: bool = False
    deletes_after_last_backlog: int = 0
    deletes_of_last_15_minutes: int = 0
    hours_with_deletes: int = 0
    recent: RecentCounts = RecentCounts()
    processing_p99_seconds: float | None = None
    fewest_messages: int | None = None
    usual_messages: int | None = None
    sent_since_delete: int = 0
    received_since_delete: int = 0
    pause: timedelta = timedelta(0)
    longest_pause_between_deletes: timedelta = timedelta(0)
    usual_in_flight: int | None = None
    in_flight_seconds: float = 0.0
    highest_oldest_age_seconds: int = 0
    minutes_with_receives: int = 0
    pause_since_receive: timedelta | None = None
    reported_minutes: int = 0
    pause_since_report: timedelta | None = None

    def is_sufficient_for(self, window: Window) -> bool:
        """Return True if the absence of a sign in this measurement is evidence about the window.

        SQS reported the queue in at least LEAST_REPORTED_MINUTES, for at least LEAST_REPORTED_SHARE
        of the window, and within LONGEST_DELAY_OF_FIRST_REPORT before the measurement's end. SQS
        reports the number of visible messages of each queue that was called in the last six hours,
        and begins to report an unused queue up to 15 minutes after a call.

        https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-available-cloudwatch-metrics.html
        """
        if self.pause_since_report is None:
            return False
        least_minutes = max(
            LEAST_REPORTED_MINUTES,
            LEAST_REPORTED_SHARE * ((window.until - window.since) / DATAPOINT_PERIOD),
        )
        return (
            self.reported_minutes >= least_minutes
            and self.pause_since_report <= LONGEST_DELAY_OF_FIRST_REPORT
        )

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
        """The number of deletes minus the number of messages that left the queue.

        Each message needs one delete. A positive number means that messages were deleted twice, a
        negative one that messages left without a delete. `deletes_after_last_backlog` is left out.
        """
        certain_deletes = self.deleted - self.deletes_after_last_backlog
        return certain_deletes + (self.now.backlog - self.before.backlog) - self.sent

    @property
    def messages_arrived_without_send(self) -> int:
        """The number of messages that arrived without a send, minus those that left undeleted.

        In a DLQ, SQS moved the arrived messages there. SQS reports a queue as long as it contains
        messages. So if the measurement `was_unreported_at_start`, the queue was empty at the
        beginning.
        """
        return self.surplus_deletes + (self.before.backlog if self.was_unreported_at_start else 0)

    @property
    def messages_gone_undeleted(self) -> int:
        """The number of messages that left without a delete, minus those that came without a send.

        They expired, were purged or moved to a DLQ. The number may be negative.
        """
        return -self.messages_arrived_without_send - self.deletes_after_last_backlog

    @property
    def visible_growth(self) -> int:
        """The number of visible messages now, minus the number at the beginning.

        If the measurement `was_unreported_at_start`, the number at the beginning is 0.
        """
        return self.now.visible - (0 if self.was_unreported_at_start else self.before.visible)

    @property
    def counter_tolerance(self) -> float:
        """The number of messages by which SQS's inexact counters may be wrong."""
        return max(COUNTER_TOLERANCE_MESSAGES, COUNTER_TOLERANCE_SHARE_OF_SENDS * self.sent)

    @property
    def balance_tolerance(self) -> float:
        """The number of messages by which a balance of sends, deletes and backlogs may be wrong.

        It does not grow with the measured time: a few messages that fail are seen at any traffic.
        """
        minute_count = max(1.0, self.duration / DATAPOINT_PERIOD)
        return BALANCE_TOLERANCE_MESSAGES + self.sent / minute_count

    @property
    def has_surplus_deletes(self) -> bool:
        """True if there are more `surplus_deletes` than SQS's inexact counters can explain."""
        return self.surplus_deletes > self.counter_tolerance

    @property
    def has_consumer_race(self) -> bool:
        """True if consumers handled messages twice (a race).

        A message was received again while the first consumer still worked on it, and both consumers
        deleted it. Three cases look similar and give False:

        - More deletes than receives: consumers deleted with one receipt handle twice. This is
          harmless.
        - More surplus deletes than deletes: the backlog grew without sends.
        - Messages left without a delete: they expired, were purged or moved to a DLQ. They lower
          the surplus. So they may hide a race, but they never look like a race.

        A surplus that inexact counters could explain counts too if both halves of the window show
        it (`has_few_double_deletes`).
        """
        were_handles_used_twice = self.deleted > self.received + self.counter_tolerance
        has_clear_race = (
            self.has_surplus_deletes
            and self.surplus_deletes <= self.deleted
            and not were_handles_used_twice
        )
        return has_clear_race or self.has_few_double_deletes

    @property
    def has_few_double_deletes(self) -> bool:
        """True if both halves of the window show that a few messages were deleted twice.

        Inexact counters err in both directions, so two halves seldom agree by chance.
        """
        halves = self.recent.halves
        return bool(halves) and all(half.has_small_delete_surplus for half in halves)

    @property
    def has_small_delete_surplus(self) -> bool:
        """True if there are more `surplus_deletes` than `balance_tolerance` and gauges explain.

        Each delete must have a receive: consumers that delete twice with one receipt handle receive
        each message once.
        """
        inexact_messages = INEXACT_SHARE_OF_GAUGES * (self.before.backlog + self.now.backlog)
        most_deletes = self.received + self.before.in_flight + BALANCE_TOLERANCE_MESSAGES
        return (
            self.balance_tolerance + inexact_messages < self.surplus_deletes <= self.deleted
            and self.deleted <= most_deletes
        )

    @property
    def seconds_in_flight_per_receive(self) -> float | None:
        """For how long a receive keeps its message in flight, on average; None without receives.

        By Little's law this is `in_flight_seconds`, divided by the receives. Messages that were in
        flight at the beginning count as received. SQS reports the number in flight once a minute,
        so the result may be too long by up to a minute.
        """
        receive_count = self.received + self.before.in_flight
        if not receive_count:
            return None
        return self.in_flight_seconds / receive_count

    @property
    def may_be_retries(self) -> bool:
        """True if the counts behind `has_consumer_race` can have another cause than a race.

        Consumers may fail at first, receive messages again, and delete them twice in the end. True
        if there are at least twice as many receives, and 1.5 times as many deletes, as sends.
        """
        return (
            self.received >= RETRY_RECEIVES_PER_SEND * self.sent
            and self.deleted >= RETRY_DELETES_PER_SEND * self.sent
        )

    @property
    def fruitless_receives(self) -> int:
        """The number of receives that no delete followed: receives minus deletes, at least 0.

        The messages in flight are subtracted too, because their deletes may still follow.
        """
        return max(0, self.received - self.deleted - self.now.in_flight)

    @property
    def messages(self) -> int:
        """The number of messages that consumers could finish.

        This is the backlog at the beginning plus the sends since then.
        """
        return self.before.backlog + self.sent

    @property
    def sent_minus_deleted(self) -> int:
        """The number of sends minus the number of deletes. It may be negative."""
        return self.sent - self.deleted

    @property
    def fewest_messages_of_last_hour(self) -> int:
        """The smallest backlog of any minute of the last hour.

        So many messages have been there for an hour, or have come in place of others. If the half
        hours are not known, this is the backlog at the end.
        """
        fewest_by_half_hour = [
            half_hour.fewest_messages or 0 for half_hour in self.recent.half_hours[-2:]
        ]
        return min(fewest_by_half_hour, default=self.now.backlog)

    @property
    def unfinished_messages(self) -> int:
        """The number of messages that arrived and were not deleted. It may be negative.

        Messages that may have come within the last hour do not count, because consumers may still
        finish them: this is what the backlog is above `fewest_messages_of_last_hour`.
        """
        new_messages = max(0, self.now.backlog - self.fewest_messages_of_last_hour)
        return self.sent_minus_deleted - new_messages

    def receives_per_finished(self, *, is_fifo: bool = False) -> float | None:
        """Return an upper bound for the mean number of receives per finished message.

        It is an upper bound because it also counts the receives of messages that never finish: sums
        cannot tell these apart. Receives after the last delete are left out, because no finished
        message needed them. A message that was deleted twice counts once; in a FIFO queue
        (`is_fifo`) this cannot happen. The result is at least 1. None if nothing was deleted.
        """
        if self.deleted == 0:
            return None
        messages_deleted_twice = 0 if is_fifo else max(0, self.surplus_deletes)
        finished_messages = max(1, self.deleted - messages_deleted_twice)
        return max(1.0, (self.received - self.received_since_delete) / finished_messages)

    @property
    def has_stopped_finishing(self) -> bool:
        """True if consumers no longer finish messages.

        Since the last delete, at least two messages were sent, and there were more receives than
        messages are in flight now. A single sent message does not count, because it may always
        fail. If the last delete is less than 15 minutes ago, the pause since then must also be
        longer than SHORTEST_PAUSE_WITHOUT_DELETES, and much longer than every pause before
        (PAUSE_WITHOUT_DELETES_FACTOR). If nothing was deleted, the whole measured time counts.
        """
        if self.deleted == 0:
            return self.sent > 1 and self.received > self.now.in_flight
        fruitless_receives = self.received_since_delete - self.now.in_flight
        longest_usual_pause = max(
            SHORTEST_PAUSE_WITHOUT_DELETES,
            PAUSE_WITHOUT_DELETES_FACTOR * self.longest_pause_between_deletes,
        )
        have_deletes_paused = (
            self.deletes_of_last_15_minutes == 0 or self.pause > longest_usual_pause
        )
        return have_deletes_paused and self.sent_since_delete > 1 and fruitless_receives > 0

    def count_dead_messages(
        self, max_receive_count: int, tolerated_messages: float | None = None
    ) -> int:
        """Return how many messages SQS moved from this queue to its DLQ.

        This is the number of messages that left the queue without a delete. Return 0 if there were
        too few receives without a delete for `max_receive_count` receives of each of these messages
        (LEAST_COUNTED_SHARE_OF_RECEIVES): then they expired or were purged. Return 0 also if
        inexact counters can explain the number.

        Args:
            max_receive_count: The queue's maxReceiveCount; 0 if it has none.
            tolerated_messages: What inexact counters can explain. So many of the messages need no
                receives. If None, this is `counter_tolerance`, and all need them.
        """
        messages_gone_undeleted = self.messages_gone_undeleted
        received_messages = messages_gone_undeleted - (tolerated_messages or 0)
        if tolerated_messages is None:
            tolerated_messages = self.counter_tolerance
        are_receives_sufficient = (
            self.fruitless_receives
            >= LEAST_COUNTED_SHARE_OF_RECEIVES * max_receive_count * received_messages
        )
        return (
            messages_gone_undeleted
            if max_receive_count
            and are_receives_sufficient
            and messages_gone_undeleted > tolerated_messages
            else 0
        )

    @property
    def is_oldest_unchanged(self) -> bool:
        """True if the same message seems to have been the oldest for the whole measured time.

        Its age grew by at least UNCHANGED_MESSAGE_AGE_SHARE of this time.
        """
        age_growth_seconds = self.now.oldest_age_seconds - self.before.oldest_age_seconds
        return age_growth_seconds >= UNCHANGED_MESSAGE_AGE_SHARE * 3600 * self.hours


BACKLOG_SERIES = ("visible", "in_flight", "delayed")
# Series of values at one moment, not of counts.
_GAUGE_SERIES = (
    *BACKLOG_SERIES,
    "age",
    *METRICS_BY_KIND["FIFO"],
    *METRICS_BY_KIND["message groups"],
)
# If many messages are sent in a minute, it is not known if that minute's backlog contains them. So
# the first backlog is that of the minute with the fewest sends among the first minutes.
FIRST_BACKLOG_PERIOD = timedelta(minutes=5)
# SQS may take this long to report a queue again after hours without use.
# https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-available-cloudwatch-metrics.html
LONGEST_DELAY_OF_FIRST_REPORT = timedelta(minutes=15)
# The longest visibility timeout: SQS keeps no message in flight for longer.
# https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-visibility-timeout.html
LONGEST_PROCESSING_SECONDS = 43_200
# The absence of a sign is evidence only if SQS reported the queue in this number of minutes, and in
# this share of the time.
LEAST_REPORTED_MINUTES = 3
LEAST_REPORTED_SHARE = 0.5
# Datapoints by the series names of METRICS_BY_KIND.
DatapointsBySeries = Mapping[str, Datapoints]
# The series that SQS reports in each minute in which a queue is active, if the value is 0 too. The
# other gauges may be missing if they are 0.
# https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-available-cloudwatch-metrics.html
_COUNT_SERIES = tuple(METRICS_BY_KIND["sums"])
_STEADY_SERIES = (*_COUNT_SERIES, "visible")
# A measurement may end this long before its window, to leave out a later gap.
LONGEST_TIME_AFTER_MEASUREMENT = timedelta(hours=1)


@dataclass(frozen=True)
class MetricGap:
    """Datapoints that CloudWatch lacks while it has others of the queue, so it is not measured.

    Attributes:
        missing_metrics: The metrics without any datapoint in the window; empty if no metric lacks
            all of them.
    """

    missing_metrics: tuple[str, ...] = ()

    @property
    def reason(self) -> str:
        """Why the queue is not judged, as a sentence for people."""
        if self.missing_metrics:
            return (
                f"CloudWatch has no datapoint of {', '.join(self.missing_metrics)}, although it "
                "has others of the queue: a missing count is not 0"
            )
        return (
            "CloudWatch has no counts of some minutes, and no time without a gap is long enough to "
            "judge the queue: a missing count is not 0. The next scan tries again"
        )


def find_time_without_gaps(
    points_by_series: DatapointsBySeries, window: Window
) -> Window | MetricGap:
    """Return the longest part of the window for which CloudWatch has each count of each minute.

    SQS reports counts of 0 too while a queue is active. So a minute that has a datapoint of one
    count and none of another has a gap, and the missing count may be any number. If it were taken
    for 0, consumers that finish every message would look as if they failed.

    The part ends at most LONGEST_TIME_AFTER_MEASUREMENT before the window's end. The whole window
    is returned if nothing is missing, and if SQS seems to leave counts of 0 out for this queue: no
    count is 0, and in most of the minutes with something missing, all counts are.

    Args:
        points_by_series: Datapoints by series name. Those outside the window are left out. A series
            that was not asked for is left out.
        window: The time to measure.

    Returns:
        A MetricGap if a metric has no datapoint, or if no part is as long as the window's
        `shortest_duration`.
    """
    points_in_window = _select_points_in_window(points_by_series, window)
    minutes_by_series = {
        series_name: {minute for minute, _ in points_in_window[series_name]}
        for series_name in _STEADY_SERIES
        if series_name in points_by_series
    }
    counted_minutes = set[datetime]()
    for series_name in _COUNT_SERIES:
        counted_minutes |= minutes_by_series.get(series_name, set())
    if not counted_minutes:
        return window
    missing_metrics = tuple(
        METRICS_BY_KIND["every queue"][series_name].metric
        for series_name, minutes in minutes_by_series.items()
        if not minutes
    )
    if missing_metrics:
        return MetricGap(missing_metrics)
    reported_minutes = set[datetime]().union(*minutes_by_series.values())
    minutes_with_all = set.intersection(*minutes_by_series.values())
    gap_minutes = reported_minutes - minutes_with_all
    counts = [value for name in _COUNT_SERIES for _, value in points_in_window[name]]
    minutes_without_counts = reported_minutes - counted_minutes
    is_zero_left_out = 0 not in counts and 2 * len(minutes_without_counts) >= len(gap_minutes)
    if not gap_minutes or is_zero_left_out:
        return window
    return _find_longest_part(window, gap_minutes)


def _find_longest_part(window: Window, gap_minutes: Iterable[datetime]) -> Window | MetricGap:
    """Return the longest part of the window without these minutes that ends late enough."""
    earliest_end = window.until - LONGEST_TIME_AFTER_MEASUREMENT
    part_starts = [window.since, *(minute + DATAPOINT_PERIOD for minute in sorted(gap_minutes))]
    part_ends = [*sorted(gap_minutes), window.until]
    late_parts = [
        (end - start, start, end)
        for start, end in zip(part_starts, part_ends, strict=True)
        if end >= earliest_end
    ]
    duration, since, until = max(late_parts)
    if duration < window.shortest_duration:
        return MetricGap()
    return replace(
        window,
        since=since,
        until=until,
        begins_empty=window.begins_empty and since == window.since,
        includes_running_minute=window.includes_running_minute and until == window.until,
    )


def summarize_series(
    points_by_series: DatapointsBySeries, window: Window, *, is_part_of_window: bool = False
) -> Measurement | None:
    """Return a measurement that summarizes a queue's datapoints.

    The window must have no gap (`find_time_without_gaps`). SQS reports nothing about a queue that
    was unused for hours, so a minute without any datapoint counts as 0 in the sums, and the first
    and the last reported backlog count as the backlogs at the begin and at the end of the window.
    Sends count from the minute of the first backlog on, or in the whole window if SQS reported
    nothing at first. Receives and deletes count after that minute, or in the whole window if there
    is at most one backlog or the queue was new.

    Args:
        points_by_series: Datapoints by series name, in any order. Those outside the window are left
            out.
        window: The time to summarize.
        is_part_of_window: True for a part of a longer window. Then `recent` is left empty.

    Returns:
        None if CloudWatch has no data about the queue. Also None if a value is impossible, such as
        a negative value: then the other values cannot be trusted either. Only an impossible
        processing time is left out without further effect, because anyone may publish that metric.
    """
    points_in_window = _select_points_in_window(points_by_series, window)
    if not _are_points_plausible(points_in_window):
        return None
    first_backlog_at, last_backlog_at, was_unreported_at_start = _find_first_and_last_backlog(
        points_in_window, window
    )
    has_only_one_backlog = first_backlog_at == last_backlog_at
    begins_empty = window.begins_empty and first_backlog_at == window.since
    # The count of the first minute may be in the first backlog already.
    start_of_counted_receives = first_backlog_at + datetime.resolution
    if has_only_one_backlog or begins_empty:
        start_of_counted_receives = window.since
    gauge_points_at_start = {
        series_name: _select_points_since(points_in_window[series_name], first_backlog_at)
        for series_name in _GAUGE_SERIES
    }
    gauge_points_at_end = {
        series_name: points_in_window[series_name][-1:] for series_name in _GAUGE_SERIES
    }
    minutes_with_deletes = [minute for minute, count in points_in_window["deleted"] if count]
    minutes_with_receives = [minute for minute, count in points_in_window["received"] if count]
    last_delete_end = (
        minutes_with_deletes[-1] + datetime.resolution if minutes_with_deletes else window.until
    )
    backlogs = _list_backlogs(points_in_window)
    return Measurement(
        since=window.since,
        until=window.until,
        # If SQS was silent at first, the queue was empty: every send counts.
        sent=_sum_points(
            points_in_window["sent"], window.since if was_unreported_at_start else first_backlog_at
        ),
        received=_sum_points(points_in_window["received"], start_of_counted_receives),
        deleted=_sum_points(points_in_window["deleted"], start_of_counted_receives),
        deletes_after_last_backlog=_sum_points(
            points_in_window["deleted"], window.since if has_only_one_backlog else last_backlog_at
        ),
        deletes_of_last_15_minutes=_sum_points(
            points_in_window["deleted"], window.until - RECENT_DELETES_PERIOD
        ),
        hours_with_deletes=len(
            {(window.until - minute) // _ONE_HOUR for minute in minutes_with_deletes}
        ),
        empty_receives=_sum_points(points_in_window["empty"], start_of_counted_receives),
        before=Gauges() if begins_empty else _make_gauges(gauge_points_at_start),
        now=_make_gauges(gauge_points_at_end),
        fewest_visible_messages=min(
            (round(count) for _, count in points_in_window["visible"]), default=0
        ),
        was_unreported_at_start=was_unreported_at_start,
        recent=RecentCounts() if is_part_of_window else _summarize_recent(points_in_window, window),
        processing_p99_seconds=_find_slowest_processing_seconds(points_by_series),
        fewest_messages=min(backlogs, default=None),
        usual_messages=round(median(backlogs)) if backlogs else None,
        sent_since_delete=_sum_points(points_in_window["sent"], last_delete_end),
        received_since_delete=_sum_points(
            points_in_window["received"], max(last_delete_end, start_of_counted_receives)
        ),
        pause=_measure_pause_since_last_delete(window.until, minutes_with_deletes),
        longest_pause_between_deletes=max(
            _list_pauses_between_deletes(minutes_with_deletes), default=timedelta(0)
        ),
        usual_in_flight=_find_usual_value(points_in_window["in_flight"]),
        in_flight_seconds=_sum_in_flight_seconds(points_in_window, start_of_counted_receives),
        highest_oldest_age_seconds=max(
            (round(age_seconds) for _, age_seconds in points_in_window["age"]), default=0
        ),
        minutes_with_receives=len(minutes_with_receives),
        pause_since_receive=(
            window.until - minutes_with_receives[-1] - DATAPOINT_PERIOD
            if minutes_with_receives
            else None
        ),
        reported_minutes=len(points_in_window["visible"]),
        pause_since_report=(
            window.until - points_in_window["visible"][-1][0] - DATAPOINT_PERIOD
            if points_in_window["visible"]
            else None
        ),
    )


def _sum_in_flight_seconds(points_by_series: DatapointsBySeries, since: datetime) -> float:
    """Return how long all messages together were in flight, from `since` on.

    Only minutes with a count of receives are added, because a missing count is a gap and not a
    zero: otherwise the messages received in a gap would make the other receives look longer.
    """
    minutes_with_count = {minute for minute, _ in points_by_series["received"]}
    in_flight_counts = [
        count
        for minute, count in _select_points_since(points_by_series["in_flight"], since)
        if minute in minutes_with_count
    ]
    return sum(in_flight_counts) * DATAPOINT_PERIOD.total_seconds()


def _select_points_in_window(
    points_by_series: DatapointsBySeries, window: Window
) -> DatapointsBySeries:
    """Return the datapoints of the window by series, sorted by time, without processing times.

    A series without datapoints gives an empty sequence.
    """
    points_in_window = defaultdict[str, Datapoints](tuple)
    for series_name, unordered_points in points_by_series.items():
        if series_name != "processing":
            points_in_window[series_name] = [
                point
                for point in sorted(unordered_points)
                if window.since <= point[0] < window.until
            ]
    return points_in_window


def _are_points_plausible(points_by_series: DatapointsBySeries) -> bool:
    """Return True if there is at least one value, and all are finite and not negative."""
    values: list[float] = []
    for datapoints in points_by_series.values():
        values += [value for _, value in datapoints]
    return bool(values) and all(isfinite(value) and value >= 0 for value in values)


def _find_slowest_processing_seconds(points_by_series: DatapointsBySeries) -> float | None:
    """Return the longest published processing time in seconds; None if consumers publish none.

    Impossible values are left out.
    """
    published_processing_seconds = [
        seconds for _, seconds in points_by_series.get("processing", ())
    ]
    plausible_processing_seconds = [
        seconds
        for seconds in published_processing_seconds
        if 0 < seconds <= LONGEST_PROCESSING_SECONDS
    ]
    return max(plausible_processing_seconds, default=None)


def _find_usual_value(points: Datapoints) -> int | None:
    """Return the median of the values; None without datapoints."""
    return round(median(value for _, value in points)) if points else None


def _select_points_since(points: Datapoints, since: datetime) -> Datapoints:
    """Return the datapoints from `since` on."""
    return [point for point in points if point[0] >= since]


def _sum_points(points: Datapoints, since: datetime, until: datetime | None = None) -> int:
    """Return the sum of the values from `since` up to, but not including, `until`.

    If `until` is None, the sum goes to the end.
    """
    value_sum = 0.0
    for minute, value in points:
        if minute >= since and (until is None or minute < until):
            value_sum += value
    return int(value_sum)


def _list_pauses_between_deletes(minutes_with_deletes: Sequence[datetime]) -> list[timedelta]:
    """Return the time from the end of each minute to the beginning of the next one."""
    return [
        next_minute - minute - DATAPOINT_PERIOD
        for minute, next_minute in pairwise(minutes_with_deletes)
    ]


def _measure_pause_since_last_delete(
    until: datetime, minutes_with_deletes: Sequence[datetime]
) -> timedelta:
    """Return the time from the end of the last minute with a delete to `until`; 0 without one."""
    if not minutes_with_deletes:
        return timedelta(0)
    return until - minutes_with_deletes[-1] - DATAPOINT_PERIOD


def _list_backlogs(points_by_series: DatapointsBySeries) -> list[int]:
    """Return the backlog of each minute, sorted by time.

    The backlog is the sum of the visible, in-flight and delayed messages that SQS reported. A
    minute without any of the three is left out.
    """
    backlogs = defaultdict[datetime, float](float)
    for series_name in BACKLOG_SERIES:
        for minute, value in points_by_series[series_name]:
            backlogs[minute] += value
    return [round(backlogs[minute]) for minute in sorted(backlogs)]


def _measure_half_hours(
    points_by_series: DatapointsBySeries, window: Window
) -> tuple[Measurement, ...]:
    """Return a measurement of each half hour of the window, oldest first.

    The half hours are counted back from the end of the window. The result ends where CloudWatch has
    no data for a half hour: earlier half hours are left out.
    """
    half_hour_measurements = list[Measurement]()
    until = window.until
    while until > window.since:
        since = max(window.since, until - HALF_HOUR)
        half_hour_measurement = summarize_series(
            points_by_series, Window(since, until), is_part_of_window=True
        )
        if half_hour_measurement is None:
            break
        # Count all minutes: a message sent in the first minute may be deleted in that minute.
        half_hour_measurements.append(
            replace(
                half_hour_measurement,
                sent=_sum_points(points_by_series["sent"], since, until),
                received=_sum_points(points_by_series["received"], since, until),
                deleted=_sum_points(points_by_series["deleted"], since, until),
            )
        )
        until = since
    return tuple(reversed(half_hour_measurements))


def _measure_halves(
    points_by_series: DatapointsBySeries, window: Window
) -> tuple[Measurement, ...]:
    """Return a measurement of each half of the window; empty if they are short or lack data."""
    middle = _round_down_to_minute(window.since + (window.until - window.since) / 2)
    if middle - window.since < SHORTEST_HALF:
        return ()
    halves = list[Measurement]()
    for since, until in ((window.since, middle), (middle, window.until)):
        half = summarize_series(points_by_series, Window(since, until), is_part_of_window=True)
        if half is None:
            return ()
        halves.append(half)
    return tuple(halves)


def _summarize_recent(points_by_series: DatapointsBySeries, window: Window) -> RecentCounts:
    """Return the `RecentCounts` counts of the window, from its datapoints in order."""
    # In the running minute, the age of the oldest message has not grown by a minute yet.
    end_of_complete_ages = (
        window.until - 2 * DATAPOINT_PERIOD if window.includes_running_minute else window.until
    )
    standstill_start = _find_start_of_standstill(
        [point for point in points_by_series["age"] if point[0] < end_of_complete_ages]
    )
    start_of_last_hour = window.until - _ONE_HOUR
    recent_counts = RecentCounts(
        received=_sum_points(points_by_series["received"], start_of_last_hour),
        deduplicated=_sum_points(points_by_series["deduplicated"], start_of_last_hour),
        half_hours=_measure_half_hours(points_by_series, window),
        minutes=_list_minutes(points_by_series, window),
        halves=_measure_halves(points_by_series, window),
    )
    if standstill_start is None:
        return recent_counts
    receives_by_minute = dict(points_by_series["received"])
    deletes_by_minute = dict(points_by_series["deleted"])
    fruitless_receives: list[int] = []
    for minute, _ in points_by_series["age"]:
        if minute > standstill_start:
            fruitless_receives.append(
                int(receives_by_minute.get(minute, 0) - deletes_by_minute.get(minute, 0))
            )
    return replace(
        recent_counts,
        standstill=summarize_series(
            points_by_series, Window(standstill_start, window.until), is_part_of_window=True
        ),
        before=summarize_series(
            points_by_series, Window(window.since, standstill_start), is_part_of_window=True
        ),
        fruitless_receives_by_minute=tuple(fruitless_receives),
    )


def _list_minutes(points_by_series: DatapointsBySeries, window: Window) -> tuple[MinuteCounts, ...]:
    """Return the counts of each minute of the window, oldest first."""
    count_by_minute_of_series = [
        dict(points_by_series[series_name]) for series_name in MinuteCounts._fields
    ]
    minutes = list[MinuteCounts]()
    for number in range((window.until - window.since) // DATAPOINT_PERIOD):
        minute = window.since + number * DATAPOINT_PERIOD
        counts = [int(counts.get(minute, 0)) for counts in count_by_minute_of_series]
        minutes.append(MinuteCounts(*counts))
    return tuple(minutes)


def _find_start_of_standstill(age_points: Datapoints) -> datetime | None:
    """Return the first minute in which the message that is the oldest now was already the oldest.

    While the same message is the oldest, its reported age grows by about a minute per minute.
    `age_points` are the ages of the oldest message in seconds, by minute. None if the message
    became the oldest in the last minute, if the queue is empty, or if SQS reported no age.
    """
    if not age_points or not age_points[-1][1]:
        return None
    last_minute, last_age_seconds = age_points[-1]
    for minute, age_seconds in age_points[:-1]:
        elapsed_seconds = (last_minute - minute).total_seconds()
        tolerance_seconds = min(60, (1 - UNCHANGED_MESSAGE_AGE_SHARE) * elapsed_seconds)
        if abs(elapsed_seconds - (last_age_seconds - age_seconds)) <= tolerance_seconds:
            return minute
    return None


def _find_first_and_last_backlog(
    points_by_series: DatapointsBySeries, window: Window
) -> tuple[datetime, datetime, bool]:
    """Return the minute of the first backlog, that of the last, and if the window began silent.

    "Began silent" means that at first SQS reported no backlog for longer than
    LONGEST_DELAY_OF_FIRST_REPORT.

    - If SQS reported no backlog at all, both minutes are `window.since`.
    - If the queue was created at `window.since` and SQS reported it within one DATAPOINT_PERIOD,
      the first minute is `window.since`, so that everything is counted. The last minute is
      `window.until` if `window.includes_running_minute`, otherwise the last reported minute.
    - If the window began silent, the minutes are the first and the last reported minute.
    - Otherwise the first minute is the minute with the fewest sends, among those reported within
      FIRST_BACKLOG_PERIOD after the first report. The last minute is the last reported minute.
    """
    since = window.since
    reported_minutes: set[datetime] = set()
    for series_name in BACKLOG_SERIES:
        reported_minutes.update(minute for minute, _ in points_by_series[series_name])
    if not reported_minutes:
        return since, since, False
    sorted_minutes = sorted(reported_minutes)
    first_reported_minute = sorted_minutes[0]
    last_reported_minute = sorted_minutes[-1]
    if window.begins_empty and first_reported_minute - since <= DATAPOINT_PERIOD:
        return (
            since,
            window.until if window.includes_running_minute else last_reported_minute,
            False,
        )
    if first_reported_minute - since > LONGEST_DELAY_OF_FIRST_REPORT:
        return first_reported_minute, last_reported_minute, True
    sends_by_minute = dict(points_by_series["sent"])
    end_of_first_minutes = min(first_reported_minute + FIRST_BACKLOG_PERIOD, last_reported_minute)
    first_reported_minutes = [
        minute for minute in sorted_minutes if minute < end_of_first_minutes
    ] or [first_reported_minute]
    minute_with_fewest_sends = min(
        first_reported_minutes, key=lambda minute: (sends_by_minute.get(minute, 0.0), minute)
    )
    return minute_with_fewest_sends, last_reported_minute, False


def _make_gauges(points_by_series: DatapointsBySeries) -> Gauges:
    """Return the gauges at the first datapoint of each series.

    A gauge without a datapoint is 0; `groups_in_flight` is then None.
    """
    value_by_series_name = {
        series_name: round(points[0][1])
        for series_name, points in points_by_series.items()
        if points
    }
    return Gauges(
        backlog=sum(value_by_series_name.get(series_name, 0) for series_name in BACKLOG_SERIES),
        visible=value_by_series_name.get("visible", 0),
        in_flight=value_by_series_name.get("in_flight", 0),
        oldest_age_seconds=value_by_series_name.get("age", 0),
        groups_in_flight=value_by_series_name.get("groups"),
        noisy_groups=value_by_series_name.get("noisy", 0),
        quiet_visible=value_by_series_name.get("quiet", 0),
        quiet_oldest_age_seconds=value_by_series_name.get("quiet_age", 0),
    )
