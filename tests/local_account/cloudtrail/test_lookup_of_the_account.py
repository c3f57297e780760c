"""LookupEvents as boto3 gets it: who changed a queue, whatever the trail logs."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from local_account.process import LocalAccount
from tests.local_account.callers import ALL_OF_SQS, user
from tests.local_account.queues import Queue, error_of, new_queue

pytestmark = pytest.mark.account
HEAL = "arn:aws:iam::000000000000:role/mendq-heal-us-east-1"
LOOK_UP = {"Effect": "Allow", "Action": "cloudtrail:LookupEvents", "Resource": "*"}


def _found(account: LocalAccount, queue: Queue, **asked: Any) -> list[dict[str, Any]]:
    """The events about a queue, through every page."""
    pages = account.client("cloudtrail").get_paginator("lookup_events").paginate(**asked)
    events = [event for page in pages for event in page["Events"]]
    arn = queue.arn
    return [
        each for each in events if arn in [of["ResourceName"] for of in each.get("Resources", [])]
    ]


def _by(name: str, value: str) -> dict[str, Any]:
    return {"LookupAttributes": [{"AttributeKey": name, "AttributeValue": value}]}


def test_calls_on_messages_and_reads_are_never_there(account: LocalAccount) -> None:
    queue = new_queue(account)
    queue.send()
    queue.delete(queue.receive())
    error_of(lambda: queue.delete("nonsense"))
    queue.attributes()
    assert [each["EventName"] for each in _found(account, queue)] == ["CreateQueue"]


def test_every_way_to_change_a_queue_newest_first(account: LocalAccount) -> None:
    queue, began = new_queue(account), datetime.now(UTC).replace(microsecond=0)
    queue.set(VisibilityTimeout="31")
    queue.sqs.tag_queue(QueueUrl=queue.url, Tags={"a": "b"})
    queue.sqs.untag_queue(QueueUrl=queue.url, TagKeys=["a"])
    queue.sqs.add_permission(
        QueueUrl=queue.url, Label="one", AWSAccountIds=["111111111111"], Actions=["SendMessage"]
    )
    queue.sqs.remove_permission(QueueUrl=queue.url, Label="one")
    code, message = error_of(lambda: queue.set(VisibilityTimeout="43201"))
    events = _found(account, queue, **_by("EventSource", "sqs.amazonaws.com"), StartTime=began)
    assert [each["EventName"] for each in events][:6] == [
        "SetQueueAttributes",
        "RemovePermission",
        "AddPermission",
        "UntagQueue",
        "TagQueue",
        "SetQueueAttributes",
    ]
    failed, changed = (json.loads(events[place]["CloudTrailEvent"]) for place in (0, 5))
    assert (failed["errorCode"], failed["errorMessage"]) == (code, message)
    assert changed["requestParameters"]["attributes"] == {"VisibilityTimeout": "31"}
    assert changed["eventID"] == events[5]["EventId"]
    assert events[5]["Username"] == "root"
    assert events[5]["ReadOnly"] == "false"
    assert abs(events[5]["EventTime"] - began) < timedelta(seconds=60)


def test_pages_and_their_token(account: LocalAccount) -> None:
    queue, cloudtrail = new_queue(account), account.client("cloudtrail")
    for seconds in ("31", "32", "33"):
        queue.set(VisibilityTimeout=seconds)
    asked = {**_by("ResourceName", queue.arn), "MaxResults": 2}
    first = cloudtrail.lookup_events(**asked)
    second = cloudtrail.lookup_events(**asked, NextToken=first["NextToken"])
    announced = [
        json.loads(each["CloudTrailEvent"])["requestParameters"]["attributes"]
        for each in (*first["Events"], *second["Events"])
    ]
    assert [each.get("VisibilityTimeout") for each in announced] == ["33", "32", "31", None]
    assert "NextToken" not in second


def test_an_iam_user_needs_the_permission(account: LocalAccount) -> None:
    _, may_not = user(account, ALL_OF_SQS)
    call = account.client("cloudtrail", **may_not).lookup_events
    assert error_of(call)[0].startswith("AccessDenied")
    _, may = user(account, LOOK_UP)
    assert "Events" in account.client("cloudtrail", **may).lookup_events()
