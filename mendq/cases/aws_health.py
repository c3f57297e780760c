"""Read, store and show events of AWS Health about services that queues depend on.

Through EventBridge, only AWS can send events with AWS's own sources. A principal that can put a
false event of AWS Health into the intake queue can put false failed calls there as well. So false
events of AWS Health need no rights that false failed calls do not need.

Not tested with a real event of AWS Health: the fields are those of AWS's documentation.
https://docs.aws.amazon.com/health/latest/ug/aws-health-events-eventbridge-schema.html
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct

from mendq.aws.errors import CaseMoved
from mendq.cases import items
from mendq.cases.partitions import ACCOUNT_PARTITION
from mendq.cases.transactions import Table
from mendq.model.facts import Facts
from mendq.model.names import AWS_HEALTH_EVENT_SOURCE, AWS_HEALTH_SERVICES
from mendq.notifications.text import format_utc_time, to_plain_text

# An event that AWS has not updated for this long counts as over.
EVENT_LIFETIME = timedelta(days=7)
MAXIMUM_EVENTS = 20
_MAXIMUM_EVENT_LINES = 3
_HEALTH_PAGE_URL = "https://health.aws.amazon.com/health/status"
# A text of the event, such as a code or a time.
_EventText = Annotated[str, Meta(max_length=400)]


class HealthEvent(Struct, frozen=True, rename="camel"):
    """One event of AWS Health, with the field names of AWS.

    Creating one raises an error if a time cannot be parsed.
    """

    event_arn: Annotated[str, Meta(pattern=r"^arn:[a-z-]+:health:[^\s]{1,400}$")]
    service: Literal[*AWS_HEALTH_SERVICES]  # type: ignore[valid-type]
    event_type_code: _EventText
    event_region: _EventText
    status_code: _EventText
    start_time: _EventText
    last_updated_time: _EventText

    def __post_init__(self) -> None:
        for time_text in (self.start_time, self.last_updated_time):
            parsedate_to_datetime(time_text).astimezone(UTC)

    @property
    def started_at(self) -> datetime:
        """The time in UTC at which the event began."""
        return parsedate_to_datetime(self.start_time).astimezone(UTC)

    @property
    def updated_at(self) -> datetime:
        """The time in UTC at which AWS last updated the event."""
        return parsedate_to_datetime(self.last_updated_time).astimezone(UTC)

    def is_current(self, now: datetime) -> bool:
        """Return True if the event was updated less than EVENT_LIFETIME ago.

        The update may also be less than EVENT_LIFETIME in the future. An event that is dated
        further ahead is not current: it would never be over.
        """
        return abs(now - self.updated_at) < EVENT_LIFETIME


class _Envelope(Struct):
    """The EventBridge event around an event of AWS Health."""

    source: Literal[AWS_HEALTH_EVENT_SOURCE]  # type: ignore[valid-type]
    account: str
    detail: HealthEvent


def read_health(body: str, account: str, region: str) -> HealthEvent | None:
    """Read an event of AWS Health about this account and region.

    Return None if `body` is anything else. Never raise an error.
    """
    with suppress(*items.DECODE_ERRORS):
        envelope = msgspec.json.decode(body, type=_Envelope)
        if (envelope.account, envelope.detail.event_region) == (account, region):
            return envelope.detail
    return None


class HealthEvents(Table, frozen=True):
    """The newest events of AWS Health, stored in one item of the case store.

    Methods raise CaseStoreUnavailable, and CaseStoreUnreadable if the item cannot be read.
    """

    def note_event(self, event: HealthEvent, now: datetime) -> None:
        """Store an event, unless this update of the event or a newer one is already stored.

        Do nothing for an event that is not current (`is_current`). Only the newest MAXIMUM_EVENTS
        events are kept.

        Raises:
            CaseMoved: Another run stored an event at the same moment.
        """
        stored_events_text = items.read_text(self.get(_EVENTS_KEY), "events", "[]")
        event_by_arn = {
            known_event.event_arn: known_event for known_event in _read_events(stored_events_text)
        }
        stored_event = event_by_arn.get(event.event_arn)
        if not event.is_current(now) or (
            stored_event is not None and stored_event.updated_at >= event.updated_at
        ):
            return
        event_by_arn[event.event_arn] = event
        events_oldest_first = sorted(
            event_by_arn.values(), key=lambda known_event: known_event.updated_at
        )
        newest_events = events_oldest_first[-MAXIMUM_EVENTS:]
        are_events_stored = self.change(
            _EVENTS_KEY,
            "SET events = :events, expires_at = :expires",
            "attribute_not_exists(events) OR events = :known",
            known=stored_events_text,
            events=msgspec.json.encode(newest_events).decode(),
            expires=now + EVENT_LIFETIME,
        )
        if not are_events_stored:
            raise CaseMoved("another run has noted an event of AWS Health")

    def list_open_events(self, now: datetime) -> list[HealthEvent]:
        """Return the current events that have begun and are open, the oldest update first."""
        events = _read_events(items.read_text(self.get(_EVENTS_KEY), "events", "[]"))
        return [
            event
            for event in events
            if event.status_code == "open" and event.started_at <= now and event.is_current(now)
        ]


_EVENTS_KEY = items.item_key(ACCOUNT_PARTITION, "aws_health")


def _read_events(events_text: str) -> list[HealthEvent]:
    with items.convert_decode_errors("the events of AWS Health"):
        return msgspec.json.decode(events_text, type=list[HealthEvent])


def describe_health_events(events: Sequence[HealthEvent], facts: Facts | None = None) -> list[str]:
    """Return lines for the top of a notification: the newest open events, and the link to check.

    Return an empty list if there is no event to show.

    Args:
        events: Open events, the oldest update first, as `list_open_events` returns them.
        facts: The queue's facts. Events of KMS are left out if the queue has no KMS key. None for a
            notification about many queues.
    """
    may_use_kms_key = facts is None or facts.kms_key is not None
    relevant_events = [event for event in events if event.service != "KMS" or may_use_kms_key]
    if not relevant_events:
        return []
    event_lines = []
    for event in relevant_events[-_MAXIMUM_EVENT_LINES:]:
        event_code = to_plain_text(event.event_type_code, 80)
        event_lines.append(
            f"AWS Health: {event.service} has an open event in this region since "
            f"{format_utc_time(event.started_at)}: {event_code}, "
            f"{to_plain_text(event.event_arn, 300)}"
        )
    return [*event_lines, f"Look there before anything else: {_HEALTH_PAGE_URL}"]
