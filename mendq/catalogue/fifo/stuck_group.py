"""Tell from metrics if one message blocks its FIFO group.

SQS reports sums for the whole queue and no single message. A message that always fails at the head
of its group leaves these traces:

1. It stays the oldest message, so ApproximateAgeOfOldestMessage grows by a second per second.
2. It is received once per visibility timeout, and never deleted. A receive returns up to ten
   messages of its group with it, and none of these is deleted either.
3. These receives come at regular intervals. Receives that fail by chance vary with the traffic.

`one_group_blocks` handles the simple case in which nothing else gets through. `head_is_stuck`
handles the case in which other groups continue.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, sqrt
from statistics import fmean, pvariance

from mendq.model.metrics import DATAPOINT_PERIOD, TOLERATED_SHARE, Measurement

# AWS advises at least five receives before a message goes to a DLQ:
# https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-configure.html
TRIED_OFTEN = 5
# At least this many visibility timeouts must be over while the message is the oldest: it is
# received once in each of them (a "try").
TRIES = 20
# The most messages of a group that one receive returns, none of which is deleted.
A_RECEIVE = 10
# The message must be the oldest for at least this time, or for half of the measured time if that is
# shorter.
STANDS_STILL_HOURS = 0.5
# With at least this many receives before the message became the oldest, that time shows which share
# of receives is normally not followed by a delete. With fewer, this share is assumed.
ENOUGH_RECEIVES = 1_000
MAY_FAIL_SHARE = 0.2
# In a shorter measured time, chance cannot be told from tries. Only the local account measures
# less.
LEAST_HOURS_FOR_CHANCE = 1
# Receives that fail by chance have a variance as large as their number; tries at regular intervals
# have hardly any. Chance stays below this share of the mean, in this many stretches of four tries
# each, only once in a hundred times.
LEAST_STRETCHES = 12
REGULAR_SHARE = 0.2


def one_group_blocks(measured: Measurement) -> bool:
    """Return True if a single FIFO group is received again and again and nothing else is finished.

    A message whose work merely takes long is received only once.
    """
    return (
        measured.now.groups_in_flight == 1
        and measured.is_oldest_unchanged
        and measured.received >= TRIED_OFTEN * max(measured.now.in_flight, 1)
        and measured.deleted <= TOLERATED_SHARE * measured.received
    )


def head_is_stuck(measured: Measurement, visibility_seconds: int) -> bool:
    """Return True if one message stays the oldest and is received once per visibility timeout.

    Four other situations look alike, and the result is False for each. A message that a consumer
    holds for long is not received again. A backlog that is worked off in order becomes smaller.
    Receives that fail by chance vary with the traffic. And if nothing at all is finished while
    several groups are received, the consumer fails.

    Args:
        measured: The measured time. `measured.recent.standstill` has the counts since the present
            oldest message became the oldest.
        visibility_seconds: The queue's visibility timeout.
    """
    still = measured.recent.standstill
    if still is None or still.hours < min(STANDS_STILL_HOURS, measured.hours / 2):
        return False
    others_are_finished = still.deleted > TOLERATED_SHARE * still.received
    if not others_are_finished and measured.now.groups_in_flight != 1:
        return False
    # The counts begin one minute after the message became the oldest.
    seconds = (still.duration - DATAPOINT_PERIOD).total_seconds()
    tries = seconds / max(visibility_seconds, 1)
    in_vain = still.fruitless_receives
    if measured.hours < LEAST_HOURS_FOR_CHANCE:
        return in_vain >= TRIES
    backlog_growth = still.now.backlog - still.before.backlog
    if tries < TRIES or in_vain < tries / 2 or backlog_growth < -tries / 4:
        return False
    if in_vain - _expected_by_chance(measured, still) >= tries / 2:
        return True
    by_minute = measured.recent.fruitless_by_minute
    may_be_one_group = in_vain <= A_RECEIVE * tries * 5 / 4
    return may_be_one_group and _are_regular(by_minute, visibility_seconds)


def _expected_by_chance(measured: Measurement, still: Measurement) -> float:
    """Return the number of receives without a delete that chance alone explains, during `still`.

    The time before shows the usual share. Both numbers are raised by a few standard deviations, so
    that chance is not taken for a blocked group.
    """
    before = measured.recent.before
    if before is None or before.received < ENOUGH_RECEIVES:
        return MAY_FAIL_SHARE * still.received
    lost = max(0, before.received - before.deleted)
    expected = (lost + 2 * sqrt(lost + 1)) / before.received * still.received
    return expected + 3 * sqrt(expected)


def _are_regular(counts: Sequence[int], visibility_seconds: int) -> bool:
    """Return True if the receives without a delete come at regular intervals.

    The time is divided into stretches of four visibility timeouts. The numbers of receives in these
    stretches must be about equal. Return False if there are fewer than LEAST_STRETCHES stretches.

    Args:
        counts: The receives without a delete in each minute.
        visibility_seconds: The queue's visibility timeout.
    """
    # Four visibility timeouts, in whole minutes.
    minutes = max(1, ceil(visibility_seconds / 15))
    starts = range(0, len(counts) - minutes + 1, minutes)
    stretches = [sum(counts[start : start + minutes]) for start in starts]
    if len(stretches) < LEAST_STRETCHES:
        return False
    return pvariance(stretches) <= REGULAR_SHARE * fmean(stretches)
