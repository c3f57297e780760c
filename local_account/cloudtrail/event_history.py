"""Event history: the management events of SQS, kept and looked up whatever the trails log.

https://docs.aws.amazon.com/awscloudtrail/latest/APIReference/API_LookupEvents.html
Which name SQS's events give their queue under Resources is not documented: the ARN here.
"""

from __future__ import annotations

import hashlib
import itertools
import json
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

Record = Mapping[str, Any]
# Beyond this the oldest are forgotten; AWS keeps 90 days.
MOST_EVENTS = 20_000
MOST_RESULTS = 50


class LookupRefused(Exception):
    """What LookupEvents refuses: the code of CloudTrail's exception, and why."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


def username(identity: Mapping[str, Any]) -> str:
    """The user of an event: an IAM user's name, a role's session, `root`, or none."""
    if identity["type"] == "Root":
        return "root"
    if identity["type"] == "AssumedRole":
        return str(identity["arn"]).rpartition("/")[2]
    return str(identity.get("userName", ""))


def shown(record: Record) -> dict[str, Any]:
    """A record as LookupEvents gives it; times in seconds."""
    event = {
        "EventId": record["eventID"],
        "EventName": record["eventName"],
        "ReadOnly": str(record["readOnly"]).lower(),
        "AccessKeyId": record["userIdentity"].get("accessKeyId", ""),
        "EventTime": _seconds(record),
        "EventSource": record["eventSource"],
        "Username": username(record["userIdentity"]),
        "Resources": _resources(record),
        "CloudTrailEvent": json.dumps(record),
    }
    return {name: value for name, value in event.items() if value != ""}


def _seconds(record: Record) -> float:
    return datetime.fromisoformat(record["eventTime"]).timestamp()


def _earlier(record: Record, seconds: int) -> Record:
    at = datetime.fromisoformat(record["eventTime"]) - timedelta(seconds=seconds)
    return {**record, "eventTime": at.strftime("%Y-%m-%dT%H:%M:%SZ")}


def _is_about(record: Record, queue_arn: str) -> bool:
    return any(each["ARN"] == queue_arn for each in record.get("resources", ()))


def _resources(record: Record) -> list[dict[str, str]]:
    return [
        {"ResourceType": each["type"], "ResourceName": each["ARN"]}
        for each in record.get("resources", ())
    ]


_ATTRIBUTES: Mapping[str, Callable[[Record], list[str]]] = {
    "AccessKeyId": lambda record: [record["userIdentity"].get("accessKeyId", "")],
    "EventId": lambda record: [record["eventID"]],
    "EventName": lambda record: [record["eventName"]],
    "EventSource": lambda record: [record["eventSource"]],
    "ReadOnly": lambda record: [str(record["readOnly"]).lower()],
    "ResourceName": lambda record: [each["ResourceName"] for each in _resources(record)],
    "ResourceType": lambda record: [each["ResourceType"] for each in _resources(record)],
    "Username": lambda record: [username(record["userIdentity"])],
}


@dataclass(frozen=True)
class Lookup:
    """What one call asks for."""

    attribute: str | None
    value: str
    start_seconds: float
    end_seconds: float
    most: int
    below: int | None  # the number of the last event that the page before gave

    def takes(self, record: Record) -> bool:
        if not self.start_seconds <= _seconds(record) <= self.end_seconds:
            return False
        return self.attribute is None or self.value in _ATTRIBUTES[self.attribute](record)


def read(asked: Mapping[str, Any]) -> Lookup:
    """Read the parameters of a call; raises LookupRefused."""
    attribute, value = _attribute(asked.get("LookupAttributes") or [])
    start = float(asked.get("StartTime") or 0)
    end = float(asked.get("EndTime") or "inf")
    if start > end:
        raise LookupRefused("InvalidTimeRangeException", "StartTime is after EndTime.")
    most = asked.get("MaxResults", MOST_RESULTS)
    if not 1 <= most <= MOST_RESULTS:
        raise LookupRefused(
            "InvalidMaxResultsException", f"MaxResults must be from 1 to {MOST_RESULTS}."
        )
    return Lookup(attribute, value, start, end, most, _below(asked))


def _attribute(given: list[Mapping[str, str]]) -> tuple[str | None, str]:
    if not given:
        return None, ""
    name, value = given[0].get("AttributeKey"), given[0].get("AttributeValue")
    if len(given) > 1 or name not in _ATTRIBUTES or not value:
        raise LookupRefused(
            "InvalidLookupAttributesException",
            f"Give one attribute with a value, out of {', '.join(_ATTRIBUTES)}.",
        )
    return name, value


def _below(asked: Mapping[str, Any]) -> int | None:
    if not (token := asked.get("NextToken")):
        return None
    number, _, digest = str(token).partition(".")
    if not number.isdecimal() or digest != _digest(asked):
        raise LookupRefused(
            "InvalidNextTokenException", "NextToken belongs to a call with other parameters."
        )
    return int(number)


def _digest(asked: Mapping[str, Any]) -> str:
    same = {name: asked.get(name) for name in ("LookupAttributes", "StartTime", "EndTime")}
    return hashlib.sha256(json.dumps(same, sort_keys=True).encode()).hexdigest()[:32]


class EventHistory:
    """The management events of every account and region here, in the order in which they came."""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)
        self._events: deque[tuple[int, Record]] = deque(maxlen=MOST_EVENTS)

    def __len__(self) -> int:
        return len(self._events)

    def take(self, record: Record) -> None:
        """Keep a record if it is a management event."""
        if record["managementEvent"]:
            self._events.append((next(self._numbers), record))

    def changed_at(self, queue_arn: str) -> list[float]:
        """When a queue was changed, as far as calls that went through tell; in seconds."""
        return [
            _seconds(record)
            for _, record in self._events
            if _is_about(record, queue_arn) and not record["readOnly"] and "errorCode" not in record
        ]

    def put_back(self, queue_arn: str, seconds: int, since_seconds: float = 0) -> None:
        """Have what happened to a queue from then on be so much earlier, in its place among all."""
        earlier = [
            _earlier(record, seconds)
            if _is_about(record, queue_arn) and _seconds(record) >= since_seconds
            else record
            for _, record in self._events
        ]
        self._events.clear()
        self._events.extend((next(self._numbers), each) for each in sorted(earlier, key=_seconds))

    def look_up(self, asked: Mapping[str, Any], account: str, region: str) -> dict[str, Any]:
        """Answer LookupEvents, newest first; raises LookupRefused."""
        lookup = read(asked)
        if category := asked.get("EventCategory"):
            if category != "insight":
                raise LookupRefused("InvalidEventCategoryException", "Give insight, or nothing.")
            return {"Events": []}
        found = (each for each in self._of(account, region) if lookup.takes(each[1]))
        if lookup.below is not None:
            found = (each for each in found if each[0] < lookup.below)
        page = list(itertools.islice(found, lookup.most + 1))
        answer: dict[str, Any] = {"Events": [shown(record) for _, record in page[: lookup.most]]}
        if len(page) > lookup.most:
            answer["NextToken"] = f"{page[lookup.most - 1][0]}.{_digest(asked)}"
        return answer

    def _of(self, account: str, region: str) -> Iterator[tuple[int, Record]]:
        for number, record in reversed(tuple(self._events)):
            if (record["recipientAccountId"], record["awsRegion"]) == (account, region):
                yield number, record
