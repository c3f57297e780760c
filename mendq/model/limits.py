"""Modes, tags and limits: how far Mendq may go on a queue.

Each limit of `Limits` and `Timing` has its description below it. docs/settings.md shows these.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import Enum
from functools import total_ordering
from math import ceil
from typing import Annotated

from mendq.model.queue import is_quarantine


@total_ordering
class Mode(Enum):
    """How far Mendq may go on a queue. The order is from least to most; of several modes the lowest
    holds.
    """

    OBSERVE = "observe"
    PROPOSE = "propose"
    HEAL = "heal"

    def __str__(self) -> str:
        return self.value

    def __lt__(self, other: Mode) -> bool:
        ascending = list(Mode)
        return ascending.index(self) < ascending.index(other)


# The modes as settings and tags spell them. Any other spelling, such as upper case, is not a mode.
MODES = {mode.value: mode for mode in Mode}
# CloudFormation's own tags, which people cannot set. ListQueueTags returns them like any other tag.
# https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/aws-properties-resource-tags.html
_STACK = "aws:cloudformation:stack-name"
_RESOURCE = "aws:cloudformation:logical-id"
_MOST = 255


class TagUnreadable(Exception):
    """A tag that must be a number of seconds is not one. The message names the tag, its value and
    the allowed numbers.
    """


def read_seconds_tag(tags: Mapping[str, str], key: str) -> int | None:
    """Return the number of seconds in a tag; None if the tag is absent. Raise TagUnreadable if it
    is not a whole number from 1 to 43200.
    """
    text = tags.get(key)
    if text is None:
        return None
    is_number = text.isascii() and text.isdecimal() and len(text) < 6
    if not is_number or not 1 <= int(text) <= 43_200:
        raise TagUnreadable(f"the tag {key} must be a whole number from 1 to 43200: {text[:40]!r}")
    return int(text)


def cloudformation_resource(tags: Mapping[str, str]) -> dict[str, str]:
    """Return the CloudFormation stack that owns the queue, from the queue's tags.

    The keys are `stack` and, if known, `resource` (the logical id). Empty if no stack owns it.
    """
    stack = tags.get(_STACK)
    if not stack:
        return {}
    owner = {"stack": stack[:_MOST]}
    resource = tags.get(_RESOURCE)
    if resource:
        owner["resource"] = resource[:_MOST]
    return owner


MODE_TAG = "mendq"
OFF = "off"
# Names a team. The team's topic gets the queue's notifications too.
TEAM_TAG = "mendq:notify"
# Marks a queue that `mendq drill` uses for a test. Its failing calls prove nothing about other
# queues.
DRILL_TAG = "mendq:drill"
# The default name of a drill's queue begins with this. It shows in logs, which contain no tags.
DRILL_QUEUE = "mendq-drill-"


def mass_symptom_key(symptom: str, tags: Mapping[str, str]) -> str:
    """Return the key under which queues with a symptom are counted, to recognize a mass symptom.

    A mass symptom is one that many queues show at once. Queues with the drill tag are counted under
    a key of their own: a drill cannot make the symptom of other queues a mass symptom. Tagged
    queues are still counted, so that a drill tag on every queue does not switch this check off.
    """
    return f"drill#{symptom}" if DRILL_TAG in tags else symptom


@dataclass(frozen=True)
class Consent:
    """The queues that the account's settings let Mendq manage, and how far it may go on them.

    Attributes:
        mode: The mode of queues that `queues` names.
        tag_may_raise_to: The highest mode that a queue's own tag can give.
        queues: Names, or prefixes that end with `*`. Empty: only tags make a queue managed.
        teams: The teams that have a topic.
    """

    mode: Mode = Mode.OBSERVE
    tag_may_raise_to: Mode = Mode.OBSERVE
    queues: tuple[str, ...] = ()
    teams: tuple[str, ...] = ()

    def without_team_tag(self, tags: Mapping[str, str]) -> dict[str, str]:
        """Return the tags. The team tag is left out if its team is in the settings."""
        is_known_team = tags.get(TEAM_TAG) in self.teams
        return {key: text for key, text in tags.items() if key != TEAM_TAG or not is_known_team}

    def mode_of(self, queue_name: str, tags: Mapping[str, str]) -> Mode | None:
        """Return the queue's mode; None if Mendq does not manage the queue.

        A queue that settings name starts in the account's mode, any other queue in the lowest one.
        The queue's `mendq` tag may lower the mode freely, and raise it at most to
        `tag_may_raise_to`. The IAM policies of the roles have the same limit. A tag with an unknown
        value gives the lowest mode. A quarantine is never managed, not even if settings or a tag
        name it: only people take messages out of it.
        """
        if is_quarantine(queue_name):
            return None
        mode_by_name = self.mode if self.names(queue_name) else None
        tag = tags.get(MODE_TAG)
        if tag is None:
            return mode_by_name
        if tag == OFF:
            return None
        wanted = MODES.get(tag, Mode.OBSERVE)
        return min(wanted, max(mode_by_name or Mode.OBSERVE, self.tag_may_raise_to))

    def why(self, queue_name: str, tags: Mapping[str, str]) -> str:
        """Return a text that says why `mode_of` gives this mode, for people."""
        fitting = [pattern for pattern in self.queues if _fits(queue_name, pattern)]
        named = "no setting names it"
        if fitting:
            named = f"settings name it ({fitting[0]}): {self.mode}"
        tag = tags.get(MODE_TAG)
        mode = self.mode_of(queue_name, tags)
        wanted = MODES.get(tag or "", Mode.OBSERVE)
        if tag is None:
            return named
        if mode is not None and wanted > mode:
            cap = f"tagMayRaiseTo ({self.tag_may_raise_to}) caps it at {mode}"
            return f"{named}; its tag says {wanted}, and {cap}"
        if tag in (OFF, *MODES):
            return f"{named}; its tag says {tag}"
        return f"{named}; its tag says nothing that Mendq knows, so {mode}"

    def has_exact_name(self, queue_name: str) -> bool:
        """Return True if settings contain exactly this name.

        A prefix with `*` does not count, because it also fits queues that never existed.
        """
        return queue_name in self.queues

    def names(self, queue_name: str) -> bool:
        """Return True if settings name the queue or a prefix of its name."""
        return any(_fits(queue_name, pattern) for pattern in self.queues)


def _fits(queue_name: str, pattern: str) -> bool:
    """Return True if the name is equal to the pattern, or begins with a pattern that ends with `*`.

    A bare `*` fits no queue: to manage all queues, people must tag each of them.
    """
    prefix = pattern.removesuffix("*")
    return queue_name == pattern or (prefix not in ("", pattern) and queue_name.startswith(prefix))


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
        """Return the lowest allowed value. `floors` is False only for the local account."""
        return max(self.least, self.floor) if floors else self.least


@dataclass(frozen=True)
class Limits:
    """Limits on what Mendq may change."""

    writes_per_minute: Annotated[int, Range(1, 100)] = 10
    """The most writes to queues in a minute, over the whole account."""
    writes_per_attribute_per_day: Annotated[int, Range(1, 24)] = 3
    """The most writes to one attribute of one queue in 24 hours."""
    mass_symptom_share: Annotated[float, Range(0, 1)] = 0.05
    """If more than this share of the managed queues, or of those on which Mendq may go at least as
    far, show a symptom in an hour, they share a cause, and nothing is written."""
    mass_symptom_queues: Annotated[int, Range(3, 10_000)] = 20
    """The same if more queues than this show it, however many are managed. So many notifications
    are sent in an hour; nobody would read more."""
    visibility_ceiling_seconds: Annotated[int, Range(30, 43_200)] = 900
    """The longest visibility timeout that a fix may set."""
    scan_metrics_per_day: Annotated[int, Range(0, 1_000_000)] = 20_000
    """The most metrics that the hourly scan may read in a day."""


@dataclass(frozen=True)
class Timing:
    """How long Mendq waits. Only the local account may go below these ranges, and its settings say
    so.
    """

    propagation_seconds: Annotated[int, Range(0, 900, 60)] = 60
    """How long a change takes to reach all of SQS; AWS says up to 60 seconds."""
    watch_hours: Annotated[int, Range(0, 336, 24)] = 48
    """How long a verified fix is watched; traffic changes over a day."""
    proposal_hours: Annotated[int, Range(0, 168, 1)] = 24
    """How long a proposal waits; a person needs time to see it."""
    soak_factor: Annotated[float, Range(0, 10, LOWEST_SOAK_FACTOR)] = LOWEST_SOAK_FACTOR
    """A redrive waits this many times as long as a poison message takes to come back."""
    cooldown_minutes: Annotated[int, Range(0, 1_440, 30)] = 30
    """The time between two writes to one attribute of one queue."""
    probe_minutes: Annotated[int, Range(1, 1_440, 20)] = 60
    """The time between two probes; one that is not seen within 20 minutes counts as lost."""
    measuring_minutes: Annotated[int, Range(1, 360, 60)] = 60
    """How long a queue must have been unchanged before its metrics are used."""


@dataclass(frozen=True)
class Bounds:
    """The limits of a redrive, with their shipped values. Only the local account sets others.

    Attributes:
        canary: Messages in the first stage.
        growth: Factor by which a stage may be larger than the one before.
        halt_returned: The redrive stops if this number of messages came back.
        halt_share: It also stops if this share of the moved messages came back.
        rate_share: Messages per second that are sent, as a share of the messages per second that
            the consumers delete.
        least_per_tick: The fewest messages that a tick sends. Fewer would show little about the
            consumers.
        mover_per_tick: The most messages that one invocation receives, sends and deletes, ten at a
            time.
        census: The most messages that a tick receives to look at them (its sample).
        soak_factor: The wait for messages that come back is this many times as long as a message
            that always fails (a poison message) needs to come back.
        least_soak_seconds: The shortest wait for messages that come back.
        tick_seconds: Time between two ticks.
        stage_seconds: The longest duration of a stage.
        patience_seconds: How long the redrive waits for consumers to handle messages.
        measuring_seconds: The time over which deletes are measured.
        measuring_first_seconds: The same before the first stage.
    """

    canary: int = 5
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

    def halt_threshold(self, moved: int) -> int:
        """Return the number of returned messages that stops the redrive, after `moved` messages
        were sent.
        """
        # In floating point, 0.05 * 100 is a little more than 5, which `ceil` would round up to 6.
        share = ceil(round(self.halt_share * moved, 6))
        return min(self.halt_returned, max(1, share))

    def rate_per_second(self, deletes_per_second: float) -> float:
        """Return how many messages per second may go back, if consumers delete this many per
        second.
        """
        return min(self.rate_share * deletes_per_second, self.mover_per_tick / self.tick_seconds)

    def soak_duration(
        self, *, receives: int, needed_seconds: int, delay_seconds: int, drain_seconds: float = 0
    ) -> timedelta:
        """Return how long to wait until a message that always fails must be back in the DLQ.

        Such a message waits behind the messages that were in the queue before. It is received
        `receives` times, and each time is in flight for a whole visibility timeout.

        Args:
            receives: The queue's maxReceiveCount.
            needed_seconds: The queue's visibility timeout.
            delay_seconds: The queue's DelaySeconds.
            drain_seconds: The time that consumers need for the messages that are in the queue now.
        """
        factor = max(self.soak_factor, LOWEST_SOAK_FACTOR)
        seconds = factor * receives * needed_seconds + delay_seconds + drain_seconds
        return timedelta(seconds=max(seconds, self.least_soak_seconds))
