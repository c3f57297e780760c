"""Requests to the case store's table, and the conditions of its transactions.

The rules named here are those at the head of `mendq/cases/table.py`.
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

from mendq.aws.errors import CaseStoreUnavailable, error_code_of
from mendq.cases import items, open_case_index
from mendq.cases.attribute_record import AttributeRecord
from mendq.cases.items import Item, Key
from mendq.cases.partitions import ACCOUNT_PARTITION
from mendq.cases.view import CaseStoreView
from mendq.model.case import Case
from mendq.model.state import State
from mendq.notifications.sent import NotificationRecord

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

# DynamoDB's error code for a transaction of which no part was written.
CANCELLED_ERROR_CODE = "TransactionCanceledException"
# DynamoDB's error code for a single write that changed nothing, because a transaction was writing
# the same item.
# https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_UpdateItem.html
CONFLICT_ERROR_CODE = "TransactionConflictException"
# The most tries of a call while other transactions write the same item (rule 10).
MAXIMUM_TRIES = 4
# The mean pause after the first try. It doubles after each further try.
FIRST_RETRY_PAUSE_SECONDS = 0.05
_NAME_PLACEHOLDER = re.compile(r"#(\w+)")
Answer = TypeVar("Answer")
# One part of a transaction: DynamoDB's verb, such as "Put", and its parameters.
TransactionPart = dict[str, Any]


@contextmanager
def convert_case_store_errors() -> Iterator[None]:
    """Turn AWS's errors in the `with` block into CaseStoreUnavailable (rule 10)."""
    try:
        yield
    except (ClientError, BotoCoreError) as error:
        raise CaseStoreUnavailable(str(error)) from error


def make_expression_parameters(values: Mapping[str, Any], **expressions: str) -> dict[str, Any]:
    """Return the parameters of a DynamoDB request for its expressions, names and values.

    Args:
        values: The value of each `:name` in the expressions.
        expressions: DynamoDB's expressions, by parameter name, such as UpdateExpression. Empty
            expressions are left out. `#name` stands for the attribute called `name`.
    """
    parameters: dict[str, Any] = {
        name: expression for name, expression in expressions.items() if expression
    }
    attribute_names = _NAME_PLACEHOLDER.findall(" ".join(expressions.values()))
    if attribute_names:
        parameters["ExpressionAttributeNames"] = {f"#{name}": name for name in attribute_names}
    if values:
        value_by_placeholder = {
            f":{name}": items.to_attribute_value(value) for name, value in values.items()
        }
        parameters["ExpressionAttributeValues"] = value_by_placeholder
    return parameters


