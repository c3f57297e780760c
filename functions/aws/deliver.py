"""Sends a week's report by each of its channels once, and lets none stop another.

https://docs.aws.amazon.com/sns/latest/api/API_Publish.html
https://docs.aws.amazon.com/ses/latest/APIReference-V2/API_SendEmail.html
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from hashlib import sha256

from botocore.exceptions import BotoCoreError, ClientError

from functions.aws.clients import Clients
from functions.aws.delivery_marks import DeliveryMarks, InAnothersHand
from functions.aws.errors import is_passing

MOST_SUBJECT = 100
# SNS takes 256 KB of UTF-8.
MOST_TEXT_BYTES = 250_000
_CUT = "\n(cut here: it is longer than a topic takes)\n"


class ReportNotDelivered(Exception):
    """Some channel did not take the report; only those are tried when the event comes again."""


@dataclass(frozen=True)
class Channel:
    """One way to people: its mark's name, whom it reaches, and the call that sends."""

    name: str
    reaches: str
    send: Callable[[], object]


@dataclass(frozen=True)
class Failed:
    """A channel that did not take the report; `is_passing` where asking again may help."""

    channel: Channel
    why: str
    is_passing: bool


@dataclass(frozen=True)
class Delivery:
    """What became of a report: whom it reached now, and which channels failed."""

    reached: tuple[str, ...] = ()
    failed: tuple[Failed, ...] = ()

    @property
    def refused(self) -> tuple[Failed, ...]:
        """The failures that do not pass by themselves."""
        return tuple(each for each in self.failed if not each.is_passing)

    def __add__(self, other: Delivery) -> Delivery:
        return Delivery(self.reached + other.reached, self.failed + other.failed)


def topic(clients: Clients, name: str, topic_arn: str, subject: str, text: str) -> Channel:
    """Everybody who subscribed to a topic."""
    sns = clients.sns_once
    shown, said = subject[:MOST_SUBJECT], _cut(text)
    return Channel(
        name, topic_arn, lambda: sns.publish(TopicArn=topic_arn, Subject=shown, Message=said)
    )


def _cut(text: str) -> str:
    """What SNS takes of it; half a character, which no encoding takes, is spelled out."""
    content = text.encode("utf-8", "backslashreplace")
    if len(content) <= MOST_TEXT_BYTES:
        return content.decode()
    return content[: MOST_TEXT_BYTES - len(_CUT)].decode(errors="ignore") + _CUT


def mail_to(clients: Clients, sender: str, recipient: str, message: bytes) -> Channel:
    """One recipient on its own: an address that SES refuses costs nobody else the report."""
    ses = clients.mail
    return Channel(
        # A key of the bucket, which is to tell nobody the address.
        f"mail-{sha256(recipient.encode()).hexdigest()[:16]}",
        recipient,
        lambda: ses.send_email(
            FromEmailAddress=sender,
            Destination={"ToAddresses": [recipient]},
            Content={"Raw": {"Data": message}},
        ),
    )


def deliver(marks: DeliveryMarks, channels: Iterable[Channel]) -> Delivery:
    """Send by every channel that the week has not gone out by yet; raises nothing of AWS's."""
    delivery = Delivery()
    for channel in channels:
        try:
            reached = (channel.reaches,) if _sent(marks, channel) else ()
            delivery += Delivery(reached)
        except (ClientError, BotoCoreError, InAnothersHand) as error:
            failed = Failed(channel, " ".join(str(error).split()), is_passing(error))
            delivery += Delivery(failed=(failed,))
    return delivery


def _sent(marks: DeliveryMarks, channel: Channel) -> bool:
    """Whether it was sent now; False where the week had been sent before."""
    taken = marks.take(channel.name)
    if taken is None:
        return False
    try:
        channel.send()
    except (ClientError, BotoCoreError) as error:
        marks.note_failed(taken, type(error).__name__)
        raise
    marks.note_sent(taken)
    return True
