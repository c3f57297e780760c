"""Carry out a decision: write a fix, record a case, or store failed calls.

A fix is written in steps: claim the attributes, store a snapshot, read the queue again, compare,
write, and record the case.

A DLQ is attached in an order in which a crash at any point does no harm. First the case store notes
that the DLQ is about to be created. Then one call creates the complete DLQ, and the case store
records it; both can be repeated. Last, one call sets the attribute of the case's own queue. If the
run dies before that, an empty DLQ is left that no queue names.
https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_CreateQueue.html
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from botocore.exceptions import BotoCoreError, ClientError
from msgspec import Struct, structs

from mendq.aws.clients import Clients
from mendq.aws.dlqs import refuse_unfit_dlq
from mendq.aws.errors import StepFailed, is_transient_error
from mendq.aws.queue import queue_url, read_queue_attributes, refuse_taken_queue_name
from mendq.cases.context import FixContext, WritingContext
from mendq.cases.receivers import ReceiverMaker, Receivers
from mendq.cases.record import Notification, record_transition
from mendq.cases.transactions import Claim
from mendq.cases.view import CaseStoreView, HoldUp
from mendq.catalogue.symptom import Symptom
from mendq.heal.decide import (
    Decision,
    Decline,
    KeepEvidence,
    KeepWaiting,
    LeaveHealthyQueue,
    NeedsFacts,
    NeedsReach,
    NoteFailures,
    RecordTransition,
    WriteFix,
    decide,
)
from mendq.heal.guardrails import SECONDS_TO_RECORD
from mendq.heal.outcome import Outcome
from mendq.heal.situation import RefusedWrite, Situation
from mendq.model.case import Case, Severity
from mendq.model.dlq import make_dlq_attributes
from mendq.model.evidence import EVENTS_SUFFICIENT_FOR_CASE, Evidence, Sighting
from mendq.model.facts import Facts
from mendq.model.lifecycle import STATES_ENDED_BY_FAILED_CALLS, find_start_of_counted_failures
from mendq.model.limits import Timing
from mendq.model.plan import AWS_REFUSED, Escalate, Ignore, Refusal, Retry
from mendq.model.receiver import find_difference_from_new_queue
from mendq.model.state import State
from mendq.model.steps import AttributeStep, Owner


def refuse_if_changed_meanwhile(
    facts_now: Facts, facts_when_planned: Facts, steps: Sequence[AttributeStep]
) -> Refusal | None:
    """Return a refusal if the queue was changed or recreated after the steps were planned.

    Args:
        facts_now: The queue now.
        facts_when_planned: The queue when the steps were planned.
        steps: The steps. Only their attributes are compared.
    """
    if facts_now.created_at != facts_when_planned.created_at:
        reason = "the queue was deleted and made anew while Mendq looked"
        return Retry("changed_meanwhile", reason)
    for step in steps:
        current_value = step.value_in(facts_now.attributes)
        if current_value != str(step.before):
            change_text = f"{step.attribute} became {current_value} while Mendq looked"
            reason = f"{change_text}; somebody is at work on it"
            return Retry("changed_meanwhile", reason)
    return None


def write_attributes(
    clients: Clients, facts: Facts, steps: Sequence[AttributeStep]
) -> Refusal | None:
    """Set the attributes of all steps in one call, if each attribute still has its `before` value.

    Args:
        clients: The clients of this invocation.
        facts: The queue as it was when the steps were planned.
        steps: The steps to write.

    Returns:
        None if the steps were written. A refusal if nothing was written, because the queue was
        changed meanwhile, or SQS refused the write permanently.

    Raises:
        FactsUnavailable, QueueRefusesUs: The queue could not be read again.
        StepFailed: The write failed. A retry may succeed.
    """
    queue_arn = facts.queue_arn
    facts_now = replace(facts, attributes=read_queue_attributes(clients, queue_arn))
    refusal = refuse_if_changed_meanwhile(facts_now, facts, steps)
    if refusal:
        return refusal
    try:
        clients.sqs_for_writing.set_queue_attributes(
            QueueUrl=queue_url(clients, queue_arn),
            Attributes={step.attribute: str(step.after) for step in steps},  # type: ignore[misc]
        )
    except (ClientError, BotoCoreError) as error:
        if is_transient_error(error):
            raise StepFailed(f"{steps[0]} failed: {error}") from error
        return Escalate(AWS_REFUSED, f"AWS refused the change: {error}")
    return None


class DlqWriter(Struct, frozen=True):
    """Creates the DLQ of a queue, and sets the attributes that connect the two queues.

    Attributes:
        receivers: The records of the DLQs that Mendq made or a person confirmed.
        now: The time of this invocation.
    """

    receivers: Receivers
    now: datetime

    def write(
        self, clients: Clients, facts_when_planned: Facts, steps: Sequence[AttributeStep]
    ) -> Refusal | None:
        """Create the DLQ if a step says so, and set the attributes that connect the two queues.

        Both queues are read and checked again before the writes. If the DLQ was created and a later
        step is refused, the DLQ stays, and the next plan uses it.

        Arguments, result and errors are those of `write_attributes`. CaseStoreUnavailable is also
        possible if a DLQ must be created.
        """
        facts_now = replace(
            facts_when_planned,
            attributes=read_queue_attributes(clients, facts_when_planned.queue_arn),
        )
        dlq_steps = [step for step in steps if step.is_permanent]
        attribute_steps = [step for step in steps if not step.is_permanent]
        refusal = refuse_if_changed_meanwhile(
            facts_now, facts_when_planned, attribute_steps
        ) or refuse_unfit_dlq(clients, facts_now, steps)
        for step in dlq_steps:
            refusal = refusal or self._make_dlq(clients, facts_now, step)
        if refusal or not attribute_steps:
            return refusal
        return write_attributes(clients, facts_when_planned, attribute_steps)

    def _make_dlq(
        self, clients: Clients, source_facts: Facts, step: AttributeStep
    ) -> Refusal | None:
        """Create the DLQ and return None, or return a refusal if it cannot be created or used.

        An existing queue of that name is used only if the case store has a record of it, its
        attributes are those of a new DLQ, and it has no Policy and no RedrivePolicy.

        Raises:
            StepFailed: The call failed. A retry may succeed.
            FactsUnavailable, QueueRefusesUs: The queue's attributes could not be read.
            CaseStoreUnavailable: The case store does not answer.
        """
        dlq_arn = str(step.after)
        new_dlq_attributes = make_dlq_attributes(source_facts, dlq_arn)
        maker = ReceiverMaker(clients, self.receivers, self.now, Owner.ATTACH_DLQ)
        try:
            dlq = maker.make_or_check(dlq_arn, new_dlq_attributes)
        except (ClientError, BotoCoreError) as error:
            raise StepFailed(f"{step} failed: {error}") from error
        if isinstance(dlq, Refusal):
            return dlq
        difference = find_difference_from_new_queue(dlq, new_dlq_attributes)
        return refuse_taken_queue_name(dlq_arn, difference) if difference else None


def claim_and_write(  # noqa: PLR0913, PLR0917 - a fix needs each of them
    case: Case,
    steps: Sequence[AttributeStep],
    facts: Facts,
    view: CaseStoreView,
    symptom: Symptom,
    context: WritingContext,
    severity: Severity | None = None,
) -> Case | Refusal:
    """Claim the attributes, write the steps, and record the case.

    Args:
        case: The transition to `applied` or `rolled_back`.
        steps: The steps to write.
        facts: The queue as it was when the steps were planned.
        view: The case store's records when the steps were planned.
        symptom: The catalogue's entry, for the notification.
        context: This invocation.
        severity: How urgent the notification about the write is; None to notify nobody.

    Returns:
        The case as it was recorded, or a refusal if nothing was written.

    Raises:
        FactsUnavailable, CaseStoreUnavailable, StepFailed: The caller must try again.
        QueueRefusesUs: The queue's policy denies Mendq the second read of the queue.
        NotificationNotSent: The write was recorded, but SNS did not accept the notification.
    """
    claim = Claim(case, context.owner, view, facts.modified_at)
    snapshot = {"attributes": dict(facts.attributes), "tags": dict(facts.tags)}
    refusal = context.case_store.claim(
        claim, snapshot, writes_per_minute=context.settings.limits.writes_per_minute
    )
    if refusal:
        return refusal
    if context.remaining_seconds() < SECONDS_TO_RECORD:
        # Lambda may have suspended the run after its claim. The run must not write after the claim
        # has ended.
        reason = "too little of the Lambda's time is left to record a write"
        refusal = Retry("too_little_time", reason)
    else:
        refusal = context.write_steps(context.clients, facts, steps)
    if refusal:
        context.case_store.release(case, context.owner, view)
        return refusal
    # Failed calls after the case's time count against the change. So it must be the time of the
    # write, not the start of a long run.
    case = replace(case, at=context.clock_time)
    new_records = view.make_records_after_write(case, facts.created_at)
    written_values = {step.attribute: str(step.after) for step in steps}
    facts = replace(facts, attributes={**facts.attributes, **written_values})
    return record_transition(
        case, view, Notification(symptom, facts, severity, new_records=new_records), context
    )


def carry_out_decision(decision: Decision, situation: Situation, run: FixContext) -> Outcome:
    """Carry out a decision, and return the outcome.

    If the write of a fix is refused, ask `decide` once more and carry out the new decision.

    Raises:
        TypeError: The decision is not final (NeedsFacts or NeedsReach).
        FactsUnavailable, CaseStoreUnavailable, StepFailed, NotificationNotSent: The caller must
            try again.
        QueueRefusesUs, CaseStoreUnreadable: The queue or the case store's items cannot be read.
    """
    match decision:
        case NeedsFacts() | NeedsReach():
            raise TypeError(f"{decision} is no final decision")
        case LeaveHealthyQueue():
            return Outcome()
        case Decline():
            return Outcome(refusal=decision.refusal)
        case WriteFix():
            return _write_fix(decision, situation, run)
        case RecordTransition():
            recorded_case = record_transition(
                decision.case, situation.view, decision.notification, run
            )
            return Outcome(recorded_case, decision.refusal)
        case KeepEvidence():
            return _keep_evidence(decision, situation, run)
        case NoteFailures():
            return _note_failures(decision, situation, run)
        case KeepWaiting():
            return _keep_waiting(decision, situation, run)


def _write_fix(decision: WriteFix, situation: Situation, run: FixContext) -> Outcome:
    """Write the fix. If the write is refused, decide again and carry out the new decision."""
    plan = decision.plan
    case_or_refusal = claim_and_write(
        decision.case, plan.steps, situation.facts, situation.view, situation.symptom, run
    )
    if isinstance(case_or_refusal, Case):
        return Outcome(case_or_refusal)
    refused_situation = structs.replace(
        situation, refused_write=RefusedWrite(plan, case_or_refusal)
    )
    return carry_out_decision(decide(refused_situation), refused_situation, run)


def _keep_waiting(decision: KeepWaiting, situation: Situation, run: FixContext) -> Outcome:
    """Store why the case waits, unless the same reason is stored already.

    Return an outcome with only the refusal, because the case did not change.
    """
    refusal = decision.refusal
    stored_hold_up = situation.view.hold_up
    waits_since = stored_hold_up.waiting_since if stored_hold_up else run.now
    hold_up = HoldUp(waits_since, refusal.code, refusal.reason)
    if hold_up != stored_hold_up:
        run.open_cases.store_hold_up(decision.waiting_case, hold_up)
    return Outcome(refusal=refusal.as_refusal_of_class(Ignore))


def _keep_evidence(decision: KeepEvidence, situation: Situation, run: FixContext) -> Outcome:
    """Store the failed calls, so that later calls can complete the evidence.

    If the refusal was too little evidence, but other runs have stored enough meanwhile, the outcome
    makes SQS deliver the calls again. A later run then opens the case.
    """
    evidence = _store_evidence(decision.evidence, situation, run)
    is_evidence_sufficient = (
        evidence.is_sufficient and decision.refusal.code == "too_little_evidence"
    )
    return _make_ignored_outcome(decision.refusal, must_redeliver=is_evidence_sufficient)


def _note_failures(decision: NoteFailures, situation: Situation, run: FixContext) -> Outcome:
    """Store the failed calls with the open case.

    If they cannot be stored, the outcome makes SQS deliver them again.
    """
    are_failures_stored = _store_failures(decision.open_case, situation, run)
    return _make_ignored_outcome(decision.refusal, must_redeliver=not are_failures_stored)


def _make_ignored_outcome(refusal: Refusal, *, must_redeliver: bool) -> Outcome:
    """Return an outcome that opens no case.

    SQS delivers the same calls again if `must_redeliver` is True or `refusal` is a `Retry`.
    """
    ignored_refusal = refusal.as_refusal_of_class(Ignore)
    return Outcome(
        refusal=ignored_refusal.as_refusal_of_class(Retry) if must_redeliver else ignored_refusal
    )


def _store_evidence(evidence: Evidence, situation: Situation, run: FixContext) -> Evidence:
    """Store the evidence. Return the fresh evidence that is stored now, including other runs'.

    If there is nothing to add or drop, store nothing and return `evidence`. Do the same for a
    measurement, because the next scan measures the queue again.
    """
    sightings_to_keep = set(evidence.list_sightings_to_keep())
    stored_sightings = set(situation.view.evidence.sightings)
    if situation.is_found_by_measurement or sightings_to_keep == stored_sightings:
        return evidence
    stored_evidence = run.case_store.store_evidence(
        situation.facts.queue_arn,
        situation.symptom.name,
        sightings_to_add=sorted(sightings_to_keep - stored_sightings),
        sightings_to_drop=sorted(stored_sightings - sightings_to_keep),
        now=run.now,
    )
    return stored_evidence.without_old_sightings(run.now)


def _store_failures(case: Case, situation: Situation, run: FixContext) -> bool:
    """Store the newest failed calls with the open case. They show if its fix helps.

    If the stored calls suffice to show that the fix does not help, make the case due at once.

    Returns:
        True if the calls were stored, or if nothing must be stored. False if SQS must deliver the
        calls again, because another run has moved the case meanwhile, or other runs stored failed
        calls during both tries.
    """
    symptom = situation.symptom
    view = situation.view
    failed_calls = Evidence.of(situation.fresh_sightings)
    for _ in range(2):
        stored_failures = view.failures
        merged_failures = merge_failures(case, stored_failures, failed_calls, run.settings.timing)
        if merged_failures is None:
            return True
        due_at = (
            run.now
            if case.state in STATES_ENDED_BY_FAILED_CALLS and merged_failures.is_sufficient
            else None
        )
        if run.open_cases.note_failures(case, stored_failures, merged_failures, due_at):
            return True
        view = run.case_store.look(case.queue_arn, symptom.name, symptom.attributes)
        if view.case is None or view.case.transition != case.transition:
            return False
    return False


# The pause between two writes of failed calls to a case that has enough of them.
FAILURE_NOTES_PAUSE = timedelta(minutes=5)


def merge_failures(
    case: Case, stored_failures: Evidence, failed_calls: Evidence, timing: Timing
) -> Evidence | None:
    """Return the failed calls to store with the case, or None if nothing must be stored.

    Until the stored calls suffice as evidence, new calls are stored at once. After that, they are
    stored once in FAILURE_NOTES_PAUSE, so that a storm of failed calls causes only a few writes.

    Args:
        case: The open case.
        stored_failures: The failed calls that are stored with the case.
        failed_calls: The failed calls of this batch. Calls before the case's last transition, or
            before its change took effect, are not stored.
        timing: The settings about time.
    """
    failures_since_change = failed_calls.since(
        find_start_of_counted_failures(case, timing)
    ).sightings
    newest_failures = _select_failures_to_keep(
        case, Evidence.of([*stored_failures.sightings, *failures_since_change])
    )
    if newest_failures == stored_failures:
        return None
    if not stored_failures.is_sufficient:
        return newest_failures
    time_since_stored_failures = (
        newest_failures.sightings[-1].event_time - stored_failures.sightings[-1].event_time
    )
    return newest_failures if time_since_stored_failures >= FAILURE_NOTES_PAUSE else None


def _select_failures_to_keep(case: Case, failures: Evidence) -> Evidence:
    """Return the failed calls to keep: the newest EVENTS_SUFFICIENT_FOR_CASE that count.

    If the case is escalated and callers fail that it does not name, return the newest
    EVENTS_SUFFICIENT_FOR_CASE calls of these callers, and the newest call of all callers.
    """
    kept_calls_of_new_callers: tuple[Sighting, ...] = ()
    if case.state is State.ESCALATED:
        mentioned_principals = case.evidence["principals"]
        calls_of_new_callers = [
            call for call in failures.calls if call.principal_arn not in mentioned_principals
        ]
        kept_calls_of_new_callers = tuple(calls_of_new_callers[-EVENTS_SUFFICIENT_FOR_CASE:])
    newest_failure_count = 1 if kept_calls_of_new_callers else EVENTS_SUFFICIENT_FOR_CASE
    newest_failures = failures.counted_sightings[-newest_failure_count:]
    return Evidence.of([*kept_calls_of_new_callers, *newest_failures])