class Table(Struct, frozen=True):
    """The case store's table: single requests, and transactions of several parts.

    A method's `values` are the values of each `:name` in its expressions.

    Raises:
        CaseStoreUnavailable: by every method (rule 10).
    """

    client: DynamoDBClient
    table: str

    def get(self, key: Key) -> Item:
        """Return the item with this key; empty if there is none. The read is consistent."""
        with convert_case_store_errors():
            response = self.client.get_item(TableName=self.table, Key=key, ConsistentRead=True)
        return response.get("Item", {})

    def read_pages(self, operation: str, request: Mapping[str, Any]) -> Iterator[Item]:
        """Yield the items on all pages of a `query` or `scan`."""
        with convert_case_store_errors():
            pages: Any = self.client.get_paginator(operation)  # type: ignore[call-overload]
            for page in pages.paginate(TableName=self.table, **request):
                yield from page["Items"]

    def change(self, key: Key, update_expression: str, condition: str = "", **values: Any) -> bool:
        """Change an item, or create it if there is none.

        Change nothing and return False if the condition is not met.
        """
        return self.change_and_read(key, update_expression, condition, **values) is not None

    def change_and_read(
        self, key: Key, update_expression: str, condition: str = "", **values: Any
    ) -> Item | None:
        """Change an item, or create it if there is none, and return the new item.

        Change nothing and return None if the condition is not met.
        """
        request = make_expression_parameters(
            values, UpdateExpression=update_expression, ConditionExpression=condition
        )
        update_item = self.client.update_item
        answer = self._write_if_condition_holds(
            update_item, Key=key, ReturnValues="ALL_NEW", **request
        )
        return None if answer is None else answer["Attributes"]

    def change_set(
        self,
        key: Key,
        set_attribute: str,
        expires_at: datetime,
        texts_to_drop: Sequence[str],
        texts_to_add: Sequence[str],
    ) -> Item:
        """Remove texts from a string set of an item, then add others. Return the new item.

        If there is nothing to remove or add, change nothing and return an empty item (rule 11).

        Args:
            key: The item's key.
            set_attribute: The attribute that holds the set.
            expires_at: The time after which the item expires.
            texts_to_drop: The texts to remove.
            texts_to_add: The texts to add.
        """
        changed_item: Item = {}
        for update_verb, texts_to_change in (("DELETE", texts_to_drop), ("ADD", texts_to_add)):
            if texts_to_change:
                update_expression = (
                    f"{update_verb} {set_attribute} :texts SET expires_at = :expires"
                )
                changed_item = (
                    self.change_and_read(
                        key, update_expression, texts=texts_to_change, expires=expires_at
                    )
                    or {}
                )
        return changed_item

    def put_item(self, item: Item, condition: str, **values: Any) -> bool:
        """Put an item. Change nothing and return False if the condition is not met."""
        request = make_expression_parameters(values, ConditionExpression=condition)
        return (
            self._write_if_condition_holds(self.client.put_item, Item=item, **request) is not None
        )

    def _write_if_condition_holds(self, write_function: Callable[..., Any], **request: Any) -> Any:
        """Make one conditional write. Return its answer, or None if the condition is not met."""
        with (
            convert_case_store_errors(),
            suppress(self.client.exceptions.ConditionalCheckFailedException),
        ):
            return retry_conflicts(lambda: write_function(TableName=self.table, **request))
        return None

    def transact(self, parts: Sequence[TransactionPart]) -> int | None:
        """Write all parts or none of them.

        Returns:
            None if all were written; otherwise the index of the first part whose condition failed.
        """
        write_requests: list[Any] = []
        for part in parts:
            for write_verb, parameters in part.items():
                write_requests.append({write_verb: {"TableName": self.table, **parameters}})
        with convert_case_store_errors():
            try:
                retry_conflicts(
                    lambda: self.client.transact_write_items(TransactItems=write_requests)
                )
            except ClientError as error:
                if error_code_of(error) != CANCELLED_ERROR_CODE:
                    raise
                return find_failed_part_index(error)
        return None


CaseStoreTable = TypeVar("CaseStoreTable", bound=Table)


def retry_conflicts(call: Callable[[], Answer]) -> Answer:
    """Make a call, and repeat it while another transaction writes the same item (rule 10).

    Make at most MAXIMUM_TRIES tries, then raise the last error.
    """
    for attempt in range(MAXIMUM_TRIES - 1):
        try:
            return call()
        except ClientError as error:
            if not _is_conflict(error):
                raise
        time.sleep(FIRST_RETRY_PAUSE_SECONDS * 2**attempt * random.uniform(0.5, 1.5))  # noqa: S311
    return call()


def _is_conflict(error: ClientError) -> bool:
    """Return True if the error means that another transaction was writing an item.

    Return False if a condition failed as well, because trying again would not help.
    """
    if error_code_of(error) == CONFLICT_ERROR_CODE:
        return True
    reason_codes = {reason.get("Code") for reason in _list_cancellation_reasons(error)}
    if "ConditionalCheckFailed" in reason_codes:
        return False
    return error_code_of(error) == CANCELLED_ERROR_CODE and "TransactionConflict" in reason_codes


def find_failed_part_index(error: ClientError) -> int:
    """Return the index of the first part whose condition failed in a cancelled transaction.

    Raises:
        CaseStoreUnavailable: if DynamoDB cancelled the transaction for another reason.
    """
    cancellation_reasons = _list_cancellation_reasons(error)
    for part_index, reason in enumerate(cancellation_reasons):
        if reason.get("Code") == "ConditionalCheckFailed":
            return part_index
    reasons_text = json.dumps(cancellation_reasons, default=str)
    raise CaseStoreUnavailable(f"the case store was busy: {reasons_text}") from error


