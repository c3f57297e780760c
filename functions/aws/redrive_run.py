"""One invocation of the redrive Lambda, and what became of a tick."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from functions.aws.course_ledger import CourseLedger
from functions.aws.run import Outcome, OwnerRun
from functions.healing.redrive_course import Course
from functions.settings import RedriveSettings


@dataclass(frozen=True)
class RedriveRun(OwnerRun):
    """One invocation of the redrive Lambda."""

    settings: RedriveSettings

    @property
    def courses(self) -> CourseLedger:
        return CourseLedger(self.clients.dynamodb, self.settings.ledger_table)


@dataclass(frozen=True)
class Ticked(Outcome):
    """With how far the redrive has come, and how many letters this tick moved."""

    course: Course | None = None
    redriven: int = 0
    quarantined: int = 0

    def document(self) -> dict[str, Any]:
        """As every outcome's, with the course."""
        course = self.course
        document = super().document()
        if course is None:
            return document
        return document | {
            "reason": document["reason"] or course.because,
            "stage": str(course.stage),
            "moved": course.moved,
            "returned": course.returned,
            "quarantined": course.quarantined,
        }
