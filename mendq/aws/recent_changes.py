"""Read who changed a queue, from CloudTrail's event history."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError

from mendq.aws.clients import Clients
from mendq.model.failed_call import role_arn
from mendq.model.policy import QueueChange
from mendq.model.queue import arn_of_url

if TYPE_CHECKING:
    from mypy_boto3_cloudtrail import CloudTrailClient

# An account gets two requests a second: so many answers, of each kind of change where all count.
MOST_PAGES_OF_LAST_CHANGE = 2
MOST_PAGES = 10
EVENTS_PER_PAGE = 50
SQS = "sqs.amazonaws.com"
CLOUDFORMATION = "cloudformation.amazonaws.com"

CHANGES = frozenset(
    {"SetQueueAttributes", "AddPermission", "RemovePermission", "CreateQueue", "DeleteQueue"}
)
Event = Mapping[str, Any]


class _NotRecorded(Exception):
    """The history does not say all of it."""


class _MoreFollow(_NotRecorded):
    """There are more events than are read."""


def last_change(clients: Clients, queue_arn: str) -> QueueChange | str | None:
    """The newest change of the queue's configuration that went through.

    None where CloudTrail's whole history holds none; a text where it does not say: a page goes out
    without it. Never raises.
    """
    seen = 0
    try:
        for event in _events(clients.cloudtrail, "EventSource", SQS, MOST_PAGES_OF_LAST_CHANGE):
            seen += 1
            with suppress(_NotRecorded):
                change, named = _changed(event)
                if change and queue_arn in named:
                    return change
    except _MoreFollow:
        return f"not among the newest {seen} changes of this account's queues"
    except _NotRecorded:
        return "CloudTrail did not say (no events in its answer)"
    except (ClientError, BotoCoreError) as error:
        return f"CloudTrail did not say ({type(error).__name__})"
    return None


def changes_since(
    clients: Clients, queue_arn: str, since: datetime
) -> tuple[QueueChange, ...] | str:
    """Every change of the queue that went through; a text where they are not all known.

    Never raises. Kind by kind, because the history holds every read of every queue too. What cannot
    be told to be another service's, refused or another queue's is this one's.
    """
    try:
        every = [
            (change, named)
            for event_name in sorted(CHANGES)
            for event in _events(
                clients.cloudtrail_in_full, "EventName", event_name, MOST_PAGES, StartTime=since
            )
            for change, named in [_changed(event)]
            if change and change.event_name == event_name
        ]
    except _NotRecorded as error:
        return str(error)
    except (ClientError, BotoCoreError) as error:
        return f"CloudTrail did not answer ({type(error).__name__})"
    return tuple(change for change, named in every if not named or queue_arn in named)


def _events(
    client: CloudTrailClient, attribute: Any, value: str, most: int, **asked: Any
) -> Iterator[Event]:
    """Those of so many pages; raises _MoreFollow behind them, and _NotRecorded without any."""
    pages = client.get_paginator("lookup_events").paginate(
        LookupAttributes=[{"AttributeKey": attribute, "AttributeValue": value}],
        PaginationConfig={"PageSize": EVENTS_PER_PAGE},
        **asked,
    )
    for page in islice(pages, most):
        events: Any = page.get("Events")
        if not isinstance(events, list):
            raise _NotRecorded(f"CloudTrail's answer about {value} holds no events")
        yield from events
        if not page.get("NextToken"):
            return
    raise _MoreFollow(f"more than {most * EVENTS_PER_PAGE} calls of {value} since")


def _changed(event: Event) -> tuple[QueueChange | None, set[str]]:
    """The change, where one went through, and the queues that it names. Raises _NotRecorded."""
    try:
        record = json.loads(event["CloudTrailEvent"])
    except (KeyError, TypeError, ValueError, RecursionError):
        record = None
    at = event.get("EventTime")
    if not isinstance(record, dict) or not record or not isinstance(at, datetime):
        raise _NotRecorded(f"an event of {event.get('EventName', 'no name')} is not readable")
    is_one = record.get("eventName") in CHANGES and record.get("eventSource", SQS) == SQS
    if not is_one or record.get("errorCode"):
        return None, set()
    asked, identity = _dict(record.get("requestParameters")), _dict(record.get("userIdentity"))
    called = (asked, _dict(record.get("responseElements")))
    region, urls = str(record.get("awsRegion")), (each.get("queueUrl") for each in called)
    issuer = _dict(_dict(identity.get("sessionContext")).get("sessionIssuer"))
    who = issuer.get("arn") or identity.get("arn") or identity.get("invokedBy") or "unknown"
    given = asked.get("attributes")
    attributes = tuple(sorted(map(str, _dict(given))))
    known = isinstance(given, dict) and record["eventName"] == "SetQueueAttributes"
    change = QueueChange(
        at=at,
        event_name=record["eventName"],
        # The role behind a session, as in every record of ours.
        principal_arn=role_arn(str(who)),
        attributes=attributes,
        of_policy=not known or "policy" in {each.lower() for each in attributes},
        by_cloudformation=CLOUDFORMATION
        in (identity.get("invokedBy"), record.get("sourceIPAddress")),
    )
    return change, {arn for url in urls if (arn := arn_of_url(url, region)) is not None}


def _dict(given: object) -> dict[str, Any]:
    """What is given, empty where it is something else."""
    return given if isinstance(given, dict) else {}
