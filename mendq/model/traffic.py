"""Decide which queues a scan measures, by what their messages did in the last hours.

CloudWatch bills each metric that it is asked for, whatever the time that it covers. So a scan first
asks for three sums of each queue in use: sends, receives and deletes, minute by minute for up to
six hours. `find_measuring_reason` reads them, and what costs nothing: the messages that the queue
and its DLQ hold now, and what they held before. Only a queue with a reason is measured.

Rules:

1. History decides, not this instant. A queue whose consumer fails fast, or whose DLQ takes every
   message, is empty at nearly every moment. Its sums are not: messages were received and not
   deleted.

2. Margins are a few messages (MARGIN_MESSAGES) and never a share of the traffic. A handful of
   messages that always fail is found in any traffic.

3. A missing datapoint is a gap and not a zero. So the sums are compared twice: over all reported
   minutes, and over the minutes that all three sums report. One of the two is enough. If CloudWatch
   has no datapoint of one sum, but counts of another, the queue is measured.

4. A DLQ gained messages if it holds more than when its source was last judged: measured without
   an error. A source that the budget skips, or that cannot be measured, keeps its reason until it
   is judged. The number is stored with the source, so that a scan of another source of the same
   DLQ does not change it. If there is none, a DLQ that holds any message counts as one that gained
   messages. A source without a receive cannot have moved the messages, so it comes after sources
   with receives. Otherwise queues that name a full DLQ could use up the budget.

5. Mendq's own GetQueueAttributes calls keep every scanned queue active for CloudWatch. So a queue
   counts as unused if its sums were 0 at least ACTIVE_HOURS after the last hour in which it held
   messages or a sum was above 0. Only sums that were asked for count: a queue that waits for its
   turn stays in use, and so does a queue about which nothing is known.

6. If more queues are in use than sums may be asked for, those whose sums were asked for longest ago
   have their turn first. A queue whose sums were never asked for waits from its first scan on. So
   the longest pause is known: the number of queues, divided by the number of turns in a scan.
   Unused queues have a small share of their own, so that they neither displace
   the others nor are forgotten.

This module is pure: it knows no AWS and no clock.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from enum import IntEnum
from hashlib import sha256
from math import ceil, isfinite
from typing import NamedTuple

from mendq.model.facts import Facts, QueueFacts, function_name
from mendq.model.metrics import Datapoints, DatapointsBySeries, Window

# The three sums, by their series name in METRICS_BY_KIND.
SUM_SERIES = ("sent", "received", "deleted")
# Differences between two sums up to this number of messages are no reason: counters are not exact,
# and a message may be received in one minute and deleted in a later one.
MARGIN_MESSAGES = 3
# A queue is unused if its sums are 0 this long after it last had messages or traffic (rule 5).
ACTIVE_HOURS = 24
# The sums of an unused queue are asked for once in this time, if there are enough turns.
UNUSED_PAUSE_HOURS = 24
# Sums are asked for in hours whose number is divisible by this.
SUMS_EVERY_HOURS = 2
# Of the metrics that may be read between two hours with sums, this share may be spent on the sums
# of queues in use, and this on those of unused queues. The rest measures suspects.
_SHARE_FOR_QUEUES_IN_USE = 0.6
_SHARE_FOR_UNUSED_QUEUES = 0.1


class Sums(NamedTuple):
    """The number of messages sent, of receives, and of deletes in the same minutes."""

    sent: int = 0
    received: int = 0
    deleted: int = 0


class Traffic(NamedTuple):
    """The three sums of a queue over the measured time.

    Attributes:
        reported: The sums over all datapoints.
        paired: The sums over the minutes for which CloudWatch has a datapoint of all three.
        missing_series: The series without any datapoint, if another one has a datapoint.
        is_reported: True if CloudWatch has any datapoint.
    """

    reported: Sums
    paired: Sums
    missing_series: tuple[str, ...] = ()
    is_reported: bool = True

    @property
    def has_messages(self) -> bool:
        """True if at least one message was sent, received or deleted."""
        return any(self.reported)


def summarize_traffic(points_by_series: DatapointsBySeries, window: Window) -> Traffic:
    """Return the three sums of a queue in the window.

    Args:
        points_by_series: Datapoints by series name. Those outside the window are left out.
        window: The time to summarize.
    """
    count_by_minute_of_series = {
        series: _select_counts(points_by_series.get(series, ()), window) for series in SUM_SERIES
    }
    reported_minutes = [set(counts) for counts in count_by_minute_of_series.values()]
    paired_minutes = set.intersection(*reported_minutes)
    is_reported = any(reported_minutes)
    missing_series = tuple(
        series for series, counts in count_by_minute_of_series.items() if not counts
    )
    return Traffic(
        reported=_add_counts(count_by_minute_of_series, set.union(*reported_minutes)),
        paired=_add_counts(count_by_minute_of_series, paired_minutes),
        missing_series=missing_series if is_reported else (),
        is_reported=is_reported,
    )


def _select_counts(points: Datapoints, window: Window) -> dict[datetime, float]:
    """Return the counts of the window by minute. Values that no counter has are left out."""
    return {
        minute: count
        for minute, count in points
        if window.since <= minute < window.until and isfinite(count)
    }


def _add_counts(
    count_by_minute_of_series: Mapping[str, Mapping[datetime, float]],
    minutes: Collection[datetime],
) -> Sums:
    """Return the sums of all series over these minutes."""
    sums: list[int] = []
    for series in SUM_SERIES:
        counts = count_by_minute_of_series[series]
        sums.append(round(sum(counts.get(minute, 0) for minute in minutes)))
    return Sums(*sums)


class QueueRecord(NamedTuple):
    """What the scans remember about a queue. Hours count from 1970.

    Attributes:
        messages: The messages that it held when it was scanned last.
        scanned_hour: The hour of that scan.
        active_hour: The last hour in which it held messages or had traffic; 0 if there was none.
        sums_hour: The last hour in which its sums were asked for; 0 if they never were.
        judged_dlq: The mark of the DLQ that it had when it was last judged (`make_dlq_mark`); empty
            if it had none.
        judged_dlq_messages: The messages that this DLQ held then.
        first_seen_hour: The hour in which it was scanned first; 0 if that was not stored.
    """

    messages: int
    scanned_hour: int
    active_hour: int = 0
    sums_hour: int = 0
    judged_dlq: str = ""
    judged_dlq_messages: int = 0
    first_seen_hour: int = 0

    def with_judged_dlq(self, dlq: QueueFacts) -> QueueRecord:
        """Return the record of a queue that was judged while its DLQ was like this."""
        return self._replace(judged_dlq=make_dlq_mark(dlq), judged_dlq_messages=count_messages(dlq))

    @property
    def is_in_use(self) -> bool:
        """True unless the sums that Mendq read last show that the queue is unused (rule 5).

        Also True if Mendq never read its sums.
        """
        return not self.sums_hour or self.sums_hour - self.active_hour < ACTIVE_HOURS


# What earlier scans remember, by queue name. Empty without an earlier scan.
ScanHistory = Mapping[str, QueueRecord]


def hour_number(now: datetime) -> int:
    """Return the number of whole hours since 1970."""
    return int(now.timestamp() // 3600)


def make_dlq_mark(dlq: QueueFacts) -> str:
    """Return a short text that tells a queue's DLQ from another DLQ that it had before."""
    return sha256(dlq.queue_arn.encode()).hexdigest()[:8]


