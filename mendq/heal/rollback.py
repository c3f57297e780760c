"""Roll back a case: set the values from before the case, if the queue still has the case's values.

A person's newer value is kept. But SQS has no conditional write. So a person's change is lost if it
comes between Mendq's last read and its write; these are one call apart.
https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SetQueueAttributes.html
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from types import MappingProxyType

from msgspec.structs import replace

from mendq.aws.errors import OwnerUnavailable
from mendq.cases.context import WritingContext
from mendq.cases.record import Notification, record_transition
from mendq.catalogue.symptom import Symptom
from mendq.heal.apply import claim_and_write
from mendq.heal.approve import (
    JsonDocument,
    OperatorRequest,
    RequestedCase,
    look_up_case,
    make_refusal_document,
    retry_if_moved,
)
from mendq.heal.owners import FunctionNameByOwner, ask_owner
from mendq.heal.recover import read_written_attributes, settle_claim
from mendq.heal.undo import (
    CaseWrite,
    Undo,
    UndoOutcome,
    list_stopped_steps,
    list_undo_steps,
    list_writes,
    plan_undos,
)
from mendq.model.case import Case, Severity
from mendq.model.facts import Facts
from mendq.model.plan import AWS_REFUSED, Ignore, Refusal, Retry
from mendq.model.state import SILENT_DAYS, State

# The queue's last change may be up to this much later than Mendq's recorded write. Mendq records
# the write by its own clock after SQS has answered, and SQS reports whole seconds.
WRITE_TIME_TOLERANCE = timedelta(seconds=10)


def rollback(
    request: OperatorRequest,
    context: WritingContext,
    *,
    dry_run: bool,
    function_name_by_owner: FunctionNameByOwner = MappingProxyType({}),
) -> JsonDocument | Refusal:
    """Roll back a case, or return what a rollback would do.

    If a step of the case is still running, have its owner stop it, and record the rollback; the
    queue is not written. If the case was rolled back before, write nothing, and compare the queue
    with that rollback.

    Args:
        request: The case, and the operator's name.
        context: This invocation.
        dry_run: True to change nothing.
        function_name_by_owner: The name of each owner's Lambda function.

    Returns:
        `{"case_id", "state", "attributes"}`, or the reason why nothing was done. The answer has
        both if AWS refuses the write, as it does while the stack only observes. The attributes then
        contain the commands for a person.

    Raises:
        FactsUnavailable, CaseStoreUnavailable, StepFailed: The next rollback, follow_up or the
            owner of the write finishes what this call began.
        QueueRefusesUs, CaseStoreUnreadable: The queue or the case store's items cannot be read.
        NotificationNotSent: A dead run's write was recorded, but SNS did not accept its
            notification.
    """

    def roll_back() -> JsonDocument | Refusal:
        requested_case = look_up_case(request, context)
        if isinstance(requested_case, Refusal):
            return requested_case
        if requested_case.symptom is None:
            return requested_case.refuse_unknown_symptom()
        requested_rollback = _Rollback(
            history=requested_case.history,
            view=requested_case.view,
            symptom=requested_case.symptom,
            actor=request.actor,
            context=context,
            function_name_by_owner=function_name_by_owner,
            dry_run=dry_run,
        )
        return requested_rollback.run()

    return retry_if_moved(roll_back)


def roll_back_unhelpful_change(escalated_case: Case, context: WritingContext) -> Case | None:
    """Roll back a case whose change did not help, and notify people urgently.

    Args:
        escalated_case: The transition to `escalated` that follows if there is no rollback. The
            rollback keeps its reason and code, so that people read why and what to do.
        context: This invocation.

    Returns:
        The case after the rollback. None if nothing was written: a person approved the change or
        has changed the value since, or the rollback was refused.

    Raises:
        The same errors as `rollback`.
    """
    request = OperatorRequest(escalated_case.case_id, escalated_case.actor)
    requested_case = look_up_case(request, context)
    if isinstance(requested_case, Refusal) or requested_case.symptom is None:
        return None
    if any(transition.is_approved_by_person for transition in requested_case.history):
        return None
    automatic_rollback = _Rollback(
        history=requested_case.history,
        view=requested_case.view,
        symptom=requested_case.symptom,
        actor=escalated_case.actor,
        context=context,
        function_name_by_owner=MappingProxyType({}),
        dry_run=False,
        escalated_case=escalated_case,
    )
    answer = automatic_rollback.run()
    if isinstance(answer, Refusal) or answer["state"] != State.ROLLED_BACK:
        return None
    return context.open_cases.list_transitions(escalated_case.case_id)[-1]


class _Rollback(RequestedCase, frozen=True):
    """A rollback of a case.

    `actor` is the operator's name, or that of Mendq's Lambda if it rolls back automatically.
    `function_name_by_owner` has the name of each owner's Lambda function. `escalated_case` is set
    for an automatic rollback: the transition that the rollback replaces.
    """

    symptom: Symptom
    actor: str
    context: WritingContext
    function_name_by_owner: FunctionNameByOwner
    dry_run: bool
    escalated_case: Case | None = None

    def run(self) -> JsonDocument | Refusal:
        """Roll the case back, and return the answer for the operator, or a refusal."""
        refusal = None if self.newest_transition.is_rollback else self._refuse_if_queue_is_held()
        if refusal is not None:
            return refusal
        writes = list_writes(self.history)
        if not writes:
            case_id = self.newest_transition.case_id
            reason = f"case {case_id} has no write on record: there is nothing to undo"
            return Ignore("nothing_written", reason)
        facts = self._read_facts()
        refusal = self._refuse_if_changed_since(writes, facts)
        if refusal is not None:
            return refusal
        undos = plan_undos(writes, self._load_snapshots(writes), facts, self.view)
        if self.newest_transition.is_rollback:
            return _make_rollback_answer(
                self.newest_transition,
                [self._compare_with_earlier_rollback(undo, facts) for undo in undos],
            )
        stopped_steps = list_stopped_steps(undos)
        if self.dry_run or not (stopped_steps or list_undo_steps(undos)):
            return _make_rollback_answer(self.newest_transition, undos)
        if stopped_steps:
            return self._stop_running_step(undos, facts, stopped_steps)
        return self._write_undo(undos, facts)

    def _refuse_if_queue_is_held(self) -> Refusal | None:
        """Return a refusal if a run holds the queue, or another case of the symptom is open.

        If a dead run left a claim, settle it, and return a refusal after which the caller retries.
        A dry run settles nothing, and its refusal is final.
        """
        stored_case = self.view.case
        context = self.context
        if self.view.is_held_by_another(context.owner, context.now):
            reason = "another run is at work on this queue; ask again in two minutes"
            return Retry("claimed", reason)
        if stored_case is not None and stored_case.transition != self.newest_transition.transition:
            if stored_case.case_id == self.newest_transition.case_id:
                return Retry("claimed", "another run has just moved the case")
            if stored_case.is_open(context.now, context.settings.timing):
                reason = (
                    f"case {stored_case.case_id} of the same queue and symptom is "
                    f"{stored_case.state}; roll back, decline or close that one first"
                )
                return Ignore("wrong_state", reason)
        if self.view.intent is None:
            return None
        if self.dry_run:
            reason = "what a run that died had left is not settled yet; ask again in two minutes"
            return Ignore("claimed", reason)
        settle_claim(self.view, self.view.intent, self.symptom, context)
        return Retry("claimed", "what a run that died had left was settled just now")

    def _refuse_if_changed_since(self, writes: Sequence[CaseWrite], facts: Facts) -> Refusal | None:
        """Refuse an automatic rollback if someone has changed the queue since Mendq's write.

        Refuse even if the value is still Mendq's: a person may have set the same value.
        """
        if self.escalated_case is None:
            return None
        last_write_at = max(write.last_transition.at for write in writes)
        if facts.modified_at is None or facts.modified_at - last_write_at <= WRITE_TIME_TOLERANCE:
            return None
        reason = f"{facts.queue_arn} was changed at {facts.modified_at}, after Mendq's write"
        return Ignore("overridden", reason)

    def _make_transition(self, reason: str, steps: Iterable[Mapping[str, str]]) -> Case:
        """Return the transition to `rolled_back`."""
        return self.newest_transition.move_to(
            State.ROLLED_BACK,
            f"{reason}; Mendq stays away for {SILENT_DAYS} days",
            self.context.now,
            steps=tuple(steps),
            actor=self.actor,
            code=self.escalated_case.code if self.escalated_case is not None else "",
        )

    def _stop_running_step(
        self, undos: tuple[Undo, ...], facts: Facts, stopped_steps: tuple[dict[str, str], ...]
    ) -> JsonDocument | Refusal:
        """Have the owner stop the redrive, then end the case. Moved messages are not moved back."""
        try:
            answer = ask_owner(
                self.context.clients,
                self.function_name_by_owner,
                self.newest_transition,
                cancel=True,
            )
        except OwnerUnavailable as error:
            return Ignore("unavailable", f"{error}; ask again: it goes on meanwhile")
        if answer.get("code"):
            return Retry("claimed", f"it was not stopped: {answer.get('reason')}")
        reason = "stopped: what went back by then stays there, the rest is held"
        case = self._make_transition(reason, stopped_steps)
        new_records = self.view.make_records_after_write(case, facts.created_at)
        notification = Notification(self.symptom, facts, new_records=new_records)
        recorded_case = record_transition(case, self.view, notification, self.context)
        return _make_rollback_answer(
            recorded_case, [undo.mark_done() if undo.must_stop_step else undo for undo in undos]
        )

    def _write_undo(self, undos: tuple[Undo, ...], facts: Facts) -> JsonDocument | Refusal:
        """Write the steps that undo the case. If AWS refuses, return the commands for a person."""
        steps = list_undo_steps(undos)
        reason = f"taken back: {', '.join(map(str, steps))}"
        severity = None
        if self.escalated_case is not None:
            reason = f"{self.escalated_case.reason}. The change did not help, so it was {reason}"
            severity = Severity.URGENT
        case = self._make_transition(reason, [step.document() for step in steps])
        case_or_refusal = claim_and_write(
            case, steps, facts, self.view, self.symptom, self.context, severity
        )
        if not isinstance(case_or_refusal, Refusal):
            return _make_rollback_answer(
                case_or_refusal, [undo.mark_done() if undo.step else undo for undo in undos]
            )
        if case_or_refusal.code != AWS_REFUSED:
            return case_or_refusal
        manual_undos = [
            undo.leave_to_person(facts.queue_arn) if undo.step else undo for undo in undos
        ]
        return _make_rollback_answer(self.newest_transition, manual_undos) | make_refusal_document(
            case_or_refusal
        )

    def _read_facts(self) -> Facts:
        """Read the queue's attributes, and the DLQ that the case made."""
        queue_arn = self.newest_transition.queue_arn
        steps = [step for case in self.history for step in case.steps]
        return Facts(queue_arn, read_written_attributes(self.context.clients, queue_arn, steps), {})

    def _load_snapshots(self, writes: Iterable[CaseWrite]) -> dict[int, Mapping[str, str] | None]:
        """Load the queue's attributes before each write, by the write's transition number."""
        transition_by_number = {
            write.first_transition.n: write.first_transition for write in writes
        }
        return {
            transition_number: self.context.open_cases.load_snapshot(transition)
            for transition_number, transition in transition_by_number.items()
        }

    def _compare_with_earlier_rollback(self, undo: Undo, facts: Facts) -> Undo:
        """Return the plan with the attribute's outcome for a case that was rolled back before.

        An attribute that the rollback set is UNDONE if the queue still has the restored value. It
        is VALUE_KEPT if someone changed the value since, or if the queue was deleted and created
        again. Any other attribute keeps its planned outcome, except that UNDONE becomes VALUE_KEPT.
        """
        was_undone_earlier = any(
            step["attribute"] == undo.attribute for step in self.newest_transition.steps
        )
        is_same_queue = not facts.is_created_after(self.newest_transition.at)
        if was_undone_earlier and undo.outcome is UndoOutcome.ALREADY_UNDONE and is_same_queue:
            return replace(undo, outcome=UndoOutcome.UNDONE)
        has_persons_value = was_undone_earlier or undo.outcome is UndoOutcome.UNDONE
        if has_persons_value:
            return replace(undo, outcome=UndoOutcome.VALUE_KEPT, step=None, command="")
        return undo


def _make_rollback_answer(case: Case, undos: Iterable[Undo]) -> JsonDocument:
    attributes = [undo.document() for undo in undos]
    return {"case_id": case.case_id, "state": str(case.state), "attributes": attributes}