def _list_cancellation_reasons(error: ClientError) -> list[dict[str, Any]]:
    return [dict(reason) for reason in error.response.get("CancellationReasons", [])]


# Transitions expire after this many days.
TRANSITION_LIFETIME_DAYS = 400
# The condition that an item has no claim, or a claim of this owner.
_UNCLAIMED_CONDITION = "attribute_not_exists(claim_owner) OR claim_owner = :owner"


class NewTransition(Struct, frozen=True):
    """A transition of a case, and everything that is recorded together with it (rule 7).

    Attributes:
        case: The case after the transition.
        view: The view that the transition was decided on.
        owner: The token of the claim that ends with the transition. It may be that of a dead run.
        written_by: The token of the run that records it.
        new_records: The new records of queue attributes, by attribute name.
        due_at: When follow-up must look at the case next. None if the case has ended and people are
            not notified.
        notification: The notification to send, if people must be notified.
        now_for_claims: The time with which other runs' claims are compared. By default, the time of
            the transition.
    """

    case: Case
    view: CaseStoreView
    owner: str
    written_by: str
    new_records: Mapping[str, AttributeRecord]
    due_at: datetime | None
    notification: NotificationRecord | None = None
    now_for_claims: datetime | None = None


def make_record_parts(new_transition: NewTransition) -> list[TransactionPart]:
    """Return the parts of the transaction that records a transition (rule 7).

    The claims end, because the new items of the case and the attributes contain no claim.
    """
    case = new_transition.case
    now_for_claims = new_transition.now_for_claims or case.at
    case_key = items.case_key(case.queue_arn, case.symptom)
    unmoved_condition_values = _make_unmoved_condition_values(
        new_transition.view, case, new_transition.written_by, new_transition.owner, now_for_claims
    )
    transition_attributes = items.to_item_attributes(
        document=json.dumps(case.document()),
        opened_at=case.opened_at or case.at,
        expires_at=case.at + timedelta(days=TRANSITION_LIFETIME_DAYS),
        **_make_index_attributes(open_case_index.UNFILED_TRANSITION_PARTITION, case.at),
    )
    parts: list[TransactionPart] = [
        _make_put_part(
            case_key,
            _make_case_attributes(new_transition),
            _UNMOVED_CONDITION,
            **unmoved_condition_values,
        ),
        _make_put_part(items.transition_key(case.case_id, case.n), transition_attributes),
        {"Delete": {"Key": items.evidence_key(case.queue_arn, case.symptom)}},
    ]
    for attribute, record in new_transition.new_records.items():
        key = items.attribute_key(case.queue_arn, attribute)
        parts.append(
            _make_put_part(
                key,
                items.make_record_attributes(record),
                _UNCLAIMED_CONDITION,
                owner=new_transition.owner,
            )
        )
    if new_transition.notification:
        key = items.notification_key(case.queue_arn, case.symptom)
        parts.append(
            _make_put_part(key, items.make_notification_attributes(new_transition.notification))
        )
    return parts


def _make_put_part(
    key: Key, attributes: Item, condition: str = "", **values: Any
) -> TransactionPart:
    """Return a part that puts an item if the condition is met."""
    condition_parameters = make_expression_parameters(values, ConditionExpression=condition)
    return {"Put": {"Item": {**key, **attributes}, **condition_parameters}}


def _make_index_attributes(partition: str, due_at: datetime | None) -> dict[str, Any]:
    """Return the attributes that put an item into the index; empty if `due_at` is None (rule 8)."""
    if due_at is None:
        return {}
    return {open_case_index.PARTITION_ATTRIBUTE: partition, open_case_index.SORT_ATTRIBUTE: due_at}


def _make_case_attributes(new_transition: NewTransition) -> dict[str, Any]:
    """Return the attributes of the case's item, without its key."""
    case = new_transition.case
    failures = None
    if case.state is State.INEFFECTIVE:
        # The next decision uses the same failed calls, so the case keeps them.
        failures = items.format_failures(new_transition.view.failures)
    return items.to_item_attributes(
        case_id=case.case_id,
        symptom=case.symptom,
        n=case.n,
        state=case.state,
        code=case.code,
        document=json.dumps(case.document()),
        written_by=new_transition.written_by,
        opened_at=case.opened_at or case.at,
        failures=failures,
        **_make_index_attributes(open_case_index.CASE_PARTITION, new_transition.due_at),
    )