def count_messages(queue_facts: QueueFacts) -> int:
    """Return the number of messages that the queue holds now: visible, in flight and delayed."""
    delayed = int(queue_facts.attributes.get("ApproximateNumberOfMessagesDelayed", "0"))
    return queue_facts.visible + queue_facts.in_flight + delayed


class Urgency(IntEnum):
    """The order in which queues are measured, the worst first."""

    MESSAGES_LEAVE = 1
    MESSAGES_COME_BACK = 2
    MESSAGES_STAY = 3
    MESSAGES_WAIT = 4
    NOTHING_SHOWS = 5


class MeasuringReason(NamedTuple):
    """The reason to measure a queue.

    Attributes:
        urgency: How soon the queue must be measured.
        text: The reason, as a sentence about the queue, for people.
    """

    urgency: Urgency
    text: str


def must_measure(facts: Facts, traffic: Traffic | None, history: ScanHistory) -> bool:
    """Return True if the queue must be measured. `find_measuring_reason` says why."""
    return find_measuring_reason(facts, traffic, history) is not None


def find_measuring_reason(
    facts: Facts, traffic: Traffic | None, history: ScanHistory
) -> MeasuringReason | None:
    """Return the most urgent reason to measure a queue; None if there is none.

    Args:
        facts: The queue's attributes, consumers and DLQ.
        traffic: The three sums; None if they were not read.
        history: What earlier scans remember.
    """
    dlq_reasons = _find_reasons_in_dlq(facts, history)
    if traffic and not traffic.reported.received:
        dlq_reasons = [reason._replace(urgency=Urgency.MESSAGES_WAIT) for reason in dlq_reasons]
    reasons = [
        *dlq_reasons,
        *_find_reasons_in_mappings(facts, history),
        *(_find_reasons_in_traffic(traffic) if traffic else ()),
        *_find_reasons_in_gauges(facts, history),
    ]
    return min(reasons, key=lambda reason: reason.urgency, default=None)


