"""AWS Health's events about the services that queues depend on, kept until they are over.

EventBridge lets nobody else send events of AWS's own sources: whoever could write one into the
intake queue could as well write failed calls there. No such event has been seen on AWS.
https://docs.aws.amazon.com/health/latest/ug/aws-health-events-eventbridge-schema.html
"""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct

from mendq.aws.errors import CaseMoved
from mendq.cases import items
from mendq.cases.transactions import Table
from mendq.model.facts import Facts
from mendq.model.names import HEALTH_SERVICES, HEALTH_SOURCE
from mendq.notifications.text import moment, plain

# An event that nobody has updated for so long is over.
FORGOTTEN = timedelta(days=7)
MOST_EVENTS = 20
_MOST_LINES = 3
_PAGE = "https://health.aws.amazon.com/health/status"
_Word = Annotated[str, Meta(max_length=400)]


class HealthEvent(Struct, frozen=True, rename="camel"):
    """An event as AWS spells it; one with a time that is none is no event."""

    event_arn: Annotated[str, Meta(pattern=r"^arn:[a-z-]+:health:[^\s]{1,400}$")]
    service: Literal[*HEALTH_SERVICES]  # type: ignore[valid-type]
    event_type_code: _Word
    event_region: _Word
    status_code: _Word
    start_time: _Word
    last_updated_time: _Word

    def __post_init__(self) -> None:
        for text in (self.start_time, self.last_updated_time):
            parsedate_to_datetime(text).astimezone(UTC)

    @property
    def started(self) -> datetime:
        return parsedate_to_datetime(self.start_time).astimezone(UTC)

    @property
    def updated(self) -> datetime:
        return parsedate_to_datetime(self.last_updated_time).astimezone(UTC)

    def is_news(self, now: datetime) -> bool:
        """False also where it is said to be updated in times to come: it would never be over."""
        return abs(now - self.updated) < FORGOTTEN


class _Envelope(Struct):
    source: Literal[HEALTH_SOURCE]  # type: ignore[valid-type]
    account: str
    detail: HealthEvent


def read_health(body: str, account: str, region: str) -> HealthEvent | None:
    """None for what is no event of AWS Health about this account and region; never raises."""
    with suppress(*items.DECODE_ERRORS):
        found = msgspec.json.decode(body, type=_Envelope)
        if (found.account, found.detail.event_region) == (account, region):
            return found.detail
    return None


class HealthEvents(Table, frozen=True):
    """The newest events, one item; methods raise CaseStoreUnavailable or CaseStoreUnreadable."""

    def note(self, event: HealthEvent, now: datetime) -> None:
        """Once, however often it comes; what is older than what is known changes nothing."""
        known = items.text_in(self.get(_KEY), "events", "[]")
        events = {each.event_arn: each for each in _events(known)}
        last = events.get(event.event_arn)
        if not event.is_news(now) or (last is not None and last.updated >= event.updated):
            return
        events[event.event_arn] = event
        newest = sorted(events.values(), key=lambda each: each.updated)[-MOST_EVENTS:]
        found = {"events": msgspec.json.encode(newest).decode(), "expires": now + FORGOTTEN}
        update = "SET events = :events, expires_at = :expires"
        unchanged = "attribute_not_exists(events) OR events = :known"
        if not self.change(_KEY, update, unchanged, known=known, **found):
            raise CaseMoved("another run has noted an event of AWS Health")

    def open_at(self, now: datetime) -> list[HealthEvent]:
        """Those that have begun and are not over."""
        events = _events(items.text_in(self.get(_KEY), "events", "[]"))
        going_on = [each for each in events if each.started <= now and each.is_news(now)]
        return [each for each in going_on if each.status_code == "open"]


_KEY = items.key(items.ACCOUNT, "aws_health")


def _events(text: str) -> list[HealthEvent]:
    with items.reading("the events of AWS Health"):
        return msgspec.json.decode(text, type=list[HealthEvent])


def health_lines(events: list[HealthEvent], facts: Facts | None = None) -> list[str]:
    """What a notification says first; an event of KMS where the queue has a key, or of many."""
    has_key = facts is None or facts.kms_key is not None
    concerned = [each for each in events if each.service != "KMS" or has_key]
    lines = [
        f"AWS Health: {each.service} has an open event in this region since "
        f"{moment(each.started)}: {plain(each.event_type_code, 80)}, {plain(each.event_arn, 300)}"
        for each in concerned[-_MOST_LINES:]
    ]
    return [*lines, f"Look there before anything else: {_PAGE}"] if lines else []
