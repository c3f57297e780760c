"""Apply a plan: claim, snapshot, read again, compare, write, record."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from botocore.exceptions import BotoCoreError, ClientError

from mendq.aws.clients import Clients
from mendq.aws.errors import StepFailed, is_passing
from mendq.aws.queue import attributes_of, queue_url
from mendq.cases.claims import Claim
from mendq.cases.context import WritingContext
from mendq.cases.record import Notification, record_transition
from mendq.cases.view import CaseStoreView
from mendq.catalogue.symptom import Symptom
from mendq.heal import guardrails
from mendq.heal.undo import records_after
from mendq.model.case import Case
from mendq.model.facts import Facts
from mendq.model.plan import AWS_REFUSED, Escalate, Plan, Refusal, Retry
from mendq.model.steps import AttributeStep


def changed_meanwhile(facts: Facts, seen: Facts, steps: Sequence[AttributeStep]) -> Refusal | None:
    """A refusal where the queue no longer stands as it was `seen`, or is another of its name."""
    if facts.created_at != seen.created_at:
        reason = "the queue was deleted and made anew while Mendq looked"
        return Retry("changed_meanwhile", reason)
    for step in steps:
        found = step.standing_in(facts.attributes)
        if found != str(step.before):
            reason = (
                f"{step.attribute} became {found} while Mendq looked; somebody is at work on it"
            )
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
            raise StepFailed(steps[0], str(error)) from error
        return Escalate(AWS_REFUSED, f"AWS refused the change: {error}")
    return None


def apply(  # noqa: PLR0913, PLR0917 - each is one thing that a fix stands on
    case: Case,
    plan: Plan,
    facts: Facts,
    seen: CaseStoreView,
    symptom: Symptom,
    context: WritingContext,
) -> Case | Refusal:
    """The case as it was written down, or why nothing was written into the queue.

    `case` is the transition to `applied` or `rolled_back`, `seen` the case store as it was read.
    Raises FactsUnavailable, CaseStoreUnavailable or StepFailed: then it is to be tried again.
    """
    claim = Claim(case.queue_arn, plan.steps, case, context.owner, seen, facts.modified_at)
    snapshot = {"attributes": dict(facts.attributes), "tags": dict(facts.tags)}
    refusal = context.case_store.claim(
        claim, snapshot, writes_per_minute=context.settings.limits.writes_per_minute
    )
    if refusal:
        return refusal
    refusal = _too_late(context) or context.write(context.clients, facts, plan.steps)
    if refusal:
        context.case_store.release(case, context.owner, seen)
        return refusal
    # Failed calls speak against a change from when it was made: that a run took long is its own.
    written = replace(case, at=context.just_now)
    changes = records_after(written, seen, facts.created_at)
    return record_transition(
        written, seen, Notification(symptom, facts, changes=changes), context, context.owner
    )


def _too_late(context: WritingContext) -> Refusal | None:
    """A run that slept on its claim must not wake up and write."""
    if context.remaining_seconds() >= guardrails.SECONDS_TO_RECORD:
        return None
    reason = "too little of the Lambda's time is left to record a write"
    return Retry("too_little_time", reason)