def has_dlq_gained(facts: Facts, history: ScanHistory) -> bool:
    """Return True if the queue's DLQ holds more messages than when the queue was last judged."""
    return bool(_find_reasons_in_dlq(facts, history))


def _find_reasons_in_dlq(facts: Facts, history: ScanHistory) -> list[MeasuringReason]:
    """Return the reason that the DLQ gained messages since the queue was judged (rule 4)."""
    if facts.dlq is None or not facts.dlq.exists:
        return []
    held_count = count_messages(facts.dlq)
    record = history.get(facts.name)
    is_dlq_known = record is not None and record.judged_dlq == make_dlq_mark(facts.dlq)
    known_count = record.judged_dlq_messages if record and is_dlq_known else 0
    if held_count <= known_count:
        return []
    text = f"its DLQ holds {_count(held_count, 'message')}"
    if is_dlq_known:
        gained_count = held_count - known_count
        text = f"its DLQ gained {_count(gained_count, 'message')} since the queue was last checked"
    return [MeasuringReason(Urgency.MESSAGES_LEAVE, text)]


def _find_reasons_in_mappings(facts: Facts, history: ScanHistory) -> list[MeasuringReason]:
    """Return the reason that an event source mapping of a queue in use is disabled."""
    record = history.get(facts.name)
    is_in_use = count_messages(facts) > 0 or (record is not None and record.is_in_use)
    if not facts.stopped_consumers or not is_in_use:
        return []
    name = function_name(facts.stopped_consumers[0])
    text = f"the event source mapping of {name} is disabled"
    return [MeasuringReason(Urgency.MESSAGES_LEAVE, text)]


def _find_reasons_in_traffic(traffic: Traffic) -> list[MeasuringReason]:
    """Return the reasons that the three sums give (rules 2 and 3)."""
    if traffic.missing_series and traffic.has_messages:
        text = f"CloudWatch has no datapoint of: {', '.join(traffic.missing_series)}"
        return [MeasuringReason(Urgency.MESSAGES_STAY, text)]
    reasons = list[MeasuringReason]()
    for sums in (traffic.reported, traffic.paired):
        if sums.received - sums.deleted > MARGIN_MESSAGES:
            text = f"{sums.received:,} receives and {_count(sums.deleted, 'delete')}"
            reasons.append(MeasuringReason(Urgency.MESSAGES_COME_BACK, text))
        if sums.deleted - sums.sent > MARGIN_MESSAGES:
            text = f"{_count(sums.deleted, 'delete')} of {_count(sums.sent, 'sent message')}"
            reasons.append(MeasuringReason(Urgency.MESSAGES_COME_BACK, text))
        if sums.sent - sums.deleted > MARGIN_MESSAGES:
            text = f"{_count(sums.sent, 'sent message')} and {_count(sums.deleted, 'delete')}"
            reasons.append(MeasuringReason(Urgency.MESSAGES_STAY, text))
    return reasons


