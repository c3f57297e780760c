"""A notification: its text, the form that SNS takes, and the record of what people got."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from operator import itemgetter
from typing import Any

from msgspec import Struct

from mendq.model.case import NOTIFICATION_EVENT, NOTIFIED_AGAIN_AFTER
from mendq.model.json_text import to_json

# SNS takes 262,144 bytes and a subject of less than 100 characters, ASCII where it goes by mail:
# https://docs.aws.amazon.com/sns/latest/api/API_Publish.html
MOST_BYTES = 8_000
MOST_SUBJECT = 99


class NotificationText(Struct, frozen=True):
    """Subject and text of a notification: printable ASCII, within the limits of SNS."""

    subject: str
    body: str


# Characters that chat reads as markup, a link or a mention, and what is sent in their place.
_INERT = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", "`": "'", "@": "(at)"})


def for_sns(notification: Mapping[str, Any], *, chat: bool) -> dict[str, Any]:
    """Return the arguments of SNS's Publish for a notification.

    Args:
        notification: `subject` and `text`; `dedup_key` and `queue_arn` may be absent.
        chat: True if https endpoints must get the form that Amazon Q Developer shows in chat:
            https://docs.aws.amazon.com/chatbot/latest/adminguide/custom-notifs.html
    """
    subject = notification["subject"]
    text = notification["text"]
    if not chat:
        return {"Subject": subject, "Message": text}
    title = subject.translate(_INERT)
    queue_arn = notification.get("queue_arn")
    for_chat = {
        "version": "1.0",
        "source": "custom",
        "content": {
            "textType": "client-markdown",
            "title": title,
            "description": f"```\n{text.translate(_INERT)}```",
        },
        "metadata": {
            "threadId": notification.get("dedup_key") or title,
            "summary": title,
            "eventType": NOTIFICATION_EVENT,
            "relatedResources": [queue_arn] if queue_arn else [],
        },
    }
    message = to_json({"default": text, "https": to_json(for_chat)})
    return {"Subject": subject, "Message": message, "MessageStructure": "json"}


# So many different news are remembered for each symptom of a queue.
MOST_NEWS = 10


class NotificationRecord(Struct, frozen=True):
    """The newest notification about a symptom of a queue; its text is stored until it is sent.

    Whether to send it is decided in `mendq.notifications.announcements`.

    Args:
        at: When a run last began to send it.
        urgent: True if it goes to the topic of urgent notifications.
        announced: The news that people had lately, and when they had it.
        subject: Its subject; empty once it is sent.
        body: Its text; empty once it is sent.
        news: The key of what it says; two notifications with the same key say the same.
        about: The transition that it is about; empty if it is about no case.
        since: When the first run began to send it.
        team: The team that the queue's tag names. Any text: the tag's writer chooses it.
    """

    at: datetime
    urgent: bool
    announced: Mapping[str, datetime]
    subject: str = ""
    body: str = ""
    news: str = ""
    about: str = ""
    since: datetime | None = None
    team: str = ""

    @classmethod
    def create(  # noqa: PLR0913 - each is one column of the record
        cls,
        last: NotificationRecord | None,
        news: str,
        text: NotificationText,
        *,
        urgent: bool,
        at: datetime,
        about: str = "",
    ) -> NotificationRecord:
        """Return the record of a new notification that takes the place of `last`.

        It remembers the news that people had within the day. If `last` was not sent, its news is
        not among them.
        """
        announced = last.announced.items() if last else ()
        oldest_first = sorted(announced, key=itemgetter(1))
        recent = [(key, told) for key, told in oldest_first if at - told < NOTIFIED_AGAIN_AFTER]
        return cls(
            at=at,
            urgent=urgent,
            announced=dict(recent[-MOST_NEWS:]),
            subject=text.subject,
            body=text.body,
            news=news,
            about=about,
            since=at,
        )

    def mark_sent(self) -> NotificationRecord:
        """Return the record after people got the notification: its news counts as announced."""
        announced = dict(self.announced)
        if self.news:
            announced[self.news] = self.at
        return NotificationRecord(self.at, self.urgent, announced)

    def mark_dropped(self) -> NotificationRecord:
        """Return the record after the notification was dropped: its news was never announced."""
        return NotificationRecord(self.at, self.urgent, self.announced)

    @property
    def case_id(self) -> str:
        """The case that it is about, empty if it is about none."""
        return self.about.rpartition("-")[0]

    @property
    def is_delivered(self) -> bool:
        """True if people have it. Its event may still have to be put."""
        return self.news in self.announced

    @property
    def is_sent(self) -> bool:
        """True if nothing is left to send."""
        return not self.body
