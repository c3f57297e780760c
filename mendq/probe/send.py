"""Send the probe: judge the last one, store the next, make its failing call."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from mendq.aws.clients import Clients
from mendq.aws.errors import ProbeNotSent, code_of
from mendq.cases import items
from mendq.cases.outbox import Notifier
from mendq.cases.transactions import Table
from mendq.model.case import Severity
from mendq.model.failed_call import FailedCall, canonical_code
from mendq.model.settings import ProbeSettings
from mendq.notifications.announcements import must_report_lost_probes
from mendq.probe.probe import Probe, notification_of_lost

KEY = items.key(items.ACCOUNT, "probe")


class ProbeRecord(Table, frozen=True):
    """All methods raise CaseStoreUnavailable."""

    def read(self) -> Probe | None:
        """The last probe; None before the first. Raises CaseStoreUnreadable for a bad item."""
        item = self.get(KEY)
        if "sent_at" not in item:
            return None
        with items.reading("the probe's item"):
            return items.record_in(Probe, item)

    def note_sent(self, probe: Probe) -> bool:
        """Before it is sent; False where another run has noted this one or a later one."""
        since = {"lost_since": probe.lost_since} if probe.lost_since else {}
        return self._note(
            "attribute_not_exists(scheduled_at) OR scheduled_at < :scheduled_at",
            gone="" if since else " REMOVE lost_since",
            scheduled_at=probe.scheduled_at,
            sent_at=probe.sent_at,
            lost_in_a_row=probe.lost_in_a_row,
            notified=probe.notified,
            **since,
        )

    def note_notified(self, probe: Probe) -> None:
        """People know; nothing happens where the next one was sent meanwhile."""
        change, same = "SET notified = :notified", "scheduled_at = :same"
        self.change(KEY, change, same, notified=True, same=probe.scheduled_at)

    def note_seen(self, call: FailedCall, now: datetime) -> None:
        """Nothing happens for a second delivery, or for an older one than the newest seen."""
        newer = "attribute_not_exists(made_at) OR made_at < :made_at"
        seen: dict[str, Any] = {"made_at": call.event_time, "spelled": call.raw_error_code}
        self._note(newer, **seen, seen_at=now, without_queue=call.queue_arn is None)

    def _note(self, condition: str, gone: str = "", **values: Any) -> bool:
        change = ", ".join(f"{name} = :{name}" for name in values)
        return self.change(KEY, f"SET {change}{gone}", condition, **values)


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
    last = record.read()
    probe = last.next_one(scheduled_at, now) if last else Probe(scheduled_at, now)
    if probe != last and not record.note_sent(probe):
        probe = record.read() or probe
    try:
        _fail(clients, settings.probe_queue_url)
    finally:
        if must_report_lost_probes(probe.lost_in_a_row, is_announced=probe.notified):
            topics = {Severity.URGENT: settings.urgent_topic_arn}
            page = notification_of_lost(probe, settings.account, clients.region)
            news = f"lost since {probe.lost_since:%Y-%m-%dT%H:%M:%S}"
            table = (clients.dynamodb, settings.case_table, clients, topics, now)
            notifier = Notifier(*table, chat=settings.chat, docs_url=settings.docs_url)
            notifier.send_about_account("probe", news, page)
            record.note_notified(probe)
    return probe


def _fail(clients: Clients, queue_url: str) -> None:
    """Anything but the expected refusal is a fault of ours that no later probe would fix."""
    try:
        clients.sqs.send_message(QueueUrl=queue_url, MessageBody="probe", MessageGroupId="probe")
    except ClientError as error:
        if canonical_code(code_of(error)) == EXPECTED:
            return
        raise ProbeNotSent(f"SQS refused the probe in another way: {error}") from error
    except BotoCoreError as error:
        raise ProbeNotSent(f"SQS could not be reached: {error}") from error
    raise ProbeNotSent("SQS took the probe: turn ContentBasedDeduplication off on its queue")
