"""Roll back a case: write the value from before the case, if the queue still has the case's value.

A person's newer value is kept. SQS has no conditional write, so a person's change would be lost if
it came between the last read and the write: that is the time of one call.
https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SetQueueAttributes.html
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from msgspec.structs import replace

from mendq.aws.errors import OwnerUnavailable
from mendq.cases.context import WritingContext
from mendq.cases.record import Notification, record_transition
from mendq.catalogue.symptom import Symptom
from mendq.heal.apply import apply
from mendq.heal.approve import (
    AskedCase,
    Document,
    OperatorRequest,
    look_up_case,
    refusal_document,
    retry_if_moved,
)
from mendq.heal.owners import Functions, ask_owner
from mendq.heal.recover import read_written, settle_claim
from mendq.heal.undo import Undo, UndoOutcome, Written, steps_of, stopped_by, undos, written_by
from mendq.model.case import SILENT_DAYS, Case, State
from mendq.model.facts import Facts
from mendq.model.plan import AWS_REFUSED, Ignore, Refusal, Retry


def rollback(
    request: OperatorRequest,
    context: WritingContext,
    *,
    dry_run: bool,
    functions: Functions = MappingProxyType({}),
) -> Document | Refusal:
    """Roll back a case, or say what a rollback would do.

    A step that still goes on is stopped first, by its owner. A rollback that is repeated gives the
    same answer.

    Args:
        request: The case, and who asks.
        context: This invocation.
        dry_run: True to change nothing.
        functions: The name of each owner's function.

    Returns:
        `{"case_id", "state", "attributes"}`, or the reason why nothing was done. If AWS refuses the
        write, as it does while the stack only observes, the answer has both: the attributes then
        name the commands for a person.

    Raises:
        FactsUnavailable, CaseStoreUnavailable, StepFailed: What was begun is finished by the next
            call, by follow_up or by the owner of the write.
    """

    def once() -> Document | Refusal:
        found = look_up_case(request, context)
        if isinstance(found, Refusal):
            return found
        if found.symptom is None:
            return found.unknown
        by_whom = request.actor, context, functions, dry_run
        return _Asked(found.history, found.view, found.symptom, *by_whom).answer()

    return retry_if_moved(once)


class _Asked(AskedCase, frozen=True):
    """A case to roll back, and the operator who asked for it."""

    symptom: Symptom
    actor: str
    context: WritingContext
    functions: Functions
    dry_run: bool

    def answer(self) -> Document | Refusal:
        """Compare the queue with what the case wrote. Write what is to be undone."""
        refusal = None if self.newest.is_rollback else self._in_other_hands()
        if refusal is not None:
            return refusal
        written = written_by(self.history)
        if not written:
            reason = f"case {self.newest.case_id} has no write on record: there is nothing to undo"
            return Ignore("nothing_written", reason)
        facts = self._facts()
        found = undos(written, self._snapshots(written), facts, self.view)
        if self.newest.is_rollback:
            return _document(self.newest, (self._announced_again(undo, facts) for undo in found))
        stopped = stopped_by(found)
        if self.dry_run or not (stopped or steps_of(found)):
            return _document(self.newest, found)
        return self._stop(found, facts, stopped) if stopped else self._undo(found, facts)

    def _in_other_hands(self) -> Refusal | None:
        """Refuse if another run or case holds the queue. If a dead run left a claim, settle it."""
        other, context = self.view.case, self.context
        if self.view.is_held_by_another(context.owner, context.now):
            reason = "another run is at work on this queue; ask again in two minutes"
            return Retry("claimed", reason)
        if other is not None and other.transition != self.newest.transition:
            if other.case_id == self.newest.case_id:
                return Retry("claimed", "another run has just moved the case")
            if other.is_open(context.now, context.settings.timing):
                reason = (
                    f"case {other.case_id} of the same queue and symptom is {other.state}; "
                    "roll back, decline or close that one first"
                )
                return Ignore("wrong_state", reason)
        if self.view.intent is None:
            return None
        if self.dry_run:
            reason = "what a run that died had left is not settled yet; ask again in two minutes"
            return Ignore("claimed", reason)
        settle_claim(self.view, self.view.intent, self.symptom, context)
        return Retry("claimed", "what a run that died had left was settled just now")

    def _rolled_back(self, reason: str, steps: Iterable[Mapping[str, str]]) -> Case:
        reason = f"{reason}; Mendq stays away for {SILENT_DAYS} days"
        now, steps = self.context.now, tuple(steps)
        return self.newest.move_to(State.ROLLED_BACK, reason, now, steps=steps, actor=self.actor)

    def _stop(
        self, found: tuple[Undo, ...], facts: Facts, stopped: tuple[dict[str, str], ...]
    ) -> Document | Refusal:
        """Have the owner stop what goes on, then end the case. What was done by then stays."""
        try:
            heard = ask_owner(self.context.clients, self.functions, self.newest, cancel=True)
        except OwnerUnavailable as error:
            return Ignore("unavailable", f"{error}; ask again: it goes on meanwhile")
        if heard.get("code"):
            return Retry("claimed", f"it was not stopped: {heard.get('reason')}")
        reason = "stopped: what went back by then stays there, the rest is held"
        case = self._rolled_back(reason, stopped)
        changes = self.view.records_after(case, facts.created_at)
        notification = Notification(self.symptom, facts, changes=changes)
        recorded = record_transition(case, self.view, notification, self.context)
        return _document(recorded, (undo.done() if undo.stops else undo for undo in found))

    def _undo(self, found: tuple[Undo, ...], facts: Facts) -> Document | Refusal:
        steps = steps_of(found)
        reason = f"taken back: {', '.join(map(str, steps))}"
        case = self._rolled_back(reason, (step.document() for step in steps))
        done = apply(case, steps, facts, self.view, self.symptom, self.context)
        if not isinstance(done, Refusal):
            return _document(done, (undo.done() if undo.step else undo for undo in found))
        if done.code != AWS_REFUSED:
            return done
        left = (undo.by_person(facts.queue_arn) if undo.step else undo for undo in found)
        return _document(self.newest, left) | refusal_document(done)

    def _facts(self) -> Facts:
        queue_arn = self.newest.queue_arn
        steps = [step for case in self.history for step in case.steps]
        return Facts(queue_arn, read_written(self.context.clients, queue_arn, steps), {})

    def _snapshots(self, written: Iterable[Written]) -> dict[int, Mapping[str, str] | None]:
        firsts = {write.first.n: write.first for write in written}
        return {n: self.context.open_cases.snapshot_of(case) for n, case in firsts.items()}

    def _announced_again(self, found: Undo, facts: Facts) -> Undo:
        """Answer for a case that was rolled back before: which values are still the restored ones.

        If the queue was made again since, none is: its values are those of the new queue.
        """
        was_undone = any(step["attribute"] == found.attribute for step in self.newest.steps)
        is_same = not facts.is_created_after(self.newest.at)
        if was_undone and found.outcome is UndoOutcome.NOTHING and is_same:
            return replace(found, outcome=UndoOutcome.UNDONE)
        is_theirs = was_undone or found.outcome is UndoOutcome.UNDONE
        if is_theirs:
            return replace(found, outcome=UndoOutcome.THEIRS, step=None, command="")
        return found


def _document(case: Case, found: Iterable[Undo]) -> Document:
    attributes = [undo.document() for undo in found]
    return {"case_id": case.case_id, "state": str(case.state), "attributes": attributes}
