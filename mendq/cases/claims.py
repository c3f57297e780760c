"""The parts of a claim: who holds which attributes, for which case, and what may speak against it.

A rollback takes back our own write: no freeze and no budget stops it, and it takes no snapshot.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from mendq.cases import items, view
from mendq.cases.transactions import Part, case_unmoved
from mendq.cases.view import CaseStoreView
from mendq.model.case import Case
from mendq.model.plan import Refusal, Retry
from mendq.model.steps import AttributeStep

# Longer than a Lambda that writes may run, shorter than the intake queue waits before it gives up.
CLAIM_SECONDS = 120


@dataclass(frozen=True)
class Claim:
    """An exclusive hold on the attributes that one write changes, for one case."""

    queue_arn: str
    steps: Sequence[AttributeStep]
    intent: Case
    owner: str
    seen: CaseStoreView
    modified_at: datetime | None = None


@dataclass(frozen=True)
class Condition:
    """One part of a transaction, and what it means where its condition fails."""

    part: Part
    refusal: Refusal


def claim_conditions(
    claim: Claim, snapshot: Mapping[str, Any], writes_per_minute: int
) -> list[Condition]:
    """All or none of them go through."""
    conditions = [
        *(_condition(_hold(claim, step), "another run is at work on it") for step in claim.steps),
        _condition(_hold_case(claim), "another run has just moved its case"),
    ]
    if claim.intent.undoes:
        return conditions
    return [
        *conditions,
        _condition(_keep_snapshot(claim, snapshot), "its snapshot is being written"),
        _condition(
            _spend_a_write(claim.intent.at, writes_per_minute),
            f"{writes_per_minute} writes were made in this minute",
            "account_budget",
        ),
        _condition(_not_frozen(), "changes were frozen just now", "frozen"),
    ]


def release_parts(intent: Case, owner: str, seen: CaseStoreView) -> list[Part]:
    """End a claim that nothing was written under; its snapshot goes with it."""
    return [
        *(
            {
                "Update": {
                    "Key": items.attribute_key(intent.queue_arn, step["attribute"]),
                    "UpdateExpression": "REMOVE claim_owner, claim_until, intent, "
                    "intent_modified_at",
                    "ConditionExpression": "claim_owner = :owner",
                    "ExpressionAttributeValues": {":owner": {"S": owner}},
                }
            }
            for step in intent.steps
        ),
        {"Delete": {"Key": items.snapshot_key(intent)}},
        *([_release_case(seen.case, owner)] if seen.case is not None else []),
    ]


def _release_case(case: Case, owner: str) -> Part:
    return {
        "Update": {
            "Key": items.case_key(case.queue_arn, case.symptom),
            "UpdateExpression": "REMOVE claim_owner, claim_until",
            "ConditionExpression": "attribute_not_exists(claim_owner) OR claim_owner = :owner",
            "ExpressionAttributeValues": {":owner": {"S": owner}},
        }
    }


def _condition(part: Part, reason: str, code: str = "claimed") -> Condition:
    return Condition(part, Retry(code, reason))


def _hold_case(claim: Claim) -> Part:
    """Nobody else moves it; once the claim has run out, follow_up looks what became of it.

    Before the first case there is nothing to hold: whoever brought it here comes again.
    """
    unmoved = case_unmoved(claim.intent, claim.seen, claim.owner, claim.owner, claim.intent.at)
    if claim.seen.case is None:
        return {"ConditionCheck": unmoved}
    until = items.epoch(claim.intent.at + timedelta(seconds=CLAIM_SECONDS))
    return {
        "Update": {
            **unmoved,
            "UpdateExpression": "SET claim_owner = :owner, claim_until = :until, "
            f"#open = :every, {view.SORT} = :until",
            "ExpressionAttributeNames": {"#open": view.PARTITION},
            "ExpressionAttributeValues": {
                **unmoved["ExpressionAttributeValues"],
                ":until": until,
                ":every": {"S": view.EVERY_CASE},
            },
        }
    }


def _hold(claim: Claim, step: AttributeStep) -> Part:
    """Free, run out, or our own; and nobody has written since we looked."""
    now = claim.intent.at
    seen = claim.seen.record_of(step.attribute).writes
    return {
        "Update": {
            "Key": items.attribute_key(claim.queue_arn, step.attribute),
            "UpdateExpression": "SET claim_owner = :me, claim_until = :until, intent = :intent, "
            "intent_modified_at = :modified",
            "ConditionExpression": "(attribute_not_exists(claim_owner) "
            "OR attribute_not_exists(claim_until) OR claim_until <= :now OR claim_owner = :me) "
            "AND (attribute_not_exists(writes) OR writes = :seen)",
            "ExpressionAttributeValues": {
                ":modified": items.epoch(claim.modified_at or now),
                ":me": {"S": claim.owner},
                ":now": items.epoch(now),
                ":until": items.epoch(now + timedelta(seconds=CLAIM_SECONDS)),
                ":intent": {"S": json.dumps(claim.intent.document())},
                ":seen": {"S": items.writes_text(seen)},
            },
        }
    }


def _keep_snapshot(claim: Claim, snapshot: Mapping[str, Any]) -> Part:
    """Once per fix: taken again after a crash it would hold our own value."""
    return {
        "Update": {
            "Key": items.snapshot_key(claim.intent),
            "UpdateExpression": "SET configuration = if_not_exists(configuration, :configuration)",
            "ExpressionAttributeValues": {
                ":configuration": {"S": json.dumps(snapshot, sort_keys=True)}
            },
        }
    }


def _spend_a_write(now: datetime, writes_per_minute: int) -> Part:
    return {
        "Update": {
            "Key": items.key(items.ACCOUNT, f"writes#{now:%Y-%m-%dT%H:%M}"),
            "UpdateExpression": "ADD writes :one SET expires_at = :expires",
            "ConditionExpression": "attribute_not_exists(writes) OR writes < :most",
            "ExpressionAttributeValues": {
                ":one": {"N": "1"},
                ":most": {"N": str(writes_per_minute)},
                ":expires": items.epoch(now + timedelta(hours=1)),
            },
        }
    }


def _not_frozen() -> Part:
    return {
        "ConditionCheck": {
            "Key": items.freeze_key(),
            "ConditionExpression": "attribute_not_exists(pk)",
        }
    }
