"""Read from CloudTrail's event history who changed a queue.

The history can be searched by one field only. Mendq searches by the names of the calls that change
a queue. A search by SQS would return every read of every queue, including Mendq's own.
https://docs.aws.amazon.com/awscloudtrail/latest/APIReference/API_LookupEvents.html
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError
from msgspec import Struct

from mendq.aws.clients import Clients
from mendq.model.failed_call import principal_of, read_mapping
from mendq.model.policy import QueueChange
from mendq.model.queue import arn_of_url

if TYPE_CHECKING:
    from mypy_boto3_cloudtrail import CloudTrailClient

# The most pages per kind of call: few for a notification, many if every change counts.
MOST_PAGES_OF_EACH = 2
MOST_PAGES = 10
MOST_EARLIER = 3
EVENTS_PER_PAGE = 50
SQS = "sqs.amazonaws.com"
CLOUDFORMATION = "cloudformation.amazonaws.com"

_CHANGES_OF_A_QUEUE_THAT_IS_THERE = {"SetQueueAttributes", "AddPermission", "RemovePermission"}
CHANGES = frozenset({"CreateQueue", "DeleteQueue"}) | _CHANGES_OF_A_QUEUE_THAT_IS_THERE
Event = Mapping[str, Any]
# A change, None if its call failed; and the ARNs of the queues that the call names.
_Changed = tuple[QueueChange | None, set[str]]


class _NotRecorded(Exception):
    """The event history is incomplete."""


class _MoreFollow(_NotRecorded):
    """There are more events than Mendq reads."""


class RecentChanges(Struct, frozen=True, dict=True):
    """The newest changes of all queues of the account and region.

    They are read once, on first use, for all notifications of a run.
    """

    clients: Clients

    def last_of(self, queue_arn: str) -> QueueChange | str | None:
        """Return the newest successful change of the queue's configuration, with some earlier ones.

        None if CloudTrail's history contains none. If the newest change is not known, return the
        reason as a text. Raises nothing, so that a notification is sent in any case.
        """
        if isinstance(self._read, str):
            return self._read
        changes, cut_at = self._read
        ours = [change for change, named in changes if change and queue_arn in named]
        ours.sort(key=lambda change: change.at, reverse=True)
        newest = ours[0] if ours else None
        # A queue that was changed was created before. Anyone can create and delete queues by the
        # hundred. Such calls count as other queues', so that they hide no change of this queue.
        hiding = _CHANGES_OF_A_QUEUE_THAT_IS_THERE if newest else CHANGES
        may_hide = [at for name, at in cut_at.items() if name in hiding]
        if may_hide and (newest is None or newest.at < max(may_hide)):
            return f"not among the newest {len(changes)} changes of this account's queues"
        return newest and replace(newest, earlier=tuple(ours[1 : 1 + MOST_EARLIER]))

    @cached_property
    def _read(self) -> tuple[list[_Changed], dict[str, datetime]] | str:
        """The changes that were read, and the time since which they are complete, by API call.

        The second value contains only calls with more events than Mendq reads. If the history
        cannot be read, the reason as a text.
        """
        changes = list[_Changed]()
        cut_at = dict[str, datetime]()
        clients = self.clients
        try:
            for name in sorted(CHANGES):
                at = datetime.max.replace(tzinfo=UTC)
                try:
                    for event in _events(clients, clients.cloudtrail, name, MOST_PAGES_OF_EACH):
                        with suppress(_NotRecorded):
                            changes.append(_read_change(event))
                            at = event["EventTime"]
                except _MoreFollow:
                    cut_at[name] = at
        except _NotRecorded:
            return "CloudTrail did not say (no events in its answer)"
        except (ClientError, BotoCoreError) as error:
            return f"CloudTrail did not say ({type(error).__name__})"
        return changes, cut_at


def list_changes_since(
    clients: Clients, queue_arn: str, since: datetime
) -> tuple[QueueChange, ...] | str:
    """Return every successful change of the queue since a time. Raises nothing.

    If not all changes are known, return the reason as a text. A change that names no queue counts
    as a change of this queue.
    """
    try:
        every = [
            (change, named)
            for event_name in sorted(CHANGES)
            for event in _events(
                clients, clients.cloudtrail_in_full, event_name, MOST_PAGES, StartTime=since
            )
            for change, named in [_read_change(event)]
            if change and change.event_name == event_name
        ]
    except _NotRecorded as error:
        return str(error)
    except (ClientError, BotoCoreError) as error:
        return f"CloudTrail did not answer ({type(error).__name__})"
    return tuple(change for change, named in every if not named or queue_arn in named)


def _events(
    clients: Clients, client: CloudTrailClient, name: str, most: int, **asked: Any
) -> Iterator[Event]:
    """Yield CloudTrail's events of the API call `name`, the newest first, of at most `most` pages.

    Raise _MoreFollow if there are more pages, and _NotRecorded if a page has no list of events.
    """
    pages = client.get_paginator("lookup_events").paginate(
        LookupAttributes=[{"AttributeKey": "EventName", "AttributeValue": name}],
        PaginationConfig={"PageSize": EVENTS_PER_PAGE},
        **asked,
    )
    clients.look_ups.wait()
    for page in islice(pages, most):
        events: Any = page.get("Events")
        if not isinstance(events, list):
            raise _NotRecorded(f"CloudTrail's answer about {name} holds no events")
        yield from events
        if not page.get("NextToken"):
            return
        clients.look_ups.wait()
    raise _MoreFollow(f"more than {most * EVENTS_PER_PAGE} calls of {name} since")


def _read_change(event: Event) -> _Changed:
    """Return the change that an event records, and the ARNs of the queues that the call names.

    None and an empty set if the call failed or is no change of a queue. Raise _NotRecorded if the
    event is unreadable.
    """
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
    asked = read_mapping(record.get("requestParameters"))
    identity = read_mapping(record.get("userIdentity"))
    called = (asked, read_mapping(record.get("responseElements")))
    region = str(record.get("awsRegion"))
    urls = [part.get("queueUrl") for part in called]
    given = asked.get("attributes")
    attributes = tuple(sorted(map(str, read_mapping(given))))
    known = isinstance(given, dict) and record["eventName"] == "SetQueueAttributes"
    change = QueueChange(
        at=at,
        event_name=record["eventName"],
        # The role behind a session, as in all of Mendq's records.
        principal_arn=principal_of(identity, str(identity.get("arn", ""))) or "unknown",
        attributes=attributes,
        of_policy=not known or "policy" in {attribute.lower() for attribute in attributes},
        by_cloudformation=CLOUDFORMATION
        in (identity.get("invokedBy"), record.get("sourceIPAddress")),
    )
    return change, {arn for url in urls if (arn := arn_of_url(url, region)) is not None}
