"""The case that a redrive belongs to: found by a request, and ended with a page or without."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from functions.aws.course_ledger import Claimed
from functions.aws.errors import CaseUnreadable
from functions.aws.redrive_run import RedriveRun
from functions.aws.telling import Telling, tell
from functions.catalogue import CATALOGUE
from functions.catalogue.symptom import Symptom
from functions.healing.case import Case
from functions.healing.facts import Facts
from functions.healing.ledger_view import LedgerView
from functions.healing.mode import Mode
from functions.healing.paging import severity_of
from functions.healing.plan import Refusal
from functions.healing.queue_names import arn_of, parts_of
from functions.healing.redrive_course import Course, Stage, begun
from functions.healing.redrive_look import End
from functions.healing.redrive_step import RedriveDeadLetters

UNREADABLE = (
    "what the ledger says of how far it has come cannot be read, and a move task of it may run"
)


@dataclass(frozen=True)
class RedriveCase:
    """An applied case whose step sends dead letters back to `source_arn`."""

    case: Case
    symptom: Symptom
    view: LedgerView
    source_arn: str

    @property
    def dead_letter_arn(self) -> str:
        return self.case.queue_arn

    def course_after(self, claimed: Claimed, run: RedriveRun) -> Course:
        """Its own where it has one, else a new one in the place of what was there before.

        One that cannot be read may have been its own: then nothing more is moved.
        """
        newest, damage = claimed.course, claimed.damage
        if newest is not None and newest.case_id == self.case.case_id:
            if newest.source_arn == self.source_arn:
                return newest
            damage = f"the redrive of {self.dead_letter_arn} goes to {newest.source_arn:.200}"
        new = begun(
            self.case.case_id,
            dead_letter_arn=self.dead_letter_arn,
            source_arn=self.source_arn,
            canary=run.settings.bounds.canary,
            now=run.now,
            n=claimed.n,
        )
        because = f"{UNREADABLE}: {damage}"
        return new.now_in(Stage.HALTED, run.now, because=because) if damage else new

    def end(self, end: End, course: Course, facts: Facts, run: RedriveRun) -> Case:
        """The case as it was written down; raises as `tell` does."""
        moved = self.case.moved(end.state, end.because, run.now, actor=run.whose)
        severity = severity_of(moved, Mode.HEAL, of_the_plan=True)
        source = parts_of(course.source_arn)
        look = f"mendq quarantine peek {source.name} --region {source.region}"
        next_command = look if course.quarantined else ""
        telling = Telling(self.symptom, facts, severity, next_command=next_command)
        return tell(moved, self.view, telling, run, run.owner)


def case_of(request: Mapping[str, Any], run: RedriveRun) -> RedriveCase | Refusal:
    """By `{"case_id", "queue_arn", "symptom"}`; CaseUnreadable for what is no request of ours."""
    symptom = next((each for each in CATALOGUE if each.name == request.get("symptom")), None)
    queue_arn, case_id = request.get("queue_arn"), request.get("case_id")
    if symptom is None or not isinstance(queue_arn, str) or not isinstance(case_id, str):
        raise CaseUnreadable(f"no case of ours: {str(request)[:400]}")
    if arn_of(queue_arn) is None or not run.is_here(queue_arn):
        raise CaseUnreadable(f"no queue of this account and region: {queue_arn[:200]}")
    attributes = tuple(step.attribute for step in symptom.steps)
    view = run.ledger.look(queue_arn, symptom.name, attributes)
    case = view.case
    if case is None or case.case_id != case_id or not case.goes_on:
        return _declined("moved_on", f"case {case_id} sends no letters back")
    if view.held_by_another(run.owner, run.now) or view.intent is not None:
        return _declined("claimed", "another run is at work on this queue", again=True)
    named = {each["attribute"]: each["after"] for each in case.steps}
    source_arn = named.get(RedriveDeadLetters.attribute)
    if source_arn is None:
        return _declined("another_owner", f"case {case_id} sends no letters back")
    return RedriveCase(case, symptom, view, source_arn)


def _declined(code: str, reason: str, *, again: bool = False) -> Refusal:
    return Refusal(code, reason, becomes=None, again=again)
