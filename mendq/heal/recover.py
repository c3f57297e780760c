"""Recover: finish a write that a run claimed before it died.

A run claims attributes, writes them, and records the case. If it dies in between, its claim stays
in the case store. Another run then compares the queue with the claim, and records the write if the
write reached the queue.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta

from msgspec import Struct, structs

from mendq.aws.clients import Clients
from mendq.aws.errors import CaseStoreUnavailable, CaseStoreUnreadable, QueueGone
from mendq.aws.queue import read_attributes_if_queue_exists, read_queue_attributes, read_queue_tags
from mendq.cases.attribute_record import AttributeRecord
from mendq.cases.context import CaseContext, FixContext
from mendq.cases.record import Notification, record_transition
from mendq.cases.view import CaseStoreView
from mendq.catalogue import SYMPTOM_BY_NAME
from mendq.catalogue.symptom import Symptom
from mendq.heal.outcome import Outcome
from mendq.model.case import Case
from mendq.model.facts import Facts
from mendq.model.mode import Mode
from mendq.model.queue import queue_arn_or_none
from mendq.model.state import SILENT_DAYS, State
from mendq.model.steps import CreateDlq, find_step_class, is_permanent
from mendq.notifications.announcements import choose_severity


def read_written_attributes(
    clients: Clients, queue_arn: str, step_documents: Iterable[Mapping[str, str]]
) -> Mapping[str, str]:
    """Return the queue's attributes, with the ARN of the DLQ that the steps created.

    The ARN is in the result under `CreateDlq.attribute`, if that DLQ exists.

    Raises:
        QueueGone: The queue itself does not exist.
        FactsUnavailable, QueueRefusesUs: One of the two queues could not be read.
    """
    attributes = dict(read_queue_attributes(clients, queue_arn))
    made_dlq_arns = [
        step["after"] for step in step_documents if step["attribute"] == CreateDlq.attribute
    ]
    dlq_arn = next(filter(queue_arn_or_none, made_dlq_arns), "")
    if dlq_arn and read_attributes_if_queue_exists(clients, dlq_arn):
        attributes[CreateDlq.attribute] = dlq_arn
    return attributes


# The clocks of Mendq and of SQS may differ by this much.
MAXIMUM_CLOCK_SKEW = timedelta(seconds=5)


def recover_left_claim(
    view: CaseStoreView, symptom: Symptom, run: FixContext
) -> CaseStoreView | Outcome:
    """Settle a claim that a dead run left, if there is one.

    Returns:
        The unchanged view if there is no claim, or if a live run holds it. The view without the
        claim if no write was recorded. Otherwise the outcome of the recorded case, which may be
        about another symptom that changes the same attributes.

    Raises:
        The errors of `settle_claim` and `settle_claim_of_any_symptom`.
    """
    if view.intent is None or view.is_held_by_another(run.owner, run.now):
        return view
    view_or_outcome = settle_claim_of_any_symptom(view, view.intent, symptom, run)
    return view.without_claim(view.intent) if view_or_outcome == Outcome() else view_or_outcome


def settle_claim(
    view: CaseStoreView, intent: Case, symptom: Symptom, context: CaseContext
) -> Outcome | CaseStoreView:
    """Record the claimed write if it reached the queue or may have reached it.

    If it certainly did not reach the queue, or the queue no longer exists, release the claim. If
    someone else may have changed the queue since, record the case as overridden: people are
    notified, and Mendq leaves the attributes alone for SILENT_DAYS.

    Args:
        view: The case store's records about the queue, with the claim.
        intent: The transition that the dead run wanted to record.
        symptom: The catalogue's entry for the intent.
        context: This invocation.

    Returns:
        The recorded outcome, or the view without the claim.

    Raises:
        CaseStoreUnreadable: The intent has no step.
        FactsUnavailable, QueueRefusesUs: The queue could not be read.
        CaseStoreUnavailable, NotificationNotSent: The write could not be recorded or announced.
    """
    if not intent.steps:
        raise CaseStoreUnreadable(f"the intent of case {intent.case_id} has no step")
    facts = Facts(intent.queue_arn, {}, {})
    with suppress(QueueGone):  # a queue that does not exist has no attributes
        attributes = read_written_attributes(context.clients, intent.queue_arn, intent.steps)
        facts = replace(facts, attributes=attributes)
    claim = AbandonedClaim(view, intent, facts)
    claim_owner = claim.first_record.claim_owner or context.owner
    if not facts.exists or claim.is_surely_not_written():
        context.case_store.release(intent, claim_owner, view)
        return view.without_claim(intent)
    case = replace(intent.renumber_after(view.case), at=claim.find_write_time(context.now))
    new_records = claim.make_records_after_write()
    severity = None
    if not claim.is_written():
        overridden_until = context.now + timedelta(days=SILENT_DAYS)
        reason = claim.describe_override()
        case = replace(case, state=State.OVERRIDDEN, code="overridden", reason=reason)
        new_records = {
            attribute: structs.replace(record, overridden_until=overridden_until)
            for attribute, record in new_records.items()
        }
        severity = choose_severity(case, Mode.HEAL, is_about_plan=True)
        facts = replace(facts, tags=read_queue_tags(context.clients, intent.queue_arn) or {})
    notification = Notification(symptom, facts, severity, new_records=new_records)
    return Outcome(record_transition(case, view, notification, context, claim_owner))


def settle_claim_of_any_symptom(
    view: CaseStoreView, intent: Case, symptom: Symptom | None, context: CaseContext
) -> CaseStoreView | Outcome:
    """Settle a claim that may belong to the case of another symptom.

    Returns:
        The result of `settle_claim`. But an empty outcome if the claim belongs to another symptom
        and no write was recorded.

    Raises:
        CaseStoreUnavailable: This version of Mendq does not know the claim's symptom.
    """
    claimed_symptom = SYMPTOM_BY_NAME.get(intent.symptom)
    if claimed_symptom is None:
        raise CaseStoreUnavailable(f"no symptom of ours: {json.dumps(intent.symptom)[:80]}")
    if claimed_symptom is symptom:
        return settle_claim(view, intent, claimed_symptom, context)
    claimed_view = context.case_store.look(
        intent.queue_arn, intent.symptom, claimed_symptom.attributes
    )
    view_or_outcome = settle_claim(claimed_view, intent, claimed_symptom, context)
    return view_or_outcome if isinstance(view_or_outcome, Outcome) else Outcome()


class AbandonedClaim(Struct, frozen=True):
    """A claim that a dead run left, with the queue's present facts.

    `intent` is the transition that the dead run wanted to record.
    """

    view: CaseStoreView
    intent: Case
    facts: Facts

    @property
    def first_record(self) -> AttributeRecord:
        """The case store's record of the first attribute that is claimed."""
        return self.view.record_of(self.intent.steps[0]["attribute"])

    @property
    def has_only_queue_steps(self) -> bool:
        """True if no claimed step sets an attribute of the case's own queue (`is_permanent`).

        Such steps create a DLQ or send its messages back. They do not change the time of the
        queue's last change, so that time does not show if they were written.
        """
        return all(is_permanent(step["attribute"]) for step in self.intent.steps)

    def find_current_value(self, step: Mapping[str, str]) -> str:
        """Return the present value of the step's attribute.

        If the attribute is not set, return its default, or the step's `before` if it has no
        default.
        """
        step_type = find_step_class(step["attribute"])
        attributes = self.facts.attributes
        value = step_type.value_in(attributes) if step_type else attributes.get(step["attribute"])
        return step["before"] if value is None else value

    def _has_step_values(self, value_key: str) -> bool:
        """Return True if the queue has the steps' values before or after the write.

        `value_key` is "before" or "after". A step that sets no attribute of this queue
        (`is_permanent`), such as the creation of a DLQ, is compared only if there is no other step.
        Such a step may be repeated, so it does not show if the others were written.
        """
        attribute_steps = [
            step for step in self.intent.steps if not is_permanent(step["attribute"])
        ]
        compared_steps = attribute_steps or self.intent.steps
        return all(self.find_current_value(step) == step[value_key] for step in compared_steps)

    def is_surely_not_written(self) -> bool:
        """Return True if the claimed write certainly did not reach the queue.

        This is certain if the queue was created after the claim, or if it still has the values from
        before the claim and was not changed since. If no step sets an attribute of this queue, the
        time of its last change is not used.
        """
        is_queue_unmodified = self.facts.modified_at == self.first_record.intent_modified_at
        has_values_from_before = self._has_step_values("before") and (
            self.has_only_queue_steps or is_queue_unmodified
        )
        return has_values_from_before or self.facts.is_created_after(self.intent.at)

    def is_written(self) -> bool:
        """Return True if the queue has the new values, and was last changed before the claim ended.

        The last change may be up to MAXIMUM_CLOCK_SKEW later. If no step sets an attribute of this
        queue, or a time is not known, only the values are compared.
        """
        modified_at = self.facts.modified_at
        claim_until = self.first_record.claim_until
        was_modified_within_claim = (
            modified_at is None
            or claim_until is None
            or modified_at <= claim_until + MAXIMUM_CLOCK_SKEW
        )
        return self._has_step_values("after") and (
            self.has_only_queue_steps or was_modified_within_claim
        )

    def find_write_time(self, now: datetime) -> datetime:
        """Return the time of the queue's last change, but not before the claim or after `now`."""
        return max(self.intent.at, min(self.facts.modified_at or self.intent.at, now))

    def make_records_after_write(self) -> dict[str, AttributeRecord]:
        """Return the records of the attributes after the write.

        If a rollback may have failed, the records stay as they were.
        """
        if not self.intent.is_rollback or self.is_written():
            return self.view.make_records_after_write(self.intent, self.facts.created_at)
        view = self.view.restrict_to_queue(self.facts.created_at)
        attributes = [step["attribute"] for step in self.intent.steps]
        return {attribute: view.record_of(attribute) for attribute in attributes}

    def describe_override(self) -> str:
        """Return the overridden case's reason.

        It names each attribute's present value, the value that Mendq wanted to write, and the
        number of days for which Mendq leaves the attributes alone.
        """
        changes_text = ", ".join(
            f"{step['attribute']} is {self.find_current_value(step)} after Mendq set out to make "
            f"it {step['after']}"
            for step in self.intent.steps
        )
        return f"{changes_text}; Mendq stays away for {SILENT_DAYS} days"
