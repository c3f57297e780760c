"""Sends a week's report to everybody: the topic's subscribers, and each recipient by mail."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from functions.aws.clients import Clients
from functions.aws.deliver import Channel, Delivery, deliver, mail_to, topic
from functions.aws.delivery_marks import DeliveryMarks
from functions.healing.not_mailed import Again, not_mailed
from functions.settings import DeliverReportSettings

VERDICT, NOTICE = "verdict", "notice"


class Report(Protocol):
    """What goes out: a subject, a text, and for each address a mail of its own."""

    @property
    def subject(self) -> str: ...

    @property
    def text(self) -> str: ...

    def message_to(self, recipient: str) -> bytes: ...


def send_report(
    clients: Clients,
    settings: DeliverReportSettings,
    marks: DeliveryMarks,
    report: Report,
    again: Again,
) -> Delivery:
    """The topic first: it needs nothing drawn. Where SES refuses a mail, the topic is told once."""
    delivery = deliver(marks, _channels(clients, settings, report))
    if not delivery.refused:
        return delivery
    whom = {each.channel.reaches: each.why for each in delivery.refused}
    notice = not_mailed(marks.week, whom, again)
    told = topic(clients, NOTICE, settings.topic_arn, notice.subject, notice.body)
    return delivery + deliver(marks, [told])


def _channels(
    clients: Clients, settings: DeliverReportSettings, report: Report
) -> Iterator[Channel]:
    yield topic(clients, VERDICT, settings.topic_arn, report.subject, report.text)
    if settings.sender is not None:
        for recipient in settings.recipients:
            message = report.message_to(recipient)
            yield mail_to(clients, settings.sender, recipient, message)
