"""Carries out a plan: claim, snapshot, write, record; killed anywhere, `unfinished` settles it.

A rollback goes the same way, without what it is exempt from: `ledger_claims` says of what.
"""

from __future__ import annotations

from dataclasses import replace

from functions.aws.desk import WritingDesk
from functions.aws.ledger_claims import Claim
from functions.aws.telling import Telling, tell
from functions.catalogue.symptom import Symptom
from functions.healing import guardrails
from functions.healing.case import Case
from functions.healing.facts import Facts
from functions.healing.ledger_view import LedgerView
from functions.healing.plan import Plan, Refusal
from functions.healing.rollback import records_after


def apply(  # noqa: PLR0913, PLR0917 - each is one thing that a fix stands on
    case: Case, plan: Plan, facts: Facts, seen: LedgerView, symptom: Symptom, desk: WritingDesk
) -> Case | Refusal:
    """The case as it was written down, or why nothing was written into the queue.

    `case` is the transition to `applied` or `rolled_back`, `seen` the ledger as it was read. Raises
    FactsUnavailable, LedgerUnavailable or StepFailed: then it is to be tried again.
    """
    claim = Claim(case.queue_arn, plan.steps, case, desk.owner, seen, facts.modified_at)
    snapshot = {"attributes": dict(facts.attributes), "tags": dict(facts.tags)}
    refusal = desk.ledger.claim(
        claim, snapshot, writes_per_minute=desk.settings.limits.writes_per_minute
    )
    if refusal:
        return refusal
    refusal = _too_late(desk) or desk.write(desk.clients, facts, plan.steps)
    if refusal:
        desk.ledger.release(case, desk.owner, seen)
        return refusal
    # Failed calls speak against a change from when it was made: that a run took long is its own.
    written = replace(case, at=desk.just_now)
    changes = records_after(written, seen, facts.created_at)
    return tell(written, seen, Telling(symptom, facts, changes=changes), desk, desk.owner)


def _too_late(desk: WritingDesk) -> Refusal | None:
    """A run that slept on its claim must not wake up and write."""
    if desk.remaining_seconds() >= guardrails.SECONDS_TO_RECORD:
        return None
    reason = "too little of the Lambda's time is left to record a write"
    return Refusal("too_little_time", reason, becomes=None, again=True)
