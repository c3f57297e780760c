"""Reads and writes of the case store's table, and the parts of its transactions.

A claim says who holds which attributes, for which case, and what may speak against it. A rollback
takes back our own write: no freeze and no budget stops it, and it takes no snapshot.
"""

from __future__ import annotations

import json
import random
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from botocore.exceptions import BotoCoreError, ClientError
from msgspec import Struct

from mendq.aws.errors import CaseStoreUnavailable, code_of
from mendq.cases import items, view
from mendq.cases.items import Item, Key
from mendq.cases.view import AttributeRecord, CaseStoreView
from mendq.model.case import Case, State
from mendq.notifications.sent import NotificationRecord

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

CANCELLED = "TransactionCanceledException"
# The answer to one item's write while a transaction is at that item; nothing was written.
# https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_UpdateItem.html
CONFLICT = "TransactionConflictException"
TRIES = 4
FIRST_PAUSE_SECONDS = 0.05
_NAME = re.compile(r"#(\w+)")
Answer = TypeVar("Answer")
Part = dict[str, Any]


@contextmanager
def case_store_errors() -> Iterator[None]:
    """Turn AWS's errors into CaseStoreUnavailable."""
    try:
        yield
    except (ClientError, BotoCoreError) as error:
        raise CaseStoreUnavailable(str(error)) from error


def asked(values: Mapping[str, Any], **expressions: str) -> dict[str, Any]:
    """Parameters of a request: what is behind `:` is named in `values`, behind `#` by itself."""
    names = _NAME.findall(" ".join(expressions.values()))
    parameters = {
        **expressions,
        "ExpressionAttributeNames": {f"#{each}": each for each in names},
        "ExpressionAttributeValues": {f":{each}": items.stored(values[each]) for each in values},
    }
    return {name: given for name, given in parameters.items() if given}


class Table(Struct, frozen=True):
    """The case store's table. All methods raise CaseStoreUnavailable.

    Values are named as the expressions of a request call them behind `:`.
    """

    client: DynamoDBClient
    table: str

    def get(self, key: Key) -> Item:
        """The item, as it stands now; empty where there is none."""
        with case_store_errors():
            answer = self.client.get_item(TableName=self.table, Key=key, ConsistentRead=True)
        return answer.get("Item", {})

    def found(self, operation: str, request: Mapping[str, Any]) -> Iterator[Item]:
        """The items of all pages of a `query` or `scan`."""
        with case_store_errors():
            pages: Any = self.client.get_paginator(operation)  # type: ignore[call-overload]
            for page in pages.paginate(TableName=self.table, **request):
                yield from page["Items"]

    def change(self, key: Key, update: str, condition: str = "", **values: Any) -> bool:
        """Change an item; False, and nothing happens, where the condition does not hold."""
        return self.changed(key, update, condition, **values) is not None

    def changed(self, key: Key, update: str, condition: str = "", **values: Any) -> Item | None:
        """The item once it is changed; None, and nothing happens, as `change` has it."""
        request = asked(values, UpdateExpression=update, ConditionExpression=condition)
        done = self._done(self.client.update_item, Key=key, ReturnValues="ALL_NEW", **request)
        return None if done is None else done["Attributes"]

    def change_set(
        self, key: Key, name: str, until: datetime, drop: Sequence[str], add: Sequence[str]
    ) -> Item:
        """The item once the texts were dropped and then added; empty where there were none."""
        changed: Item = {}
        for verb, texts in (("DELETE", drop), ("ADD", add)):
            if texts:
                update = f"{verb} {name} :texts SET expires_at = :expires"
                changed = self.changed(key, update, texts=texts, expires=until) or {}
        return changed

    def put_item(self, item: Item, condition: str, **values: Any) -> bool:
        """Put an item; False, and nothing happens, where the condition does not hold."""
        request = asked(values, ConditionExpression=condition)
        return self._done(self.client.put_item, Item=item, **request) is not None

    def _done(self, call: Callable[..., Any], **request: Any) -> Any:
        """The answer; None where the condition does not hold."""
        with case_store_errors(), suppress(self.client.exceptions.ConditionalCheckFailedException):
            return unconflicted(lambda: call(TableName=self.table, **request))
        return None

    def transact(self, parts: Sequence[Part]) -> int | None:
        """None when all went through, else the index of the first condition that failed."""
        named: Any = [
            {verb: {"TableName": self.table, **body} for verb, body in part.items()}
            for part in parts
        ]
        with case_store_errors():
            try:
                unconflicted(lambda: self.client.transact_write_items(TransactItems=named))
            except ClientError as error:
                if code_of(error) != CANCELLED:
                    raise
                return failed_condition(error)
        return None


Stored = TypeVar("Stored", bound=Table)


def unconflicted(call: Callable[[], Answer]) -> Answer:
    """Call again, TRIES times in all, while another transaction is at the same item."""
    for attempt in range(TRIES - 1):
        try:
            return call()
        except ClientError as error:
            if not _met_another(error):
                raise
        time.sleep(FIRST_PAUSE_SECONDS * 2**attempt * random.uniform(0.5, 1.5))  # noqa: S311
    return call()