def _find_reasons_in_gauges(facts: Facts, history: ScanHistory) -> list[MeasuringReason]:
    """Return the reason that the queue holds messages now."""
    held_count = count_messages(facts)
    if not held_count:
        return []
    record = history.get(facts.name)
    if record and held_count > record.messages:
        text = f"it holds {_count(held_count, 'message')}, {record.messages:,} at the last scan"
        return [MeasuringReason(Urgency.MESSAGES_STAY, text)]
    return [MeasuringReason(Urgency.MESSAGES_WAIT, f"it holds {_count(held_count, 'message')}")]


def _count(number: int, noun: str) -> str:
    """Return the number with its noun, such as `1 message` or `2,000 messages`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


class SumsShare(NamedTuple):
    """How many queues may be asked for their sums in one scan.

    Attributes:
        in_use: The most queues in use.
        unused: The most unused queues.
    """

    in_use: int
    unused: int

    @classmethod
    def of_daily_limit(cls, metrics_per_day: int) -> SumsShare:
        """Return the numbers for a limit of metrics per day, such as 500 and 83 for 30,000."""
        metrics_per_turn = metrics_per_day * SUMS_EVERY_HOURS / 24
        return cls(
            round(_SHARE_FOR_QUEUES_IN_USE * metrics_per_turn / len(SUM_SERIES)),
            int(_SHARE_FOR_UNUSED_QUEUES * metrics_per_turn / len(SUM_SERIES)),
        )

    def take_part(self, part: float) -> SumsShare:
        """Return the numbers for a run that scans this part (0 to 1) of a round's queues."""
        return SumsShare(ceil(self.in_use * part), int(self.unused * part))


def is_sums_hour(hour: int) -> bool:
    """Return True if scans of this hour ask for sums: every second hour."""
    return hour % SUMS_EVERY_HOURS == 0


class SumsTurn(NamedTuple):
    """The queues whose sums are asked for in a scan.

    Attributes:
        names: The names of these queues.
        waiting_names: The names of the other queues in use. They wait for their turn.
        longest_pause_hours: The time within which each queue in use has its turn; 0 if no queue
            ever has one.
    """

    names: frozenset[str]
    waiting_names: frozenset[str] = frozenset()
    longest_pause_hours: int = SUMS_EVERY_HOURS


def select_queues_for_sums(
    queue_names: Iterable[str], history: ScanHistory, hour: int, share: SumsShare | None
) -> SumsTurn:
    """Return the queues whose sums are asked for in this hour (rule 6).

    Args:
        queue_names: The names of the queues that a measurement could tell something about.
        history: What earlier scans remember.
        hour: The hour, counted from 1970.
        share: The most queues of each kind; None for all queues.
    """
    if share is None:
        return SumsTurn(frozenset(queue_names))
    names_in_use = list[str]()
    unused_names = list[str]()
    for name in queue_names:
        record = history.get(name)
        if record is None or record.is_in_use:
            names_in_use.append(name)
        elif hour - record.sums_hour >= UNUSED_PAUSE_HOURS:
            unused_names.append(name)
    selected_names = {
        *_select_longest_waiting(names_in_use, history, hour, share.in_use),
        *_select_longest_waiting(unused_names, history, hour, share.unused),
    }
    turns = ceil(len(names_in_use) / share.in_use) if share.in_use else 0
    return SumsTurn(
        frozenset(selected_names),
        frozenset(names_in_use) - selected_names,
        turns * SUMS_EVERY_HOURS,
    )


def _select_longest_waiting(
    names: Iterable[str], history: ScanHistory, hour: int, most: int
) -> list[str]:
    """Return the queues that have waited longest since their sums were asked for.

    A queue whose sums were never asked for has waited since it was scanned first. If it came first,
    new queues in each hour could keep all others from having a turn.
    """

    def make_sort_key(name: str) -> tuple[int, bool, str]:
        record = history.get(name)
        if record is None:
            return hour, False, name
        return record.sums_hour or record.first_seen_hour, record.sums_hour > 0, name

    return sorted(names, key=make_sort_key)[:most]
