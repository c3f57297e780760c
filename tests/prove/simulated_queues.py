"""SQS queues and their consumers played through event by event, and what AWS reports of them.

Nothing here knows what Mendq looks for. It keeps to what AWS documents: a receive hides a message
for a visibility timeout; a late delete of a standard queue answers 200 and is counted, of a FIFO
queue it fails; a group is held while one of it is in flight; what was received too often goes to
the DLQ at the next receive, uncounted; of a fair queue the quiet groups come first, and a group is
noisy from 30 in flight and a tenth of all on, until nothing of it waits; a standard queue's oldest
age leaves out what was received more than three times; a queue that nobody uses for six hours is
silent, and slow to begin; a standard queue gives nothing while 120,000 of it are in flight.
Counters differ: a part of a minute is counted in the next one, and gauges are off by a little until
nothing has changed for a minute.
https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-visibility-timeout.html
https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-available-cloudwatch-metrics.html
https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-fair-queues-detailed.html
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from heapq import heappop, heappush
from itertools import count
from math import inf
from random import Random

from mendq.model.queue import RedriveAllowPolicy, RedrivePolicy

NOW = datetime(2026, 11, 16, 9, 30, tzinfo=UTC)
ACCOUNT = "123456789012"
REGION = "us-east-1"
MINUTE = 60
HOUR = 3600
SILENT_AFTER_SECONDS = 6 * HOUR
SLOW_TO_BEGIN_SECONDS = 15 * MINUTE
POISON_AFTER_RECEIVES = 3
RESTART_SECONDS = 30
# Lambda tries to start a function a second time before the run fails.
FAILED_START_SECONDS = 0.4
SENT, RECEIVED, DELETED, EMPTY, REPEATED = (
    *("NumberOfMessagesSent", "NumberOfMessagesReceived", "NumberOfMessagesDeleted"),
    *("NumberOfEmptyReceives", "NumberOfDeduplicatedSentMessages"),
)
GAUGES = {
    "visible": "ApproximateNumberOfMessagesVisible",
    "in_flight": "ApproximateNumberOfMessagesNotVisible",
    "delayed": "ApproximateNumberOfMessagesDelayed",
}
OLDEST = "ApproximateAgeOfOldestMessage"
GROUPS = "ApproximateNumberOfGroupsWithInflightMessages"
NOISY = "ApproximateNumberOfNoisyGroups"
OF_QUIET = "InQuietGroups"
NOISY_IN_FLIGHT = 30
NOISY_SHARE = 0.1
# A receive by long polling is then empty and no error.
# https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-visibility-timeout.html
MOST_IN_FLIGHT = 120_000
LATE_SHARE = 0.2
GAUGE_IS_OFF_BY = 0.01


def chance(seed: str) -> Random:
    """The same each time."""
    return Random(seed)  # noqa: S311 - nothing is kept secret with it


class SimulatedWorld:
    """A clock, what happens when, and chance; it ends NOW."""

    def __init__(self, seed: str, hours: float = 8) -> None:
        self.random = chance(seed)
        self.now = 0.0
        self.end = hours * HOUR
        self.queues: list[SimulatedQueue] = []
        self._events: list[tuple[float, int, Callable[[], object]]] = []
        self.order = count()

    def at(self, seconds: float, happens: Callable[[], object]) -> None:
        if seconds < self.end:
            heappush(self._events, (seconds, next(self.order), happens))

    def every(self, seconds: float, happens: Callable[[], object], first: float = 0) -> None:
        def again() -> None:
            happens()
            self.at(self.now + seconds, again)

        self.at(first, again)

    def run(self, until: float) -> None:
        while self._events and self._events[0][0] < until:
            self.now, _, happens = heappop(self._events)
            happens()
        self.now = until

    def moment(self, seconds: float) -> datetime:
        return NOW - timedelta(seconds=self.end - seconds)


@dataclass(eq=False, slots=True)
class SimulatedMessage:
    """`work_seconds` None: as the consumer takes."""

    sent_at: float
    order: int
    group: str = ""
    work_seconds: float | None = None
    is_poison: bool = False
    arrived_at: float = 0
    state: str = ""
    receives: int = 0
    handle: int = 0
    hidden_until: float = 0


@dataclass(eq=False)
class SimulatedQueue:
    """`receives` are maxReceiveCount; `moving` says that a message movement task runs.

    `moves` are the message movement tasks that have ended since: the start, and how many messages
    were moved.
    """

    world: SimulatedWorld
    name: str
    visibility_seconds: int = 30
    receives: int = 0
    dlq: SimulatedQueue | None = None
    retention_seconds: int = 345_600
    delay_seconds: int = 0
    wait_seconds: int = 20
    tags: Mapping[str, str] = field(default_factory=dict)
    moving: bool = False
    moves: list[tuple[float, int]] = field(default_factory=list)
    is_fair: bool = False
    readers: list[Consumer] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.is_fifo = self.name.endswith(".fifo")
        self.arn = f"arn:aws:sqs:{REGION}:{ACCOUNT}:{self.name}"
        self.present = dict[SimulatedMessage, None]()
        self.tally = Counter[str]()
        self.held = Counter[str]()
        self._waiting = dict[str, list[tuple[float, int, SimulatedMessage]]]()
        self.noisy = set[str]()
        self.counted = defaultdict[str, Counter[int]](Counter)
        self.gauged = defaultdict[str, dict[int, float]](dict)
        self._used_at = 0.0
        self._changed_at = 0.0
        self._reports_from = 0.0
        self.world.queues.append(self)
        self.world.every(MINUTE, self._gauge, self.world.random.uniform(0, MINUTE))

    def count(self, metric: str, how_many: float = 1) -> None:
        self._used_at = self.world.now
        self.counted[metric][int(self.world.now // MINUTE)] += how_many  # type: ignore[assignment]

    def send(self, group: str = "", work: float | None = None, *, poison: bool = False) -> None:
        self.count(SENT)
        self.arrive(SimulatedMessage(self.world.now, next(self.world.order), group, work, poison))

    def arrive(self, message: SimulatedMessage) -> None:
        """However it came: what is moved here is not counted as sent."""
        message.arrived_at = self.world.now
        self.present[message] = None
        if self.delay_seconds:
            self._become(message, "delayed")
            self.world.at(self.world.now + self.delay_seconds, partial(self._show, message))
        else:
            self._show(message)
        expires_at = message.sent_at + self.retention_seconds
        self.world.at(expires_at, partial(self.lose, message))

    def _become(self, message: SimulatedMessage, state: str) -> None:
        self.tally[message.state] -= 1
        self.held[message.group] += (state == "in_flight") - (message.state == "in_flight")
        message.state = state
        self._changed_at = self.world.now
        self.tally[state] += 1

    def _show(self, message: SimulatedMessage) -> None:
        if message.state == "gone":
            return
        self._become(message, "visible")
        first = message.order if self.is_fifo else self.world.now
        heap = self._waiting.setdefault(message.group * (self.is_fifo or self.is_fair), [])
        heappush(heap, (first, message.order, message))
        for reader in self.readers:
            reader.pull()

    def note_move(self) -> None:
        """A message movement task takes everything that is here now."""
        self.moves.append((self.world.now, len(self.present)))

    def lose(self, message: SimulatedMessage) -> None:
        """It is deleted, expires, is purged or moved away."""
        if message.state != "gone":
            self._become(message, "gone")
            del self.present[message]

    def receive(self, most: int, seconds: int | None = None) -> list[tuple[SimulatedMessage, int]]:
        """Messages with their receipt handles; what was received too often dies here."""
        got = list[tuple[SimulatedMessage, int]]()
        if not self._waiting:
            return got
        for group in self._turns():
            heap = self._waiting[group]
            while heap and len(got) < most and not self._is_withheld(group, got):
                message = heappop(heap)[-1]
                if message.state == "visible" and not self._move_to_dlq_if_due(message):
                    self._take(message, seconds or self.visibility_seconds)
                    got.append((message, message.handle))
            if not heap:
                del self._waiting[group]
        if got:
            self.count(RECEIVED, len(got))
        return got

    def _move_to_dlq_if_due(self, message: SimulatedMessage) -> bool:
        """Move a message that was received too often; return True if it was moved."""
        if not self.dlq or message.receives < self.receives:
            return False
        self.lose(message)
        sent_at = self.world.now if self.is_fifo else message.sent_at
        dead = SimulatedMessage(sent_at, message.order, message.group, message.work_seconds)
        self.dlq.arrive(dead)
        return True

    def _take(self, message: SimulatedMessage, seconds: float) -> None:
        """Hide a message that is received, under a new receipt handle."""
        message.receives += 1
        message.handle += 1
        self._become(message, "in_flight")
        self.hide(message, message.handle, seconds)

    def _turns(self) -> list[str]:
        """The groups in which to look; of a fair queue the quiet ones first, each by its oldest."""
        if self.is_fair:
            least = max(NOISY_IN_FLIGHT, NOISY_SHARE * self.tally["in_flight"])
            self.noisy |= {
                message for message in self._waiting if message and self.held[message] >= least
            }
            self.noisy &= self._waiting.keys()
            return sorted(self._waiting, key=lambda e: (e in self.noisy, self._waiting[e][0][:2]))
        return list(self._waiting)

    def _is_withheld(self, group: str, got: list[tuple[SimulatedMessage, int]]) -> bool:
        if self.is_fifo:
            return self._is_held(group, got)
        return self.tally["in_flight"] >= MOST_IN_FLIGHT

    def _is_held(self, group: str, got: list[tuple[SimulatedMessage, int]]) -> bool:
        """But by this very receive: one call may hand out several of a group."""
        return self.held[group] > sum(message.group == group for message, _ in got)

    def hide(self, message: SimulatedMessage, handle: int, seconds: float) -> None:
        """ChangeMessageVisibility, while it is in flight with that very handle."""
        if message.state == "in_flight" and handle == message.handle:
            message.hidden_until = self.world.now + seconds
            self.world.at(message.hidden_until, partial(self._hidden_long_enough, message, handle))

    def _hidden_long_enough(self, message: SimulatedMessage, handle: int) -> None:
        is_over = self.world.now >= message.hidden_until
        if message.state == "in_flight" and handle == message.handle and is_over:
            self._show(message)

    def delete(self, message: SimulatedMessage, handle: int) -> None:
        is_held = message.state == "in_flight" and handle == message.handle
        if is_held or not self.is_fifo:
            self.count(DELETED)
        if is_held or (not self.is_fifo and handle == message.handle):
            self.lose(message)
        if self.is_fifo:
            for reader in self.readers:
                reader.pull()

    def _gauge(self) -> None:
        now = self.world.now
        random = self.world.random
        self._note_silence()
        if now < self._reports_from:
            for counter in self.counted.values():
                counter.pop(int(now // MINUTE), None)
            return
        often = inf if self.is_fifo else POISON_AFTER_RECEIVES
        oldest = next(
            (message.arrived_at for message in self.present if message.receives <= often), now
        )
        exact = {metric: self.tally[state] for state, metric in GAUGES.items()}
        off = GAUGE_IS_OFF_BY * (now - self._changed_at < MINUTE)
        gauged = {
            name: max(0, round(value * random.gauss(1, off))) for name, value in exact.items()
        }
        groups = {GROUPS: sum(n > 0 for n in self.held.values())} if self.is_fifo else {}
        if self.is_fair:
            groups = self._gauge_noisy_and_quiet_groups(often)
        for name, value in {**gauged, **groups, OLDEST: int(now - oldest)}.items():
            self.gauged[name][int(now // MINUTE)] = value

    def _note_silence(self) -> None:
        """CloudWatch gets no metrics of a queue that is empty and unused for hours."""
        now = self.world.now
        if not self.present and now - self._used_at > SILENT_AFTER_SECONDS:
            self._reports_from = inf
        elif self._reports_from == inf:
            self._reports_from = now + self.world.random.uniform(0, SLOW_TO_BEGIN_SECONDS)

    def _gauge_noisy_and_quiet_groups(self, often: float) -> dict[str, int]:
        """Return a fair queue's metrics. Messages with more than `often` receives do not count."""
        now = self.world.now
        quiet = [
            message
            for message in self.present
            if message.group not in self.noisy and message.receives <= often
        ]
        oldest = min((message.arrived_at for message in quiet), default=now)
        return {
            NOISY: len(self.noisy),
            GAUGES["visible"] + OF_QUIET: sum(message.state == "visible" for message in quiet),
            OLDEST + OF_QUIET: int(now - oldest),
        }

    def series(self, metric: str) -> Iterator[tuple[datetime, float]]:
        """A part of some minutes is counted in the next one. Counts of 0 are reported as well."""
        if metric in self.gauged:
            points = self.gauged[metric]
        else:
            random = chance(f"{self.name} {metric}")
            points = dict.fromkeys(self.gauged[GAUGES["visible"]], 0.0)
            for minute, value in sorted(self.counted[metric].items()):
                if minute not in points:
                    continue
                late = int(value * LATE_SHARE * random.random())
                points[minute] += value - late
                if minute + 1 in points:
                    points[minute + 1] += late
        for minute, shown in sorted(points.items()):
            yield self.world.moment(minute * MINUTE), float(round(shown))

    def attributes(self) -> dict[str, str]:
        sources = tuple(queue.arn for queue in self.world.queues if queue.dlq is self)
        numbers = {
            "VisibilityTimeout": self.visibility_seconds,
            "MessageRetentionPeriod": self.retention_seconds,
            "DelaySeconds": self.delay_seconds,
            "ReceiveMessageWaitTimeSeconds": self.wait_seconds,
            "ApproximateNumberOfMessages": self.tally["visible"],
            "ApproximateNumberOfMessagesNotVisible": self.tally["in_flight"],
            "ApproximateNumberOfMessagesDelayed": self.tally["delayed"],
            **dict.fromkeys(("CreatedTimestamp", "LastModifiedTimestamp"), 1_700_000_000),
        }
        redrive = (
            {"RedrivePolicy": RedrivePolicy(self.dlq.arn, self.receives).text} if self.dlq else {}
        )
        allow = (
            {"RedriveAllowPolicy": RedriveAllowPolicy("byQueue", sources).text} if sources else {}
        )
        given = {"QueueArn": self.arn, "SqsManagedSseEnabled": "true", **redrive, **allow}
        return given | {name: str(value) for name, value in numbers.items()}


