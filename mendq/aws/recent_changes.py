"""Read from CloudTrail's event history who changed a queue.

LookupEvents searches by one field only. Mendq searches by event name, once for each API call that
changes a queue. A search by event source would return every read of every queue, including Mendq's
own reads.
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
from mendq.model.failed_call import find_principal, mapping_or_empty
from mendq.model.policy import QueueChange
from mendq.model.queue import arn_of_url

if TYPE_CHECKING:
    from mypy_boto3_cloudtrail import CloudTrailClient

# The most pages to read per API call: few for a notification, more if every change counts.
MOST_PAGES_FOR_NOTIFICATION = 2
MOST_PAGES_FOR_DECISION = 10
MOST_EARLIER_CHANGES = 3
EVENTS_PER_PAGE = 50
SQS_EVENT_SOURCE = "sqs.amazonaws.com"
CLOUDFORMATION_SERVICE = "cloudformation.amazonaws.com"

_CALLS_ON_EXISTING_QUEUES = {"SetQueueAttributes", "AddPermission", "RemovePermission"}
QUEUE_CHANGE_CALLS = frozenset({"CreateQueue", "DeleteQueue"}) | _CALLS_ON_EXISTING_QUEUES
CloudTrailEvent = Mapping[str, Any]
# A change, or None if the call failed or changed no queue; and the ARNs of the queues that the call
# names.
_ChangeAndQueueArns = tuple[QueueChange | None, set[str]]


class _IncompleteHistory(Exception):
    """CloudTrail's answer has no events, or an event that Mendq cannot read."""


class _TooManyEvents(_IncompleteHistory):
    """There are more events than Mendq reads."""


class RecentQueueChanges(Struct, frozen=True, dict=True):
    """The newest changes of all queues of the account and region.

    CloudTrail is read once, on first use, for all notifications of a run.
    """

    clients: Clients

    def find_last_change(self, queue_arn: str) -> QueueChange | str | None:
        """Return the newest successful change of the queue's configuration.

        Its field `earlier_changes` has up to MOST_EARLIER_CHANGES earlier changes. Return None if
        CloudTrail's history has no change. If the newest change is not known, return the reason as
        a text. Errors of CloudTrail are not raised, because they must not stop a notification.
        """
        if isinstance(self._history, str):
            return self._history
        changes_and_queue_arns, complete_since_by_call = self._history
        queue_changes = [
            change
            for change, queue_arns in changes_and_queue_arns
            if change and queue_arn in queue_arns
        ]
        queue_changes.sort(key=lambda change: change.at, reverse=True)
        newest_change = queue_changes[0] if queue_changes else None
        # A queue that was changed was created before. Anyone can create and delete queues by the
        # hundred. So if this queue has a change, those calls are not considered.
        relevant_call_names = _CALLS_ON_EXISTING_QUEUES if newest_change else QUEUE_CHANGE_CALLS
        complete_since_times = [
            history_complete_since
            for call_name, history_complete_since in complete_since_by_call.items()
            if call_name in relevant_call_names
        ]
        if complete_since_times and (
            newest_change is None or newest_change.at < max(complete_since_times)
        ):
            return (
                f"not among the newest {len(changes_and_queue_arns)} changes of this account's "
                "queues"
            )
        return newest_change and replace(
            newest_change, earlier_changes=tuple(queue_changes[1 : 1 + MOST_EARLIER_CHANGES])
        )

    @cached_property
    def _history(self) -> tuple[list[_ChangeAndQueueArns], dict[str, datetime]] | str:
        """The changes, and for each incomplete API call the time since which they are complete.

        An API call is incomplete if it has more events than Mendq reads. If the history cannot be
        read, the value is the reason as a text.
        """
        changes_and_queue_arns = list[_ChangeAndQueueArns]()
        complete_since_by_call = dict[str, datetime]()
        clients = self.clients
        try:
            for call_name in sorted(QUEUE_CHANGE_CALLS):
                oldest_event_at = datetime.max.replace(tzinfo=UTC)
                try:
                    for event in _iterate_events(
                        clients, clients.cloudtrail, call_name, MOST_PAGES_FOR_NOTIFICATION
                    ):
                        with suppress(_IncompleteHistory):
                            changes_and_queue_arns.append(_read_change(event))
                            oldest_event_at = event["EventTime"]
                except _TooManyEvents:
                    complete_since_by_call[call_name] = oldest_event_at
        except _IncompleteHistory:
            return "CloudTrail did not say (no events in its answer)"
        except (ClientError, BotoCoreError) as error:
            return f"CloudTrail did not say ({type(error).__name__})"
        return changes_and_queue_arns, complete_since_by_call


