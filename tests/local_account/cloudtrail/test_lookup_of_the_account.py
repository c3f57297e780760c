"""LookupEvents as boto3 gets it: who changed a queue, whatever the trail logs."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from local_account.process import LocalAccount
from tests.local_account.callers import ALL_OF_SQS, user
from tests.local_account.queues import error_of, new_queue

pytestmark = pytest.mark.account


def _by(name: str, value: str) -> dict[str, Any]:
    return {"LookupAttributes": [{"AttributeKey": name, "AttributeValue": value}]}


def test_every_change_of_a_queue_newest_first_page_by_page(account: LocalAccount) -> None:
    queue, began = new_queue(account), datetime.now(UTC).replace(microsecond=0)
    queue.send()
    queue.delete(queue.receive())
    error_of(lambda: queue.delete("nonsense"))
    queue.set(VisibilityTimeout="31")
    queue.sqs.tag_queue(QueueUrl=queue.url, Tags={"a": "b"})
    code, message = error_of(lambda: queue.set(VisibilityTimeout="43201"))
    lookup = account.client("cloudtrail").get_paginator("lookup_events").paginate
    for asked in (_by("ResourceName", queue.arn), _by("EventSource", "sqs.amazonaws.com")):
        pages = lookup(**asked, StartTime=began, PaginationConfig={"PageSize": 2})
        every = [event for page in pages for event in page["Events"]]
        events = [e for e in every if queue.arn in [of["ResourceName"] for of in e["Resources"]]]
        names = [each["EventName"] for each in events]
        assert names == ["SetQueueAttributes", "TagQueue", "SetQueueAttributes", "CreateQueue"]
    failed, _, changed, _ = (json.loads(each["CloudTrailEvent"]) for each in events)
    assert (failed["errorCode"], failed["errorMessage"]) == (code, message)
    assert changed["requestParameters"]["attributes"] == {"VisibilityTimeout": "31"}
    assert changed["eventID"] == events[2]["EventId"]
    assert (events[2]["Username"], events[2]["ReadOnly"]) == ("root", "false")
    assert abs(events[2]["EventTime"] - began) < timedelta(seconds=60)


def test_an_attribute_that_nobody_knows_is_refused(account: LocalAccount) -> None:
    call = account.client("cloudtrail").lookup_events
    code, _ = error_of(lambda: call(**_by("Nonsense", "x")))
    assert code == "InvalidLookupAttributesException"


def test_an_iam_user_needs_the_permission(account: LocalAccount) -> None:
    _, may_not = user(account, ALL_OF_SQS)
    call = account.client("cloudtrail", **may_not).lookup_events
    assert error_of(call)[0].startswith("AccessDenied")
