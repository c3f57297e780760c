"""Settles what an invocation that died had claimed: did its write land or not?

The queue says when it was changed last; so a value that was never ours is not taken for ours, and
a person who put the old one back is not overruled.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from functions.aws.errors import LedgerUnreadable
from functions.aws.gather_facts import attributes_of
from functions.aws.run import Outcome, Run
from functions.healing.case import SILENT_DAYS, Case
from functions.healing.facts import Facts
from functions.healing.ledger_view import AttributeRecord, LedgerView
from functions.healing.states import State

# Clocks of ours and of SQS's may differ by so much.
CLOCK_SKEW = timedelta(seconds=5)


def settle(view: LedgerView, intent: Case, run: Run) -> Outcome | LedgerView:
    """The recorded outcome where the write landed, or may have; else the view without the claim.

    What may be ours and may be a person's is contested: told, and left alone.
    """
    if not intent.steps:
        raise LedgerUnreadable(f"the intent of case {intent.case_id} has no step")
    step, record = intent.steps[0], view.attribute
    facts = Facts(intent.queue_arn, attributes_of(run.clients, intent.queue_arn), {})
    current = facts.attributes[step["attribute"]]
    owner = record.claim_owner or run.owner
    if _cannot_have_landed(facts, intent, record, current == step["before"]):
        run.ledger.release(intent, step["attribute"], owner)
        freed = replace(record, claim_owner=None, claim_until=None, intent=None)
        return replace(view, attribute=freed)
    change = record.after_writing(int(step["before"]), int(step["after"]), intent.at)
    case = intent
    if current != step["after"] or not _within_the_claim(facts, record):
        reason = f"{step['attribute']} is {current} after Mendq set out to make it {step['after']}"
        case = replace(intent, state=State.CONTESTED, reason=reason)
        change = replace(change, contested_until=run.now + timedelta(days=SILENT_DAYS))
    run.case_bucket.put(case)
    run.ledger.record(case, view, step["attribute"], change=change, owner=owner)
    return Outcome(case=case)


def _cannot_have_landed(
    facts: Facts, intent: Case, record: AttributeRecord, is_as_before: bool
) -> bool:
    """It is another queue by now, or nobody has changed it since it was claimed."""
    if facts.created_at is not None and facts.created_at > intent.at:
        return True
    return is_as_before and facts.modified_at == record.intent_modified_at


def _within_the_claim(facts: Facts, record: AttributeRecord) -> bool:
    if facts.modified_at is None or record.claim_until is None:
        return True
    return facts.modified_at <= record.claim_until + CLOCK_SKEW
