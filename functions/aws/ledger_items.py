"""How the ledger's items look: keys, conditions, and the way back into values."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from functions.healing.case import Case
from functions.healing.evidence import Evidence, Sighting, to_text
from functions.healing.ledger_view import AttributeRecord, LedgerView, Write
from functions.healing.spread import Spread

if TYPE_CHECKING:
    from functions.aws.ledger import Claim

ACCOUNT = "account"
Item = Mapping[str, Any]


def key(partition: str, sort: str) -> dict[str, dict[str, str]]:
    return {"pk": {"S": partition}, "sk": {"S": sort}}


def freeze_key() -> dict[str, dict[str, str]]:
    return key(ACCOUNT, "freeze")


def case_key(queue_arn: str, symptom: str) -> dict[str, dict[str, str]]:
    return key(queue_arn, f"case#{symptom}")


def evidence_key(queue_arn: str, symptom: str) -> dict[str, dict[str, str]]:
    return key(queue_arn, f"evidence#{symptom}")


def attribute_key(queue_arn: str, attribute: str) -> dict[str, dict[str, str]]:
    return key(queue_arn, f"attribute#{attribute}")


def spread_key(symptom: str) -> dict[str, dict[str, str]]:
    return key(ACCOUNT, f"spread#{symptom}")


def snapshot_key(case: Case) -> dict[str, dict[str, str]]:
    return key(case.queue_arn, f"snapshot#{case.case_id}#{case.n}")


def epoch(moment: datetime) -> dict[str, str]:
    return {"N": str(int(moment.timestamp()))}


def view_of(freeze: Item, case: Item, evidence: Item, attribute: Item) -> LedgerView:
    """The view that four items, each possibly empty, give.

    Raises KeyError, TypeError or ValueError where one is not of our making.
    """
    return LedgerView(
        frozen=freeze.get("reason", {}).get("S", "no reason given") if freeze else None,
        case=_case_of(case.get("document")),
        evidence=evidence_of(evidence),
        attribute=_attribute_of(attribute),
    )


def evidence_of(item: Item) -> Evidence:
    return Evidence.of(map(Sighting.from_text, item.get("sightings", {}).get("SS", [])))


def spread_of(item: Item) -> Spread:
    return Spread.from_texts(item.get("queues", {}).get("SS", []))


def _case_of(document: Mapping[str, str] | None) -> Case | None:
    return Case.from_document(json.loads(document["S"])) if document else None


def _attribute_of(item: Item) -> AttributeRecord:
    person = item.get("person_value", {}).get("N")
    writes = json.loads(item.get("writes", {}).get("S", "[]"))
    return AttributeRecord(
        person_value=int(person) if person is not None else None,
        writes=tuple(
            Write(datetime.fromisoformat(at), before, after) for at, before, after in writes
        ),
        contested_until=_moment(item.get("contested_until")),
        claim_owner=item.get("claim_owner", {}).get("S"),
        claim_until=_moment(item.get("claim_until")),
        intent=_case_of(item.get("intent")),
        intent_modified_at=_moment(item.get("intent_modified_at")),
        queue_created_at=_moment(item.get("queue_created_at")),
    )


def _moment(number: Mapping[str, str] | None) -> datetime | None:
    return datetime.fromtimestamp(int(number["N"]), UTC) if number else None


def _writes_text(writes: tuple[Write, ...]) -> str:
    return json.dumps([[to_text(each.at), each.before, each.after] for each in writes])


def claim_parts(
    claim: Claim, snapshot: Mapping[str, Any], writes_per_minute: int, claim_seconds: int
) -> list[dict[str, Any]]:
    """The five parts of a claim; each condition is one reason for it to fail."""
    return [
        _hold(claim, claim_seconds),
        _keep_snapshot(claim, snapshot),
        _spend_a_write(claim.intent.at, writes_per_minute),
        {"ConditionCheck": _case_unmoved(claim.intent, claim.seen)},
        {
            "ConditionCheck": {
                "Key": freeze_key(),
                "ConditionExpression": "attribute_not_exists(pk)",
            }
        },
    ]


def _hold(claim: Claim, claim_seconds: int) -> dict[str, Any]:
    """Free, run out, or our own; and nobody has written since we looked."""
    now = claim.intent.at
    return {
        "Update": {
            "Key": attribute_key(claim.queue_arn, claim.step.attribute),
            "UpdateExpression": "SET claim_owner = :me, claim_until = :until, intent = :intent, "
            "intent_modified_at = :modified",
            "ConditionExpression": "(attribute_not_exists(claim_owner) "
            "OR attribute_not_exists(claim_until) OR claim_until <= :now OR claim_owner = :me) "
            "AND (attribute_not_exists(writes) OR writes = :seen)",
            "ExpressionAttributeValues": {
                ":modified": epoch(claim.modified_at or now),
                ":me": {"S": claim.owner},
                ":now": epoch(now),
                ":until": epoch(now + timedelta(seconds=claim_seconds)),
                ":intent": {"S": json.dumps(claim.intent.document())},
                ":seen": {"S": _writes_text(claim.seen.attribute.writes)},
            },
        }
    }


def _keep_snapshot(claim: Claim, snapshot: Mapping[str, Any]) -> dict[str, Any]:
    """Once per fix: taken again after a crash it would hold our own value."""
    return {
        "Update": {
            "Key": snapshot_key(claim.intent),
            "UpdateExpression": "SET configuration = if_not_exists(configuration, :configuration)",
            "ExpressionAttributeValues": {
                ":configuration": {"S": json.dumps(snapshot, sort_keys=True)}
            },
        }
    }


def _spend_a_write(now: datetime, writes_per_minute: int) -> dict[str, Any]:
    return {
        "Update": {
            "Key": key(ACCOUNT, f"writes#{now:%Y-%m-%dT%H:%M}"),
            "UpdateExpression": "ADD writes :one SET expires_at = :expires",
            "ConditionExpression": "attribute_not_exists(writes) OR writes < :most",
            "ExpressionAttributeValues": {
                ":one": {"N": "1"},
                ":most": {"N": str(writes_per_minute)},
                ":expires": epoch(now + timedelta(hours=1)),
            },
        }
    }


def _case_unmoved(case: Case, seen: LedgerView) -> dict[str, Any]:
    previous = seen.case
    return {
        "Key": case_key(case.queue_arn, case.symptom),
        "ConditionExpression": "attribute_not_exists(pk) OR (case_id = :previous AND n = :at_n) "
        "OR (case_id = :mine AND n = :my_n)",
        "ExpressionAttributeValues": {
            ":previous": {"S": previous.case_id if previous else ""},
            ":at_n": {"N": str(previous.n if previous else 0)},
            ":mine": {"S": case.case_id},
            ":my_n": {"N": str(case.n)},
        },
    }


def release_parts(intent: Case, attribute: str, owner: str) -> list[dict[str, Any]]:
    """End a claim that nothing was written under; its snapshot goes with it."""
    return [
        {
            "Update": {
                "Key": attribute_key(intent.queue_arn, attribute),
                "UpdateExpression": "REMOVE claim_owner, claim_until, intent, intent_modified_at",
                "ConditionExpression": "claim_owner = :owner",
                "ExpressionAttributeValues": {":owner": {"S": owner}},
            }
        },
        {"Delete": {"Key": snapshot_key(intent)}},
    ]


def record_parts(
    case: Case, seen: LedgerView, attribute: str, change: AttributeRecord | None, owner: str
) -> list[dict[str, Any]]:
    """Move the case, end its evidence, and with `change` the attribute's record and claim."""
    moved = _case_unmoved(case, seen)
    item = {
        **moved.pop("Key"),
        "case_id": {"S": case.case_id},
        "n": {"N": str(case.n)},
        "state": {"S": case.state},
        "document": {"S": json.dumps(case.document())},
    }
    parts: list[dict[str, Any]] = [
        {"Put": {"Item": item, **moved}},
        {"Delete": {"Key": evidence_key(case.queue_arn, case.symptom)}},
    ]
    if change is not None:
        parts.append({"Put": _attribute_put(case.queue_arn, attribute, change, owner)})
    return parts


def _attribute_put(
    queue_arn: str, attribute: str, record: AttributeRecord, owner: str
) -> dict[str, Any]:
    """Replaces the record and ends the claim, which has to be nobody's or `owner`'s."""
    item: dict[str, Any] = {
        **attribute_key(queue_arn, attribute),
        "writes": {"S": _writes_text(record.writes)},
    }
    if record.person_value is not None:
        item["person_value"] = {"N": str(record.person_value)}
    for name, moment in (
        ("contested_until", record.contested_until),
        ("queue_created_at", record.queue_created_at),
    ):
        if moment is not None:
            item[name] = epoch(moment)
    return {
        "Item": item,
        "ConditionExpression": "attribute_not_exists(claim_owner) OR claim_owner = :owner",
        "ExpressionAttributeValues": {":owner": {"S": owner}},
    }
