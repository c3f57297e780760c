"""The last page about a (queue, symptom): what it says, and what pages have told of late."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from functions.healing.case import Case
from functions.healing.page import Page
from functions.healing.paging import TOLD_AGAIN_AFTER

SENDING = timedelta(seconds=90)
MOST_NEWS = 10


@dataclass(frozen=True)
class PageRecord:
    """The last page about a (queue, symptom); its text is kept until it is sent.

    `at` is when a run last set out to send it, `since` when the first did; what it says is `news`,
    of the transition `about`, or of none in particular. `told` holds what pages that were sent have
    said of late and when, so that the same news is told once a day even where two kinds of it take
    turns.
    """

    at: datetime
    urgent: bool
    told: Mapping[str, datetime]
    subject: str = ""
    body: str = ""
    news: str = ""
    about: str = ""
    since: datetime | None = None

    @classmethod
    def after(  # noqa: PLR0913 - each is one column of the record
        cls,
        last: PageRecord | None,
        news: str,
        page: Page,
        *,
        urgent: bool,
        at: datetime,
        about: str = "",
    ) -> PageRecord:
        """The record of a page that is to say `news`, beside what was told within the day.

        What `last` was to say and nobody has sent is not told: this one stands in its place.
        """
        told = last.told if last else {}
        recent = {each: when for each, when in told.items() if at - when < TOLD_AGAIN_AFTER}
        newest = dict(sorted(recent.items(), key=lambda item: item[1])[-MOST_NEWS:])
        return cls(at, urgent, newest, page.subject, page.body, news, about, at)

    def sent(self) -> PageRecord:
        """The record once people have it: its news counts as told."""
        news = {self.news: self.at} if self.news else {}
        return PageRecord(self.at, self.urgent, {**self.told, **news})

    def dropped(self) -> PageRecord:
        """The record of a page that nobody needs any more: its news was never told."""
        return PageRecord(self.at, self.urgent, self.told)

    @property
    def is_sent(self) -> bool:
        return not self.body

    def is_on_its_way(self, now: datetime) -> bool:
        """Whether a run may be sending it this minute."""
        return not self.is_sent and now - self.at <= SENDING

    def has_told(self, news: str, now: datetime) -> bool:
        """Whether people have had this news within the day."""
        return news in self.told and now - self.told[news] < TOLD_AGAIN_AFTER

    def was_left_unsent(self, now: datetime) -> bool:
        """Whether the run that was to send it has had its time; what is a day old is no news."""
        is_news = now - (self.since or self.at) < TOLD_AGAIN_AFTER
        return not self.is_sent and is_news and now - self.at > SENDING

    def says_or_said(self, news: str, now: datetime) -> bool:
        """Whether people have had this news within the day, or are to have it."""
        return self.has_told(news, now) or (not self.is_sent and self.news == news)

    def is_outdated(self, case: Case | None) -> bool:
        """Whether what it is about has moved on: `case` is how it stands now."""
        return self.about not in ("", case.transition if case else "")
