"""CloudTrail's event history: SQS management events, which are kept even if no trail logs them.

MiniStack's own event history records calls before it knows how they end, so it is replaced. AWS
does not document by which name SQS's events list their queue under Resources; here it is the ARN.
https://docs.aws.amazon.com/awscloudtrail/latest/APIReference/API_LookupEvents.html
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from ministack.core.responses import get_account_id, get_region
from ministack.services import cloudtrail

Record = Mapping[str, Any]
Event = dict[str, Any]
# If there are more events, the oldest are dropped. AWS keeps events for 90 days.
MAXIMUM_EVENTS = 20_000
MAXIMUM_RESULTS_PER_PAGE = 50


def make_event(record: Record) -> Event:
    """Return a record in the form that LookupEvents answers. Its time is in seconds."""
    identity = record["userIdentity"]
    if identity["type"] == "Root":
        user_name = "root"
    elif identity["type"] == "AssumedRole":
        user_name = str(identity.get("arn", "")).rpartition("/")[2]  # the session's name
    else:
        user_name = str(identity.get("userName", ""))
    resources = [
        {"ResourceType": resource["type"], "ResourceName": resource["ARN"]}
        for resource in record.get("resources", ())
    ]
    event = {
        "EventId": record["eventID"],
        "EventName": record["eventName"],
        "EventTime": _time_in_seconds(record),
        "EventSource": record["eventSource"],
        "Username": user_name,
        "Resources": resources,
        "CloudTrailEvent": json.dumps(record),
    }
    return {name: value for name, value in event.items() if value != ""}


def _time_in_seconds(record: Record) -> float:
    return datetime.fromisoformat(record["eventTime"]).timestamp()


class EventHistory:
    """The management events of all accounts and Regions, oldest first."""

    def __init__(self) -> None:
        self._records: deque[Record] = deque(maxlen=MAXIMUM_EVENTS)

    def install(self) -> None:
        """Make MiniStack answer LookupEvents from this history. Call this once per process.

        MiniStack has checked the caller's permissions by then.
        """
        cloudtrail._DISPATCH["LookupEvents"] = self._answer_lookup

    def add(self, record: Record) -> None:
        """Add a record to the history if it is a management event."""
        if record["managementEvent"]:
            self._records.append(record)

    def put_back(self, queue_arn: str, seconds: int, since_seconds: float = 0) -> None:
        """Make a queue's events older: they then happened `seconds` earlier.

        Only events at or after `since_seconds` (since the epoch) are changed. The history stays
        sorted by time.
        """
        records = [
            _make_earlier(record, seconds)
            if _is_about(record, queue_arn) and _time_in_seconds(record) >= since_seconds
            else record
            for record in self._records
        ]
        self._records = deque(sorted(records, key=_time_in_seconds), maxlen=MAXIMUM_EVENTS)

    def _answer_lookup(self, request: Mapping[str, Any]) -> Any:
        """Answer LookupEvents, newest event first.

        The token for the next page is the id of the last event of this page.
        """
        events = [
            make_event(record)
            for record in reversed(tuple(self._records))
            if (record["recipientAccountId"], record["awsRegion"])
            == (get_account_id(), get_region())
        ]
        start_seconds = float(request.get("StartTime") or 0)
        end_seconds = float(request.get("EndTime") or "inf")
        lookup_attributes = request.get("LookupAttributes") or []
        matches = [
            event
            for event in events
            if _is_match(event, start_seconds, end_seconds, lookup_attributes)
        ]
        page_tokens = [None, *(event["EventId"] for event in matches)]
        page_start = page_tokens.index(request.get("NextToken"))
        page_size = min(
            int(request.get("MaxResults", MAXIMUM_RESULTS_PER_PAGE)), MAXIMUM_RESULTS_PER_PAGE
        )
        page_end = page_start + page_size
        answer = {
            "Events": matches[page_start:page_end],
            "NextToken": page_tokens[page_end] if matches[page_end:] else None,
        }
        return 200, {"Content-Type": "application/x-amz-json-1.1"}, json.dumps(answer).encode()


def _is_about(record: Record, queue_arn: str) -> bool:
    return any(resource["ARN"] == queue_arn for resource in record.get("resources", ()))


def _make_earlier(record: Record, seconds: int) -> Record:
    """Return the record as if its call had happened `seconds` earlier."""
    event_time = datetime.fromisoformat(record["eventTime"]) - timedelta(seconds=seconds)
    return {**record, "eventTime": event_time.strftime("%Y-%m-%dT%H:%M:%SZ")}


def _is_match(
    event: Event, start_seconds: float, end_seconds: float, attributes: list[Mapping[str, str]]
) -> bool:
    """Return True if the event is between the two times and has all lookup attributes."""
    if not start_seconds <= event["EventTime"] <= end_seconds:
        return False
    return all(_has_attribute(event, attribute) for attribute in attributes)


def _has_attribute(event: Event, attribute: Mapping[str, str]) -> bool:
    """Return True if the event, or one of its resources, has the value of a lookup attribute."""
    attribute_name = attribute["AttributeKey"]
    attribute_value = attribute.get("AttributeValue", "")
    return any(
        event_fields.get(attribute_name) == attribute_value
        for event_fields in (event, *event["Resources"])
    )
