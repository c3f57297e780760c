"""Settles what an invocation that died had claimed, a fix or a rollback: did its write land?

The queue says when it was changed last; so a value that was never ours is not taken for ours, and
a person who put the old one back is not overruled.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from functions.aws.desk import Desk
from functions.aws.errors import LedgerUnavailable, LedgerUnreadable, QueueGone
from functions.aws.queue_look import tags_of
from functions.aws.run import Outcome
from functions.aws.standing import standing
from functions.aws.telling import Telling, tell
from functions.catalogue import CATALOGUE
from functions.catalogue.symptom import Symptom
from functions.healing.case import SILENT_DAYS, Case
from functions.healing.every_step import is_kept, kind_of
from functions.healing.facts import Facts
from functions.healing.ledger_view import AttributeRecord, LedgerView
from functions.healing.paging import Severity
from functions.healing.rollback import records_after
from functions.healing.states import State

# Clocks of ours and of SQS's may differ by so much.
CLOCK_SKEW = timedelta(seconds=5)


def settle(view: LedgerView, intent: Case, symptom: Symptom, desk: Desk) -> Outcome | LedgerView:
    """The recorded outcome where the write landed, or may have; else the view without the claim.

    What may be ours and may be a person's is contested: told, and left alone.
    """
    if not intent.steps:
        raise LedgerUnreadable(f"the intent of case {intent.case_id} has no step")
    facts = Facts(intent.queue_arn, _attributes(intent, desk), {})
    found = Found(view, intent, facts)
    if not facts.exists or found.cannot_have_landed():
        desk.ledger.release(intent, found.record.claim_owner or desk.owner, view)
        return found.freed()
    case = replace(intent.after(view.case), at=found.stands_since(desk.now))
    changes, severity = found.written(), None
    if not found.landed():
        until = desk.now + timedelta(days=SILENT_DAYS)
        case = replace(case, state=State.CONTESTED, code="contested", reason=found.contested())
        changes = {name: replace(each, contested_until=until) for name, each in changes.items()}
        severity = Severity.INFO
        facts = replace(facts, tags=tags_of(desk.clients, intent.queue_arn) or {})
    telling = Telling(symptom, facts, severity, changes=changes)
    return Outcome(case=tell(case, view, telling, desk, found.record.claim_owner or desk.owner))


def settle_whosever(
    view: LedgerView, intent: Case, symptom: Symptom | None, desk: Desk
) -> LedgerView | Outcome:
    """As `settle`, where the claim may be of another symptom's case: then that one is settled.

    Raises LedgerUnavailable where this Mendq knows no such symptom.
    """
    claimed_for = symptom_known_as(intent.symptom)
    if claimed_for is None:
        raise LedgerUnavailable(f"no symptom of ours: {json.dumps(intent.symptom)[:80]}")
    if claimed_for is symptom:
        return settle(view, intent, claimed_for, desk)
    theirs = look_at(intent.queue_arn, intent.symptom, claimed_for, desk)
    settled = settle(theirs, intent, claimed_for, desk)
    return settled if isinstance(settled, Outcome) else Outcome()


def symptom_known_as(name: str) -> Symptom | None:
    """None where this Mendq knows none of that name."""
    return next((each for each in CATALOGUE if each.name == name), None)


def look_at(queue_arn: str, name: str, symptom: Symptom | None, desk: Desk) -> LedgerView:
    """With every attribute that may be claimed for such a case, as far as that is known."""
    attributes = tuple(step.attribute for step in symptom.steps) if symptom else ()
    return desk.ledger.look(queue_arn, name, attributes)


def _attributes(intent: Case, desk: Desk) -> Mapping[str, str]:
    """Of a queue that is gone, none: there is nothing left that a write could stand in."""
    try:
        return standing(desk.clients, intent.queue_arn, intent.steps)
    except QueueGone:
        return {}


@dataclass(frozen=True)
class Found:
    """A claim left behind, beside the queue as it is now."""

    view: LedgerView
    intent: Case
    facts: Facts

    @property
    def record(self) -> AttributeRecord:
        return self.view.record_of(self.intent.steps[0]["attribute"])

    @property
    def steps(self) -> Sequence[Mapping[str, str]]:
        """What decides: a queue made on the way to another step may be made twice, or be kept."""
        set_after_it = [each for each in self.intent.steps if not is_kept(each["attribute"])]
        return set_after_it or self.intent.steps

    def now(self, attribute: str) -> str | None:
        """What stands there; SQS leaves out what has never been set."""
        kind, attributes = kind_of(attribute), self.facts.attributes
        stands = kind.standing_in(attributes) if kind else attributes.get(attribute)
        before = {step["attribute"]: step["before"] for step in self.intent.steps}
        return before[attribute] if stands is None else stands

    def cannot_have_landed(self) -> bool:
        """It is another queue by now, or nobody has changed it since it was claimed."""
        created_at = self.facts.created_at
        if created_at is not None and created_at > self.intent.at:
            return True
        as_before = all(self.now(step["attribute"]) == step["before"] for step in self.steps)
        return as_before and (
            self.only_made_a_queue or self.facts.modified_at == self.record.intent_modified_at
        )

    def landed(self) -> bool:
        """All of it stands there, since a time when the claim held."""
        as_after = all(self.now(step["attribute"]) == step["after"] for step in self.steps)
        if self.only_made_a_queue:
            return as_after
        modified_at, until = self.facts.modified_at, self.record.claim_until
        in_time = modified_at is None or until is None or modified_at <= until + CLOCK_SKEW
        return as_after and in_time

    def stands_since(self, now: datetime) -> datetime:
        """At the latest; the write came some time after it was claimed, a minute at most."""
        return max(self.intent.at, min(self.facts.modified_at or self.intent.at, now))

    @property
    def only_made_a_queue(self) -> bool:
        """Then when the queue of the case was changed says nothing."""
        return all(is_kept(each["attribute"]) for each in self.intent.steps)

    def written(self) -> dict[str, AttributeRecord]:
        """The records as after the write; a rollback that may not have landed forgets nothing."""
        if self.intent.undoes and not self.landed():
            view = self.view.of_queue(self.facts.created_at)
            return {
                step["attribute"]: view.record_of(step["attribute"]) for step in self.intent.steps
            }
        return records_after(self.intent, self.view, self.facts.created_at)

    def freed(self) -> LedgerView:
        names = {step["attribute"] for step in self.intent.steps}
        free = {
            name: replace(
                self.view.record_of(name), claim_owner=None, claim_until=None, intent=None
            )
            for name in names
        }
        return replace(self.view, attributes={**self.view.attributes, **free})

    def contested(self) -> str:
        stands = ", ".join(
            f"{step['attribute']} is {self.now(step['attribute'])} after Mendq set out to make it "
            f"{step['after']}"
            for step in self.intent.steps
        )
        return f"{stands}; Mendq stays away for {SILENT_DAYS} days"