def list_changes_since(
    clients: Clients, queue_arn: str, since: datetime
) -> tuple[QueueChange, ...] | str:
    """Return every successful change of the queue since a time.

    If not all changes are known, return the reason as a text; errors of CloudTrail are not raised.
    A change whose event names no queue is included, because it may be a change of this queue.
    """
    try:
        changes_and_arns = [
            (change, queue_arns)
            for call_name in sorted(QUEUE_CHANGE_CALLS)
            for event in _iterate_events(
                clients,
                clients.cloudtrail_in_full,
                call_name,
                MOST_PAGES_FOR_DECISION,
                StartTime=since,
            )
            for change, queue_arns in [_read_change(event)]
            if change and change.event_name == call_name
        ]
    except _IncompleteHistory as error:
        return str(error)
    except (ClientError, BotoCoreError) as error:
        return f"CloudTrail did not answer ({type(error).__name__})"
    return tuple(
        change
        for change, queue_arns in changes_and_arns
        if not queue_arns or queue_arn in queue_arns
    )


def _iterate_events(
    clients: Clients,
    client: CloudTrailClient,
    call_name: str,
    most_pages: int,
    **lookup_arguments: Any,
) -> Iterator[CloudTrailEvent]:
    """Yield CloudTrail's events of the API call `call_name`, the newest first.

    At most `most_pages` pages are read, of EVENTS_PER_PAGE events each.

    Raise _TooManyEvents if there are more pages, _IncompleteHistory if a page has no list of
    events, and ClientError or BotoCoreError if CloudTrail cannot be read.
    """
    pages = client.get_paginator("lookup_events").paginate(
        LookupAttributes=[{"AttributeKey": "EventName", "AttributeValue": call_name}],
        PaginationConfig={"PageSize": EVENTS_PER_PAGE},
        **lookup_arguments,
    )
    clients.event_history_pace.wait()
    for page in islice(pages, most_pages):
        events: Any = page.get("Events")
        if not isinstance(events, list):
            raise _IncompleteHistory(f"CloudTrail's answer about {call_name} holds no events")
        yield from events
        if not page.get("NextToken"):
            return
        clients.event_history_pace.wait()
    raise _TooManyEvents(f"more than {most_pages * EVENTS_PER_PAGE} calls of {call_name} since")


def _read_change(event: CloudTrailEvent) -> _ChangeAndQueueArns:
    """Return the change that an event records, and the ARNs of the queues that the call names.

    Return None and an empty set if the call failed or did not change a queue. Raise
    _IncompleteHistory if the event is unreadable.
    """
    try:
        record = json.loads(event["CloudTrailEvent"])
    except (KeyError, TypeError, ValueError, RecursionError):
        record = None
    event_time = event.get("EventTime")
    if not isinstance(record, dict) or not record or not isinstance(event_time, datetime):
        raise _IncompleteHistory(f"an event of {event.get('EventName', 'no name')} is not readable")
    is_queue_change = (
        record.get("eventName") in QUEUE_CHANGE_CALLS
        and record.get("eventSource", SQS_EVENT_SOURCE) == SQS_EVENT_SOURCE
    )
    if not is_queue_change or record.get("errorCode"):
        return None, set()
    request = mapping_or_empty(record.get("requestParameters"))
    identity = mapping_or_empty(record.get("userIdentity"))
    request_and_response = (request, mapping_or_empty(record.get("responseElements")))
    region = str(record.get("awsRegion"))
    queue_urls = [
        request_or_response.get("queueUrl") for request_or_response in request_and_response
    ]
    attributes_argument = request.get("attributes")
    attributes = tuple(sorted(map(str, mapping_or_empty(attributes_argument))))
    are_attributes_known = (
        isinstance(attributes_argument, dict) and record["eventName"] == "SetQueueAttributes"
    )
    change = QueueChange(
        at=event_time,
        event_name=record["eventName"],
        # The role behind a session, as in all of Mendq's records.
        principal_arn=find_principal(identity, str(identity.get("arn", ""))) or "unknown",
        attributes=attributes,
        may_change_policy=not are_attributes_known
        or "policy" in {attribute.lower() for attribute in attributes},
        by_cloudformation=CLOUDFORMATION_SERVICE
        in (identity.get("invokedBy"), record.get("sourceIPAddress")),
    )
    return change, {arn for url in queue_urls if (arn := arn_of_url(url, region)) is not None}
