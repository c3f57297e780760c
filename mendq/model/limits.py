"""Limits on what Mendq may change, read and send, waiting times, and the bounds of a redrive.

The text below each field of `Limits` and `Timing` is its description in docs/settings.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from math import ceil
from typing import Annotated

LOWEST_SOAK_FACTOR = 1.2


@dataclass(frozen=True)
class Range:
    """The values that a setting may have.

    Attributes:
        least: The lowest value in the local account.
        most: The highest value.
        floor: The lowest value in AWS, if it is higher than `least`.
    """

    least: float
    most: float
    floor: float = 0

    def begins(self, *, floors: bool = True) -> float:
        """Return the lowest allowed value: `least`, or `floor` if it is higher.

        With `floors=False`, which is only for the local account, return `least`.
        """
        return max(self.least, self.floor) if floors else self.least


@dataclass(frozen=True)
class Limits:
    """Limits on what Mendq may change, read and send."""

    writes_per_minute: Annotated[int, Range(1, 100)] = 10
    """The most writes to queues in a minute, over the whole account."""
    writes_per_attribute_per_day: Annotated[int, Range(1, 24)] = 3
    """The most writes to one attribute of one queue in 24 hours."""
    mass_symptom_share: Annotated[float, Range(0, 1)] = 0.05
    """Mendq writes nothing if more than three queues, and more than this share of the managed
    queues, show a symptom within an hour, because they then share a cause. The share is also
    computed among the queues in the same or a higher mode."""
    mass_symptom_queues: Annotated[int, Range(3, 10_000)] = 20
    """Mendq also writes nothing if more queues than this show a symptom within an hour, whatever
    their share."""
    visibility_ceiling_seconds: Annotated[int, Range(30, 43_200)] = 900
    """The longest visibility timeout that a fix may set."""
    scan_metrics_per_day: Annotated[int, Range(0, 1_000_000)] = 30_000
    """The most metrics that the hourly scan may read in a day."""


@dataclass(frozen=True)
class Timing:
    """How long Mendq waits. Only the local account may set lower values than these ranges."""

    propagation_seconds: Annotated[int, Range(0, 900, 60)] = 60
    """How long a change takes to reach all of SQS. AWS says up to 60 seconds."""
    watch_hours: Annotated[int, Range(0, 336, 24)] = 48
    """How long a verified fix is watched. Traffic changes over a day."""
    proposal_hours: Annotated[int, Range(0, 168, 1)] = 24
    """How long a person can approve a proposal."""
    soak_factor: Annotated[float, Range(0, 10, LOWEST_SOAK_FACTOR)] = LOWEST_SOAK_FACTOR
    """A redrive waits maxReceiveCount x visibility timeout x this factor, plus the delay and the
    time for the messages before it; at least 60 s."""
    cooldown_minutes: Annotated[int, Range(0, 1_440, 30)] = 30
    """The shortest time between two writes to one attribute of one queue."""
    probe_minutes: Annotated[int, Range(1, 1_440, 20)] = 60
    """The time between two probes. A probe that is not seen within 20 minutes counts as lost."""
    measuring_minutes: Annotated[int, Range(1, 360, 60)] = 60
    """How long a queue must have been unchanged before its metrics are used."""


@dataclass(frozen=True)
class Bounds:
    """The limits of a redrive, with their shipped values.

    An account can set only `soak_factor` (setting `timing.soakFactor`). The local account sets
    others too.

    Attributes:
        canary: The number of messages in the first stage.
        second_canary: The number of messages in the second canary. It follows the first stage if
            too few messages have gone to judge the share that came back.
        growth: The most times by which a stage may be larger than the stage before.
        halt_returned: The redrive halts if this number of messages came back to the DLQ.
        halt_share: The redrive also halts if this share of the moved messages came back.
        rate_share: The rate at which the redrive sends messages, as a share of the rate at which
            the consumers delete messages.
        least_per_tick: The number of messages that a tick may send however slow the consumers are.
            A tick is one run of the redrive Lambda.
        mover_per_tick: The most messages that one invocation receives, sends and deletes, ten at a
            time.
        census: The most messages that a tick receives as a sample of the DLQ.
        soak_factor: The factor by which the redrive multiplies the time in flight of a message that
            fails, to compute how long it waits for such messages to come back.
        least_soak_seconds: The shortest wait for messages to come back.
        tick_seconds: The time between two ticks.
        stage_seconds: The longest duration of a stage.
        patience_seconds: How long a wait without an end of its own may last, such as that for
            consumers, before the redrive halts.
        measuring_seconds: The shortest time over which the consumers' deletes are measured.
        measuring_first_seconds: The time over which the deletes are measured before the first send.
    """

    canary: int = 5
    second_canary: int = 30
    growth: int = 4
    halt_returned: int = 10
    halt_share: float = 0.05
    rate_share: float = 0.1
    least_per_tick: int = 1
    mover_per_tick: int = 1_500
    census: int = 5_000
    soak_factor: float = LOWEST_SOAK_FACTOR
    least_soak_seconds: int = 60
    tick_seconds: int = 60
    stage_seconds: int = 3_600
    patience_seconds: int = 3_600
    measuring_seconds: int = 900
    measuring_first_seconds: int = 3_600

    def halt_threshold(self, moved_messages: int) -> int:
        """Return the number of returned messages at which the redrive halts, at least 1.

        `moved_messages` is the number of messages that the redrive has sent back so far.
        """
        # In floating point, 0.05 * 100 is a little more than 5, which `ceil` would round up to 6.
        messages_at_halt_share = ceil(round(self.halt_share * moved_messages, 6))
        return min(self.halt_returned, max(1, messages_at_halt_share))

    @property
    def least_judged_messages(self) -> int:
        """The fewest messages over which the returned share is computed while more can be sent.

        Otherwise one bad message of the first five would be 20 %, although it says little about the
        others.
        """
        return self.canary + self.second_canary

    def rate_per_second(self, deletes_per_second: float) -> float:
        """Return the rate, in messages per second, at which messages may go back to the source.

        `deletes_per_second` is the number of messages that the consumers delete per second. The
        rate is 0 if they delete none, and at most `mover_per_tick` messages per tick. The caller
        must apply `least_per_tick` itself.
        """
        return min(self.rate_share * deletes_per_second, self.mover_per_tick / self.tick_seconds)

    def soak_duration(
        self,
        *,
        receives: int,
        visibility_seconds: int,
        delay_seconds: int,
        drain_seconds: float = 0,
    ) -> timedelta:
        """Return how long to wait until a message that always fails must be back in the DLQ.

        Such a message first waits behind the messages that are already in the queue. Then consumers
        receive it `receives` times, and each time it is in flight for a whole visibility timeout.
        For safety, the time in flight is multiplied by `soak_factor`. The result is at least
        `least_soak_seconds`.

        Args:
            receives: The queue's maxReceiveCount.
            visibility_seconds: The queue's visibility timeout.
            delay_seconds: The queue's DelaySeconds.
            drain_seconds: The time that consumers need for the messages that are already in the
                queue.
        """
        soak_factor = max(self.soak_factor, LOWEST_SOAK_FACTOR)
        soak_seconds = soak_factor * receives * visibility_seconds + delay_seconds + drain_seconds
        return timedelta(seconds=max(soak_seconds, self.least_soak_seconds))
