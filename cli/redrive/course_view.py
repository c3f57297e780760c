"""How far a redrive of Mendq's has come, for whoever looks at its case."""

from __future__ import annotations

from collections.abc import Iterator

from cli.account import Account
from cli.output import Line, minute
from functions.aws.course_ledger import CourseLedger
from functions.healing.case import Case
from functions.healing.owners import owner_of_case
from functions.healing.plain_text import counted
from functions.healing.queue_names import parts_of
from functions.healing.redrive_course import Course, Stage
from functions.healing.steps import Owner

_STYLES = {Stage.DONE: "green", Stage.HALTED: "red"}
_ENDED = {Stage.DONE: "ended", Stage.HALTED: "halted"}


def course_of(account: Account, case: Case) -> Course | None:
    """The case's own; None where it redrives nothing, or another case's came after it.

    Raises LedgerUnavailable or LedgerUnreadable.
    """
    if owner_of_case(case.steps) is not Owner.REDRIVE:
        return None
    ledger = CourseLedger(account.clients.dynamodb, account.output("LedgerTable"))
    course = ledger.course_of(case.queue_arn)
    return course if course is not None and course.case_id == case.case_id else None


def course_lines(course: Course) -> Iterator[Line]:
    """A label, its style and what it says."""
    where = f"{parts_of(course.dead_letter_arn).name} -> {parts_of(course.source_arn).name}"
    yield "way", "dim", where
    stage = f"{course.stage} since {minute(course.stage_at)}, begun {minute(course.began_at)}"
    yield "stage", _STYLES.get(course.stage, "cyan"), stage
    if course.stage is Stage.SOAK and course.soak_ends_at is not None:
        yield "soak", "dim", f"until {minute(course.soak_ends_at)}"
    yield "sent", "dim", _sent(course)
    yield "came back", "dim", f"{course.returned:,}, {course.quarantined:,} are in quarantine"
    if course.rate_per_second:
        hand = "a move task of SQS's" if course.by_task else "Mendq's own hand"
        yield "rate", "dim", f"{course.rate_per_second:,.2f} a second, by {hand}"
    if course.because:
        yield _ENDED.get(course.stage, "stands so"), "dim", f"because {course.because}"
    if course.halts_for:
        yield "will halt", "yellow", f"because {course.halts_for}"


def _sent(course: Course) -> str:
    """A stage counts once something of it went."""
    stages = course.number + (course.moved_in_stage > 0)
    if not course.moved and not course.moved_in_stage:
        return "nothing was sent" if course.is_over else "nothing sent yet"
    sent = f"{counted(course.moved, 'letter')} sent back in {counted(stages, 'stage')}"
    return f"{sent}, {course.moved_in_stage:,} of at most {course.size:,} in this"
