"""What the redrive's table does: each makes the course as it is to be written down, then an action.

Their docstrings stand in docs/redrive-stages.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from functions.healing.plain_text import counted
from functions.healing.quarantines import name_for
from functions.healing.queue_names import parts_of
from functions.healing.redrive_course import Course, Stage
from functions.healing.redrive_look import (
    Action,
    CancelTask,
    End,
    MoveByHand,
    Rest,
    StartTask,
    TakeCensus,
)
from functions.healing.redrive_sight import Sight
from functions.healing.states import State

Words = Callable[[Sight], str]
NOBODY = "no message was deleted from the source lately: nobody would handle what is sent back"
UNREAD = "what was sent back still stands in the source: nobody has handled it"
FOREIGN = "somebody else's move task runs on the dead-letter queue; it was left alone"
IN_VAIN = "the move task could not be cancelled, and still runs"
UNSEEN = "SQS does not say whether the move task that was to be cancelled still runs"
TOO_OLD = "it has gone on for longer than SQS keeps any letter"


@dataclass(frozen=True)
class Next:
    """The course as it is to be written down before `action`; without one the table is asked on."""

    course: Course
    action: Action | None = None


def end(sight: Sight) -> Next:
    """end the case"""
    course = sight.course
    state = State.VERIFIED if course.stage is Stage.DONE else State.ESCALATED
    return Next(course, End(state, course.because))


def halting(because: Words | str) -> Callable[[Sight], Next]:
    def halt(sight: Sight) -> Next:
        """end the case with a page"""
        return Next(sight.course.now_in(Stage.HALTED, sight.now, because=_said(because, sight)))

    return halt


def cancelling(halts_for: Words | str) -> Callable[[Sight], Next]:
    def cancel(sight: Sight) -> Next:
        """cancel the task"""
        reason = _said(halts_for, sight)
        course = sight.course.now_in(Stage.CANCELLING, sight.now, halts_for=reason)
        return Next(course, CancelTask(course.task_handle))

    return cancel


def cancel_again(sight: Sight) -> Next:
    """cancel it again"""
    return Next(sight.course, CancelTask(sight.course.task_handle))


def resting(because: str) -> Callable[[Sight], Next]:
    def rest(sight: Sight) -> Next:
        """wait"""
        return Next(replace(sight.course, because=because), Rest(because))

    return rest


def wait_for_thaw(sight: Sight) -> Next:
    """wait for the thaw"""
    because = f"changes are frozen: {sight.look.frozen}"
    course = replace(
        sight.course,
        because=because,
        waits_since=None,
        refused_since=None,
        is_refused=False,
        hindered_since=None,
    )
    return Next(course, Rest(because))


def wait_for_sight(sight: Sight) -> Next:
    """wait until it can"""
    because, since = sight.look.hindered, sight.course.hindered_since or sight.now
    return Next(replace(sight.course, because=because, hindered_since=since), Rest(because))


def waiting_for_consumers(because: str) -> Callable[[Sight], Next]:
    def wait(sight: Sight) -> Next:
        """wait for consumers"""
        since = sight.course.waits_since or sight.now
        return Next(replace(sight.course, because=because, waits_since=since), Rest(because))

    return wait


def count(sight: Sight) -> Next:
    """look at the letters: what came back goes to quarantine"""
    return Next(sight.course, TakeCensus())


def soak(sight: Sight) -> Next:
    """wait until a poison letter must be back"""
    source = sight.look.source
    length = sight.bounds.soak(
        receives=source.receives,
        lease_seconds=source.lease_seconds,
        delay_seconds=source.delay_seconds,
        drain_seconds=source.drain_seconds,
    )
    course = sight.course.now_in(
        Stage.SOAK,
        sight.now,
        soak_ends_at=sight.now + length,
        stood=source.visible + sight.course.moved_in_stage,
        waits_since=None,
        by_task=False,
        intent_at=None,
        task_handle="",
        task_started_at=None,
    )
    return Next(course)


def finish(sight: Sight) -> Next:
    """end the case as verified"""
    course, stuck = sight.course, sight.census.stuck if sight.census else 0
    left = f"; {stuck} cannot go back there and stay" if stuck else ""
    because = f"{counted(course.moved, 'letter')} went back, {_came_back(course)}{left}"
    return Next(course.now_in(Stage.DONE, sight.now, because=because))


def _came_back(course: Course) -> str:
    if not course.returned:
        return "and none of them came back"
    return f"{course.returned} of them came back and are in {_quarantine(course)}"


def _quarantine(course: Course) -> str:
    return name_for(parts_of(course.source_arn).name)


def ramp(sight: Sight) -> Next:
    """begin the next stage"""
    course = sight.course.now_in(
        Stage.RAMP,
        sight.now,
        number=sight.course.number + 1,
        size=sight.next_size,
        moved_in_stage=0,
        unsure_in_stage=0,
        expected=sight.waiting,
        by_task=sight.moves_by_task,
        rate_per_second=sight.rate_per_second,
        waits_since=None,
        is_refused=False,
    )
    return Next(course)


def start(sight: Sight) -> Next:
    """start a move task"""
    course = replace(
        sight.course,
        intent_at=sight.course.intent_at or sight.now,
        first_task_at=sight.course.first_task_at or sight.now,
        rate_per_second=sight.task_per_second,
        waits_since=None,
    )
    return Next(course, StartTask(sight.task_per_second))


def move(sight: Sight) -> Next:
    """send letters back by hand"""
    letters = sight.letters_now
    course = replace(
        sight.course,
        in_hand=letters,
        moved_at=sight.now,
        rate_per_second=sight.rate_per_second,
        waits_since=None,
    )
    return Next(course, MoveByHand(letters))


def how_many_are_back(sight: Sight) -> str:
    course = sight.course
    more = f", {sight.newly_dead} have newly died" if sight.newly_dead else ""
    more += f", and the queue holds {sight.unseen} more than it should" if sight.unseen else ""
    went = f"{course.moved}{' or more' if course.unsure_in_stage else ''} letters"
    return (
        f"of {went} that went back {sight.came_back} came back{more}; "
        f"at {sight.bounds.halts_at(course.moved)} it stops, because the cause is not mended"
        + (f"; what came back is in {_quarantine(course)}" if course.quarantined else "")
    )


def why_it_stops(sight: Sight) -> str:
    """Empty where it is only frozen: it goes on after the thaw."""
    back = how_many_are_back(sight) if sight.too_many_are_back else ""
    return sight.look.forbidden or back


def why_hindered(sight: Sight) -> str:
    return sight.look.hindered


def why_in_vain(sight: Sight) -> str:
    return (
        IN_VAIN if sight.task_runs else f"{UNSEEN}: {sight.look.hindered or sight.look.forbidden}"
    )


def why_it_failed(sight: Sight) -> str:
    failure = sight.task.failure if sight.task else ""
    return f"the move task failed: {failure or 'SQS gives no reason'}"


def why_for_good(sight: Sight) -> str:
    return sight.course.halts_for or sight.look.forbidden


def why_refused(sight: Sight) -> str:
    return sight.course.because or "SQS takes nothing"


def _said(words: Words | str, sight: Sight) -> str:
    return words if isinstance(words, str) else words(sight)