@dataclass(eq=False)
class SimulatedFunction:
    """A Lambda function behind an event source mapping; `throttled` is a share by the time.

    `reserved` is its reserved concurrency, None for none: Lambda throttles what exceeds it.
    `starts` is false at times in which its code cannot be loaded: each run fails then, before it
    works.

    `runs` are the start, the seconds and whether it failed. `mapping_changed_at` is when a person
    disabled the mapping, None if nobody touched it.
    """

    name: str
    timeout_seconds: int = 30
    batch: int = 10
    reports_items: bool = True
    enabled: bool = True
    is_deleted: bool = False
    mapping_changed_at: float | None = None
    throttled: Callable[[float], float] = lambda _: 0.0
    reserved: int | None = None
    starts: Callable[[float], bool] = lambda _: True
    running: int = 0
    runs: list[tuple[float, float, bool]] = field(default_factory=list)
    throttles: list[float] = field(default_factory=list)

    def list_samples(self, metric: str) -> list[tuple[float, float]]:
        """Return what Lambda reports of each run, with the second in which the run began.

        https://docs.aws.amazon.com/lambda/latest/dg/monitoring-metrics-types.html
        """
        if metric == "Throttles":
            throttles = [(throttled_at, 1.0) for throttled_at in self.throttles]
            return throttles + [(begun_at, 0.0) for begun_at, _, _ in self.runs]
        if metric == "Duration":
            return [(begun_at, 1000 * seconds) for begun_at, seconds, _ in self.runs]
        if metric == "Errors":
            return [(begun_at, float(failed)) for begun_at, _, failed in self.runs]
        if metric == "Invocations":
            return [(begun_at, 1.0) for begun_at, _, _ in self.runs]
        return []


