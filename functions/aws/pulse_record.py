"""The pulse's item in the ledger: the pulse Lambda notes what it sent, heal what it saw.

Each writes its own attributes, so neither waits for the other:
`sent_at`, `scheduled_at`, `lost_in_a_row`, `lost_since`, `paged`; `made_at`, `seen_at`, `spelled`.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from functions.aws import ledger_items as items
from functions.aws.transactions import ledger_errors
from functions.healing.failed_call import FailedCall
from functions.healing.pulse import Pulse

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

KEY = items.key(items.ACCOUNT, "pulse")


@dataclass(frozen=True)
class PulseRecord:
    """All methods raise LedgerUnavailable."""

    client: DynamoDBClient
    table: str

    def read(self) -> Pulse | None:
        """The last pulse; None before the first. Raises LedgerUnreadable for a bad item."""
        with ledger_errors():
            answer = self.client.get_item(TableName=self.table, Key=KEY, ConsistentRead=True)
        with items.reading("the pulse's item"):
            return _pulse_of(answer.get("Item", {}))

    def note_sent(self, pulse: Pulse) -> bool:
        """Before it is sent; False where another run has noted this one or a later one."""
        since = pulse.lost_since
        changes = {
            "scheduled_at": items.epoch(pulse.scheduled_at),
            "sent_at": items.epoch(pulse.sent_at),
            "lost_in_a_row": {"N": str(pulse.lost_in_a_row)},
            "paged": {"BOOL": pulse.paged},
            **({"lost_since": items.epoch(since)} if since else {}),
        }
        later = "attribute_not_exists(scheduled_at) OR scheduled_at < :scheduled_at"
        return self._change(changes, later, gone=() if since else ("lost_since",))

    def note_paged(self, pulse: Pulse) -> None:
        """People know; nothing happens where the next one was sent meanwhile."""
        same = {":same": items.epoch(pulse.scheduled_at)}
        self._change({"paged": {"BOOL": True}}, "scheduled_at = :same", same)

    def note_seen(self, call: FailedCall, now: datetime) -> None:
        """Nothing happens for a second delivery, or for an older one than the newest seen."""
        changes = {
            "made_at": items.epoch(call.event_time),
            "seen_at": items.epoch(now),
            "spelled": {"S": call.raw_error_code},
        }
        self._change(changes, "attribute_not_exists(made_at) OR made_at < :made_at")

    def _change(
        self,
        changes: Mapping[str, Any],
        condition: str,
        more: Mapping[str, Any] | None = None,
        gone: tuple[str, ...] = (),
    ) -> bool:
        change = "SET " + ", ".join(f"{name} = :{name}" for name in changes)
        values = {f":{name}": value for name, value in changes.items()}
        with ledger_errors(), suppress(self.client.exceptions.ConditionalCheckFailedException):
            self.client.update_item(
                TableName=self.table,
                Key=KEY,
                UpdateExpression=" ".join((change, *(f"REMOVE {each}" for each in gone))),
                ConditionExpression=condition,
                ExpressionAttributeValues={**values, **(more or {})},
            )
            return True
        return False


def _pulse_of(item: Mapping[str, Any]) -> Pulse | None:
    if "sent_at" not in item:
        return None
    since, made, seen = (item.get(each) for each in ("lost_since", "made_at", "seen_at"))
    return Pulse(
        scheduled_at=items.moment_of(item["scheduled_at"]),
        sent_at=items.moment_of(item["sent_at"]),
        lost_in_a_row=int(item["lost_in_a_row"]["N"]),
        lost_since=items.moment_of(since) if since else None,
        paged=item["paged"]["BOOL"],
        made_at=items.moment_of(made) if made else None,
        seen_at=items.moment_of(seen) if seen else None,
        spelled=item.get("spelled", {}).get("S", ""),
    )
