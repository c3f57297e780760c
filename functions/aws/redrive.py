"""What the redrive Lambda is called for: take a case up, go on with it each minute, or stop it.

Whatever is about to be done is written down first. A run that dies leaves its claim, and the next
one, when that is over, finds out what became of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any

from functions.aws.course_ledger import Claimed
from functions.aws.errors import CaseUnreadable, LedgerUnavailable
from functions.aws.redrive_effects import RedriveEffects
from functions.aws.redrive_looks import RedriveRun, queues_of, situation_of, with_makings
from functions.aws.run import Outcome
from functions.aws.take_up import take_up
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
from functions.healing.redrive_machine import End, Tick
from functions.healing.redrive_progress import RedriveProgress, RedriveQueues
from functions.healing.redrive_step import RedriveDeadLetters

CANCEL = "cancel"
UNREADABLE = "what the ledger says of how far it has come cannot be read"


@dataclass(frozen=True)
class Ticked(Outcome):
    """With how far the redrive has come, and how many messages this tick moved."""

    progress: RedriveProgress | None = None
    redriven: int = 0
    quarantined: int = 0

    def document(self) -> dict[str, Any]:
        """As every outcome's, with the progress."""
        progress = self.progress
        document = super().document()
        if progress is None:
            return document
        return document | {
            "reason": document["reason"] or progress.because,
            "stage": str(progress.stage),
            "moved": progress.moved,
            "returned": progress.returned,
            "quarantined": progress.quarantined,
        }


def redrive(request: Mapping[str, Any], run: RedriveRun) -> Outcome:
    """`{"case_id", "queue_arn", "symptom"}`, with `"cancel": true` to stop what goes on.

    Raises CaseUnreadable, and what taking up or the ledger raises: then the next minute's tick goes
    on from what is written down.
    """
    if not isinstance(request, Mapping):
        raise CaseUnreadable(f"no request: {request!r:.400}")
    if request.get(CANCEL) is not True and not _goes_on(request, run):
        return take_up(request, run)
    case = _case_of(request, run)
    if isinstance(case, Refusal):
        return Ticked(refusal=case)
    with _claimed(case.dead_letter_arn, run) as claimed:
        if isinstance(claimed, Refusal):
            return Ticked(refusal=claimed)
        progress = case.progress_after(claimed, run)
        if request.get(CANCEL) is True:
            halted = progress.halted(run.now, "a person took it back")
            return Ticked(progress=run.courses.save(halted, run.owner))
        if progress.is_over and progress != claimed.course:
            progress = run.courses.save(progress, run.owner)
        return _ticked(case, progress, run)


@dataclass(frozen=True)
class _RedriveCase:
    """An applied case whose step sends dead letters back to `source_arn`."""

    case: Case
    symptom: Symptom
    view: LedgerView
    source_arn: str

    @property
    def dead_letter_arn(self) -> str:
        return self.case.queue_arn

    def progress_after(self, claimed: Claimed, run: RedriveRun) -> RedriveProgress:
        """Its own where it has one, else a new one in the place of what was there before.

        One that cannot be read may have been its own: then nothing more is moved.
        """
        newest, damage = claimed.course, claimed.damage
        if newest is not None and newest.case_id == self.case.case_id:
            if newest.source_arn == self.source_arn:
                return newest
            damage = f"the redrive of {self.dead_letter_arn} goes to {newest.source_arn:.200}"
        queues, size = RedriveQueues(self.dead_letter_arn, self.source_arn), run.settings.bounds
        new = RedriveProgress.begun(self.case.case_id, queues, size=size.canary, now=run.now)
        new = replace(new, n=claimed.n)
        return new.halted(run.now, f"{UNREADABLE}: {damage}") if damage else new

    def end(self, end: End, progress: RedriveProgress, facts: Facts, run: RedriveRun) -> Case:
        """The case as it was written down; raises as `tell` does."""
        moved = self.case.moved(end.state, end.because, run.now, actor=run.whose)
        severity = severity_of(moved, Mode.HEAL, of_the_plan=True)
        source = parts_of(progress.source_arn)
        look = f"mendq quarantine peek {source.name} --region {source.region}"
        next_command = look if progress.quarantined else ""
        telling = Telling(self.symptom, facts, severity, next_command=next_command)
        return tell(moved, self.view, telling, run, run.owner)


def _ticked(case: _RedriveCase, progress: RedriveProgress, run: RedriveRun) -> Ticked:
    queues = queues_of(progress, run)
    progress = with_makings(progress, queues)
    situation = situation_of(progress, queues, case.view.frozen, run)
    with RedriveEffects(progress.dead_letter_arn, queues, run) as effects:
        tick = Tick(situation, effects)
        end = tick.run()
    now = tick.progress
    return Ticked(
        case=case.end(end, now, queues.dead_letters, run) if end else None,
        progress=now,
        redriven=now.moved - progress.moved,
        quarantined=now.quarantined - progress.quarantined,
    )


def _goes_on(request: Mapping[str, Any], run: RedriveRun) -> bool:
    """Whether the case that is named is applied: else it waits to be taken up, or is over."""
    queue_arn, symptom = request.get("queue_arn"), request.get("symptom")
    if arn_of(queue_arn) is None or not isinstance(queue_arn, str) or not isinstance(symptom, str):
        raise CaseUnreadable(f"no case of ours: {str(request)[:400]}")
    case = run.ledger.look(queue_arn, symptom, ()).case
    return case is not None and case.case_id == request.get("case_id") and case.goes_on


def _case_of(request: Mapping[str, Any], run: RedriveRun) -> _RedriveCase | Refusal:
    """CaseUnreadable for what is no request of ours."""
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
        return _declined("moved_on", f"case {case_id} sends no messages back")
    if view.held_by_another(run.owner, run.now) or view.intent is not None:
        return _declined("claimed", "another run is at work on this queue", again=True)
    named = {each["attribute"]: each["after"] for each in case.steps}
    source_arn = named.get(RedriveDeadLetters.attribute)
    if source_arn is None:
        return _declined("another_owner", f"case {case_id} sends no messages back")
    return _RedriveCase(case, symptom, view, source_arn)


@contextmanager
def _claimed(dead_letter_arn: str, run: RedriveRun) -> Iterator[Claimed | Refusal]:
    """Claimed, or a refusal; let go at the end, however it comes."""
    claimed = run.courses.claim(dead_letter_arn, run.owner, run.now)
    if claimed is None:
        yield _declined("claimed", "another run is at work on these messages", again=True)
        return
    try:
        yield claimed
    finally:
        with suppress(LedgerUnavailable):
            run.courses.release(dead_letter_arn, run.owner)


def _declined(code: str, reason: str, *, again: bool = False) -> Refusal:
    return Refusal(code, reason, becomes=None, again=again)
