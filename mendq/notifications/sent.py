"""Sent notifications: their text, their form for SNS, and their record in the case store."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from operator import itemgetter
from typing import Any

from msgspec import Struct

from mendq.model.case import NOTIFICATION_EVENT, REPEAT_NOTIFICATION_AFTER
from mendq.model.json_text import to_json

# SNS takes 262,144 bytes, and a subject of less than 100 characters, which must be ASCII for mail:
# https://docs.aws.amazon.com/sns/latest/api/API_Publish.html
MOST_NOTIFICATION_BYTES = 8_000
MOST_SUBJECT_CHARACTERS = 99


class NotificationText(Struct, frozen=True):
    """Subject and text of a notification, in printable ASCII and short enough for SNS."""

    subject: str
    body: str


# Characters that chat clients read as markup, a link or a mention, with their replacements.
_CHAT_REPLACEMENTS = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", "`": "'", "@": "(at)"})


def make_publish_arguments(notification: Mapping[str, Any], *, is_for_chat: bool) -> dict[str, Any]:
    """Return the arguments of SNS's Publish for a notification.

    Args:
        notification: A mapping with `subject` and `text`, and optionally `dedup_key` and
            `queue_arn`.
        is_for_chat: True if https endpoints must get the form that Amazon Q Developer shows in
            chat: https://docs.aws.amazon.com/chatbot/latest/adminguide/custom-notifs.html
    """
    subject = notification["subject"]
    text = notification["text"]
    if not is_for_chat:
        return {"Subject": subject, "Message": text}
    chat_title = subject.translate(_CHAT_REPLACEMENTS)
    queue_arn = notification.get("queue_arn")
    chat_message = {
        "version": "1.0",
        "source": "custom",
        "content": {
            "textType": "client-markdown",
            "title": chat_title,
            "description": f"```\n{text.translate(_CHAT_REPLACEMENTS)}```",
        },
        "metadata": {
            "threadId": notification.get("dedup_key") or chat_title,
            "summary": chat_title,
            "eventType": NOTIFICATION_EVENT,
            "relatedResources": [queue_arn] if queue_arn else [],
        },
    }
    message = to_json({"default": text, "https": to_json(chat_message)})
    return {"Subject": subject, "Message": message, "MessageStructure": "json"}


# A record remembers this many different news that people had.
MOST_REMEMBERED_NEWS = 10


class NotificationRecord(Struct, frozen=True):
    """The stored record of the newest notification about a symptom of a queue, or the account.

    The record has the text until the notification is sent. `mendq.notifications.announcements`
    decides whether to send the notification.

    Args:
        at: When a run last began to send the notification.
        urgent: True if the notification goes to the topic of urgent notifications.
        announced: The keys of the news that people got lately, with the time of each.
        subject: The subject; empty once the notification is sent or dropped.
        body: The text; empty once the notification is sent or dropped.
        news: The key of the news. Two notifications with the same key say the same.
        about: The name of the case's transition; empty if the notification is about no case.
        since: When the first run began to send the notification.
        team: The team that the queue's tag names. It may be any text, also a team without a topic.
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
        last_record: NotificationRecord | None,
        news: str,
        text: NotificationText,
        *,
        urgent: bool,
        at: datetime,
        about: str = "",
    ) -> NotificationRecord:
        """Return the record of a new notification that replaces `last_record`.

        The new record remembers the news that people got within the last day. If the notification
        of `last_record` was not sent, its news is not remembered.

        Args:
            last_record: The stored record; None if there is no record.
            news: The key of the new notification's news.
            text: The subject and the text of the new notification.
            urgent: True if the notification goes to the topic of urgent notifications.
            at: The time of this run, which will send the notification.
            about: The name of the case's transition; empty if the notification is about no case.
        """
        news_and_times = last_record.announced.items() if last_record else ()
        news_oldest_first = sorted(news_and_times, key=itemgetter(1))
        recent_news = [
            (news_key, announced_at)
            for news_key, announced_at in news_oldest_first
            if at - announced_at < REPEAT_NOTIFICATION_AFTER
        ]
        return cls(
            at=at,
            urgent=urgent,
            announced=dict(recent_news[-MOST_REMEMBERED_NEWS:]),
            subject=text.subject,
            body=text.body,
            news=news,
            about=about,
            since=at,
        )

    def mark_sent(self) -> NotificationRecord:
        """Return the record to store after the notification was sent: its news is announced."""
        announced_at_by_news = dict(self.announced)
        if self.news:
            announced_at_by_news[self.news] = self.at
        return NotificationRecord(self.at, self.urgent, announced_at_by_news)

    def mark_dropped(self) -> NotificationRecord:
        """Return the record to store if the notification is dropped: its news is not announced."""
        return NotificationRecord(self.at, self.urgent, self.announced)

    @property
    def case_id(self) -> str:
        """The id of the notification's case; empty if the notification is about no case."""
        return self.about.rpartition("-")[0]

    @property
    def is_delivered(self) -> bool:
        """True if people got the notification, but its event is not on the event bus yet."""
        return self.news in self.announced

    @property
    def is_sent(self) -> bool:
        """True if both the notification and its event on the event bus are sent or dropped."""
        return not self.body
