"""Modes, tags and limits: how far Mendq may go on a queue."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import Enum
from functools import total_ordering
from math import ceil
from typing import Annotated

from mendq.model.queue import is_quarantine

# What is empty says nothing.


@total_ordering
class Mode(Enum):
    """The order matters: the lowest of several modes is the one that holds."""

    OBSERVE = "observe"
    PROPOSE = "propose"
    HEAL = "heal"

    def __str__(self) -> str:
        return self.value

    def __lt__(self, other: Mode) -> bool:
        ascending = list(Mode)
        return ascending.index(self) < ascending.index(other)


# As settings and tags spell them; nothing else is one, upper case among it.
MODES = {each.value: each for each in Mode}
# CloudFormation's own tags, which people cannot set; ListQueueTags gives them like any other.
# https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/aws-properties-resource-tags.html
_STACK = "aws:cloudformation:stack-name"
_RESOURCE = "aws:cloudformation:logical-id"
_MOST = 255


class TagUnreadable(Exception):
    """A tag of ours holds no number of seconds; names the tag and the remedy."""


def read_seconds_tag(tags: Mapping[str, str], key: str) -> int | None:
    """The seconds a tag names; None where it is absent. Raises TagUnreadable."""
    text = tags.get(key)
    if text is None:
        return None
    if not (text.isascii() and text.isdecimal() and 1 <= int(text[:6]) <= 43_200 and len(text) < 6):
        raise TagUnreadable(f"the tag {key} must be a whole number from 1 to 43200: {text[:40]!r}")
    return int(text)


def cloudformation_resource(tags: Mapping[str, str]) -> dict[str, str]:
    """`stack` and `resource`, its logical id: each where a CloudFormation stack owns the queue."""
    named = {"stack": tags.get(_STACK), "resource": tags.get(_RESOURCE)}
    return {name: text[:_MOST] for name, text in named.items() if text and named["stack"]}


MODE_TAG = "mendq"
OFF = "off"
# Names the team whose topic a queue's notifications reach beside the usual one.
TEAM_TAG = "mendq:notify"
# On the queue of a drill, whose failing calls say nothing about other queues.
DRILL_TAG = "mendq:drill"
# What a drill calls its queue unless it is told another name: logs tell no tags.
DRILL_QUEUE = "mendq-drill-"


def mass_symptom_key(symptom: str, tags: Mapping[str, str]) -> str:
    """Under which word a queue's symptom counts as one of many.

    Drills count among themselves: they stop nobody else's queue, and a tag set on every queue
    frees none of them from being counted.
    """
    return f"drill#{symptom}" if DRILL_TAG in tags else symptom


@dataclass(frozen=True)
class Consent:
    """What the account's settings allow; empty `queues` manage nothing."""

    mode: Mode = Mode.OBSERVE
    tag_may_raise_to: Mode = Mode.OBSERVE
    queues: tuple[str, ...] = ()
    teams: tuple[str, ...] = ()

    def without_team_tag(self, tags: Mapping[str, str]) -> dict[str, str]:
        """The tags without the one that names a team of the settings."""
        known = tags.get(TEAM_TAG) in self.teams
        return {key: text for key, text in tags.items() if key != TEAM_TAG or not known}

    def mode_of(self, queue_name: str, tags: Mapping[str, str]) -> Mode | None:
        """The queue's mode; None: not managed.

        A queue that is named begins at the account's mode, every other at the lowest: from there
        its tag lowers freely and raises only as far as the setting lets it, as the roles' IAM does.
        A tag that cannot be read manages the queue in the lowest mode. A quarantine is nobody's to
        fix, whatever names or tags it: messages go in, and people alone take them out.
        """
        if is_quarantine(queue_name):
            return None
        begins = self.mode if self.names(queue_name) else None
        tag = tags.get(MODE_TAG)
        if tag is None or tag == OFF:
            return begins if tag is None else None
        wanted = MODES.get(tag, Mode.OBSERVE)
        return min(wanted, max(begins or Mode.OBSERVE, self.tag_may_raise_to))

    def why(self, queue_name: str, tags: Mapping[str, str]) -> str:
        """Why `mode_of` says what it does, in words."""
        pattern = next((each for each in self.queues if _fits(queue_name, each)), "")
        named = f"settings name it ({pattern}): {self.mode}" if pattern else "no setting names it"
        tag, mode = tags.get(MODE_TAG), self.mode_of(queue_name, tags)
        wanted = MODES.get(tag or "", Mode.OBSERVE)
        if tag is None:
            return named
        if mode is not None and wanted > mode:
            cap = f"tagMayRaiseTo ({self.tag_may_raise_to}) caps it at {mode}"
            return f"{named}; its tag says {wanted}, and {cap}"
        means = "" if tag in (OFF, *MODES) else f" nothing that Mendq knows, so {mode}"
        return f"{named}; its tag says{means or f' {tag}'}"

    def has_exact_name(self, queue_name: str) -> bool:
        """A start of names and a `*` also fits queues that never were."""
        return queue_name in self.queues

    def names(self, queue_name: str) -> bool:
        return any(_fits(queue_name, pattern) for pattern in self.queues)


