"""CloudTrail's event history: management events, stored even if no trail logs them.

This history replaces MiniStack's own, which records a call before its outcome is known. AWS does
not document which name of the queue an SQS event has under Resources. Here it is the ARN.
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
LAMBDA_EVENT_SOURCE = "lambda.amazonaws.com"
FUNCTION_TYPE = "AWS::Lambda::Function"
# If there are more events, the oldest are dropped. AWS keeps events for 90 days.
MAXIMUM_STORED_EVENTS = 20_000
MAXIMUM_RESULTS_PER_PAGE = 50


def make_event(record: Record) -> Event:
    """Return a record as an event of LookupEvents. EventTime is in seconds since the epoch.

    Fields whose value is empty text are left out, such as the name of an unknown user.
    """
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
    function_name = (record["requestParameters"] or {}).get("functionName")
    if record["eventSource"] == LAMBDA_EVENT_SOURCE and function_name:
        resources.append({"ResourceType": FUNCTION_TYPE, "ResourceName": function_name})
    event = {
        "EventId": record["eventID"],
        "EventName": record["eventName"],
        "EventTime": _get_event_seconds(record),
        "EventSource": record["eventSource"],
        "Username": user_name,
        "Resources": resources,
        "CloudTrailEvent": json.dumps(record),
    }
    return {name: value for name, value in event.items() if value != ""}


def _get_event_seconds(record: Record) -> float:
    return datetime.fromisoformat(record["eventTime"]).timestamp()


class EventHistory:
    """The newest management events of all accounts and Regions, oldest first."""

    def __init__(self) -> None:
        self._records: deque[Record] = deque(maxlen=MAXIMUM_STORED_EVENTS)

    def install(self) -> None:
        """Make MiniStack answer LookupEvents from this history. Call this once per process.

        MiniStack checks the caller's permissions before.
        """
        cloudtrail._DISPATCH["LookupEvents"] = self._answer_lookup

    def add(self, record: Record) -> None:
        """Add a record to the history if it is a management event."""
        if record["managementEvent"]:
            self._records.append(record)

    def put_back(self, queue_arn: str, seconds: int, since_seconds: float = 0) -> None:
        """Make a queue's events older by `seconds`.

        Only events at or after the time `since_seconds` (seconds since the epoch) are changed. The
        history stays sorted by time.
        """
        records = [
            _copy_with_earlier_time(record, seconds)
            if _is_about_queue(record, queue_arn) and _get_event_seconds(record) >= since_seconds
            else record
            for record in self._records
        ]
        self._records = deque(sorted(records, key=_get_event_seconds), maxlen=MAXIMUM_STORED_EVENTS)

    def _answer_lookup(self, request: Mapping[str, Any]) -> Any:
        """Return the response to LookupEvents: a page of events, the newest first.

        The token for the next page is the id of the last event on this page.
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
        matching_events = [
            event
            for event in events
            if _matches_lookup(event, start_seconds, end_seconds, lookup_attributes)
        ]
        page_tokens = [None, *(event["EventId"] for event in matching_events)]
        page_start = page_tokens.index(request.get("NextToken"))
        page_size = min(
            int(request.get("MaxResults", MAXIMUM_RESULTS_PER_PAGE)), MAXIMUM_RESULTS_PER_PAGE
        )
        page_end = page_start + page_size
        response = {
            "Events": matching_events[page_start:page_end],
            "NextToken": page_tokens[page_end] if matching_events[page_end:] else None,
        }
        return 200, {"Content-Type": "application/x-amz-json-1.1"}, json.dumps(response).encode()


def _is_about_queue(record: Record, queue_arn: str) -> bool:
    return any(resource["ARN"] == queue_arn for resource in record.get("resources", ()))


def _copy_with_earlier_time(record: Record, seconds: int) -> Record:
    """Return a copy of the record with a time that is `seconds` earlier."""
    event_time = datetime.fromisoformat(record["eventTime"]) - timedelta(seconds=seconds)
    return {**record, "eventTime": event_time.strftime("%Y-%m-%dT%H:%M:%SZ")}


def _matches_lookup(
    event: Event,
    start_seconds: float,
    end_seconds: float,
    lookup_attributes: list[Mapping[str, str]],
) -> bool:
    """Return True if the event is between the two times and has all lookup attributes."""
    if not start_seconds <= event["EventTime"] <= end_seconds:
        return False
    return all(_has_attribute(event, lookup_attribute) for lookup_attribute in lookup_attributes)


def _has_attribute(event: Event, lookup_attribute: Mapping[str, str]) -> bool:
    """Return True if the event or one of its resources has the lookup attribute's value."""
    attribute_name = lookup_attribute["AttributeKey"]
    attribute_value = lookup_attribute.get("AttributeValue", "")
    return any(
        event_fields.get(attribute_name) == attribute_value
        for event_fields in (event, *event["Resources"])
    )