def _met_another(error: ClientError) -> bool:
    """Return True if another transaction was at an item, and no condition failed as well."""
    if code_of(error) == CONFLICT:
        return True
    codes = {reason.get("Code") for reason in _reasons(error)}
    is_lost = "ConditionalCheckFailed" in codes
    return code_of(error) == CANCELLED and "TransactionConflict" in codes and not is_lost


def failed_condition(error: ClientError) -> int:
    """The index of the first condition that failed; raises CaseStoreUnavailable where none did."""
    reasons = _reasons(error)
    for index, reason in enumerate(reasons):
        if reason.get("Code") == "ConditionalCheckFailed":
            return index
    busy = json.dumps(reasons, default=str)
    raise CaseStoreUnavailable(f"the case store was busy: {busy}") from error


def _reasons(error: ClientError) -> list[dict[str, Any]]:
    return [dict(each) for each in error.response.get("CancellationReasons", [])]


TRANSITION_DAYS = 400
# A claim ends with what was recorded under it, or is taken over when it has run out.
_UNCLAIMED = "attribute_not_exists(claim_owner) OR claim_owner = :owner"


class Entry(Struct, frozen=True):
    """One transition and all that is written with it; `seen` is what it was decided on.

    `owner` is whose claim ends with it, `written_by` the run that writes it down; `due_at` when it
    is to be looked at, None for what has ended in silence; `claims_now` the time that others'
    claims have run out by, where the case's own was put forward.
    """

    case: Case
    seen: CaseStoreView
    owner: str
    written_by: str
    changes: Mapping[str, AttributeRecord]
    due_at: datetime | None
    page: NotificationRecord | None = None
    claims_now: datetime | None = None


def record_parts(entry: Entry) -> list[Part]:
    """Move the case, end its evidence, change records and claims."""
    case = entry.case
    claims_now = entry.claims_now or case.at
    unmoved = _unmoved_from(entry.seen, case, entry.written_by, entry.owner, claims_now)
    transition = items.fields(
        document=json.dumps(case.document()),
        opened_at=case.opened_at or case.at,
        expires_at=case.at + timedelta(days=TRANSITION_DAYS),
        **_indexed(view.UNFILED, case.at),
    )
    parts: list[Part] = [
        _put(
            items.case_key(case.queue_arn, case.symptom), _case_fields(entry), _UNMOVED, **unmoved
        ),
        _put(items.transition_key(case.case_id, case.n), transition),
        {"Delete": {"Key": items.evidence_key(case.queue_arn, case.symptom)}},
    ]
    for attribute, record in entry.changes.items():
        key = items.attribute_key(case.queue_arn, attribute)
        parts.append(_put(key, items.record_fields(record), _UNCLAIMED, owner=entry.owner))
    if entry.page:
        key = items.notification_key(case.queue_arn, case.symptom)
        parts.append(_put(key, items.page_fields(entry.page)))
    return parts


def _put(key: Key, attributes: Item, condition: str = "", **values: Any) -> Part:
    return {"Put": {"Item": {**key, **attributes}, **asked(values, ConditionExpression=condition)}}


def _indexed(partition: str, due_at: datetime | None) -> dict[str, Any]:
    """What has an item stand in the index."""
    return {view.PARTITION: partition, view.SORT: due_at} if due_at else {}


def _case_fields(entry: Entry) -> dict[str, Any]:
    """The case's item, which stands in the index until people were told of its end."""
    case = entry.case
    # What the calls said of themselves decides about the next step too.
    goes_on = case.state is State.INEFFECTIVE
    return items.fields(
        case_id=case.case_id,
        symptom=case.symptom,
        n=case.n,
        state=case.state,
        code=case.code,
        document=json.dumps(case.document()),
        written_by=entry.written_by,
        opened_at=case.opened_at or case.at,
        failures=items.failures_text(entry.seen.failures) if goes_on else None,
        **_indexed(view.EVERY_CASE, entry.due_at),
    )


# Where it was when it was looked at; or this very run has written it, and lost the answer. Nor may
# anybody else hold a claim that still runs: what they write is to be recorded.
_UNMOVED = (
    "attribute_not_exists(pk) "
    "OR (document = :mine AND written_by = :me) OR (case_id = :previous AND n = :at_n "
    "AND (attribute_not_exists(failures) OR failures = :failures) "
    "AND (attribute_not_exists(claim_owner) OR claim_owner = :owner OR claim_until <= :at))"
)


def _unmoved_from(
    seen: CaseStoreView, to: Case, written_by: str, owner: str, claims_now: datetime
) -> dict[str, Any]:
    """The values of _UNMOVED: of the case as it was `seen`, and of what it is to become."""
    previous = seen.case
    return {
        "owner": owner,
        "at": claims_now,
        "failures": items.failures_text(seen.failures),
        "previous": previous.case_id if previous else "",
        "at_n": previous.n if previous else 0,
        "mine": json.dumps(to.document()),
        "me": written_by,
    }


