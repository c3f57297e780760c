"""Deliver a week's report once by each channel."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING

from botocore.exceptions import BotoCoreError, ClientError
from msgspec import Struct

from mendq.aws.clients import Clients
from mendq.aws.errors import is_passing
from mendq.model.case import Severity
from mendq.model.settings import DeliverReportSettings
from mendq.nightly.deliveries import DeliveryClaims, HeldByAnother
from mendq.notifications.notification import Redelivery, describe_refused_mail
from mendq.notifications.sent import for_sns
from mendq.notifications.text import link_runbooks

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

    from mendq.report.mail import Outgoing


class ReportBucket(Struct, frozen=True):
    """Raises botocore's errors as they come."""

    client: S3Client
    name: str

    def summary(self, key: str, most_bytes: int) -> bytes:
        """The summary under a key of an S3 event, at most its first `most_bytes`."""
        return self.client.get_object(Bucket=self.name, Key=key)["Body"].read(most_bytes)

    def put_page(self, week: str, page: str) -> str:
        """Store the page and return its key."""
        key = f"report/week={week}/report.html"
        body, kind = page.encode(), "text/html; charset=utf-8"
        self.client.put_object(Bucket=self.name, Key=key, Body=body, ContentType=kind)
        return key


def account_alias(clients: Clients) -> str:
    """What people call the account; empty where it has no alias, or may not be asked."""
    with suppress(ClientError, BotoCoreError):
        return next(iter(clients.iam.list_account_aliases()["AccountAliases"]), "")
    return ""


class ReportNotDelivered(Exception):
    """Some channel did not take the report; only those are tried when the event comes again."""


class Channel(Struct, frozen=True):
    """One way to people: its mark's name, whom it reaches, and the call that sends."""

    name: str
    reaches: str
    send: Callable[[], object]


def topic_channel(
    clients: Clients, settings: DeliverReportSettings, name: str, subject: str, text: str
) -> Channel:
    """Everybody who subscribed to a topic."""
    message = for_sns({"subject": subject, "text": text}, chat=Severity.INFO in settings.chat)
    publish = partial(clients.sns_once.publish, TopicArn=settings.topic_arn, **message)
    return Channel(name, settings.topic_arn, publish)


def mail_channel(clients: Clients, sender: str, recipient: str, message: bytes) -> Channel:
    """One recipient on its own: an address that SES refuses costs nobody else the report."""
    whom, raw = {"ToAddresses": [recipient]}, {"Raw": {"Data": message}}
    send = partial(clients.mail.send_email, FromEmailAddress=sender, Destination=whom, Content=raw)
    # A key of the bucket, which is to tell nobody the address.
    return Channel(f"mail-{sha256(recipient.encode()).hexdigest()[:16]}", recipient, send)


VERDICT, NOTICE = "verdict", "notice"
_Failed = dict[str, Exception]


def send_report(
    clients: Clients,
    settings: DeliverReportSettings,
    marked: DeliveryClaims,
    report: Outgoing,
    again: Redelivery,
) -> list[str]:
    """Whom it reached now; raises ReportNotDelivered where a channel failed.

    The topic first: it needs nothing drawn. Where SES refuses a mail, the topic is told once.
    """
    reached, failed = _sent(marked, _channels(clients, settings, report))
    refused = {to: _in_a_line(why) for to, why in failed.items() if not is_passing(why)}
    if refused:
        notice = describe_refused_mail(marked.week, refused, again)
        text = link_runbooks(notice.body, settings.docs_url)
        announced = topic_channel(clients, settings, NOTICE, notice.subject, text)
        heard, unheard = _sent(marked, [announced])
        reached, failed = reached + heard, failed | unheard
    if failed:
        said = (f"{to}: {_in_a_line(why)}" for to, why in failed.items())
        raise ReportNotDelivered("; ".join(said))
    return reached


def _sent(marked: DeliveryClaims, channels: Iterable[Channel]) -> tuple[list[str], _Failed]:
    """Whom it reached by those channels that the week has not gone out by yet, and whom not."""
    reached, failed = list[str](), _Failed()
    for channel in channels:
        try:
            if (etag := marked.take(channel.name)) is None:
                continue
            try:
                channel.send()
            except (ClientError, BotoCoreError) as error:
                marked.note(channel.name, etag, type(error).__name__)
                raise
            marked.note(channel.name, etag)
            reached.append(channel.reaches)
        except (ClientError, BotoCoreError, HeldByAnother) as error:
            failed[channel.reaches] = error
    return reached, failed


def _in_a_line(error: Exception) -> str:
    return " ".join(str(error).split())


def _channels(
    clients: Clients, settings: DeliverReportSettings, report: Outgoing
) -> Iterator[Channel]:
    if not settings.is_member or settings.recipients:
        yield topic_channel(clients, settings, VERDICT, report.subject, report.text)
    for recipient in settings.recipients if settings.sender else ():
        yield mail_channel(clients, settings.sender or "", recipient, report.message_to(recipient))
