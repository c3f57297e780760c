"""Finish what a run that died had claimed: did its write reach the queue?"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta

from msgspec import Struct, structs

from mendq.aws.clients import Clients
from mendq.aws.errors import CaseStoreUnavailable, CaseStoreUnreadable, QueueGone
from mendq.aws.queue import attributes_if_there, attributes_of, tags_of
from mendq.cases.attribute_record import AttributeRecord
from mendq.cases.context import CaseContext, FixContext
from mendq.cases.record import Notification, record_transition
from mendq.cases.view import CaseStoreView
from mendq.catalogue import BY_NAME
from mendq.catalogue.symptom import Symptom
from mendq.heal.outcome import Outcome
from mendq.model.case import SILENT_DAYS, Case, Severity, State
from mendq.model.facts import Facts
from mendq.model.queue import arn_of
from mendq.model.steps import CreateDlq, is_permanent, kind_of


def read_written(
    clients: Clients, queue_arn: str, documents: Iterable[Mapping[str, str]]
) -> Mapping[str, str]:
    """Return the queue's attributes, and the DLQ that these steps made, if it exists.

    Raises:
        QueueGone: The queue itself does not exist.
        FactsUnavailable: It could not be read.
    """
    attributes = dict(attributes_of(clients, queue_arn))
    made = [step["after"] for step in documents if step["attribute"] == CreateDlq.attribute]
    dlq_arn = next(filter(arn_of, made), "")
    if dlq_arn and attributes_if_there(clients, dlq_arn):
        attributes[CreateDlq.attribute] = dlq_arn
    return attributes


# Our clock and that of SQS may differ by this much.
CLOCK_SKEW = timedelta(seconds=5)


def recover(view: CaseStoreView, symptom: Symptom, run: FixContext) -> CaseStoreView | Outcome:
    """Finish a claim that a dead run left, if there is one.

    Returns:
        The view without the claim, or the outcome if the claimed write reached the queue. The claim
        may belong to another symptom's case, which holds the same attributes.
    """
    if view.intent is None or view.is_held_by_another(run.owner, run.now):
        return view
    settled = settle_any_claim(view, view.intent, symptom, run)
    return view.without_claim(view.intent) if settled == Outcome() else settled


def settle_claim(
    view: CaseStoreView, intent: Case, symptom: Symptom, context: CaseContext
) -> Outcome | CaseStoreView:
    """Record the claimed write if it reached the queue, or may have. Otherwise release the claim.

    A value that may be Mendq's or a person's counts as overridden: people are told, and Mendq
    leaves it alone.

    Returns:
        The recorded outcome, or the view without the claim.
    """
    if not intent.steps:
        raise CaseStoreUnreadable(f"the intent of case {intent.case_id} has no step")
    facts = Facts(intent.queue_arn, {}, {})
    with suppress(QueueGone):  # then no write can be there any more
        attributes = read_written(context.clients, intent.queue_arn, intent.steps)
        facts = replace(facts, attributes=attributes)
    claim = LeftClaim(view, intent, facts)
    owner = claim.record.claim_owner or context.owner
    if not facts.exists or claim.cannot_have_landed():
        context.case_store.release(intent, owner, view)
        return view.without_claim(intent)
    case = replace(intent.place_after(view.case), at=claim.written_at(context.now))
    changes, severity = claim.records_after(), None
    if not claim.has_landed():
        until = context.now + timedelta(days=SILENT_DAYS)
        reason = claim.why_overridden()
        case = replace(case, state=State.OVERRIDDEN, code="overridden", reason=reason)
        changes = {
            attribute: structs.replace(record, overridden_until=until)
            for attribute, record in changes.items()
        }
        severity = Severity.INFO
        facts = replace(facts, tags=tags_of(context.clients, intent.queue_arn) or {})
    notification = Notification(symptom, facts, severity, changes=changes)
    return Outcome(record_transition(case, view, notification, context, owner))


def settle_any_claim(
    view: CaseStoreView, intent: Case, symptom: Symptom | None, context: CaseContext
) -> CaseStoreView | Outcome:
    """Settle a claim that may belong to another symptom's case. Then that case is settled.

    Raises:
        CaseStoreUnavailable: This Mendq does not know the claim's symptom.
    """
    claimed_for = BY_NAME.get(intent.symptom)
    if claimed_for is None:
        raise CaseStoreUnavailable(f"no symptom of ours: {json.dumps(intent.symptom)[:80]}")
    if claimed_for is symptom:
        return settle_claim(view, intent, claimed_for, context)
    their_view = context.case_store.look(intent.queue_arn, intent.symptom, claimed_for.attributes)
    settled = settle_claim(their_view, intent, claimed_for, context)
    return settled if isinstance(settled, Outcome) else Outcome()


class LeftClaim(Struct, frozen=True):
    """A claim that a dead run left, and the queue as it is now."""

    view: CaseStoreView
    intent: Case
    facts: Facts

    @property
    def record(self) -> AttributeRecord:
        """The record of the first attribute that the claim holds."""
        return self.view.record_of(self.intent.steps[0]["attribute"])

    @property
    def only_made_a_queue(self) -> bool:
        """True if the claimed steps only make another queue.

        Then the change time of the case's own queue does not show whether they were written.
        """
        return all(is_permanent(step["attribute"]) for step in self.intent.steps)

    def value_now(self, step: Mapping[str, str]) -> str:
        """Return the attribute's value now. SQS leaves out what was never set."""
        kind, attributes = kind_of(step["attribute"]), self.facts.attributes
        value = kind.value_in(attributes) if kind else attributes.get(step["attribute"])
        return step["before"] if value is None else value

    def _has_values(self, which: str) -> bool:
        """Return True if the queue has the `before` or `after` values of the steps that decide.

        A queue that was made on the way to another step does not decide: it may be made twice.
        """
        set_after_it = [step for step in self.intent.steps if not is_permanent(step["attribute"])]
        deciding = set_after_it or self.intent.steps
        return all(self.value_now(step) == step[which] for step in deciding)

    def cannot_have_landed(self) -> bool:
        """Return True if it is another queue now, or was not changed since it was claimed."""
        untouched = self.facts.modified_at == self.record.intent_modified_at
        as_before = self._has_values("before") and (self.only_made_a_queue or untouched)
        return as_before or self.facts.is_created_after(self.intent.at)

    def has_landed(self) -> bool:
        """Return True if all steps are in the queue, and were written while the claim held."""
        modified_at, until = self.facts.modified_at, self.record.claim_until
        in_time = modified_at is None or until is None or modified_at <= until + CLOCK_SKEW
        return self._has_values("after") and (self.only_made_a_queue or in_time)

    def written_at(self, now: datetime) -> datetime:
        """Return the latest time of the write. It came at most a minute after the claim."""
        return max(self.intent.at, min(self.facts.modified_at or self.intent.at, now))

    def records_after(self) -> dict[str, AttributeRecord]:
        """Return the records after the write. A rollback that may have failed forgets nothing."""
        if not self.intent.is_rollback or self.has_landed():
            return self.view.records_after(self.intent, self.facts.created_at)
        view = self.view.restrict_to_queue(self.facts.created_at)
        attributes = [step["attribute"] for step in self.intent.steps]
        return {attribute: view.record_of(attribute) for attribute in attributes}

    def why_overridden(self) -> str:
        """Say which values the queue has in place of the claimed ones."""
        values = ", ".join(
            f"{step['attribute']} is {self.value_now(step)} after Mendq set out to make it "
            f"{step['after']}"
            for step in self.intent.steps
        )
        return f"{values}; Mendq stays away for {SILENT_DAYS} days"