# Longer than a Lambda that writes may run, shorter than the intake queue waits before it gives up.
CLAIM_SECONDS = 120


class Claim(Struct, frozen=True):
    """An exclusive hold on the attributes that the steps of one case change."""

    intent: Case
    owner: str
    seen: CaseStoreView
    modified_at: datetime | None = None

    @property
    def until(self) -> datetime:
        return self.intent.at + timedelta(seconds=CLAIM_SECONDS)


class ClaimPart(NamedTuple):
    """A part of a claim's transaction; code and reason of what its failed condition means."""

    part: Part
    code: str
    reason: str


def claim_parts(
    claim: Claim, snapshot: Mapping[str, Any], writes_per_minute: int
) -> list[ClaimPart]:
    """What is claimed, all or none."""
    holds = [_hold(claim, each["attribute"]) for each in claim.intent.steps]
    parts = [
        *(ClaimPart(each, "claimed", "another run is at work on it") for each in holds),
        ClaimPart(_hold_case(claim), "claimed", "another run has just moved its case"),
    ]
    if claim.intent.undoes:
        return parts
    spent = f"{writes_per_minute} writes were made in this minute"
    return [
        *parts,
        ClaimPart(_keep_snapshot(claim, snapshot), "claimed", "its snapshot is being written"),
        ClaimPart(_spend_a_write(claim.intent.at, writes_per_minute), "account_budget", spent),
        ClaimPart(_not_frozen(), "frozen", "changes were frozen just now"),
    ]


def release_parts(intent: Case, owner: str, seen: CaseStoreView) -> list[Part]:
    """End a claim that nothing was written under; its snapshot goes with it."""
    ended = "REMOVE claim_owner, claim_until"
    parts: list[Part] = [
        _update(
            items.attribute_key(intent.queue_arn, step["attribute"]),
            f"{ended}, intent, intent_modified_at",
            "claim_owner = :owner",
            owner=owner,
        )
        for step in intent.steps
    ]
    parts.append({"Delete": {"Key": items.snapshot_key(intent)}})
    if seen.case is not None:
        key = items.case_key(seen.case.queue_arn, seen.case.symptom)
        parts.append(_update(key, ended, _UNCLAIMED, owner=owner))
    return parts


def _update(key: Key, update: str, condition: str = "", **values: Any) -> Part:
    changed = asked(values, UpdateExpression=update, ConditionExpression=condition)
    return {"Update": {"Key": key, **changed}}


def _hold_case(claim: Claim) -> Part:
    """Nobody else moves it; once the claim has run out, follow_up looks what became of it.

    Before the first case there is nothing to hold: whoever brought it here comes again.
    """
    intent = claim.intent
    key = items.case_key(intent.queue_arn, intent.symptom)
    unmoved = _unmoved_from(claim.seen, intent, claim.owner, claim.owner, intent.at)
    if claim.seen.case is None:
        return {"ConditionCheck": {"Key": key, **asked(unmoved, ConditionExpression=_UNMOVED)}}
    held = (
        "SET claim_owner = :owner, claim_until = :until, "
        f"#{view.PARTITION} = :every, {view.SORT} = :until"
    )
    return _update(key, held, _UNMOVED, **unmoved, until=claim.until, every=view.EVERY_CASE)


def _hold(claim: Claim, attribute: str) -> Part:
    """Free, run out, or our own; and nobody has written since we looked."""
    now = claim.intent.at
    return _update(
        items.attribute_key(claim.intent.queue_arn, attribute),
        "SET claim_owner = :me, claim_until = :until, intent = :intent, "
        "intent_modified_at = :modified",
        "(attribute_not_exists(claim_owner) "
        "OR attribute_not_exists(claim_until) OR claim_until <= :now OR claim_owner = :me) "
        "AND (attribute_not_exists(writes) OR writes = :seen)",
        modified=claim.modified_at or now,
        me=claim.owner,
        now=now,
        until=claim.until,
        intent=json.dumps(claim.intent.document()),
        seen=items.as_json(claim.seen.record_of(attribute).writes),
    )


def _keep_snapshot(claim: Claim, snapshot: Mapping[str, Any]) -> Part:
    """Once per fix: taken again after a crash it would hold our own value."""
    return _update(
        items.snapshot_key(claim.intent),
        "SET configuration = if_not_exists(configuration, :configuration)",
        configuration=json.dumps(snapshot, sort_keys=True),
    )


def _spend_a_write(now: datetime, writes_per_minute: int) -> Part:
    return _update(
        items.key(items.ACCOUNT, f"writes#{now:%Y-%m-%dT%H:%M}"),
        "ADD writes :one SET expires_at = :expires",
        "attribute_not_exists(writes) OR writes < :most",
        one=1,
        most=writes_per_minute,
        expires=now + timedelta(hours=1),
    )


def _not_frozen() -> Part:
    unfrozen = {"ConditionExpression": "attribute_not_exists(pk)"}
    return {"ConditionCheck": {"Key": items.freeze_key(), **unfrozen}}