def _fits(queue_name: str, pattern: str) -> bool:
    """A bare `*` fits nothing: every queue of an account is managed by saying so on each."""
    prefix = pattern.removesuffix("*")
    return queue_name == pattern or (prefix not in ("", pattern) and queue_name.startswith(prefix))


LOWEST_SOAK_FACTOR = 1.2


@dataclass(frozen=True)
class Range:
    """Where a number of the settings may lie; the local account alone may go below `floor`."""

    least: float
    most: float
    floor: float = 0

    def begins(self, *, floors: bool = True) -> float:
        """The lowest number; `floors` says whether the floor holds."""
        return max(self.least, self.floor) if floors else self.least


# What stands below a field is told to whoever sets it, in docs/settings.md.
@dataclass(frozen=True)
class Limits:
    """How much may be changed."""

    writes_per_minute: Annotated[int, Range(1, 100)] = 10
    """The most writes to queues in a minute, over the whole account."""
    writes_per_attribute_per_day: Annotated[int, Range(1, 24)] = 3
    """The most writes to one attribute of one queue in 24 hours."""
    mass_symptom_share: Annotated[float, Range(0, 1)] = 0.05
    """Where more than this share of the managed queues, or of those on which Mendq may go at
    least as far, show a symptom in an hour, its cause lies elsewhere, and nothing is written."""
    mass_symptom_queues: Annotated[int, Range(3, 10_000)] = 20
    """The same where more queues than this show it, however many are managed: so many notifications
    are sent in an hour, and nobody would read more."""
    visibility_ceiling_seconds: Annotated[int, Range(30, 43_200)] = 900
    """The longest visibility timeout that a fix may set."""
    scan_metrics_per_day: Annotated[int, Range(0, 1_000_000)] = 20_000
    """The most metrics that looking for symptoms may ask for in a day."""


@dataclass(frozen=True)
class Timing:
    """How long Mendq waits. Only the local account may go below these ranges, and says so."""

    propagation_seconds: Annotated[int, Range(0, 900, 60)] = 60
    """How long a change takes to reach all of SQS; AWS says up to 60 seconds."""
    watch_hours: Annotated[int, Range(0, 336, 24)] = 48
    """How long a verified fix is watched; a day has its own rhythm."""
    proposal_hours: Annotated[int, Range(0, 168, 1)] = 24
    """How long a proposal waits; a person needs time to see it."""
    soak_factor: Annotated[float, Range(0, 10, LOWEST_SOAK_FACTOR)] = LOWEST_SOAK_FACTOR
    """A redrive waits this many times as long as a poison message takes to come back."""
    cooldown_minutes: Annotated[int, Range(0, 1_440, 30)] = 30
    """The time between two writes to one attribute of one queue."""
    probe_minutes: Annotated[int, Range(1, 1_440, 20)] = 60
    """The time between two probes; one that is not seen within 20 minutes counts as lost."""
    measuring_minutes: Annotated[int, Range(1, 360, 60)] = 60
    """How long a queue must have been as it is before what is measured of it says anything."""


@dataclass(frozen=True)
class Bounds:
    """The shipped values; only the local account sets others, and says so.

    `halt_returned` and `halt_share` of what was moved: at either, whichever is reached first.
    `least_per_tick`: a queue that little is sent to shows little of what its consumers can do.
    `mover_per_tick`: what is received, sent and deleted within one invocation, ten at a time.
    `patience_seconds`: how long it waits for somebody to handle messages.
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
        """So many that came back stop it, once so many were moved."""
        # 0.05 * 100 is a little more than 5 in floating point.
        share = ceil(round(self.halt_share * moved, 6))
        return min(self.halt_returned, max(1, share))

    def rate_per_second(self, deletes_per_second: float) -> float:
        """How fast messages may go back to a queue whose consumers delete so many."""
        return min(self.rate_share * deletes_per_second, self.mover_per_tick / self.tick_seconds)

    def soak_duration(
        self, *, receives: int, needed_seconds: int, delay_seconds: int, drain_seconds: float = 0
    ) -> timedelta:
        """How long a poison message may take until it is back.

        It waits behind what stood in the queue before it, is received so often, and each time
        held for a whole visibility timeout.
        """
        factor = max(self.soak_factor, LOWEST_SOAK_FACTOR)
        seconds = factor * receives * needed_seconds + delay_seconds + drain_seconds
        return timedelta(seconds=max(seconds, self.least_soak_seconds))
