"""Event history: the management events of SQS, kept and looked up whatever the trails log.

MiniStack's own records calls before it knows how they end.
https://docs.aws.amazon.com/awscloudtrail/latest/APIReference/API_LookupEvents.html
Which name SQS's events give their queue under Resources is not documented: the ARN here.
"""

from __future__ import annotations

import itertools
import json
from collections import deque
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

from ministack.core.responses import error_response_json, get_account_id, get_region
from ministack.services import cloudtrail

Record = Mapping[str, Any]
# Beyond this the oldest are forgotten; AWS keeps 90 days.
MOST_EVENTS = 20_000
MOST_RESULTS = 50
_ATTRIBUTES = ("EventId", "EventName", "EventSource", "ReadOnly", "AccessKeyId", "Username")
_OF_RESOURCES = ("ResourceName", "ResourceType")


class LookupRefused(Exception):
    """The reason why LookupEvents refuses its attributes."""


def shown(record: Record) -> dict[str, Any]:
    """A record as LookupEvents gives it; times in seconds."""
    identity = record["userIdentity"]
    session = str(identity.get("arn", "")).rpartition("/")[2]
    users = {"Root": "root", "AssumedRole": session}
    event = {
        "EventId": record["eventID"],
        "EventName": record["eventName"],
        "ReadOnly": str(record["readOnly"]).lower(),
        "AccessKeyId": identity.get("accessKeyId", ""),
        "EventTime": _seconds(record),
        "EventSource": record["eventSource"],
        "Username": users.get(identity["type"], str(identity.get("userName", ""))),
        "Resources": [
            {"ResourceType": each["type"], "ResourceName": each["ARN"]}
            for each in record.get("resources", ())
        ],
        "CloudTrailEvent": json.dumps(record),
    }
    return {name: value for name, value in event.items() if value != ""}


def _seconds(record: Record) -> float:
    return datetime.fromisoformat(record["eventTime"]).timestamp()


def _is_about(record: Record, queue_arn: str) -> bool:
    return any(each["ARN"] == queue_arn for each in record.get("resources", ()))


class EventHistory:
    """The management events of every account and region here, in the order in which they came."""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)
        self._events: deque[tuple[int, Record]] = deque(maxlen=MOST_EVENTS)

    def install(self) -> None:
        """Hook the action; once per process. MiniStack asks IAM before it comes here."""

        def answer(asked: Mapping[str, Any]) -> Any:
            try:
                found = self.look_up(asked, get_account_id(), get_region())
            except LookupRefused as refused:
                return error_response_json("InvalidLookupAttributesException", f"{refused}", 400)
            json_type = {"Content-Type": "application/x-amz-json-1.1"}
            return 200, json_type, json.dumps(found).encode()

        cloudtrail._DISPATCH["LookupEvents"] = answer

    def take(self, record: Record) -> None:
        """Keep a record if it is a management event."""
        if record["managementEvent"]:
            self._events.append((next(self._numbers), record))

    def changed_at(self, queue_arn: str) -> list[float]:
        """The times of a queue's changes, of calls that went through; in seconds."""
        return [
            _seconds(record)
            for _, record in self._events
            if _is_about(record, queue_arn) and not record["readOnly"] and "errorCode" not in record
        ]

    def put_back(self, queue_arn: str, seconds: int, since_seconds: float = 0) -> None:
        """Have what happened to a queue from then on be so much earlier, in its place among all."""
        moved = []
        for _, record in self._events:
            if _is_about(record, queue_arn) and _seconds(record) >= since_seconds:
                at = datetime.fromisoformat(record["eventTime"]) - timedelta(seconds=seconds)
                record = {**record, "eventTime": at.strftime("%Y-%m-%dT%H:%M:%SZ")}  # noqa: PLW2901
            moved.append(record)
        self._events.clear()
        self._events.extend((next(self._numbers), each) for each in sorted(moved, key=_seconds))

    def look_up(self, asked: Mapping[str, Any], account: str, region: str) -> dict[str, Any]:
        """Answer LookupEvents, newest first; raises LookupRefused."""
        name, value = _attribute(asked.get("LookupAttributes") or [])
        start, end = float(asked.get("StartTime") or 0), float(asked.get("EndTime") or "inf")
        most = min(int(asked.get("MaxResults", MOST_RESULTS)), MOST_RESULTS)
        below = float(asked.get("NextToken") or "inf")
        found = (
            (number, event)
            for number, event in self._shown(account, region, below)
            if start <= event["EventTime"] <= end and (not name or value in _values(event, name))
        )
        page = list(itertools.islice(found, most + 1))
        more = {"NextToken": str(page[most - 1][0])} if len(page) > most else {}
        return {"Events": [event for _, event in page[:most]], **more}

    def _shown(self, account: str, region: str, below: float) -> Iterator[tuple[int, Any]]:
        for number, record in reversed(tuple(self._events)):
            is_here = (record["recipientAccountId"], record["awsRegion"]) == (account, region)
            if is_here and number < below:
                yield number, shown(record)


def _attribute(given: list[Mapping[str, str]]) -> tuple[str, str]:
    if not given:
        return "", ""
    name, value = given[0].get("AttributeKey", ""), given[0].get("AttributeValue", "")
    if len(given) > 1 or name not in _ATTRIBUTES + _OF_RESOURCES or not value:
        text = f"Give one attribute with a value, out of {', '.join(_ATTRIBUTES + _OF_RESOURCES)}."
        raise LookupRefused(text)
    return name, value


def _values(event: Mapping[str, Any], name: str) -> list[Any]:
    """What an event says under the name of a lookup attribute."""
    if name in _OF_RESOURCES:
        return [each[name] for each in event["Resources"]]
    return [event.get(name, "")]
