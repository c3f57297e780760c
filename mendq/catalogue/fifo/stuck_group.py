"""Whether one message holds up its FIFO group: by what was counted since it is the oldest."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, sqrt
from statistics import fmean, pvariance

from mendq.model.metrics import PERIOD, SURPLUS_SHARE, Measurement

# AWS advises at least five receives before a message goes to a DLQ:
# https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-configure.html
TRIED_OFTEN = 5
# The head of a group is tried once per visibility timeout: so many of them have to have passed.
TRIES = 20
# One try hands out so many of its group at most, all of them in vain.
A_RECEIVE = 10
# It stands still for so long, or half of a window that is shorter than twice that.
STANDS_STILL_HOURS = 0.5
# From so many receives on the time before tells which share comes to nothing here anyway.
ENOUGH_RECEIVES, MAY_FAIL_SHARE = 1_000, 0.2
# Only the local account measures less than that; in minutes nothing tells chance from tries.
LEAST_HOURS_FOR_CHANCE = 1
# What fails by chance varies by as much as it counts, tries at intervals hardly at all: a quarter
# of that in a dozen stretches of four tries comes by chance once in a hundred times.
LEAST_STRETCHES, REGULAR_SHARE = 12, 0.2


def one_group_blocks(measured: Measurement) -> bool:
    """Whether one FIFO group alone is tried again and again, and nothing else gets through.

    A message that merely takes long is received once.
    """
    return (
        measured.now.groups_in_flight == 1
        and measured.is_oldest_unchanged
        and measured.received >= TRIED_OFTEN * max(measured.now.in_flight, 1)
        and measured.deleted <= SURPLUS_SHARE * measured.received
    )


def head_is_stuck(measured: Measurement, visibility_seconds: int) -> bool:
    """Whether one message is the oldest all the while, and tried once per visibility timeout.

    One that is held is not tried; of a backlog that is worked off in order less is left; what
    fails by chance goes with the traffic. Several groups that are tried while nothing gets
    through are a consumer that fails.
    """
    still, before = measured.recent.standstill, measured.recent.before
    if still is None or still.hours < min(STANDS_STILL_HOURS, measured.hours / 2):
        return False
    flows = still.deleted > SURPLUS_SHARE * still.received
    # What is counted begins after the first minute.
    seconds = (still.duration - PERIOD).total_seconds()
    tries = seconds / max(visibility_seconds, 1)
    risen, in_vain = still.now.backlog - still.before.backlog, still.fruitless_receives
    may_be = flows or measured.now.groups_in_flight == 1
    if measured.hours < LEAST_HOURS_FOR_CHANCE:
        return may_be and in_vain >= TRIES
    if not may_be or tries < TRIES or in_vain < tries / 2 or risen < -tries / 4:
        return False
    by_chance = MAY_FAIL_SHARE * still.received
    if before is not None and before.received >= ENOUGH_RECEIVES:
        lost = max(0, before.received - before.deleted)
        by_chance = (lost + 2 * sqrt(lost + 1)) / before.received * still.received
        by_chance += 3 * sqrt(by_chance)
    is_more = in_vain - by_chance >= tries / 2
    by_minute = measured.recent.fruitless_by_minute
    is_one = in_vain <= A_RECEIVE * tries * 5 / 4 and _are_regular(by_minute, visibility_seconds)
    return is_more or is_one


def _are_regular(counts: Sequence[int], visibility_seconds: int) -> bool:
    """Whether as many receives are in vain in each stretch of four visibility timeouts."""
    minutes = max(1, ceil(visibility_seconds / 15))
    firsts = range(0, len(counts) - minutes + 1, minutes)
    stretches = [sum(counts[first : first + minutes]) for first in firsts]
    enough = len(stretches) >= LEAST_STRETCHES
    return enough and pvariance(stretches) <= REGULAR_SHARE * fmean(stretches)
