"""One tick of a redrive: follow_up calls for it each minute while the case is applied.

Whatever is about to be done is written down first. A run that dies leaves its claim, and the next
one, when that is over, finds out what became of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from functions.aws.course_ledger import Claimed
from functions.aws.errors import LedgerUnavailable
from functions.aws.move_tasks import cancel_task, newest_task
from functions.aws.redrive_case import case_of
from functions.aws.redrive_hand import RedriveHand
from functions.aws.redrive_looks import look_of, queues_of, with_makings
from functions.aws.redrive_run import RedriveRun, Ticked
from functions.healing.plan import Refusal
from functions.healing.redrive import called_off, not_cancelled, taken_back
from functions.healing.redrive_drive import Drive
from functions.healing.redrive_look import CancelTask, Look, Source

__all__ = ["RedriveRun", "Ticked", "cancel", "tick"]


def tick(request: Mapping[str, Any], run: RedriveRun) -> Ticked:
    """`{"case_id", "queue_arn", "symptom"}` of an applied case; what became of it.

    Raises CaseUnreadable or what the ledger raises: then the next minute's tick goes on from what
    is written down.
    """
    case = case_of(request, run)
    if isinstance(case, Refusal):
        return Ticked(refusal=case)
    with _claimed(case.dead_letter_arn, run) as claimed:
        if isinstance(claimed, Refusal):
            return Ticked(refusal=claimed)
        course = case.course_after(claimed, run)
        if course.is_over and course != claimed.course:
            course = run.courses.save(course, run.owner)
        queues = queues_of(course, run)
        course = with_makings(course, queues)
        look = look_of(course, queues, case.view.frozen, run)
        with RedriveHand(course.dead_letter_arn, queues, run) as hand:
            drive = Drive(course, look, run.settings.bounds, hand)
            end = drive.go()
        now = drive.course
        ended = None if end is None else case.end(end, now, queues.dead_letters, run)
        return Ticked(
            case=ended,
            course=now,
            redriven=now.moved - course.moved,
            quarantined=now.quarantined - course.quarantined,
        )


def cancel(request: Mapping[str, Any], run: RedriveRun) -> Ticked:
    """As `tick`, for a case that a person takes back: no task of ours runs on, nothing goes on.

    Asks neither for a freeze nor for a budget. A refusal with `again` where another run is at work
    on it, or SQS did not take the cancel: then the next tick asks for it again. Raises
    FactsUnavailable or QueueRefusesUs where SQS does not say what runs.
    """
    case = case_of(request, run)
    if isinstance(case, Refusal):
        return Ticked(refusal=case)
    with _claimed(case.dead_letter_arn, run) as claimed:
        if isinstance(claimed, Refusal):
            return Ticked(refusal=claimed)
        course = case.course_after(claimed, run)
        look = Look(run.now, 0, Source(0, 0), newest_task(run.clients, course.dead_letter_arn))
        off = called_off(course, look, run.settings.bounds, "a person took it back")
        course = run.courses.save(off.course, run.owner)
        if not isinstance(off.action, CancelTask):
            return Ticked(course=course)
        failed = cancel_task(run.clients, off.action.handle)
        after = not_cancelled(course, failed.because) if failed else taken_back(course, run.now)
        course = run.courses.save(after, run.owner)
        refusal = _again("not_cancelled", failed.because) if failed else None
        return Ticked(refusal=refusal, course=course)


@contextmanager
def _claimed(dead_letter_arn: str, run: RedriveRun) -> Iterator[Claimed | Refusal]:
    """Claimed, or a refusal; let go at the end, however it comes."""
    claimed = run.courses.claim(dead_letter_arn, run.owner, run.now)
    if claimed is None:
        yield _again("claimed", "another run is at work on these letters")
        return
    try:
        yield claimed
    finally:
        with suppress(LedgerUnavailable):
            run.courses.release(dead_letter_arn, run.owner)


def _again(code: str, reason: str) -> Refusal:
    return Refusal(code, reason, becomes=None, again=True)
