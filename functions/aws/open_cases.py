"""The ledger's open cases: which there are, which are due, and what was seen of them since.

https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/GSI.html
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from functions.aws import ledger_items as items
from functions.aws.errors import LedgerUnreadable
from functions.aws.kept_cases import KeptCases, cases_in
from functions.aws.transactions import ledger_errors
from functions.healing import ledger_index
from functions.healing.case import Case
from functions.healing.evidence import Evidence
from functions.healing.ledger_view import HoldUp
from functions.healing.states import FINAL, State

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
class OpenCases(KeptCases):
    """All methods raise LedgerUnavailable."""

    def by_due(self) -> list[OpenCase]:
        """Every open case, the one that is due first at the front."""
        return [each for each in self.listed() if each.state not in FINAL]

    def listed(self) -> list[OpenCase]:
        """As `by_due`, with those that have just ended and may not be filed or told yet."""
        with ledger_errors():
            return [
                case
                for page in self.client.get_paginator("query").paginate(
                    TableName=self.table,
                    IndexName=ledger_index.OPEN_CASES,
                    KeyConditionExpression="#open = :every",
                    ExpressionAttributeNames={"#open": ledger_index.PARTITION},
                    ExpressionAttributeValues={":every": {"S": ledger_index.EVERY_CASE}},
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
            ExpressionAttributeNames={"#open": ledger_index.PARTITION},
        )
        return (item["symptom"]["S"] for item in found)

    def newest_about(self, queue_arns: Iterable[str]) -> tuple[Case, ...]:
        """The newest case of each symptom about any of these queues, over or not.

        Raises LedgerUnreadable where one of them is none of ours: it might be the one that counts.
        """
        return tuple(case for each in queue_arns for case in cases_in(self._about(each)))

    def _about(self, queue_arn: str, **narrowed: Any) -> Iterator[items.Item]:
        about = items.case_key(queue_arn, "")
        with ledger_errors():
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
            change += f", {ledger_index.SORT} = :due"
        values[":known"] = {"S": items.failures_text(known)}
        unchanged = "(attribute_not_exists(failures) OR failures = :known)"
        return self._change(case, change, values, unchanged)

    def hold_up(self, case: Case, hold_up: HoldUp) -> None:
        """Keep beside it why it waits; nothing happens where the case has moved."""
        values = {":held_up": {"S": items.hold_up_text(hold_up)}}
        self._change(case, "SET held_up = :held_up", values)

    def postpone(self, case: Case, until: datetime) -> None:
        """Look at it again then; nothing happens where it has moved, or is claimed until before."""
        change, values = f"SET {ledger_index.SORT} = :due", {":due": items.epoch(until)}
        unclaimed = "(attribute_not_exists(claim_until) OR claim_until >= :due)"
        self._change(case, change, values, unclaimed)

    def postpone_unread(self, listed: OpenCase, until: datetime) -> None:
        """As `postpone`, of a case that cannot be read; only while it is due as it was listed."""
        with ledger_errors(), suppress(self.client.exceptions.ConditionalCheckFailedException):
            self.client.update_item(
                TableName=self.table,
                Key=listed.key,
                UpdateExpression=f"SET {ledger_index.SORT} = :until",
                ConditionExpression=f"{ledger_index.SORT} = :due",
                ExpressionAttributeValues={
                    ":until": items.epoch(until),
                    ":due": items.epoch(listed.due_at),
                },
            )

    def filed(self, case: Case) -> None:
        """This transition lies in the case bucket, and others may not."""
        values = {":filed": items.marks([(case.case_id, case.n)])}
        self._change(case, f"DELETE {items.UNFILED} :filed", values)

    def all_filed(
        self, case: Case, due_at: datetime | None = None, instead_of: datetime | None = None
    ) -> None:
        """Nothing is owed any more; what ended in silence, and nobody claims, leaves the index.

        With `due_at` it is looked at then, `instead_of` when it was to be. Nothing happens where
        the case has moved, or somebody wants it looked at otherwise by now.
        """
        if case.is_final and not case.paged:
            change = f"REMOVE {items.UNFILED}, #open, {ledger_index.SORT}"
            self._change(case, change, {}, "attribute_not_exists(claim_owner)")
        elif due_at is None or instead_of is None:
            self._change(case, f"REMOVE {items.UNFILED}", {})
        else:
            change = f"SET {ledger_index.SORT} = :due REMOVE {items.UNFILED}"
            values = {":due": items.epoch(due_at), ":instead_of": items.epoch(instead_of)}
            self._change(case, change, values, f"{ledger_index.SORT} = :instead_of")

    def told(self, case: Case, now: datetime) -> None:
        """What has ended leaves the index once it is filed, told, and claimed by nobody."""
        over = (
            f"attribute_not_exists({items.UNFILED}) "
            "AND (attribute_not_exists(claim_until) OR claim_until <= :now)"
        )
        values = {":now": items.epoch(now)}
        self._change(case, f"REMOVE #open, {ledger_index.SORT}", values, over)

    def _change(
        self, case: Case, change: str, values: Mapping[str, Any], condition: str = ""
    ) -> bool:
        """False where the case has moved, or is not as `condition` wants it."""
        same = "case_id = :case AND n = :n AND attribute_exists(#open)"
        with ledger_errors(), suppress(self.client.exceptions.ConditionalCheckFailedException):
            self.client.update_item(
                TableName=self.table,
                Key=items.case_key(case.queue_arn, case.symptom),
                UpdateExpression=change,
                ConditionExpression=f"{same} AND {condition}" if condition else same,
                ExpressionAttributeNames={"#open": ledger_index.PARTITION},
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
    with suppress(LedgerUnreadable), items.reading("an open case"):
        return OpenCase(
            key=items.key(item["pk"]["S"], item["sk"]["S"]),
            case_id=item["case_id"]["S"],
            queue_arn=item["pk"]["S"],
            symptom=item["symptom"]["S"],
            state=State(item["state"]["S"]),
            opened_at=items.moment_of(item["opened_at"]),
            due_at=items.moment_of(item[ledger_index.SORT]),
        )
    return None