# The condition of a claim and of a record. It is met if the case is still at the transition that
# the look returned and no other run holds a claim on it (rule 2), if there is no case yet, or if
# this run has written the same transition before and the answer was lost (rule 3).
_UNMOVED_CONDITION = (
    "attribute_not_exists(pk) "
    "OR (document = :mine AND written_by = :me) OR (case_id = :previous AND n = :at_n "
    "AND (attribute_not_exists(failures) OR failures = :failures) "
    "AND (attribute_not_exists(claim_owner) OR claim_owner = :owner OR claim_until <= :at))"
)


def _make_unmoved_condition_values(
    view: CaseStoreView, transition: Case, written_by: str, owner: str, now_for_claims: datetime
) -> dict[str, Any]:
    """Return the values of the condition _UNMOVED_CONDITION.

    `transition` is the new transition, and `view` the view that it was decided on.
    """
    previous_case = view.case
    return {
        "owner": owner,
        "at": now_for_claims,
        "failures": items.format_failures(view.failures),
        "previous": previous_case.case_id if previous_case else "",
        "at_n": previous_case.n if previous_case else 0,
        "mine": json.dumps(transition.document()),
        "me": written_by,
    }


# How long a claim lasts. It is longer than a Lambda that writes may run, and shorter than the time
# after which the intake queue delivers an event again (rule 6).
CLAIM_SECONDS = 120


class Claim(Struct, frozen=True):
    """A run's right to change the attributes that a case's steps name, for a limited time (rule 6).

    Attributes:
        intent: The transition that the run is about to make.
        owner: The run's own token.
        view: The view that the transition was decided on.
        modified_at: When the queue was last changed before the claim. None if not known.
    """

    intent: Case
    owner: str
    view: CaseStoreView
    modified_at: datetime | None = None

    @property
    def expires_at(self) -> datetime:
        """The time at which the claim expires."""
        return self.intent.at + timedelta(seconds=CLAIM_SECONDS)

    @property
    def is_operators_rollback(self) -> bool:
        """True if an operator asked for the rollback. An automatic one has a refusal's code."""
        return self.intent.is_rollback and not self.intent.code


class ClaimPart(NamedTuple):
    """One part of a claim's transaction, and the refusal's code and reason if the part fails."""

    part: TransactionPart
    code: str
    reason: str


def make_claim_parts(
    claim: Claim, snapshot: Mapping[str, Any], writes_per_minute: int
) -> list[ClaimPart]:
    """Return the parts of a claim's transaction (rule 4).

    A rollback has no part for a snapshot. A rollback by an operator also has no part for the budget
    or the freeze.
    """
    parts: list[ClaimPart] = []
    for step in claim.intent.steps:
        attribute_part = _make_attribute_claim_part(claim, step["attribute"])
        parts.append(ClaimPart(attribute_part, "claimed", "another run is at work on it"))
    case_part = _make_case_claim_part(claim)
    parts.append(ClaimPart(case_part, "claimed", "another run has just moved its case"))
    if claim.is_operators_rollback:
        return parts
    if not claim.intent.is_rollback:
        snapshot_part = _make_snapshot_part(claim, snapshot)
        parts.append(ClaimPart(snapshot_part, "claimed", "its snapshot is being written"))
    budget_part = _make_write_budget_part(claim.intent.at, writes_per_minute)
    budget_reason = f"{writes_per_minute} writes were made in this minute"
    parts.append(ClaimPart(budget_part, "account_budget", budget_reason))
    parts.append(ClaimPart(_make_freeze_check_part(), "frozen", "changes were frozen just now"))
    return parts


