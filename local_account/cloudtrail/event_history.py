"""Event history: the management events of SQS, kept and looked up whatever the trails log.

MiniStack's own records calls before it knows how they end.
https://docs.aws.amazon.com/awscloudtrail/latest/APIReference/API_LookupEvents.html
Which name SQS's events give their queue under Resources is not documented: the ARN here.
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
# Beyond this the oldest are forgotten; AWS keeps 90 days.
MOST_EVENTS = 20_000
MOST_RESULTS = 50


def shown(record: Record) -> Event:
    """A record as LookupEvents gives it; times in seconds."""
    identity = record["userIdentity"]
    session = str(identity.get("arn", "")).rpartition("/")[2]
    users = {"Root": "root", "AssumedRole": session}
    touched = record.get("resources", ())
    event = {
        "EventId": record["eventID"],
        "EventName": record["eventName"],
        "EventTime": _seconds(record),
        "EventSource": record["eventSource"],
        "Username": users.get(identity["type"], str(identity.get("userName", ""))),
        "Resources": [{"ResourceType": e["type"], "ResourceName": e["ARN"]} for e in touched],
        "CloudTrailEvent": json.dumps(record),
    }
    return {name: value for name, value in event.items() if value != ""}


def _seconds(record: Record) -> float:
    return datetime.fromisoformat(record["eventTime"]).timestamp()


class EventHistory:
    """The management events of every account and region here, in the order in which they came."""

    def __init__(self) -> None:
        self._records: deque[Record] = deque(maxlen=MOST_EVENTS)

    def install(self) -> None:
        """Hook the action; once per process. MiniStack asks IAM before it comes here."""
        cloudtrail._DISPATCH["LookupEvents"] = self._look_up

    def take(self, record: Record) -> None:
        """Keep a record if it is a management event."""
        if record["managementEvent"]:
            self._records.append(record)

    def put_back(self, queue_arn: str, seconds: int, since_seconds: float = 0) -> None:
        """Have what happened to a queue from then on be so much earlier, in its place among all."""
        moved = []
        for record in self._records:
            is_about = any(each["ARN"] == queue_arn for each in record.get("resources", ()))
            if is_about and _seconds(record) >= since_seconds:
                at = datetime.fromisoformat(record["eventTime"]) - timedelta(seconds=seconds)
                record = {**record, "eventTime": at.strftime("%Y-%m-%dT%H:%M:%SZ")}  # noqa: PLW2901
            moved.append(record)
        self._records = deque(sorted(moved, key=_seconds), maxlen=MOST_EVENTS)

    def _look_up(self, asked: Mapping[str, Any]) -> Any:
        """Answer LookupEvents, newest first; a token is the last event of the page before."""
        here = (get_account_id(), get_region())
        start, end = float(asked.get("StartTime") or 0), float(asked.get("EndTime") or "inf")
        found = [
            event
            for record in reversed(tuple(self._records))
            if (record["recipientAccountId"], record["awsRegion"]) == here
            if start <= (event := shown(record))["EventTime"] <= end
            if all(_has(event, each) for each in asked.get("LookupAttributes") or [])
        ]
        ids = [None, *(each["EventId"] for each in found)]
        begin = ids.index(asked.get("NextToken"))
        most = begin + min(int(asked.get("MaxResults", MOST_RESULTS)), MOST_RESULTS)
        answer = {"Events": found[begin:most], "NextToken": ids[most] if found[most:] else None}
        return 200, {"Content-Type": "application/x-amz-json-1.1"}, json.dumps(answer).encode()


def _has(event: Event, attribute: Mapping[str, str]) -> bool:
    """Tell whether an event, or a resource of it, has a lookup attribute's value."""
    name, value = attribute["AttributeKey"], attribute.get("AttributeValue", "")
    return any(each.get(name) == value for each in (event, *event["Resources"]))
