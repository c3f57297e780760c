"""Deliver a week's report: once to the SNS topic, and once to each recipient of mail."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING

from botocore.exceptions import BotoCoreError, ClientError
from msgspec import Struct

from mendq.aws.clients import Clients
from mendq.aws.errors import is_transient_error
from mendq.model.case import Severity
from mendq.model.settings import DeliverReportSettings
from mendq.nightly.deliveries import ClaimHeldByAnotherRun, DeliveryClaims
from mendq.notifications.notification import ReportRedelivery, describe_refused_mail
from mendq.notifications.sent import make_publish_arguments
from mendq.notifications.text import link_runbooks

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

    from mendq.report.mail import OutgoingReport


class ReportBucket(Struct, frozen=True):
    """The bucket of summaries and report pages. Methods raise botocore's errors."""

    client: S3Client
    name: str

    def read_summary(self, key: str, maximum_bytes: int) -> bytes:
        """Return the first `maximum_bytes` bytes of a summary. `key` is the key in an S3 event."""
        return self.client.get_object(Bucket=self.name, Key=key)["Body"].read(maximum_bytes)

    def put_report_page(self, week: str, page_html: str) -> str:
        """Store the HTML page of a week's report and return its key."""
        page_key = f"report/week={week}/report.html"
        self.client.put_object(
            Bucket=self.name,
            Key=page_key,
            Body=page_html.encode(),
            ContentType="text/html; charset=utf-8",
        )
        return page_key


def read_account_alias(clients: Clients) -> str:
    """Return the account's alias; empty if it has none, or if it cannot be read."""
    with suppress(ClientError, BotoCoreError):
        return next(iter(clients.iam.list_account_aliases()["AccountAliases"]), "")
    return ""


class ReportNotDelivered(Exception):
    """At least one channel failed. If Lambda delivers the event again, only those are tried."""


class Channel(Struct, frozen=True):
    """One way to send the report.

    `name` is the channel's name in `DeliveryClaims`. `destination` is the mail address, or the ARN
    of the topic. `send` sends the report.
    """

    name: str
    destination: str
    send: Callable[[], object]


def make_topic_channel(
    clients: Clients, settings: DeliverReportSettings, name: str, subject: str, topic_text: str
) -> Channel:
    """Return the channel that publishes to the report's SNS topic."""
    publish_arguments = make_publish_arguments(
        {"subject": subject, "text": topic_text}, is_for_chat=Severity.INFO in settings.chat
    )
    publish_to_topic = partial(
        clients.sns_once.publish, TopicArn=settings.topic_arn, **publish_arguments
    )
    return Channel(name, settings.topic_arn, publish_to_topic)


def make_mail_channel(
    clients: Clients, sender: str, recipient: str, report: OutgoingReport
) -> Channel:
    """Return the channel that mails one recipient.

    Each recipient has a separate channel. So if SES refuses one address, the others get their mail.
    """

    def send_mail() -> None:
        clients.mail.send_email(
            FromEmailAddress=sender,
            Destination={"ToAddresses": [recipient]},
            Content={"Raw": {"Data": report.message_to(recipient)}},
        )

    # The name becomes a key in the bucket, which must not show the address.
    return Channel(f"mail-{sha256(recipient.encode()).hexdigest()[:16]}", recipient, send_mail)


# The names of the topic's channels: for the report, and for the notification about refused mail.
REPORT_CHANNEL_NAME = "verdict"
REFUSED_MAIL_CHANNEL_NAME = "notice"
_ErrorByAddress = dict[str, Exception]
# Making a mail raises ValueError if the sender or the recipient is not a mail address.
_SENDING_ERRORS = (ClientError, BotoCoreError, ValueError)


def send_report(
    clients: Clients,
    settings: DeliverReportSettings,
    claims: DeliveryClaims,
    report: OutgoingReport,
    redelivery: ReportRedelivery,
) -> list[str]:
    """Send the report through each channel that has not sent it yet.

    The SNS topic comes first, because its text is ready, while the picture of a mail must be drawn.
    If a channel fails permanently, for example because SES refuses an address, the topic gets one
    notification about it for the week.

    Returns:
        The mail addresses and topics that this call reached, with the report or the notification.

    Raises:
        ReportNotDelivered: At least one channel failed. The others were tried nevertheless.
    """
    reached_addresses, error_by_address = _send_through_channels(
        claims, _make_channels(clients, settings, report)
    )
    reason_by_address = {
        address: _to_one_line(error)
        for address, error in error_by_address.items()
        if isinstance(error, ValueError) or not is_transient_error(error)
    }
    if reason_by_address:
        notification = describe_refused_mail(claims.week, reason_by_address, redelivery)
        notification_text = link_runbooks(notification.body, settings.docs_url)
        topic_channel = make_topic_channel(
            clients, settings, REFUSED_MAIL_CHANNEL_NAME, notification.subject, notification_text
        )
        reached_topics, topic_error_by_address = _send_through_channels(claims, [topic_channel])
        reached_addresses += reached_topics
        error_by_address |= topic_error_by_address
    if error_by_address:
        address_error_texts = [
            f"{address}: {_to_one_line(error)}" for address, error in error_by_address.items()
        ]
        raise ReportNotDelivered("; ".join(address_error_texts))
    return reached_addresses


def _send_through_channels(
    claims: DeliveryClaims, channels: Iterable[Channel]
) -> tuple[list[str], _ErrorByAddress]:
    """Send through each channel that has not sent yet. Continue if a channel fails.

    Return the addresses and topics that this call reached, and the error of each failed channel by
    address or topic. Channels that sent in an earlier run appear in neither.
    """
    reached_addresses: list[str] = []
    error_by_address: _ErrorByAddress = {}
    for channel in channels:
        try:
            claim_etag = claims.claim_channel(channel.name)
            if claim_etag is None:
                continue
            try:
                channel.send()
            except _SENDING_ERRORS as error:
                claims.record_outcome(channel.name, claim_etag, type(error).__name__)
                raise
            claims.record_outcome(channel.name, claim_etag)
            reached_addresses.append(channel.destination)
        except (*_SENDING_ERRORS, ClaimHeldByAnotherRun) as error:
            error_by_address[channel.destination] = error
    return reached_addresses, error_by_address


def _to_one_line(error: Exception) -> str:
    """Return an error's text on one line."""
    return " ".join(str(error).split())


def _make_channels(
    clients: Clients, settings: DeliverReportSettings, report: OutgoingReport
) -> Iterator[Channel]:
    """Yield the topic's channel, and if the settings name a sender, one channel per recipient.

    Yield none for a member of an organization without recipients of its own.
    """
    if not settings.is_member or settings.recipients:
        yield make_topic_channel(
            clients, settings, REPORT_CHANNEL_NAME, report.subject, report.short_text
        )
    if settings.sender:
        for recipient in settings.recipients:
            yield make_mail_channel(clients, settings.sender, recipient, report)
