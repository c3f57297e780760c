"""Tell from metrics if one message blocks its FIFO group.

SQS reports sums for the whole queue and no single message. A message that always fails at the head
of its group leaves these traces:

1. It stays the oldest message, so ApproximateAgeOfOldestMessage grows by a second per second.
2. It is received once per visibility timeout, and never deleted. A receive returns up to ten
   messages of its group with it, and none of these is deleted either.
3. These receives come at regular intervals. Receives that fail by chance vary with the traffic.

`does_one_group_block` handles the simple case in which nothing else gets through.
`is_oldest_message_stuck` handles the case in which other groups continue.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, sqrt
from statistics import fmean, pvariance

from mendq.model.metrics import DATAPOINT_PERIOD, Measurement

# AWS advises at least five receives before a message goes to a DLQ:
# https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-configure.html
FREQUENT_RECEIVES_PER_MESSAGE = 5
# At least this many visibility timeouts must be over while the message is the oldest: it is
# received once in each of them (a "try").
MINIMUM_RECEIVES_OF_STUCK_MESSAGE = 20
# The most messages of a group that one receive returns, none of which is deleted.
MOST_MESSAGES_PER_RECEIVE = 10
# The message must be the oldest for at least this time, or for half of the measured time if that is
# shorter.
LEAST_STANDSTILL_HOURS = 0.5
# Hardly a message is finished if at most this share of the receives leads to a delete. A share is
# right here: the receives of the blocked group grow with the measured time, and deletes of other
# groups would grow with it. A fixed number of deletes would call a slow queue blocked.
HARDLY_FINISHED_SHARE_OF_RECEIVES = 0.05
# With at least this many receives before the message became the oldest, that time shows which share
# of receives is normally not followed by a delete. With fewer, this share is assumed.
MINIMUM_RECEIVES_TO_MEASURE_FAILING_SHARE = 1_000
ASSUMED_SHARE_OF_FAILING_RECEIVES = 0.2
# In a shorter measured time, chance cannot be told from tries. Only the local account measures
# less.
MINIMUM_HOURS_TO_EXCLUDE_CHANCE = 1
# Receives that fail by chance have a variance as large as their number; tries at regular intervals
# have hardly any. Chance stays below this share of the mean, in this many stretches of four tries
# each, only once in a hundred times.
MINIMUM_STRETCHES_TO_COMPARE = 12
MAXIMUM_VARIANCE_OF_REGULAR_RECEIVES = 0.2


def does_one_group_block(measurement: Measurement) -> bool:
    """Return True if one FIFO group is received again and again and hardly a message is finished.

    A message that merely takes long to handle is received only once, so the result is False then.
    """
    return (
        measurement.now.groups_in_flight == 1
        and measurement.is_oldest_unchanged
        and measurement.received
        >= FREQUENT_RECEIVES_PER_MESSAGE * max(measurement.now.in_flight, 1)
        and measurement.deleted <= HARDLY_FINISHED_SHARE_OF_RECEIVES * measurement.received
    )


def is_oldest_message_stuck(measurement: Measurement, visibility_seconds: int) -> bool:
    """Return True if one message stays the oldest and is received once per visibility timeout.

    Four other situations look alike. The result is False for each of them:

    - A consumer holds a message for long: then the message is not received again.
    - Consumers work off a backlog in order: then the backlog becomes smaller.
    - Receives fail by chance: then their number varies with the traffic.
    - Hardly a message is finished while several groups are in flight: then the consumer fails.

    If less than MINIMUM_HOURS_TO_EXCLUDE_CHANCE was measured, backlog and chance are not checked.

    Args:
        measurement: The measured time. Its `recent.standstill` has the counts since the present
            oldest message became the oldest.
        visibility_seconds: The queue's visibility timeout.
    """
    measurement_of_standstill = measurement.recent.standstill
    if measurement_of_standstill is None or measurement_of_standstill.hours < min(
        LEAST_STANDSTILL_HOURS, measurement.hours / 2
    ):
        return False
    are_other_messages_finished = (
        measurement_of_standstill.deleted
        > HARDLY_FINISHED_SHARE_OF_RECEIVES * measurement_of_standstill.received
    )
    if not are_other_messages_finished and measurement.now.groups_in_flight != 1:
        return False
    # The counts begin one minute after the message became the oldest.
    standstill_seconds = (measurement_of_standstill.duration - DATAPOINT_PERIOD).total_seconds()
    expected_receive_count = standstill_seconds / max(visibility_seconds, 1)
    receives_in_vain = measurement_of_standstill.fruitless_receives
    if measurement.hours < MINIMUM_HOURS_TO_EXCLUDE_CHANCE:
        return receives_in_vain >= MINIMUM_RECEIVES_OF_STUCK_MESSAGE
    backlog_growth = (
        measurement_of_standstill.now.backlog - measurement_of_standstill.before.backlog
    )
    if (
        expected_receive_count < MINIMUM_RECEIVES_OF_STUCK_MESSAGE
        or receives_in_vain < expected_receive_count / 2
        or backlog_growth < -expected_receive_count / 4
    ):
        return False
    if (
        receives_in_vain - _estimate_receives_by_chance(measurement, measurement_of_standstill)
        >= expected_receive_count / 2
    ):
        return True
    receives_in_vain_by_minute = measurement.recent.fruitless_receives_by_minute
    may_be_one_group = (
        receives_in_vain <= MOST_MESSAGES_PER_RECEIVE * expected_receive_count * 5 / 4
    )
    return may_be_one_group and _are_receives_regular(
        receives_in_vain_by_minute, visibility_seconds
    )


def _estimate_receives_by_chance(measurement: Measurement, standstill: Measurement) -> float:
    """Return how many receives without a delete chance alone explains during `standstill`.

    The time before the standstill shows the usual share of such receives. The share and the result
    are raised by a few standard deviations, so that chance is not mistaken for a blocked group. If
    that time has fewer than MINIMUM_RECEIVES_TO_MEASURE_FAILING_SHARE receives,
    ASSUMED_SHARE_OF_FAILING_RECEIVES is used.
    """
    earlier_measurement = measurement.recent.before
    if (
        earlier_measurement is None
        or earlier_measurement.received < MINIMUM_RECEIVES_TO_MEASURE_FAILING_SHARE
    ):
        return ASSUMED_SHARE_OF_FAILING_RECEIVES * standstill.received
    earlier_receives_in_vain = max(0, earlier_measurement.received - earlier_measurement.deleted)
    expected_receives = (
        (earlier_receives_in_vain + 2 * sqrt(earlier_receives_in_vain + 1))
        / earlier_measurement.received
        * standstill.received
    )
    return expected_receives + 3 * sqrt(expected_receives)


def _are_receives_regular(receives_by_minute: Sequence[int], visibility_seconds: int) -> bool:
    """Return True if the receives without a delete come at regular intervals.

    The time is divided into stretches of four visibility timeouts. The number of receives must be
    about the same in all stretches. Return False if there are fewer than
    MINIMUM_STRETCHES_TO_COMPARE stretches.

    Args:
        receives_by_minute: The receives without a delete in each minute.
        visibility_seconds: The queue's visibility timeout.
    """
    # Four visibility timeouts, in whole minutes.
    minutes_per_stretch = max(1, ceil(visibility_seconds / 15))
    start_minutes_of_stretches = range(
        0, len(receives_by_minute) - minutes_per_stretch + 1, minutes_per_stretch
    )
    receives_by_stretch = [
        sum(receives_by_minute[start_minute : start_minute + minutes_per_stretch])
        for start_minute in start_minutes_of_stretches
    ]
    if len(receives_by_stretch) < MINIMUM_STRETCHES_TO_COMPARE:
        return False
    return pvariance(receives_by_stretch) <= MAXIMUM_VARIANCE_OF_REGULAR_RECEIVES * fmean(
        receives_by_stretch
    )
