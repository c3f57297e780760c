"""Read who changed a queue, from CloudTrail's event history."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from itertools import islice
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from mendq.aws.clients import Clients
from mendq.model.policy import QueueChange
from mendq.model.queue import arn_of_url
from mendq.notifications.configuration import Change

# An account gets two requests a second: so many answers, and no more are asked for.
MOST_PAGES_OF_LAST_CHANGE = 2
EVENTS_PER_PAGE = 50

CHANGES = frozenset(
    {"SetQueueAttributes", "AddPermission", "RemovePermission", "CreateQueue", "DeleteQueue"}
)


def last_change(clients: Clients, queue_arn: str) -> Change | str | None:
    """The newest change of the queue's configuration that went through.

    None where CloudTrail's whole history holds none; a text where it does not say: a page goes out
    without it. Never raises.
    """
    seen = 0
    try:
        pages = clients.cloudtrail.get_paginator("lookup_events").paginate(
            LookupAttributes=[
                {"AttributeKey": "EventSource", "AttributeValue": "sqs.amazonaws.com"}
            ],
            PaginationConfig={"PageSize": EVENTS_PER_PAGE},
        )
        for page in islice(pages, MOST_PAGES_OF_LAST_CHANGE):
            events = events_in(page)
            if events is None:
                return "CloudTrail did not say (no events in its answer)"
            seen += len(events)
            changes = (_change_of(each, queue_arn) for each in events)
            change = next(filter(None, changes), None)
            if change or not page.get("NextToken"):
                return change
    except (ClientError, BotoCoreError) as error:
        return f"CloudTrail did not say ({type(error).__name__})"
    return f"not among the newest {seen} changes of this account's queues"


def _change_of(event: Mapping[str, Any], queue_arn: str) -> Change | None:
    record = record_of(event)
    asked = record.get("requestParameters")
    named = [queue_in(each, record) for each in (asked, record.get("responseElements"))]
    changed = record.get("eventName") in CHANGES and "errorCode" not in record
    if not changed or queue_arn not in named:
        return None
    attributes = tuple(sorted(map(str, _dict(_dict(asked).get("attributes")))))
    return Change(event["EventTime"], str(record["eventName"]), principal_of(record), attributes)


def events_in(page: Mapping[str, Any]) -> Sequence[Mapping[str, Any]] | None:
    """The events of an answer; None where it says nothing of them, which is not "none"."""
    events = page.get("Events")
    return events if isinstance(events, list) else None


def record_of(event: Mapping[str, Any]) -> Mapping[str, Any]:
    try:
        record = json.loads(event["CloudTrailEvent"])
    except (KeyError, TypeError, ValueError, RecursionError):
        return {}
    known = isinstance(record, dict) and isinstance(event.get("EventTime"), datetime)
    return record if known else {}


def queue_in(parameters: object, record: Mapping[str, Any]) -> str | None:
    return arn_of_url(_dict(parameters).get("queueUrl"), str(record.get("awsRegion")))


def principal_of(record: Mapping[str, Any]) -> str:
    """The role behind a session, as in every record of ours."""
    identity = _dict(record.get("userIdentity"))
    issuer = _dict(_dict(identity.get("sessionContext")).get("sessionIssuer"))
    return str(issuer.get("arn") or identity.get("arn") or identity.get("invokedBy") or "unknown")


def _dict(given: object) -> dict[str, Any]:
    """What is given, empty where it is something else."""
    return given if isinstance(given, dict) else {}


# An account gets two requests a second: so many answers of each kind of change.
MOST_PAGES = 10
SQS = "sqs.amazonaws.com"
CLOUDFORMATION = "cloudformation.amazonaws.com"


class _NotRecorded(Exception):
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
    except _NotRecorded as error:
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
            raise _NotRecorded(f"CloudTrail's answer about {event_name} holds no events")
        yield from events
        if not page.get("NextToken"):
            return
    raise _NotRecorded(f"more than {MOST_PAGES * EVENTS_PER_PAGE} calls of {event_name} since")


def _change(event: Mapping[str, Any], event_name: str, queue_arn: str) -> Iterator[QueueChange]:
    """What cannot be told to be another service's, refused or another queue's is this one's."""
    record = record_of(event)
    if not record:
        raise _NotRecorded(f"an event of {event_name} is not readable")
    if record.get("eventName") != event_name or record.get("eventSource", SQS) != SQS:
        return
    asked, answered = record.get("requestParameters"), record.get("responseElements")
    named = {queue_in(each, record) for each in (asked, answered)} - {None}
    if record.get("errorCode") or (named and queue_arn not in named):
        return
    invoked_by = _dict(record.get("userIdentity")).get("invokedBy")
    yield QueueChange(
        at=event["EventTime"],
        event_name=event_name,
        principal_arn=principal_of(record),
        of_policy=event_name != "SetQueueAttributes" or _may_set_policy(asked),
        by_cloudformation=CLOUDFORMATION in (invoked_by, record.get("sourceIPAddress")),
    )


def _may_set_policy(asked: object) -> bool:
    attributes = _dict(asked).get("attributes")
    known = isinstance(attributes, dict)
    return not known or any(str(each).lower() == "policy" for each in _dict(attributes))
