"""Who changed a queue last: CloudTrail's event history, which needs no trail and goes back 90 days.

https://docs.aws.amazon.com/awscloudtrail/latest/APIReference/API_LookupEvents.html
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import islice
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from functions.aws.clients import Clients
from functions.healing.queue_lines import Change
from functions.healing.queue_names import arn_of_url

# An account gets two requests a second: so many answers, and no more are asked for.
MOST_PAGES = 2
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
        for page in islice(pages, MOST_PAGES):
            events = events_in(page)
            if events is None:
                return "CloudTrail did not say (no events in its answer)"
            seen += len(events)
            change = next(_changes(events, queue_arn), None)
            if change or not page.get("NextToken"):
                return change
    except (ClientError, BotoCoreError) as error:
        return f"CloudTrail did not say ({type(error).__name__})"
    return f"not among the newest {seen} changes of this account's queues"


def _changes(events: Iterable[Mapping[str, Any]], queue_arn: str) -> Iterator[Change]:
    for event in events:
        record = record_of(event)
        if record.get("eventName") in CHANGES and "errorCode" not in record:
            asked = record.get("requestParameters")
            answered = record.get("responseElements")
            named = (queue_in(each, record) for each in (asked, answered))
            if queue_arn in named:
                yield Change(
                    at=event["EventTime"],
                    event_name=str(record["eventName"]),
                    principal_arn=principal_of(record),
                    attributes=_attributes_in(asked),
                )


def events_in(page: Mapping[str, Any]) -> Sequence[Mapping[str, Any]] | None:
    """None where an answer says nothing of events: that is not the answer that there are none."""
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
    if not isinstance(parameters, dict):
        return None
    return arn_of_url(parameters.get("queueUrl"), str(record.get("awsRegion")))


def principal_of(record: Mapping[str, Any]) -> str:
    """The role behind a session, as in every record of ours."""
    identity = record.get("userIdentity")
    if not isinstance(identity, dict):
        return "unknown"
    context = identity.get("sessionContext")
    issuer = context.get("sessionIssuer") if isinstance(context, dict) else None
    arn = issuer.get("arn") if isinstance(issuer, dict) else None
    return str(arn or identity.get("arn") or identity.get("invokedBy") or "unknown")


def _attributes_in(parameters: object) -> tuple[str, ...]:
    attributes = parameters.get("attributes") if isinstance(parameters, dict) else None
    return tuple(sorted(map(str, attributes))) if isinstance(attributes, dict) else ()
