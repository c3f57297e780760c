"""Carry a verdict out: claim, snapshot, read again, compare, write, record; or keep what is known.

A DLQ is attached in an order in which a crash anywhere is harmless: first the queue, whole in one
call that may be made twice, then the one attribute of the queue that the case is about. What was
made and not attached is empty, and nothing names it.
https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_CreateQueue.html
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

from botocore.exceptions import BotoCoreError, ClientError

from mendq.aws.clients import Clients
from mendq.aws.dlqs import misfit
from mendq.aws.errors import StepFailed, is_passing
from mendq.aws.queue import attributes_of, make_queue, queue_url, taken
from mendq.cases.context import WritingContext
from mendq.cases.record import Notification, record_transition
from mendq.cases.transactions import Claim
from mendq.cases.view import CaseStoreView, HoldUp
from mendq.catalogue.dlq.attach import POLICIES
from mendq.catalogue.symptom import Symptom
from mendq.heal import guardrails
from mendq.heal.context import FixContext, Outcome
from mendq.heal.decide import Record, SayNo, Verdict, Wait, Write, decide_refused
from mendq.heal.guardrails import Situation
from mendq.model.case import Case, State
from mendq.model.dlq import attributes_of_dlq
from mendq.model.evidence import DISTINCT_EVENTS, Evidence, Sighting
from mendq.model.facts import Facts
from mendq.model.lifecycle import WATCHED, counts_from
from mendq.model.limits import Timing
from mendq.model.plan import AWS_REFUSED, Escalate, Ignore, Refusal, Retry
from mendq.model.steps import AttributeStep


def changed_meanwhile(facts: Facts, seen: Facts, steps: Sequence[AttributeStep]) -> Refusal | None:
    """A refusal where the queue no longer stands as it was `seen`, or is another of its name."""
    if facts.created_at != seen.created_at:
        reason = "the queue was deleted and made anew while Mendq looked"
        return Retry("changed_meanwhile", reason)
    for step in steps:
        found = step.standing_in(facts.attributes)
        if found != str(step.before):
            became = f"{step.attribute} became {found} while Mendq looked"
            reason = f"{became}; somebody is at work on it"
            return Retry("changed_meanwhile", reason)
    return None


def write(clients: Clients, seen: Facts, steps: Sequence[AttributeStep]) -> Refusal | None:
    """Compare and set: None when all steps are taken.

    A refusal when the queue had changed since it was `seen`, or when SQS refused for good: then
    nothing was written. Raises FactsUnavailable where it could not look, StepFailed where SQS may
    take it later.
    """
    queue_arn = seen.queue_arn
    now = Facts(queue_arn, attributes_of(clients, queue_arn), seen.tags)
    refusal = changed_meanwhile(now, seen, steps)
    if refusal:
        return refusal
    try:
        clients.sqs_for_writing.set_queue_attributes(
            QueueUrl=queue_url(clients, queue_arn),
            Attributes={step.attribute: str(step.after) for step in steps},  # type: ignore[misc]
        )
    except (ClientError, BotoCoreError) as error:
        if is_passing(error):
            raise StepFailed(f"{steps[0]} failed: {error}") from error
        return Escalate(AWS_REFUSED, f"AWS refused the change: {error}")
    return None


def attach(clients: Clients, seen: Facts, steps: Sequence[AttributeStep]) -> Refusal | None:
    """Make the queue, name it in the source, let the source in; refuses and raises as `write` does.

    The queues are checked to fit as they are now, however it was planned. A queue that was made
    before something was refused stays: the same plan takes it up again.
    """
    now = replace(seen, attributes=attributes_of(clients, seen.queue_arn))
    to_make = [step for step in steps if step.stays]
    to_set = [step for step in steps if not step.stays]
    refusal = changed_meanwhile(now, seen, to_set) or misfit(clients, now, steps)
    for step in to_make:
        refusal = refusal or _made(clients, now, step)
    if refusal or not to_set:
        return refusal
    return write(clients, seen, to_set)


def _made(clients: Clients, source: Facts, step: AttributeStep) -> Refusal | None:
    """Make the queue: None once it is there; one from before may have policies of its own."""
    dlq_arn = str(step.after)
    try:
        made = make_queue(clients, dlq_arn, attributes_of_dlq(source, dlq_arn))
    except (ClientError, BotoCoreError) as error:
        raise StepFailed(f"{step} failed: {error}") from error
    if isinstance(made, Refusal):
        return made
    theirs = [name for name in POLICIES if made.get(name)]
    return taken(dlq_arn, f"it has a {theirs[0]}") if theirs else None


def apply(  # noqa: PLR0913, PLR0917 - each is one thing that a fix stands on
    case: Case,
    steps: Sequence[AttributeStep],
    facts: Facts,
    seen: CaseStoreView,
    symptom: Symptom,
    context: WritingContext,
) -> Case | Refusal:
    """The case as it was written down, or why nothing was written into the queue.

    `case` is the transition to `applied` or `rolled_back`, `seen` the case store as it was read.
    Raises FactsUnavailable, CaseStoreUnavailable or StepFailed: then it is to be tried again.
    """
    claim = Claim(case, context.owner, seen, facts.modified_at)
    snapshot = {"attributes": dict(facts.attributes), "tags": dict(facts.tags)}
    refusal = context.case_store.claim(
        claim, snapshot, writes_per_minute=context.settings.limits.writes_per_minute
    )
    if refusal:
        return refusal
    if context.remaining_seconds() < guardrails.SECONDS_TO_RECORD:
        # A run that slept on its claim must not wake up and write.
        reason = "too little of the Lambda's time is left to record a write"
        refusal = Retry("too_little_time", reason)
    else:
        refusal = context.write(context.clients, facts, steps)
    if refusal:
        context.case_store.release(case, context.owner, seen)
        return refusal
    # Failed calls speak against a change from when it was made: that a run took long is its own.
    written = replace(case, at=context.just_now)
    changes = seen.records_after(written, facts.created_at)
    return record_transition(written, seen, Notification(symptom, facts, changes=changes), context)


def carry_out(verdict: Verdict, situation: Situation, run: FixContext) -> Outcome:
    """What became of it; raises what `apply` raises, or NotificationNotSent."""
    if isinstance(verdict, Write):
        symptom, plan = situation.symptom, verdict.plan
        done = apply(verdict.case, plan.steps, situation.facts, situation.view, symptom, run)
        if isinstance(done, Case):
            return Outcome(case=done)
        return carry_out(decide_refused(situation, plan, done), situation, run)
    if isinstance(verdict, Record):
        recorded = record_transition(verdict.case, situation.view, verdict.notification, run)
        return Outcome(case=recorded, refusal=verdict.refusal)
    if isinstance(verdict, Wait):
        return _wait(verdict, situation, run)
    return Outcome(refusal=verdict.refusal if isinstance(verdict, SayNo) else None)


def _wait(verdict: Wait, situation: Situation, run: FixContext) -> Outcome:
    """Keep the evidence, or beside a case that waits why it does."""
    refusal, silent = verdict.refusal, verdict.refusal.as_kind(Ignore)
    if situation.waits is not None:
        known = situation.view.hold_up
        hold_up = HoldUp(known.since if known else run.now, refusal.code, refusal.reason)
        if hold_up != known:
            run.open_cases.hold_up(situation.waits, hold_up)
        return Outcome(refusal=silent)
    if situation.open_case is not None:
        again = not _note_failures(situation.open_case, situation, run)
    else:
        # Other runs may have brought the rest of the evidence while this one looked.
        enough = _remember(verdict.evidence, situation, run).suffices
        again = enough and refusal.code == "too_little_evidence"
    return Outcome(refusal=silent.as_kind(Retry) if again else silent)


def _remember(evidence: Evidence, situation: Situation, run: FixContext) -> Evidence:
    """Keep the evidence for the next failed call; what is kept now, others' among it.

    What was found is not kept: the next scan finds it again, or it is no more.
    """
    retained, stored = set(evidence.worth_keeping()), set(situation.view.evidence.sightings)
    if situation.is_found or retained == stored:
        return evidence
    together = run.case_store.remember(
        situation.facts.queue_arn,
        situation.symptom.name,
        add=sorted(retained - stored),
        drop=sorted(stored - retained),
        now=run.now,
    )
    return together.fresh(run.now)


def _note_failures(case: Case, situation: Situation, run: FixContext) -> bool:
    """Beside an open case only the newest calls are kept: they tell whether it was fixed.

    False where the case has moved meanwhile, or other runs came in between twice: then the
    calls are to come again.
    """
    symptom, view, calls = situation.symptom, situation.view, Evidence.of(situation.fresh)
    for _ in range(2):
        known = view.failures
        now_known = with_failures(case, known, calls, run.settings.timing)
        if now_known is None:
            return True
        due_at = run.now if case.state in WATCHED and now_known.suffices else None
        if run.open_cases.note_failures(case, known, now_known, due_at):
            return True
        view = run.case_store.look(case.queue_arn, symptom.name, symptom.attributes)
        if view.case is None or view.case.transition != case.transition:
            return False
    return False


NOTED_EVERY = timedelta(minutes=5)


def with_failures(case: Case, known: Evidence, calls: Evidence, timing: Timing) -> Evidence | None:
    """What is to be known of failed calls since; None where that is known well enough.

    As many as the symptom needs as evidence; more than that are noted every five minutes, so that
    a storm of failed calls is a trickle of writes.
    """
    after = Evidence.of([*known.sightings, *calls.since(counts_from(case, timing)).sightings])
    newest = _worth_noting(case, after)
    if newest == known:
        return None
    if not known.suffices:
        return newest
    later = newest.sightings[-1].event_time - known.sightings[-1].event_time
    return newest if later >= NOTED_EVERY else None


def _worth_noting(case: Case, after: Evidence) -> Evidence:
    """The newest, and where a person has been called, those of callers that the case knows not."""
    strangers: tuple[Sighting, ...] = ()
    if case.state is State.ESCALATED:
        known = case.evidence["principals"]
        strangers = tuple(each for each in after.calls if each.principal_arn not in known)
    most = 1 if strangers else DISTINCT_EVENTS
    return Evidence.of([*strangers[-DISTINCT_EVENTS:], *after.sightings[-most:]])
