"""What a redrive's look says about its course: the questions that the machine's table asks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from functions.healing.redrive_bounds import SLOWEST_TASK, Bounds
from functions.healing.redrive_course import Course, Stage
from functions.healing.redrive_look import SKEW, Census, Look, MoveTask

# The ledger and SQS keep times in milliseconds.
A_MOMENT = timedelta(milliseconds=2)


@dataclass(frozen=True)
class Sight:
    """A course beside what was seen at this tick; `census` is None until one was taken."""

    course: Course
    look: Look
    census: Census | None
    bounds: Bounds

    @property
    def now(self) -> datetime:
        return self.look.now

    @property
    def task(self) -> MoveTask | None:
        """The newest task, where it is the one that this stage asked for."""
        task = self.look.task
        return task if task is not None and is_ours(task, self.course) else None

    @property
    def task_runs(self) -> bool:
        return self.task is not None and self.task.is_active

    @property
    def may_run_unseen(self) -> bool:
        """Whether this stage asked for a task, and SQS does not say what became of it."""
        return self.look.tasks_unseen and self.course.intent_at is not None

    @property
    def has_foreign_task(self) -> bool:
        task = self.look.task
        return task is not None and task.is_active and self.task is None

    @property
    def came_back(self) -> int:
        """Of what was sent back."""
        still_back = self.census.still_back if self.census and self.course.is_opened else 0
        return self.course.returned + still_back

    @property
    def newly_dead(self) -> int:
        """Letters that were sent since it began, and died without having been sent back."""
        return self.census.newly_dead if self.census else 0

    @property
    def unseen(self) -> int:
        """After a soak, letters more than there should be that no census can have seen.

        Of a FIFO queue's group the first letters alone are handed out until they are gone.
        """
        census = self.census
        if census is None or not self.is_soaked or (census.is_whole and not self.look.is_fifo):
            return 0
        seen = census.returned + census.newly_dead
        return max(0, self.look.waiting - self.course.expected - seen)

    @property
    def too_many_are_back(self) -> bool:
        back = self.came_back + self.unseen
        is_many = back >= self.bounds.halts_at(self.course.moved)
        return is_many or self.newly_dead >= self.bounds.halt_returned

    @property
    def is_too_old(self) -> bool:
        return self.now >= self.course.began_at + timedelta(seconds=self.bounds.longest_seconds)

    @property
    def waiting(self) -> int:
        """Letters that were there when it looked, without those that went to quarantine since."""
        return max(0, self.look.waiting - (self.census.quarantined if self.census else 0))

    @property
    def left(self) -> int:
        """Letters that could still be sent back; what is in flight counts."""
        census = self.census or Census()
        held = max(self.waiting, census.seen - census.quarantined)
        return max(0, held - census.stuck)

    @property
    def is_soaked(self) -> bool:
        ends_at = self.course.soak_ends_at
        in_soak = self.course.stage is Stage.SOAK
        return in_soak and ends_at is not None and self.now >= ends_at

    @property
    def is_worked_off(self) -> bool:
        """Whether the stage was received: what stands unread has not stayed away.

        Nothing is left in the source, or as many were deleted since as stood there then.
        """
        source, course = self.look.source, self.course
        if not course.moved_in_stage or not source.visible:
            return True
        return (source.deleted_since or 0) >= course.stood - course.returned

    @property
    def stage_is_over(self) -> bool:
        """A stage that has moved nothing yet proves nothing, however long it takes.

        Nor is one over by itself while SQS takes nothing.
        """
        longest = timedelta(seconds=self.bounds.stage_seconds)
        is_late = self.now >= self.course.stage_at + longest
        has_begun = self.task_runs or self.course.moved_in_stage > 0
        goes_on = has_begun and not self.course.is_refused
        return self.course.left_in_stage == 0 or (is_late and goes_on)

    @property
    def patience_is_over(self) -> bool:
        return self._is_long_ago(self.course.waits_since)

    @property
    def is_refused_for_good(self) -> bool:
        return self.course.is_refused and self._is_long_ago(self.course.refused_since)

    @property
    def is_hindered_for_long(self) -> bool:
        return bool(self.look.hindered) and self._is_long_ago(self.course.hindered_since)

    @property
    def cancels_in_vain(self) -> bool:
        may_run = self.task_runs or self.may_run_unseen
        return may_run and self._is_long_ago(self.course.stage_at)

    def _is_long_ago(self, since: datetime | None) -> bool:
        patience = timedelta(seconds=self.bounds.patience_seconds)
        return since is not None and self.now >= since + patience

    @property
    def rate_per_second(self) -> float:
        return self.bounds.rate_per_second(self.look.source.deletes_per_second or 0)

    @property
    def is_too_fast(self) -> bool:
        """Whether the task runs at twice what the source's consumers bear by now, or more."""
        return self.course.rate_per_second >= 2 * max(self.rate_per_second, SLOWEST_TASK)

    @property
    def next_size(self) -> int:
        """Four times what the stage before has proven; where it moved nothing, a canary again."""
        course = self.course
        proven = min(course.size, course.moved_in_stage - course.unsure_in_stage)
        return self.bounds.growth * proven or self.bounds.canary

    @property
    def moves_by_task(self) -> bool:
        """Whether the next stage is more than the mover sends in one tick."""
        per_tick = self.rate_per_second * self.bounds.tick_seconds
        most = self.bounds.mover_per_tick
        return not self.look.is_fifo and min(per_tick, self.next_size) > most

    @property
    def task_per_second(self) -> int:
        """A task is cancelled at a tick: in the time of one it shall not move more than a stage."""
        one_tick = self.course.size / self.bounds.tick_seconds
        return max(SLOWEST_TASK, int(min(self.rate_per_second, one_tick)))

    @property
    def letters_now(self) -> int:
        """So many the mover may send at this tick."""
        course, bounds = self.course, self.bounds
        if course.stage is Stage.CANARY:
            return course.left_in_stage
        since = (self.now - (course.moved_at or course.began_at)).total_seconds()
        least = bounds.least_per_tick * round(since / bounds.tick_seconds)
        in_a_tick = int(self.rate_per_second * bounds.tick_seconds)
        most = min(max(bounds.least_per_tick, in_a_tick), bounds.mover_per_tick)
        return min(max(least, int(self.rate_per_second * since)), most, course.left_in_stage)

    def after_a_crash(self) -> Sight:
        """What a run that died had in hand may have gone: it is spent, and proves nothing."""
        course = self.course
        if not course.in_hand:
            return self
        spent = replace(
            course,
            moved_in_stage=course.moved_in_stage + course.in_hand,
            unsure_in_stage=course.unsure_in_stage + course.in_hand,
            expected=max(0, course.expected - course.in_hand),
            in_hand=0,
        )
        return replace(self, course=spent)

    def recounted(self) -> Sight:
        """With what the task says that it has moved so far; a cancel lets a few more through."""
        course, task = self.course, self.task
        if task is None or not course.by_task:
            return self
        more = max(0, task.moved - course.moved_in_stage)
        course = replace(
            course,
            moved=course.moved + more,
            moved_in_stage=course.moved_in_stage + more,
            moved_at=self.now if more else course.moved_at,
            expected=max(0, course.expected - more),
            task_handle=task.handle or course.task_handle,
            task_started_at=task.started_at,
        )
        return replace(self, course=course)


def is_ours(task: MoveTask, course: Course) -> bool:
    """Whether this stage asked for it: by its handle, by when it began, by how it was asked for.

    SQS tells a handle only while the task runs, and by a clock of its own when it began. A task of
    ours always has a rate, and never a destination.
    """
    if course.intent_at is None:
        return False
    if task.handle and course.task_handle:
        return task.handle == course.task_handle
    if course.task_started_at is not None:
        return abs(task.started_at - course.task_started_at) < A_MOMENT
    is_in_time = task.started_at >= course.intent_at - SKEW
    is_as_asked = not task.destination_arn and task.per_second == int(course.rate_per_second)
    return is_in_time and is_as_asked
