"""Open cases: which there are, which are due, and their history."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from mendq.aws.errors import CaseStoreUnreadable
from mendq.cases import items, view
from mendq.cases.transactions import case_store_errors
from mendq.cases.view import HoldUp
from mendq.model.case import FINAL, Case, State
from mendq.model.evidence import Evidence

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient


@dataclass(frozen=True)
class CaseHistory:
    """All methods raise CaseStoreUnavailable."""

    client: DynamoDBClient
    table: str

    def transitions(self, case_id: str) -> tuple[Case, ...]:
        """A case's transitions in order, those of the last 400 days; CaseStoreUnreadable."""
        with case_store_errors():
            pages = self.client.get_paginator("query").paginate(
                TableName=self.table,
                KeyConditionExpression="pk = :case",
                ExpressionAttributeValues={":case": items.transition_key(case_id, 0)["pk"]},
                ConsistentRead=True,
            )
            return tuple(cases_in(item for page in pages for item in page["Items"]))

    def transition(self, case_id: str, n: int) -> Case | None:
        """One of a case's transitions, or None where it is kept no more; CaseStoreUnreadable."""
        return next(cases_in(iter([self._item(items.transition_key(case_id, n))])), None)

    def snapshot_of(self, case: Case) -> Mapping[str, str] | None:
        """The queue's attributes from before this transition wrote; None where none were kept."""
        found = self._item(items.snapshot_key(case))
        if not found:
            return None
        with items.reading(f"the snapshot of {case.case_id}"):
            attributes: Mapping[str, str] = json.loads(found["configuration"]["S"])["attributes"]
        return attributes

    def _item(self, key: items.Key) -> Mapping[str, Any]:
        with case_store_errors():
            answer = self.client.get_item(TableName=self.table, Key=key, ConsistentRead=True)
        return answer.get("Item", {})

    def all_transitions(self) -> Iterator[Case]:
        """Every transition that the case store keeps, in no order: it reads the whole table."""
        with case_store_errors():
            pages = self.client.get_paginator("scan").paginate(
                TableName=self.table,
                FilterExpression="begins_with(pk, :case)",
                ExpressionAttributeValues={":case": {"S": "case#"}},
            )
            yield from cases_in(item for page in pages for item in page["Items"])


def cases_in(found: Iterator[Mapping[str, Any]]) -> Iterator[Case]:
    """Those that are among items of the case store; raises CaseStoreUnreadable at one that is
    none.
    """
    for item in found:
        with items.reading(f"a transition in {item.get('pk')}"):
            case = items.case_of(item)
        if case is not None:
            yield case


if TYPE_CHECKING:
    pass


@dataclass(frozen=True)
class OpenCase:
    """What the index says of an open case, whose item has this `key`; it may lag by a moment."""

    key: items.Key
    case_id: str
    queue_arn: str
    symptom: str
    state: State
    opened_at: datetime
    due_at: datetime


