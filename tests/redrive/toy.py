"""A DLQ and its source as toys, and effects that die when told to."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from math import inf

from msgspec import structs
from msgspec.structs import replace

from mendq.model.facts import Facts
from mendq.model.limits import Bounds
from mendq.model.queue import Redrive
from mendq.redrive.machine import Blocked, RedriveSituation, Tick
from mendq.redrive.messages import Message, MoveResult, NotMoved, RedriveMarker
from mendq.redrive.progress import DlqSample, RedriveProgress, RedriveQueues, sample_of

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
SOURCE = "arn:aws:sqs:us-east-1:123456789012:orders"
DEAD = "arn:aws:sqs:us-east-1:123456789012:orders-dlq"
MOST_BYTES = 262_144
RECEIVES, VISIBILITY = 3, 20
TICK = timedelta(seconds=60)
MARKER = RedriveMarker(SOURCE, "case", b"its key")


def begun(size: int = 5) -> RedriveProgress:
    return RedriveProgress.begun("case", RedriveQueues(DEAD, SOURCE), size=size, now=NOW)


class Crash(Exception):
    """The run is no more."""


@dataclass
class Toy:
    """`dead`, `source` and `kept` are queues; what is named in `poison` is never `processed`.

    A message at the source is handled when its visibility timeout is over: poison dies then.
    `crash_at` counts effects: before an even one half of it, after an odd one.
    """

    dead: list[Message] = field(default_factory=list)
    source: list[tuple[datetime, Message]] = field(default_factory=list)
    retained: list[Message] = field(default_factory=list)
    poison: set[str] = field(default_factory=set)
    processed: Counter[str] = field(default_factory=Counter)
    progress: RedriveProgress = field(default_factory=begun)
    now: datetime = NOW
    deletes_per_second: float | None = 50.0
    frozen: str = ""
    blocked_for_now: str = ""
    refuses_sample: str = ""
    has_foreign_task: bool = False
    bounds: Bounds = field(default_factory=Bounds)
    is_fifo: bool = False
    copies: int = 0
    crash_at: float = inf
    effects: int = 0
    sent_in_stage: Counter[int] = field(default_factory=Counter)
    refuses_send: str = ""

    def fill(self, good: int, poison: int = 0) -> Toy:
        every = good + poison
        for number in range(every):
            name = f"message {number}"
            if poison and number % (every // poison) == 0 and len(self.poison) < poison:
                self.poison.add(name)
            self.dead.append(message(name, group_id=str(number) if self.is_fifo else ""))
        self.progress = begun(size=self.bounds.canary)
        return self

    @property
    def ended(self) -> RedriveProgress | None:
        """Its progress, once it is over."""
        return self.progress if self.progress.is_over else None

    # What a tick does.

    def save(self, progress: RedriveProgress) -> RedriveProgress:
        self._effect()
        self.progress = replace(progress, n=progress.n + 1)
        self._effect()
        return self.progress

    def take_sample(self, progress: RedriveProgress) -> DlqSample | Blocked:
        assert not self.has_foreign_task, "its messages are hidden from it"
        if self.refuses_sample:
            return Blocked(self.refuses_sample)
        taken = self.dead[: self.bounds.census]
        sample = sample_of(taken, progress, self.situation().source, MARKER)
        return replace(sample, is_whole=len(taken) == len(self.dead))

    def quarantine(self, messages: tuple[Message, ...]) -> MoveResult:
        for each in messages:
            self._effect()
            self.retained.append(each)
            self._effect()
            self.dead.remove(each)
        return MoveResult(len(messages))

    def send_back(self, progress: RedriveProgress, messages: tuple[Message, ...]) -> MoveResult:
        if self.refuses_send:
            return MoveResult(failed=(NotMoved("m", self.refuses_send, ""),))
        for each in messages:
            self._effect()
            self._to_source(MARKER.marked(each))
            self.sent_in_stage[progress.current.number] += 1
            self._effect()
            self.dead.remove(each)
        return MoveResult(len(messages))

    # What the world does.

    def tick(self) -> RedriveProgress | None:
        """One call of the Lambda; a crash leaves what it had done."""
        try:
            Tick(self.situation(), self).run()
        except Crash:
            self.crash_at = inf
        return self.ended

    def see(self) -> None:
        """Whatever hid is gone."""
        self.blocked_for_now = self.refuses_sample = ""

    def situation(self) -> RedriveSituation:
        return RedriveSituation(
            self.progress,
            self.now,
            queue(DEAD, waiting=0 if self.blocked_for_now else len(self.dead)),
            queue(f"{SOURCE}{'.fifo' * self.is_fifo}", visibility=VISIBILITY),
            self.bounds,
            self.deletes_per_second,
            has_foreign_task=self.has_foreign_task,
            frozen=self.frozen,
            blocked=Blocked(self.blocked_for_now),
        )

    def passes(self, time: timedelta = TICK) -> None:
        """Consumers work, and somebody else's task moves what it finds, unmarked."""
        self.now += time
        for each in self.dead[:5] if self.has_foreign_task else ():
            self._to_source(structs.replace(each, attributes={}))
            self.dead.remove(each)
        due = [each for each in self.source if each[0] <= self.now]
        self.source = [each for each in self.source if each[0] > self.now]
        for _, each in due:
            if each.body in self.poison:
                self.dead.append(each)
            else:
                self.processed[each.body] += 1

    def run(self, most: int = 2_000) -> RedriveProgress:
        """Ticks until the case ends."""
        for _ in range(most):
            if end := self.tick():
                return end
            self.check()
            self.passes()
        raise AssertionError(f"it never ends: {self.progress}")

    @property
    def everywhere(self) -> set[str]:
        at_source = [each for _, each in self.source]
        return {each.body for each in (*self.dead, *at_source, *self.retained)} | set(
            self.processed
        )

    def check(self) -> None:
        """What holds at every moment."""
        current = self.progress.current
        assert self.sent_in_stage[current.number] <= current.size, "more than the stage may move"

    def _to_source(self, each: Message) -> None:
        times = RECEIVES if each.body in self.poison else 1
        back_at = self.now + timedelta(seconds=times * VISIBILITY)
        self.copies += 1
        new = structs.replace(each, message_id=f"copy {self.copies}", sent_at=self.now)
        self.source.append((back_at, new))

    def _effect(self) -> None:
        if self.effects == self.crash_at:
            raise Crash
        self.effects += 1


def message(name: str, **over: object) -> Message:
    """One that died in the source an hour before."""
    old = Message(name, name, NOW - timedelta(hours=1), source_arn=SOURCE)
    return structs.replace(old, **over)


def queue(queue_arn: str, waiting: int = 0, visibility: int = 30, delay: int = 0) -> Facts:
    """As SQS shows it."""
    attributes = {
        "ApproximateNumberOfMessages": str(waiting),
        "VisibilityTimeout": str(visibility),
        "DelaySeconds": str(delay),
        "MaximumMessageSize": str(MOST_BYTES),
        "RedrivePolicy": Redrive(DEAD, RECEIVES).text,
    }
    return Facts(queue_arn, attributes, {})