def make_release_parts(intent: Case, owner: str, view: CaseStoreView) -> list[TransactionPart]:
    """Return the parts that end a claim under which nothing was written, and delete its snapshot.

    Rule 6 explains why the snapshot is deleted.
    """
    release_expression = "REMOVE claim_owner, claim_until"
    parts: list[TransactionPart] = [
        _make_update_part(
            items.attribute_key(intent.queue_arn, step["attribute"]),
            f"{release_expression}, intent, intent_modified_at",
            "claim_owner = :owner",
            owner=owner,
        )
        for step in intent.steps
    ]
    parts.append({"Delete": {"Key": items.snapshot_key(intent)}})
    if view.case is not None:
        key = items.case_key(view.case.queue_arn, view.case.symptom)
        parts.append(_make_update_part(key, release_expression, _UNCLAIMED_CONDITION, owner=owner))
    return parts


def _make_update_part(
    key: Key, update_expression: str, condition: str = "", **values: Any
) -> TransactionPart:
    """Return a part that updates an item if the condition is met."""
    update_parameters = make_expression_parameters(
        values, UpdateExpression=update_expression, ConditionExpression=condition
    )
    return {"Update": {"Key": key, **update_parameters}}


def _make_case_claim_part(claim: Claim) -> TransactionPart:
    """Return the part that claims the case and makes it due when the claim expires (rule 6).

    If there is no case yet, there is no item to claim. The part then only checks that there is
    still none.
    """
    intent = claim.intent
    key = items.case_key(intent.queue_arn, intent.symptom)
    unmoved_condition_values = _make_unmoved_condition_values(
        claim.view, intent, claim.owner, claim.owner, intent.at
    )
    if claim.view.case is None:
        condition_parameters = make_expression_parameters(
            unmoved_condition_values, ConditionExpression=_UNMOVED_CONDITION
        )
        return {"ConditionCheck": {"Key": key, **condition_parameters}}
    claim_expression = (
        "SET claim_owner = :owner, claim_until = :until, "
        f"#{open_case_index.PARTITION_ATTRIBUTE} = :every, "
        f"{open_case_index.SORT_ATTRIBUTE} = :until"
    )
    return _make_update_part(
        key,
        claim_expression,
        _UNMOVED_CONDITION,
        **unmoved_condition_values,
        until=claim.expires_at,
        every=open_case_index.CASE_PARTITION,
    )


def _make_attribute_claim_part(claim: Claim, attribute: str) -> TransactionPart:
    """Return the part that claims one attribute.

    Its condition has two parts. The attribute has no claim, an expired claim, or this run's own
    claim (rule 3). And no other run has written to the attribute since the look (rule 2).
    """
    now = claim.intent.at
    return _make_update_part(
        items.attribute_key(claim.intent.queue_arn, attribute),
        "SET claim_owner = :me, claim_until = :until, intent = :intent, "
        "intent_modified_at = :modified",
        "(attribute_not_exists(claim_owner) "
        "OR attribute_not_exists(claim_until) OR claim_until <= :now OR claim_owner = :me) "
        "AND (attribute_not_exists(writes) OR writes = :seen)",
        modified=claim.modified_at or now,
        me=claim.owner,
        now=now,
        until=claim.expires_at,
        intent=json.dumps(claim.intent.document()),
        seen=items.encode_json(claim.view.record_of(attribute).writes),
    )


def _make_snapshot_part(claim: Claim, snapshot: Mapping[str, Any]) -> TransactionPart:
    """Return the part that stores the snapshot, unless one is stored already (rule 5)."""
    return _make_update_part(
        items.snapshot_key(claim.intent),
        "SET configuration = if_not_exists(configuration, :configuration)",
        configuration=json.dumps(snapshot, sort_keys=True),
    )


def _make_write_budget_part(now: datetime, writes_per_minute: int) -> TransactionPart:
    """Return the part that takes one write from the account's budget of this minute."""
    return _make_update_part(
        items.item_key(ACCOUNT_PARTITION, f"writes#{now:%Y-%m-%dT%H:%M}"),
        "ADD writes :one SET expires_at = :expires",
        "attribute_not_exists(writes) OR writes < :most",
        one=1,
        most=writes_per_minute,
        expires=now + timedelta(hours=1),
    )


def _make_freeze_check_part() -> TransactionPart:
    """Return the part that checks that changes are not frozen."""
    condition_parameters = {"ConditionExpression": "attribute_not_exists(pk)"}
    return {"ConditionCheck": {"Key": items.freeze_key(), **condition_parameters}}
