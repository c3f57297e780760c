"""Undoes a case: what still stands in the queue as the case wrote it goes back to what was before.

A person's newer value is kept. SQS has no conditional write: between the last look and the write
there is the time of one call in which a person's change would be lost.
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
from mendq.heal.approve import AskedCase, Document, OperatorRequest, look_up, said, until_unmoved
from mendq.heal.context import Functions, ask_owner
from mendq.heal.recover import settle, standing
from mendq.heal.undo import Outcome, Undo, Written, steps_of, stopped_by, undos, written_by
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
    """`{"case_id", "state", "attributes"}`, or why nothing was done; `dry_run` changes nothing.

    Where AWS refuses the write, as it does while the stack only observes, it is both: the
    attributes come with what people type instead.

    What goes on is stopped first, by its owner among the `functions`. Done twice it answers the
    same. Raises what `apply` and the case store raise: then what was begun is finished by the next
    call, by follow_up or by the owner of the write.
    """

    def once() -> Document | Refusal:
        found = look_up(request, context)
        if isinstance(found, Refusal):
            return found
        if found.symptom is None:
            return found.unknown
        by_whom = request.actor, context, functions, dry_run
        return _Asked(found.history, found.view, found.symptom, *by_whom).answer()

    return until_unmoved(once)


class _Asked(AskedCase, frozen=True):
    """A case to be undone, by whom."""

    symptom: Symptom
    actor: str
    context: WritingContext
    functions: Functions
    dry_run: bool

    def answer(self) -> Document | Refusal:
        """Compare, and where it is to be, set."""
        refusal = None if self.newest.undoes else self._in_other_hands()
        if refusal is not None:
            return refusal
        written = written_by(self.history)
        if not written:
            reason = f"case {self.newest.case_id} has no write on record: there is nothing to undo"
            return Ignore("nothing_written", reason)
        facts = self._facts()
        found = undos(written, self._snapshots(written), facts, self.view)
        if self.newest.undoes:
            return _document(self.newest, (self._announced_again(each, facts) for each in found))
        stopped = stopped_by(found)
        if self.dry_run or not (stopped or steps_of(found)):
            return _document(self.newest, found)
        return self._stop(found, facts, stopped) if stopped else self._undo(found, facts)

    def _in_other_hands(self) -> Refusal | None:
        """Whose hands the queue is in now; what a run that died has left is settled first."""
        other, context = self.view.case, self.context
        if self.view.held_by_another(context.owner, context.now):
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
        settle(self.view, self.view.intent, self.symptom, context)
        return Retry("claimed", "what a run that died had left was settled just now")

    def _rolled_back(self, reason: str, steps: Iterable[Mapping[str, str]]) -> Case:
        reason = f"{reason}; Mendq stays away for {SILENT_DAYS} days"
        now, steps = self.context.now, tuple(steps)
        return self.newest.moved(State.ROLLED_BACK, reason, now, steps=steps, actor=self.actor)

    def _stop(
        self, found: tuple[Undo, ...], facts: Facts, stopped: tuple[dict[str, str], ...]
    ) -> Document | Refusal:
        """Its owner stops it before the case ends; what was done by then stays."""
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
        return _document(recorded, (each.done() if each.stops else each for each in found))

    def _undo(self, found: tuple[Undo, ...], facts: Facts) -> Document | Refusal:
        steps = steps_of(found)
        reason = f"taken back: {', '.join(map(str, steps))}"
        case = self._rolled_back(reason, (step.document() for step in steps))
        done = apply(case, steps, facts, self.view, self.symptom, self.context)
        if not isinstance(done, Refusal):
            return _document(done, (each.done() if each.step else each for each in found))
        if done.code != AWS_REFUSED:
            return done
        left = (each.by_person(facts.queue_arn) if each.step else each for each in found)
        return _document(self.newest, left) | said(done)

    def _facts(self) -> Facts:
        queue_arn = self.newest.queue_arn
        steps = [step for case in self.history for step in case.steps]
        return Facts(queue_arn, standing(self.context.clients, queue_arn, steps), {})

    def _snapshots(self, written: Iterable[Written]) -> dict[int, Mapping[str, str] | None]:
        firsts = {each.first.n: each.first for each in written}
        return {n: self.context.open_cases.snapshot_of(case) for n, case in firsts.items()}

    def _announced_again(self, found: Undo, facts: Facts) -> Undo:
        """Answer for a case rolled back before: what stands as it was put back, and what not.

        Another queue of the same name has it from whoever made it.
        """
        was_undone = any(step["attribute"] == found.attribute for step in self.newest.steps)
        is_same = not facts.made_after(self.newest.at)
        if was_undone and found.outcome is Outcome.NOTHING and is_same:
            return replace(found, outcome=Outcome.UNDONE)
        is_theirs = was_undone or found.outcome is Outcome.UNDONE
        return replace(found, outcome=Outcome.THEIRS, step=None, command="") if is_theirs else found


def _document(case: Case, found: Iterable[Undo]) -> Document:
    attributes = [each.document() for each in found]
    return {"case_id": case.case_id, "state": str(case.state), "attributes": attributes}
