"""Send the probe: count the last probe as seen or lost, store the next probe, and make its call."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from mendq.aws.clients import Clients
from mendq.aws.errors import ProbeNotSent, error_code_of
from mendq.cases import items
from mendq.cases.outbox import Notifier
from mendq.cases.partitions import ACCOUNT_PARTITION
from mendq.cases.transactions import Table
from mendq.model.case import Severity
from mendq.model.failed_call import FailedCall, make_canonical_error_code
from mendq.model.settings import ProbeSettings
from mendq.notifications.announcements import must_report_lost_probes
from mendq.probe.probe import Probe, describe_lost_probes

PROBE_ITEM_KEY = items.item_key(ACCOUNT_PARTITION, "probe")


class ProbeRecord(Table, frozen=True):
    """The probe's item in the case store.

    Each method raises CaseStoreUnavailable if DynamoDB cannot be used.
    """

    def read(self) -> Probe | None:
        """Return the stored probe; None if no probe was ever sent.

        Raises:
            CaseStoreUnreadable: Mendq cannot read the item.
        """
        item = self.get(PROBE_ITEM_KEY)
        if "sent_at" not in item:
            return None
        with items.convert_decode_errors("the probe's item"):
            return items.read_record(Probe, item)

    def store_sent_probe(self, probe: Probe) -> bool:
        """Store a probe before it is sent.

        Change nothing and return False if another run has already stored this probe or a later one.
        """
        lost_since_argument = {"lost_since": probe.lost_since} if probe.lost_since else {}
        return self._set_attributes(
            "attribute_not_exists(scheduled_at) OR scheduled_at < :scheduled_at",
            remove_clause="" if lost_since_argument else " REMOVE lost_since",
            scheduled_at=probe.scheduled_at,
            sent_at=probe.sent_at,
            lost_in_a_row=probe.lost_in_a_row,
            notified=probe.notified,
            **lost_since_argument,
        )

    def store_notified(self, probe: Probe) -> None:
        """Store that people were notified of the lost probes, unless a newer probe is stored."""
        self.change(
            PROBE_ITEM_KEY,
            "SET notified = :notified",
            "scheduled_at = :same",
            notified=True,
            same=probe.scheduled_at,
        )

    def store_seen_probe(self, call: FailedCall, now: datetime) -> None:
        """Store that heal has seen the probe `call`, unless it already saw this or a later one."""
        self._set_attributes(
            "attribute_not_exists(made_at) OR made_at < :made_at",
            made_at=call.event_time,
            spelled=call.raw_error_code,
            seen_at=now,
            without_queue=call.queue_arn is None,
        )

    def _set_attributes(
        self, condition: str, remove_clause: str = "", **value_by_attribute: Any
    ) -> bool:
        """Set attributes of the item. Return False if the condition is not met.

        `value_by_attribute` has the new values. `remove_clause` is a REMOVE clause or empty.
        """
        set_assignments = ", ".join(f"{name} = :{name}" for name in value_by_attribute)
        return self.change(
            PROBE_ITEM_KEY, f"SET {set_assignments}{remove_clause}", condition, **value_by_attribute
        )


# SQS's error code for a message without a deduplication id that is sent to a FIFO queue.
EXPECTED_PROBE_ERROR_CODE = "InvalidParameterValue"


def send_probe(
    clients: Clients, settings: ProbeSettings, scheduled_at: datetime, now: datetime
) -> Probe:
    """Send the probe for a scheduled time, and notify people if enough earlier probes are lost.

    The probe is stored before its call is made, so that heal never sees a probe that is not stored.
    If Lambda gets the same scheduled event twice, the call is repeated, but the probe is counted
    once.

    Returns:
        The probe that was sent.

    Raises:
        CaseStoreUnavailable: The case store does not answer.
        CaseStoreUnreadable: The stored probe cannot be read.
        ProbeNotSent: The call did not fail as expected.
        NotificationNotSent: SNS did not accept the notification.
    """
    probe_record = ProbeRecord(clients.dynamodb, settings.case_table)
    last_probe = probe_record.read()
    probe = last_probe.next_probe(scheduled_at, now) if last_probe else Probe(scheduled_at, now)
    if probe != last_probe and not probe_record.store_sent_probe(probe):
        probe = probe_record.read() or probe
    try:
        _make_failing_call(clients, settings.probe_queue_url)
    finally:
        # Check this even if the call raised an error. Otherwise a lasting error would hide lost
        # probes.
        if must_report_lost_probes(probe.lost_in_a_row, is_announced=probe.notified):
            notifier = Notifier(
                client=clients.dynamodb,
                table=settings.case_table,
                clients=clients,
                topic_arn_by_severity={Severity.URGENT: settings.urgent_topic_arn},
                now=now,
                chat_severities=settings.chat,
                docs_url=settings.docs_url,
            )
            news_key = f"lost since {probe.lost_since:%Y-%m-%dT%H:%M:%S}"
            notification_text = describe_lost_probes(probe, settings.account, clients.region)
            notifier.send_about_account("probe", news_key, notification_text)
            probe_record.store_notified(probe)
    return probe


def _make_failing_call(clients: Clients, queue_url: str) -> None:
    """Send a message that SQS must refuse.

    Raises:
        ProbeNotSent: SQS accepted the message, refused it with an unexpected code, or did not
            answer.
    """
    try:
        clients.sqs.send_message(QueueUrl=queue_url, MessageBody="probe", MessageGroupId="probe")
    except ClientError as error:
        if make_canonical_error_code(error_code_of(error)) == EXPECTED_PROBE_ERROR_CODE:
            return
        raise ProbeNotSent(f"SQS refused the probe in another way: {error}") from error
    except BotoCoreError as error:
        raise ProbeNotSent(f"SQS could not be reached: {error}") from error
    raise ProbeNotSent("SQS took the probe: turn ContentBasedDeduplication off on its queue")
