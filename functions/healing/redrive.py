"""The redrive's machine: where a course goes from here, and what is to be done at this tick.

Nothing is done before the course that says so is written down. So a run that dies at any point
leaves a course from which the next one finds out what became of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime

from functions.healing import redrive_deeds as deeds
from functions.healing import redrive_when as when
from functions.healing.redrive_bounds import Bounds
from functions.healing.redrive_course import Course, Stage
from functions.healing.redrive_deeds import Next
from functions.healing.redrive_look import CancelTask, Census, Look, TaskStatus
from functions.healing.redrive_sight import Sight

SENDING = (Stage.CANARY, Stage.RAMP)
GOING_ON = (Stage.CANARY, Stage.SOAK, Stage.RAMP)
RUNNING = (*GOING_ON, Stage.CANCELLING)
ENDED = (Stage.DONE, Stage.HALTED)
_CANCELLING, _RAMP, _SOAK = (Stage.CANCELLING,), (Stage.RAMP,), (Stage.SOAK,)


@dataclass(frozen=True)
class Row:
    """One line of the table: at one of these stages, when, to which stage (None: the same), how."""

    out_of: tuple[Stage, ...]
    into: Stage | None
    when: Callable[[Sight], bool]
    does: Callable[[Sight], Next]


# Of a stage's rows the first that fits is taken.
TABLE = (
    Row(ENDED, None, when.always, deeds.end),
    Row(RUNNING, Stage.HALTED, when.foreign_task, deeds.halting(deeds.FOREIGN)),
    Row(
        (Stage.RAMP, Stage.CANCELLING),
        Stage.HALTED,
        when.task_failed,
        deeds.halting(deeds.why_it_failed),
    ),
    Row(_CANCELLING, Stage.HALTED, when.cancelled_in_vain, deeds.halting(deeds.why_in_vain)),
    Row(_CANCELLING, None, when.still_running, deeds.cancel_again),
    Row(_CANCELLING, None, when.task_unseen, deeds.cancel_again),
    Row(_CANCELLING, None, when.task_runs, deeds.resting("its move task is being cancelled")),
    Row(_CANCELLING, Stage.HALTED, when.to_end_for_good, deeds.halting(deeds.why_for_good)),
    Row(_CANCELLING, Stage.HALTED, when.hindered_for_long, deeds.halting(deeds.why_hindered)),
    Row(_CANCELLING, None, when.hindered, deeds.wait_for_sight),
    Row(_CANCELLING, Stage.SOAK, when.always, deeds.soak),
    Row(_RAMP, Stage.CANCELLING, when.to_be_stopped, deeds.cancelling(deeds.why_it_stops)),
    Row(_RAMP, Stage.CANCELLING, when.cancels_itself, deeds.cancelling("")),
    Row(_RAMP, Stage.CANCELLING, when.task_did_enough, deeds.cancelling("")),
    Row(GOING_ON, Stage.HALTED, when.forbidden, deeds.halting(lambda each: each.look.forbidden)),
    Row(_RAMP, Stage.SOAK, when.task_is_over, deeds.soak),
    Row(GOING_ON, None, when.frozen, deeds.wait_for_thaw),
    Row(GOING_ON, Stage.HALTED, when.too_old, deeds.halting(deeds.TOO_OLD)),
    Row(GOING_ON, None, when.not_counted, deeds.count),
    Row(GOING_ON, Stage.HALTED, when.too_many_back, deeds.halting(deeds.how_many_are_back)),
    Row(GOING_ON, Stage.HALTED, when.hindered_for_long, deeds.halting(deeds.why_hindered)),
    Row(GOING_ON, None, when.hindered, deeds.wait_for_sight),
    Row(_RAMP, None, when.task_runs, deeds.resting("its move task runs")),
    Row(SENDING, Stage.SOAK, when.nothing_left, deeds.soak),
    Row(SENDING, Stage.HALTED, when.refused_for_long, deeds.halting(deeds.why_refused)),
    Row(SENDING, Stage.SOAK, when.stage_is_over, deeds.soak),
    Row(_SOAK, None, when.not_soaked, deeds.resting("it waits for what may come back")),
    Row(_SOAK, Stage.HALTED, when.unread_for_long, deeds.halting(deeds.UNREAD)),
    Row(_SOAK, None, when.unread, deeds.waiting_for_consumers(deeds.UNREAD)),
    Row(GOING_ON, Stage.HALTED, when.nobody_for_long, deeds.halting(deeds.NOBODY)),
    Row(GOING_ON, None, when.nobody, deeds.waiting_for_consumers(deeds.NOBODY)),
    Row(_SOAK, Stage.DONE, when.nothing_left, deeds.finish),
    Row(_SOAK, Stage.RAMP, when.always, deeds.ramp),
    Row(_RAMP, None, when.by_task, deeds.start),
    Row(_RAMP, None, when.nobodys_turn, deeds.resting("no letter's turn has come")),
    Row(SENDING, None, when.always, deeds.move),
)


def decide(course: Course, look: Look, census: Census | None, bounds: Bounds) -> Next:
    """The first row that fits."""
    sight = Sight(course, look, census, bounds).after_a_crash().recounted()
    rows = (each for each in TABLE if sight.course.stage in each.out_of)
    return next(each for each in rows if each.when(sight)).does(sight)


def called_off(course: Course, look: Look, bounds: Bounds, because: str) -> Next:
    """As a person says who takes the case back: no task of ours goes on, whatever is frozen.

    While one runs that SQS has not been told to cancel, it is not over.
    """
    sight = Sight(course, look, None, bounds).after_a_crash().recounted()
    now = sight.course
    reason = now.because if now.is_over else now.halts_for or because
    if sight.task is not None and sight.task.status is TaskStatus.RUNNING:
        going = now.now_in(Stage.CANCELLING, look.now, halts_for=reason)
        return Next(going, CancelTask(going.task_handle))
    return Next(now if now.is_over else now.now_in(Stage.HALTED, look.now, because=reason))


def taken_back(course: Course, now: datetime) -> Course:
    """SQS cancels the task of what was called off."""
    return course.now_in(Stage.HALTED, now, because=course.halts_for)


def counted(course: Course, census: Census) -> Course:
    """With a census, before any of it is moved: a run that dies may count a letter twice.

    What was there before anything went back has come back to somebody else.
    """
    if not course.is_opened:
        return course
    return replace(course, returned=course.returned + census.returned)


def settled(course: Course, census: Census, waiting: int) -> Course:
    """With what went to quarantine; what could not is found again by the next census.

    Until all is there that was back before, nothing goes: nobody could tell it from what came back.
    """
    if census.quarantined or not census.still_back:
        course = replace(course, hindered_since=None)
    if not census.still_back:
        left = Counter(course.fingerprints) - Counter(census.fingerprints)
        course = replace(course, fingerprints=tuple(left.elements()))
    quarantined = course.quarantined + census.quarantined
    if not course.is_opened and census.still_back:
        return replace(course, quarantined=quarantined)
    if not course.is_opened:
        expected = max(0, waiting - census.quarantined)
        return replace(course, is_opened=True, quarantined=quarantined, expected=expected)
    returned = course.returned - census.still_back
    return replace(course, quarantined=quarantined, returned=returned)


def moved(course: Course, letters: int, *, unsure: int = 0, is_short: bool = False) -> Course:
    """After the mover. `unsure` may have gone too; `is_short`: there were no more for now."""
    spent = course.moved_in_stage + letters + unsure
    return replace(
        course,
        moved=course.moved + letters,
        moved_in_stage=spent,
        unsure_in_stage=course.unsure_in_stage + unsure,
        expected=max(0, course.expected - letters),
        size=spent if is_short else course.size,
        refused_since=None if letters else course.refused_since,
        is_refused=course.is_refused and not letters,
        in_hand=0,
    )


def refused(course: Course, because: str, now: datetime) -> Course:
    """SQS took nothing: neither letters nor a move task."""
    since = course.refused_since or now
    return replace(course, because=because, refused_since=since, is_refused=True)


def started(course: Course, handle: str) -> Course:
    """SQS has started the stage's task."""
    return replace(course, task_handle=handle, because="", refused_since=None, is_refused=False)


def not_cancelled(course: Course, because: str) -> Course:
    """The next tick asks again."""
    return replace(course, because=because)
