"""Send the probe: judge the last one, store the next, make its failing call."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError

from mendq.aws.clients import Clients
from mendq.aws.errors import ProbeNotSent, code_of
from mendq.cases import items
from mendq.cases.outbox import NotificationItems, Notifier
from mendq.cases.transactions import case_store_errors
from mendq.model.case import Severity
from mendq.model.failed_call import FailedCall, canonical
from mendq.model.settings import ProbeSettings
from mendq.probe.probe import Probe, notification_of_lost

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient


KEY = items.key(items.ACCOUNT, "probe")


@dataclass(frozen=True)
class ProbeRecord:
    """All methods raise CaseStoreUnavailable."""

    client: DynamoDBClient
    table: str

    def read(self) -> Probe | None:
        """The last probe; None before the first. Raises CaseStoreUnreadable for a bad item."""
        with case_store_errors():
            answer = self.client.get_item(TableName=self.table, Key=KEY, ConsistentRead=True)
        with items.reading("the probe's item"):
            return _probe_of(answer.get("Item", {}))

    def note_sent(self, probe: Probe) -> bool:
        """Before it is sent; False where another run has noted this one or a later one."""
        since = probe.lost_since
        changes = {
            "scheduled_at": items.epoch(probe.scheduled_at),
            "sent_at": items.epoch(probe.sent_at),
            "lost_in_a_row": {"N": str(probe.lost_in_a_row)},
            "notified": {"BOOL": probe.notified},
            **({"lost_since": items.epoch(since)} if since else {}),
        }
        later = "attribute_not_exists(scheduled_at) OR scheduled_at < :scheduled_at"
        return self._change(changes, later, gone=() if since else ("lost_since",))

    def note_notified(self, probe: Probe) -> None:
        """People know; nothing happens where the next one was sent meanwhile."""
        same = {":same": items.epoch(probe.scheduled_at)}
        self._change({"notified": {"BOOL": True}}, "scheduled_at = :same", same)

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
        with case_store_errors(), suppress(self.client.exceptions.ConditionalCheckFailedException):
            self.client.update_item(
                TableName=self.table,
                Key=KEY,
                UpdateExpression=" ".join((change, *(f"REMOVE {each}" for each in gone))),
                ConditionExpression=condition,
                ExpressionAttributeValues={**values, **(more or {})},
            )
            return True
        return False


def _probe_of(item: Mapping[str, Any]) -> Probe | None:
    if "sent_at" not in item:
        return None
    since, made, seen = (item.get(each) for each in ("lost_since", "made_at", "seen_at"))
    return Probe(
        scheduled_at=items.moment_of(item["scheduled_at"]),
        sent_at=items.moment_of(item["sent_at"]),
        lost_in_a_row=int(item["lost_in_a_row"]["N"]),
        lost_since=items.moment_of(since) if since else None,
        notified=item["notified"]["BOOL"],
        made_at=items.moment_of(made) if made else None,
        seen_at=items.moment_of(seen) if seen else None,
        spelled=item.get("spelled", {}).get("S", ""),
    )


# What SQS answers to a FIFO message without a deduplication id.
EXPECTED = "InvalidParameterValue"


def send_probe(
    clients: Clients, settings: ProbeSettings, scheduled_at: datetime, now: datetime
) -> Probe:
    """The probe that is on its way now.

    It is noted before the call, so that heal cannot see what nobody sent; a second delivery calls
    again and judges nothing. Raises CaseStoreUnavailable, CaseStoreUnreadable, ProbeNotSent,
    NotificationNotSent.
    """
    record = ProbeRecord(clients.dynamodb, settings.case_table)
    probe = _noted(record, scheduled_at, now)
    try:
        _fail(clients, settings.probe_queue_url)
    finally:
        if probe.wants_a_page:
            _page(clients, settings, probe, now)
            record.note_notified(probe)
    return probe


def _noted(record: ProbeRecord, scheduled_at: datetime, now: datetime) -> Probe:
    last = record.read()
    probe = last.next_one(scheduled_at, now) if last else Probe(scheduled_at, now)
    if probe == last or record.note_sent(probe):
        return probe
    return record.read() or probe


def _fail(clients: Clients, queue_url: str) -> None:
    """Anything but the expected refusal is a fault of ours that no later probe would fix."""
    try:
        clients.sqs.send_message(QueueUrl=queue_url, MessageBody="probe", MessageGroupId="probe")
    except ClientError as error:
        if canonical(code_of(error)) == EXPECTED:
            return
        raise ProbeNotSent(f"SQS refused the probe in another way: {error}") from error
    except BotoCoreError as error:
        raise ProbeNotSent(f"SQS could not be reached: {error}") from error
    raise ProbeNotSent(
        "SQS took the probe and has to refuse it: turn ContentBasedDeduplication off on its queue"
    )


def _page(clients: Clients, settings: ProbeSettings, probe: Probe, now: datetime) -> None:
    pages = NotificationItems(clients.dynamodb, settings.case_table)
    notifier = Notifier(clients, pages, {Severity.URGENT: settings.urgent_topic_arn}, now)
    page = notification_of_lost(probe, settings.account, clients.region)
    notifier.send_about_account("probe", f"lost since {probe.lost_since:%Y-%m-%dT%H:%M:%S}", page)
