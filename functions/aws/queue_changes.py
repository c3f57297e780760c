"""Who changed a queue since some moment, all of them or nobody: CloudTrail's event history.

https://docs.aws.amazon.com/awscloudtrail/latest/APIReference/API_LookupEvents.html
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from itertools import islice
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from functions.aws.clients import Clients
from functions.aws.recent_changes import (
    CHANGES,
    EVENTS_PER_PAGE,
    events_in,
    principal_of,
    queue_in,
    record_of,
)
from functions.healing.pin import QueueChange

# An account gets two requests a second: so many answers of each kind of change.
MOST_PAGES = 10
SQS = "sqs.amazonaws.com"
CLOUDFORMATION = "cloudformation.amazonaws.com"


class _NotTold(Exception):
    """The history does not say all of it."""


def changes_since(
    clients: Clients, queue_arn: str, since: datetime
) -> tuple[QueueChange, ...] | str:
    """Every change of the queue that went through; a text where they are not all known.

    Never raises. Kind by kind, because the history holds every read of every queue too.
    """
    try:
        return tuple(
            change
            for event_name in sorted(CHANGES)
            for event in _events(clients, event_name, since)
            for change in _change(event, event_name, queue_arn)
        )
    except _NotTold as error:
        return str(error)
    except (ClientError, BotoCoreError) as error:
        return f"CloudTrail did not answer ({type(error).__name__})"


def _events(clients: Clients, event_name: str, since: datetime) -> Iterator[Mapping[str, Any]]:
    pages = clients.cloudtrail_in_full.get_paginator("lookup_events").paginate(
        LookupAttributes=[{"AttributeKey": "EventName", "AttributeValue": event_name}],
        StartTime=since,
        PaginationConfig={"PageSize": EVENTS_PER_PAGE},
    )
    for page in islice(pages, MOST_PAGES):
        events = events_in(page)
        if events is None:
            raise _NotTold(f"CloudTrail's answer about {event_name} holds no events")
        yield from events
        if not page.get("NextToken"):
            return
    raise _NotTold(f"more than {MOST_PAGES * EVENTS_PER_PAGE} calls of {event_name} since")


def _change(event: Mapping[str, Any], event_name: str, queue_arn: str) -> Iterator[QueueChange]:
    """What cannot be told to be another service's, refused or another queue's is this one's."""
    record = record_of(event)
    if not record:
        raise _NotTold(f"an event of {event_name} is not readable")
    if record.get("eventName") != event_name or record.get("eventSource", SQS) != SQS:
        return
    asked, answered = record.get("requestParameters"), record.get("responseElements")
    named = {queue_in(each, record) for each in (asked, answered)} - {None}
    if record.get("errorCode") or (named and queue_arn not in named):
        return
    identity = record.get("userIdentity")
    invoked_by = identity.get("invokedBy") if isinstance(identity, dict) else None
    yield QueueChange(
        at=event["EventTime"],
        event_name=event_name,
        principal_arn=principal_of(record),
        of_policy=event_name != "SetQueueAttributes" or _may_set_policy(asked),
        by_cloudformation=CLOUDFORMATION in (invoked_by, record.get("sourceIPAddress")),
    )


def _may_set_policy(asked: object) -> bool:
    attributes = asked.get("attributes") if isinstance(asked, dict) else None
    if not isinstance(attributes, dict):
        return True
    return any(str(each).lower() == "policy" for each in attributes)
