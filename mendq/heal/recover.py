"""Recover what an invocation that died had claimed: did its write land?"""

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
from mendq.cases.context import CaseContext
from mendq.cases.record import Notification, record_transition
from mendq.cases.view import CaseStoreView
from mendq.catalogue import BY_NAME
from mendq.catalogue.symptom import Symptom
from mendq.heal.context import Outcome
from mendq.model.case import SILENT_DAYS, Case, Severity, State
from mendq.model.facts import Facts
from mendq.model.queue import arn_of
from mendq.model.steps import CreateDlq, kind_of, stays


def standing(
    clients: Clients, queue_arn: str, documents: Iterable[Mapping[str, str]]
) -> Mapping[str, str]:
    """The queue's attributes, and the queues that these steps made, where they are there.

    Raises QueueGone for the queue itself, or FactsUnavailable.
    """
    attributes = dict(attributes_of(clients, queue_arn))
    made = (each["after"] for each in documents if each["attribute"] == CreateDlq.attribute)
    dlq_arn = next(filter(arn_of, made), "")
    if dlq_arn and attributes_if_there(clients, dlq_arn):
        attributes[CreateDlq.attribute] = dlq_arn
    return attributes


# Clocks of ours and of SQS's may differ by so much.
CLOCK_SKEW = timedelta(seconds=5)


def settle(
    view: CaseStoreView, intent: Case, symptom: Symptom, context: CaseContext
) -> Outcome | CaseStoreView:
    """The recorded outcome where the write landed, or may have; else the view without the claim.

    What may be ours and may be a person's is overridden: told, and left alone.
    """
    if not intent.steps:
        raise CaseStoreUnreadable(f"the intent of case {intent.case_id} has no step")
    facts = Facts(intent.queue_arn, {}, {})
    with suppress(QueueGone):  # no write can stand there any more
        attributes = standing(context.clients, intent.queue_arn, intent.steps)
        facts = replace(facts, attributes=attributes)
    found = Found(view, intent, facts)
    owner = found.record.claim_owner or context.owner
    if not facts.exists or found.cannot_have_landed():
        context.case_store.release(intent, owner, view)
        return view.freed(intent)
    case = replace(intent.after(view.case), at=found.stands_since(context.now))
    changes, severity = found.written(), None
    if not found.landed():
        until = context.now + timedelta(days=SILENT_DAYS)
        case = replace(case, state=State.OVERRIDDEN, code="overridden", reason=found.overridden())
        changes = {
            name: structs.replace(each, overridden_until=until) for name, each in changes.items()
        }
        severity = Severity.INFO
        facts = replace(facts, tags=tags_of(context.clients, intent.queue_arn) or {})
    notification = Notification(symptom, facts, severity, changes=changes)
    return Outcome(record_transition(case, view, notification, context, owner))


def settle_whosever(
    view: CaseStoreView, intent: Case, symptom: Symptom | None, context: CaseContext
) -> CaseStoreView | Outcome:
    """Settle a claim that may be of another symptom's case: then that one is settled.

    Raises CaseStoreUnavailable where this Mendq knows no such symptom.
    """
    claimed_for = BY_NAME.get(intent.symptom)
    if claimed_for is None:
        raise CaseStoreUnavailable(f"no symptom of ours: {json.dumps(intent.symptom)[:80]}")
    if claimed_for is symptom:
        return settle(view, intent, claimed_for, context)
    theirs = context.case_store.look(intent.queue_arn, intent.symptom, claimed_for.attributes)
    settled = settle(theirs, intent, claimed_for, context)
    return settled if isinstance(settled, Outcome) else Outcome()


class Found(Struct, frozen=True):
    """A claim left behind, beside the queue as it is now."""

    view: CaseStoreView
    intent: Case
    facts: Facts

    @property
    def record(self) -> AttributeRecord:
        return self.view.record_of(self.intent.steps[0]["attribute"])

    @property
    def only_made_a_queue(self) -> bool:
        """Then when the queue of the case was changed says nothing."""
        return all(stays(each["attribute"]) for each in self.intent.steps)

    def now(self, step: Mapping[str, str]) -> str:
        """What stands there; SQS leaves out what has never been set."""
        kind, attributes = kind_of(step["attribute"]), self.facts.attributes
        stands = kind.standing_in(attributes) if kind else attributes.get(step["attribute"])
        return step["before"] if stands is None else stands

    def _stands(self, which: str) -> bool:
        """What decides: a queue made on the way to another step may be made twice, or be kept."""
        set_after_it = [each for each in self.intent.steps if not stays(each["attribute"])]
        return all(self.now(each) == each[which] for each in set_after_it or self.intent.steps)

    def cannot_have_landed(self) -> bool:
        """It is another queue by now, or nobody has changed it since it was claimed."""
        untouched = self.facts.modified_at == self.record.intent_modified_at
        as_before = self._stands("before") and (self.only_made_a_queue or untouched)
        return as_before or self.facts.made_after(self.intent.at)

    def landed(self) -> bool:
        """All of it stands there, since a time when the claim held."""
        modified_at, until = self.facts.modified_at, self.record.claim_until
        in_time = modified_at is None or until is None or modified_at <= until + CLOCK_SKEW
        return self._stands("after") and (self.only_made_a_queue or in_time)

    def stands_since(self, now: datetime) -> datetime:
        """At the latest; the write came some time after it was claimed, a minute at most."""
        return max(self.intent.at, min(self.facts.modified_at or self.intent.at, now))

    def written(self) -> dict[str, AttributeRecord]:
        """The records as after the write; a rollback that may not have landed forgets nothing."""
        if not self.intent.undoes or self.landed():
            return self.view.records_after(self.intent, self.facts.created_at)
        view = self.view.of_queue(self.facts.created_at)
        names = [step["attribute"] for step in self.intent.steps]
        return {name: view.record_of(name) for name in names}

    def overridden(self) -> str:
        stands = ", ".join(
            f"{each['attribute']} is {self.now(each)} after Mendq set out to make it "
            f"{each['after']}"
            for each in self.intent.steps
        )
        return f"{stands}; Mendq stays away for {SILENT_DAYS} days"