DONE = "done"
FAILS = "fails"
CRASHES = "crashes"
TWICE = "twice"


@dataclass(eq=False)
class Consumer:
    """`outcome` of a message is one of the words, or after how many seconds it is given back.

    `heartbeats` says that the consumer extends the visibility timeout while it works, for at most
    `heartbeat_limit_seconds`.
    """

    queue: SimulatedQueue
    work: Callable[[], float]
    workers: Callable[[float], float]
    outcome: Callable[[SimulatedMessage], str | float] = lambda message: (
        FAILS if message.is_poison else DONE
    )
    batch: int = 1
    receive_seconds: int | None = None
    heartbeats: bool = False
    heartbeat_limit_seconds: float = inf
    poll_seconds: float = 20
    function: SimulatedFunction | None = None
    busy: int = 0
    release: int = 0
    down_until: float = 0

    def __post_init__(self) -> None:
        self.world = self.queue.world
        self.queue.readers.append(self)
        self.world.every(MINUTE, self._poll)

    def deploy_at(self, at: float, takes_seconds: float = RESTART_SECONDS) -> None:
        """Whatever it holds then is left to the visibility timeout."""

        def restart() -> None:
            self.release = self.release + 1
            self.busy = 0
            self.down_until = self.world.now + takes_seconds

        self.world.at(at, restart)

    def _poll(self) -> None:
        self.pull()
        idle = max(0, self.workers(self.world.now) - self.busy)
        if idle and self.world.now >= self.down_until:
            self.queue.count(EMPTY, idle * MINUTE / self.poll_seconds)

    def pull(self) -> None:
        while self.world.now >= self.down_until and self.busy < self.workers(self.world.now):
            got = self.queue.receive(self.batch, self.receive_seconds)
            if not got:
                return
            self.busy += 1
            (self._invoke if self.function else self._next)(got, self.release)

    def _free(self, release: int) -> None:
        if release == self.release:
            self.busy -= 1
            self.pull()

    def _next(self, got: list[tuple[SimulatedMessage, int]], release: int) -> None:
        """One after the other."""
        if release != self.release:
            return
        if not got:
            self._free(release)
            return
        work_seconds = got[0][0].work_seconds
        seconds = self.work() if work_seconds is None else work_seconds
        for message in got if self.heartbeats else ():
            extended_seconds = min(seconds, self.heartbeat_limit_seconds)
            self.queue.hide(*message, extended_seconds + self.queue.visibility_seconds)
        finish = partial(self._finish, got, release)
        self.world.at(self.world.now + max(seconds, 0.01), finish)

    def _finish(self, got: list[tuple[SimulatedMessage, int]], release: int) -> None:
        if release != self.release:
            return
        (message, handle), *rest = got
        outcome = self.outcome(message)
        if outcome == CRASHES:
            self.world.at(self.world.now + RESTART_SECONDS, partial(self._free, release))
            return
        for _ in range({DONE: 1, TWICE: 2}.get(str(outcome), 0)):
            self.queue.delete(message, handle)
        if not isinstance(outcome, str):
            self.queue.hide(message, handle, outcome)
        self._next(rest, release)

    def _invoke(self, got: list[tuple[SimulatedMessage, int]], release: int) -> None:
        """Lambda deletes what succeeded when the function has answered."""
        function = self.function
        now = self.world.now
        assert function is not None
        is_full = function.reserved is not None and function.running >= function.reserved
        if is_full or self.world.random.random() < function.throttled(now):
            function.throttles.append(now)
            self.world.at(now + 1, partial(self._free, release))
            return
        seconds = sum(
            self.work() if message.work_seconds is None else message.work_seconds
            for message, _ in got
        )
        failed = {message for message, _ in got if self.outcome(message) != DONE}
        late = seconds > function.timeout_seconds
        ran = min(seconds, function.timeout_seconds)
        has_error = late or bool(failed and not function.reports_items)
        if not function.starts(now):
            ran = FAILED_START_SECONDS
            has_error = True
        succeeded = [(message, handle) for message, handle in got if message not in failed]
        done = [] if has_error else succeeded

        function.running += 1

        def answer() -> None:
            function.running -= 1
            function.runs.append((now, ran, has_error))
            for message, handle in done:
                self.queue.delete(message, handle)
            self._free(release)

        self.world.at(now + max(ran, 0.01), answer)