@dataclass(frozen=True)
class OpenCases(CaseHistory):
    """All methods raise CaseStoreUnavailable."""

    def by_due(self) -> list[OpenCase]:
        """Every open case, the one that is due first at the front."""
        return [each for each in self.listed() if each.state not in FINAL]

    def listed(self) -> list[OpenCase]:
        """As `by_due`, with those that have just ended and may not be filed or told yet."""
        with case_store_errors():
            return [
                case
                for page in self.client.get_paginator("query").paginate(
                    TableName=self.table,
                    IndexName=view.OPEN_CASES,
                    KeyConditionExpression="#open = :every",
                    ExpressionAttributeNames={"#open": view.PARTITION},
                    ExpressionAttributeValues={":every": {"S": view.EVERY_CASE}},
                )
                for item in page["Items"]
                if (case := _open_case_of(item)) is not None
            ]

    def open_about(self, queue_arns: Iterable[str]) -> frozenset[str]:
        """The symptoms whose cases are open about any of these queues."""
        return frozenset(name for each in queue_arns for name in self._open_about(each))

    def _open_about(self, queue_arn: str) -> Iterator[str]:
        found = self._about(
            queue_arn,
            FilterExpression="attribute_exists(#open)",
            ProjectionExpression="symptom",
            ExpressionAttributeNames={"#open": view.PARTITION},
        )
        return (item["symptom"]["S"] for item in found)

    def newest_about(self, queue_arns: Iterable[str]) -> tuple[Case, ...]:
        """The newest case of each symptom about any of these queues, over or not.

        Raises CaseStoreUnreadable where one of them is none of ours: it might be the one that
        counts.
        """
        return tuple(case for each in queue_arns for case in cases_in(self._about(each)))

    def _about(self, queue_arn: str, **narrowed: Any) -> Iterator[items.Item]:
        about = items.case_key(queue_arn, "")
        with case_store_errors():
            pages = self.client.get_paginator("query").paginate(
                TableName=self.table,
                KeyConditionExpression="pk = :queue AND begins_with(sk, :case)",
                ExpressionAttributeValues={":queue": about["pk"], ":case": about["sk"]},
                ConsistentRead=True,
                **narrowed,
            )
            yield from (item for page in pages for item in page["Items"])

    def note_failures(
        self, case: Case, known: Evidence, now_known: Evidence, due_at: datetime | None
    ) -> bool:
        """Keep newer failed calls beside an open case; with `due_at` it is looked at then.

        False, and nothing happens, where the case has moved or another run has noted some.
        """
        values = {":now_known": {"S": items.failures_text(now_known)}}
        change = "SET failures = :now_known"
        if due_at is not None:
            values[":due"] = items.epoch(due_at)
            change += f", {view.SORT} = :due"
        values[":known"] = {"S": items.failures_text(known)}
        unchanged = "(attribute_not_exists(failures) OR failures = :known)"
        return self._change(case, change, values, unchanged)

    def hold_up(self, case: Case, hold_up: HoldUp) -> None:
        """Keep beside it why it waits; nothing happens where the case has moved."""
        values = {":held_up": {"S": items.hold_up_text(hold_up)}}
        self._change(case, "SET held_up = :held_up", values)

    def postpone(self, case: Case, until: datetime) -> None:
        """Look at it again then; nothing happens where it has moved, or is claimed until before."""
        change, values = f"SET {view.SORT} = :due", {":due": items.epoch(until)}
        unclaimed = "(attribute_not_exists(claim_until) OR claim_until >= :due)"
        self._change(case, change, values, unclaimed)

    def postpone_unread(self, listed: OpenCase, until: datetime) -> None:
        """As `postpone`, of a case that cannot be read; only while it is due as it was listed."""
        with case_store_errors(), suppress(self.client.exceptions.ConditionalCheckFailedException):
            self.client.update_item(
                TableName=self.table,
                Key=listed.key,
                UpdateExpression=f"SET {view.SORT} = :until",
                ConditionExpression=f"{view.SORT} = :due",
                ExpressionAttributeValues={
                    ":until": items.epoch(until),
                    ":due": items.epoch(listed.due_at),
                },
            )

    def filed(self, case: Case) -> None:
        """This transition lies in the case bucket, and others may not."""
        values = {":filed": items.marked([(case.case_id, case.n)])}
        self._change(case, f"DELETE {items.UNFILED} :filed", values)

    def all_filed(
        self, case: Case, due_at: datetime | None = None, instead_of: datetime | None = None
    ) -> None:
        """Nothing is owed any more; what ended in silence, and nobody claims, leaves the index.

        With `due_at` it is looked at then, `instead_of` when it was to be. Nothing happens where
        the case has moved, or somebody wants it looked at otherwise by now.
        """
        if case.is_final and not case.notified:
            change = f"REMOVE {items.UNFILED}, #open, {view.SORT}"
            self._change(case, change, {}, "attribute_not_exists(claim_owner)")
        elif due_at is None or instead_of is None:
            self._change(case, f"REMOVE {items.UNFILED}", {})
        else:
            change = f"SET {view.SORT} = :due REMOVE {items.UNFILED}"
            values = {":due": items.epoch(due_at), ":instead_of": items.epoch(instead_of)}
            self._change(case, change, values, f"{view.SORT} = :instead_of")

    def announced(self, case: Case, now: datetime) -> None:
        """What has ended leaves the index once it is filed, told, and claimed by nobody."""
        over = (
            f"attribute_not_exists({items.UNFILED}) "
            "AND (attribute_not_exists(claim_until) OR claim_until <= :now)"
        )
        values = {":now": items.epoch(now)}
        self._change(case, f"REMOVE #open, {view.SORT}", values, over)

    def _change(
        self, case: Case, change: str, values: Mapping[str, Any], condition: str = ""
    ) -> bool:
        """False where the case has moved, or is not as `condition` wants it."""
        same = "case_id = :case AND n = :n AND attribute_exists(#open)"
        with case_store_errors(), suppress(self.client.exceptions.ConditionalCheckFailedException):
            self.client.update_item(
                TableName=self.table,
                Key=items.case_key(case.queue_arn, case.symptom),
                UpdateExpression=change,
                ConditionExpression=f"{same} AND {condition}" if condition else same,
                ExpressionAttributeNames={"#open": view.PARTITION},
                ExpressionAttributeValues={
                    **values,
                    ":case": {"S": case.case_id},
                    ":n": {"N": str(case.n)},
                },
            )
            return True
        return False


def _open_case_of(item: Mapping[str, Any]) -> OpenCase | None:
    """None for an item that is none of ours: one bad item must not hide the others."""
    with suppress(CaseStoreUnreadable), items.reading("an open case"):
        return OpenCase(
            key=items.key(item["pk"]["S"], item["sk"]["S"]),
            case_id=item["case_id"]["S"],
            queue_arn=item["pk"]["S"],
            symptom=item["symptom"]["S"],
            state=State(item["state"]["S"]),
            opened_at=items.moment_of(item["opened_at"]),
            due_at=items.moment_of(item[view.SORT]),
        )
    return None
