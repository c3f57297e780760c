"""What people were sent about a symptom of a queue, and what is still owed to them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from operator import itemgetter
from typing import Any

from msgspec import Struct

from mendq.model.case import NOTIFICATION_EVENT, NOTIFIED_AGAIN_AFTER, Case
from mendq.model.json_text import to_json

# SNS takes 262,144 bytes and a subject of less than 100 characters, ASCII where it goes by mail:
# https://docs.aws.amazon.com/sns/latest/api/API_Publish.html
MOST_BYTES = 8_000
MOST_SUBJECT = 99


class NotificationText(Struct, frozen=True):
    """What SNS is given: printable ASCII, within its limits whatever went in."""

    subject: str
    body: str


# What chat would take for markup, a link or a name to call: it stays readable, and does nothing.
_INERT = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", "`": "'", "@": "(at)"})


def for_sns(page: Mapping[str, Any], *, chat: bool) -> dict[str, Any]:
    """What SNS's Publish is given for `subject` and `text` of a page; other fields may be absent.

    With `chat`, https endpoints get the form that Amazon Q Developer shows in chat.
    https://docs.aws.amazon.com/chatbot/latest/adminguide/custom-notifs.html
    """
    subject, text = page["subject"], page["text"]
    if not chat:
        return {"Subject": subject, "Message": text}
    title = subject.translate(_INERT)
    shown = {"title": title, "description": f"```\n{text.translate(_INERT)}```"}
    metadata = {
        "threadId": page.get("dedup_key") or title,
        "summary": title,
        "eventType": NOTIFICATION_EVENT,
        "relatedResources": [page["queue_arn"]] if page.get("queue_arn") else [],
    }
    notification = {
        "version": "1.0",
        "source": "custom",
        "content": {"textType": "client-markdown", **shown},
        "metadata": metadata,
    }
    message = to_json({"default": text, "https": to_json(notification)})
    return {"Subject": subject, "Message": message, "MessageStructure": "json"}


SENDING = timedelta(seconds=90)
MOST_NEWS = 10


class NotificationRecord(Struct, frozen=True):
    """The last page about a (queue, symptom); its text is kept until it is sent.

    `at` is when a run last set out to send it, `since` when the first did; what it says is `news`,
    of the transition `about`, or of none in particular. `team` is whom the queue's tag names: any
    text. `announced` holds what pages have said of late and when, so that the same news is told
    once a day even where two kinds of it take turns.
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
    def after(  # noqa: PLR0913 - each is one column of the record
        cls,
        last: NotificationRecord | None,
        news: str,
        page: NotificationText,
        *,
        urgent: bool,
        at: datetime,
        about: str = "",
    ) -> NotificationRecord:
        """The record of a page that is to say `news`, beside what was told within the day.

        What `last` was to say and nobody has sent is not told: this one stands in its place.
        """
        announced = sorted(last.announced.items(), key=itemgetter(1)) if last else []
        recent = [each for each in announced if at - each[1] < NOTIFIED_AGAIN_AFTER]
        return cls(at, urgent, dict(recent[-MOST_NEWS:]), page.subject, page.body, news, about, at)

    def sent(self) -> NotificationRecord:
        """The record once people have it: its news counts as told."""
        news = {self.news: self.at} if self.news else {}
        return NotificationRecord(self.at, self.urgent, {**self.announced, **news})

    def dropped(self) -> NotificationRecord:
        """The record of a page that nobody needs any more: its news was never told."""
        return NotificationRecord(self.at, self.urgent, self.announced)

    @property
    def case_id(self) -> str:
        """The case it is about, empty for none."""
        return self.about.rpartition("-")[0]

    @property
    def is_delivered(self) -> bool:
        """Whether people have it, though its event is still to be put."""
        return self.news in self.announced

    @property
    def is_sent(self) -> bool:
        return not self.body

    def is_on_its_way(self, now: datetime) -> bool:
        """Whether a run may be sending it this minute."""
        return not self.is_sent and now - self.at <= SENDING

    def has_said(self, news: str, now: datetime) -> bool:
        """Whether people have had this news within the day."""
        return news in self.announced and now - self.announced[news] < NOTIFIED_AGAIN_AFTER

    def was_left_unsent(self, now: datetime) -> bool:
        """Whether the run that was to send it has had its time; what is a day old is no news."""
        is_news = now - (self.since or self.at) < NOTIFIED_AGAIN_AFTER
        return not self.is_sent and is_news and now - self.at > SENDING

    def says_or_said(self, news: str, now: datetime) -> bool:
        """Whether people have had this news within the day, or are to have it."""
        return self.has_said(news, now) or (not self.is_sent and self.news == news)

    def is_outdated(self, case: Case | None) -> bool:
        """Whether what it is about has moved on: `case` is how it stands now."""
        return self.about not in ("", case.transition if case else "")
