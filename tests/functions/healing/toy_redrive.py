"""A dead-letter queue, its source and SQS's move tasks as toys, and hands that die when told to."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from math import inf

from functions.healing.letters import Letter
from functions.healing.marks import hopped
from functions.healing.redrive_bounds import Bounds
from functions.healing.redrive_course import Course, begun
from functions.healing.redrive_drive import Drive, Picked, Put, Refused
from functions.healing.redrive_letters import Sorted, sorted_out
from functions.healing.redrive_look import Census, End, Look, MoveTask, Source, TaskStatus

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
SOURCE = "arn:aws:sqs:us-east-1:123456789012:orders"
DEAD = "arn:aws:sqs:us-east-1:123456789012:orders-dlq"
MOST_BYTES = 262_144
TICK = timedelta(seconds=60)


class Crash(Exception):
    """The run is no more."""


@dataclass
class Toy:
    """`dead`, `source` and `kept` are queues; what is named in `poison` is never `processed`.

    A message at the source is handled when `lease` is over: poison dies then. `crash_at` counts
    effects: before an even one half of it, after an odd one.
    """

    dead: list[Letter] = field(default_factory=list)
    source: list[tuple[datetime, Letter]] = field(default_factory=list)
    kept: list[Letter] = field(default_factory=list)
    poison: set[str] = field(default_factory=set)
    processed: Counter[str] = field(default_factory=Counter)
    course: Course | None = None
    task: MoveTask | None = None
    task_letters: float = 0
    cancelled_at: datetime | None = None
    now: datetime = NOW
    deletes_per_second: float | None = 50.0
    frozen: str = ""
    forbidden: str = ""
    hindered: str = ""
    tasks_unseen: bool = False
    refuses_census: str = ""
    bounds: Bounds = field(default_factory=Bounds)
    receives: int = 3
    lease_seconds: int = 20
    is_fifo: bool = False
    copies: int = 0
    starts: int = 0
    crash_at: float = inf
    effects: int = 0
    sent_by_hand: Counter[int] = field(default_factory=Counter)
    refuses_start: str = ""
    refuses_cancel: str = ""
    refuses_send: str = ""
    refuses_quarantine: str = ""
    in_hand: Sorted = field(default_factory=Sorted)
    picked: tuple[Letter, ...] = ()
    ended: End | None = None

    def fill(self, good: int, poison: int = 0) -> Toy:
        every = good + poison
        for number in range(every):
            name = f"letter {number}"
            if poison and number % (every // poison) == 0 and len(self.poison) < poison:
                self.poison.add(name)
            self.dead.append(letter(name, group_id=str(number) if self.is_fifo else ""))
        return self

    # What a tick does.

    def save(self, course: Course) -> Course:
        self._effect()
        self.course = replace(course, n=course.n + 1)
        self._effect()
        return self.course

    def take_census(self, course: Course) -> Census | Refused:
        if self.refuses_census:
            return Refused(self.refuses_census)
        taken = self.dead[: self.bounds.census]
        self.in_hand = sorted_out(taken, course, is_fifo=self.is_fifo, most_bytes=MOST_BYTES)
        return self.in_hand.census(is_whole=len(taken) == len(self.dead))

    def quarantine(self, _course: Course) -> Put:
        if self.refuses_quarantine and self.in_hand.returned:
            return Put(refused=self.refuses_quarantine, for_good=True)
        for each in self.in_hand.returned:
            self._effect()
            self.kept.append(each)
            self._effect()
            self.dead.remove(each)
        return Put(len(self.in_hand.returned))

    def pick(self, course: Course, letters: int) -> Picked:
        self.picked = self.in_hand.waiting[:letters]
        return Picked(len(self.picked), course.fingerprints)

    def send_back(self, course: Course) -> Put:
        if self.refuses_send:
            return Put(refused=self.refuses_send)
        for each in self.picked:
            self._effect()
            self._to_source(hopped(each))
            self.sent_by_hand[course.number] += 1
            self._effect()
            self.dead.remove(each)
        return Put(len(self.picked))

    def start(self, _course: Course, per_second: int) -> str | Refused:
        assert self.task is None or not self.task.is_active, "two tasks at once"
        assert not self.is_fifo, "a task would take the order apart"
        self._effect()
        if self.refuses_start:
            return Refused(self.refuses_start)
        self.starts += 1
        self.task_letters = 0
        handle = f"handle {self.starts}"
        self.task = MoveTask(TaskStatus.RUNNING, self.now, handle=handle, per_second=per_second)
        self._effect()
        return handle

    def cancel(self, handle: str) -> Refused | None:
        self._effect()
        if self.refuses_cancel:
            return Refused(self.refuses_cancel)
        assert self.task is not None
        if self.task.status is not TaskStatus.RUNNING:
            return Refused("Task does not exist.")
        assert handle in {self.task.handle, ""}, "somebody else's"
        self.task = replace(self.task, status=TaskStatus.CANCELLING)
        self.cancelled_at = self.now
        self._effect()
        return None

    # What the world does.

    def tick(self) -> End | None:
        """One call of the Lambda; a crash leaves what it had done."""
        if self.course is None:
            self.course = begun(
                "case",
                dead_letter_arn=DEAD,
                source_arn=SOURCE,
                canary=self.bounds.canary,
                now=self.now,
            )
        try:
            self.ended = Drive(self.course, self.look(), self.bounds, self).go() or self.ended
        except Crash:
            self.crash_at = inf
            return None
        finally:
            self.in_hand, self.picked = Sorted(), ()
        return self.ended

    def see(self) -> None:
        """Whatever hid is gone."""
        self.hindered = self.refuses_census = ""
        self.tasks_unseen = False

    def look(self) -> Look:
        source = Source(
            self.lease_seconds,
            self.receives,
            visible=0,
            deletes_per_second=self.deletes_per_second,
        )
        task = self.task
        if task is not None and not task.is_active:
            task = replace(task, handle="")
        return Look(
            self.now,
            0 if self.hindered else len(self.dead),
            source,
            None if self.tasks_unseen else task,
            self.is_fifo,
            self.frozen,
            self.forbidden,
            self.hindered or ("SQS does not answer" if self.tasks_unseen else ""),
            bool(self.tasks_unseen),
        )

    def passes(self, time: timedelta = TICK) -> None:
        """Consumers work, a task moves."""
        self._task_moves(time.total_seconds())
        self.now += time
        due = [each for each in self.source if each[0] <= self.now]
        self.source = [each for each in self.source if each[0] > self.now]
        for _, each in due:
            if each.body in self.poison:
                self.dead.append(each)
            else:
                self.processed[each.body] += 1

    def run(self, most: int = 2_000) -> End:
        """Ticks until the case ends."""
        for _ in range(most):
            if end := self.tick():
                return end
            self.check()
            self.passes()
        raise AssertionError(f"it never ends: {self.course}")

    @property
    def everywhere(self) -> set[str]:
        at_source = [each for _, each in self.source]
        return {each.body for each in (*self.dead, *at_source, *self.kept)} | set(self.processed)

    def check(self) -> None:
        """What holds at every moment."""
        assert self.course is not None
        sizes = {self.course.number: self.course.size}
        for number, sent in self.sent_by_hand.items():
            assert sent <= sizes.get(number, sent), "more than the stage may move"

    def _task_moves(self, seconds: float) -> None:
        task = self.task
        if task is None or not task.is_active:
            return
        if self.cancelled_at is not None:
            seconds = 2
        self.task_letters += seconds * (task.per_second or 500)
        letters = min(int(self.task_letters), len(self.dead))
        self.task_letters -= letters
        for each in self.dead[:letters]:
            self._to_source(replace(each, sent_at=self.now))
        del self.dead[:letters]
        status = task.status
        if self.cancelled_at is not None:
            status, self.cancelled_at = TaskStatus.CANCELLED, None
        elif not self.dead:
            status = TaskStatus.COMPLETED
        self.task = replace(task, moved=task.moved + letters, status=status)

    def _to_source(self, each: Letter) -> None:
        self.copies += 1
        times = self.receives if each.body in self.poison else 1
        back_at = self.now + timedelta(seconds=times * self.lease_seconds)
        new = replace(each, message_id=f"copy {self.copies}", sent_at=self.now)
        self.source.append((back_at, new))

    def _effect(self) -> None:
        if self.effects == self.crash_at:
            raise Crash
        self.effects += 1


def letter(name: str, **over: object) -> Letter:
    """One that died in the source an hour before."""
    old = Letter(name, name, NOW - timedelta(hours=1), source_arn=SOURCE)
    return replace(old, **over)  # type: ignore[arg-type]
