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
    sent = f"{counted(course.moved, 'letter')} sent back in {counted(course.number + 1, 'stage')}"
    yield "sent", "dim", f"{sent}, {course.moved_in_stage:,} of at most {course.size:,} in this"
    yield "came back", "dim", f"{course.returned:,}, {course.quarantined:,} are in quarantine"
    if course.rate_per_second:
        hand = "a move task of SQS's" if course.by_task else "Mendq's own hand"
        yield "rate", "dim", f"{course.rate_per_second:,.2f} a second, by {hand}"
    for why in (course.because, course.halts_for):
        if why:
            yield "because", "dim", why
