"""Looking management events up: which, in which order, by page."""

from __future__ import annotations

import json
from typing import Any

import pytest

from local_account.cloudtrail.event_history import MOST_EVENTS, EventHistory, LookupRefused

ACCOUNT, REGION = "000000000000", "us-east-1"
NOON = 1_795_262_400  # 2026-11-21T12:00:00Z
ANN = {"type": "IAMUser", "userName": "ann", "accessKeyId": "AKIAANN", "accountId": ACCOUNT}
ARN = f"arn:aws:sqs:{REGION}:{ACCOUNT}:orders"


def _record(number: int, **more: Any) -> dict[str, Any]:
    return {
        "eventID": f"event-{number}",
        "eventName": "SetQueueAttributes",
        "eventSource": "sqs.amazonaws.com",
        "eventTime": f"2026-11-21T12:{number // 60:02}:{number % 60:02}Z",
        "userIdentity": ANN,
        "readOnly": False,
        "managementEvent": True,
        "recipientAccountId": ACCOUNT,
        "awsRegion": REGION,
        "resources": [{"type": "AWS::SQS::Queue", "ARN": ARN}],
        **more,
    }


def _history(*records: dict[str, Any]) -> EventHistory:
    history = EventHistory()
    for each in records:
        history.take(each)
    return history


def _ids(history: EventHistory, **asked: Any) -> list[str]:
    return [each["EventId"] for each in history.look_up(asked, ACCOUNT, REGION)["Events"]]


def _by(name: str, value: str) -> list[dict[str, str]]:
    return [{"AttributeKey": name, "AttributeValue": value}]


@pytest.mark.parametrize(
    "elsewhere",
    [{"managementEvent": False}, {"awsRegion": "eu-west-1"}, {"recipientAccountId": "1" * 12}],
)
def test_data_events_and_those_of_elsewhere_are_not_there(elsewhere: dict[str, Any]) -> None:
    assert _ids(_history(_record(1, **elsewhere))) == []


def test_the_newest_comes_first_failed_or_not() -> None:
    history = _history(_record(1), _record(2, errorCode="AccessDenied"), _record(3))
    assert _ids(history) == ["event-3", "event-2", "event-1"]


def test_an_event_as_it_is_shown() -> None:
    record = _record(1)
    (event,) = _history(record).look_up({}, ACCOUNT, REGION)["Events"]
    assert json.loads(event.pop("CloudTrailEvent")) == record
    assert event == {
        "EventId": "event-1",
        "EventName": "SetQueueAttributes",
        "ReadOnly": "false",
        "AccessKeyId": "AKIAANN",
        "EventTime": NOON + 1,
        "EventSource": "sqs.amazonaws.com",
        "Username": "ann",
        "Resources": [{"ResourceType": "AWS::SQS::Queue", "ResourceName": ARN}],
    }


@pytest.mark.parametrize(
    ("identity", "name"),
    [
        ({"type": "Root", "arn": "arn:aws:iam::0:root"}, "root"),
        ({"type": "AssumedRole", "arn": "arn:aws:sts::0:assumed-role/worker/one"}, "one"),
        ({"type": "AWSAccount", "accountId": "1"}, None),
    ],
)
def test_who_it_was(identity: dict[str, str], name: str | None) -> None:
    history = _history(_record(1, userIdentity=identity))
    (event,) = history.look_up({}, ACCOUNT, REGION)["Events"]
    assert event.get("Username") == name


@pytest.mark.parametrize(
    ("name", "other", "value"),
    [
        ("AccessKeyId", "AKIABOB", "AKIAANN"),
        ("EventId", "event-2", "event-1"),
        ("EventName", "SetQueueAttribute", "SetQueueAttributes"),
        ("EventSource", "sns.amazonaws.com", "sqs.amazonaws.com"),
        ("ReadOnly", "true", "false"),
        ("ResourceName", "orders", ARN),
        ("ResourceType", "AWS::SNS::Topic", "AWS::SQS::Queue"),
        ("Username", "bob", "ann"),
    ],
)
def test_every_attribute(name: str, other: str, value: str) -> None:
    history = _history(_record(1))
    assert _ids(history, LookupAttributes=_by(name, other)) == []
    assert _ids(history, LookupAttributes=_by(name, value)) == ["event-1"]


def test_times_are_inclusive() -> None:
    history = _history(*(_record(each) for each in range(1, 5)))
    assert _ids(history, StartTime=NOON + 5) == []
    assert _ids(history, EndTime=NOON) == []
    assert _ids(history, StartTime=NOON + 2, EndTime=NOON + 3) == ["event-3", "event-2"]


def test_pages_stay_as_they_were_while_events_come() -> None:
    history = _history(*(_record(each) for each in range(1, 6)))
    asked = {"LookupAttributes": _by("Username", "ann"), "MaxResults": 2}
    first = history.look_up(asked, ACCOUNT, REGION)
    history.take(_record(6))
    second = history.look_up({**asked, "NextToken": first["NextToken"]}, ACCOUNT, REGION)
    last = history.look_up({**asked, "NextToken": second["NextToken"]}, ACCOUNT, REGION)
    pages = [[each["EventId"] for each in page["Events"]] for page in (first, second, last)]
    assert pages == [["event-5", "event-4"], ["event-3", "event-2"], ["event-1"]]
    assert "NextToken" not in last


def test_a_page_that_is_just_full_is_the_last() -> None:
    answer = _history(_record(1), _record(2)).look_up({"MaxResults": 2}, ACCOUNT, REGION)
    assert len(answer["Events"]) == 2
    assert "NextToken" not in answer


def test_fifty_at_a_time() -> None:
    history = _history(*(_record(each) for each in range(51)))
    assert len(_ids(history)) == 50


def test_the_oldest_are_forgotten() -> None:
    history = _history(*(_record(each % 3600) for each in range(MOST_EVENTS)))
    history.take(_record(1, eventID="new"))
    assert _ids(history, MaxResults=1) == ["new"]
    assert len(history) == MOST_EVENTS


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        ({"LookupAttributes": _by("Colour", "red")}, "InvalidLookupAttributesException"),
        ({"LookupAttributes": _by("Username", "")}, "InvalidLookupAttributesException"),
        (
            {"LookupAttributes": _by("Username", "a") + _by("EventId", "b")},
            "InvalidLookupAttributesException",
        ),
        ({"StartTime": 2, "EndTime": 1}, "InvalidTimeRangeException"),
        ({"MaxResults": 0}, "InvalidMaxResultsException"),
        ({"MaxResults": 51}, "InvalidMaxResultsException"),
        ({"NextToken": "nonsense"}, "InvalidNextTokenException"),
        ({"NextToken": "3.abc"}, "InvalidNextTokenException"),
        ({"EventCategory": "data"}, "InvalidEventCategoryException"),
    ],
)
def test_what_is_refused(asked: dict[str, Any], code: str) -> None:
    with pytest.raises(LookupRefused) as refused:
        _history(_record(1)).look_up(asked, ACCOUNT, REGION)
    assert refused.value.code == code


def test_a_token_belongs_to_its_question() -> None:
    history = _history(_record(1), _record(2))
    token = history.look_up({"MaxResults": 1}, ACCOUNT, REGION)["NextToken"]
    with pytest.raises(LookupRefused, match="other parameters"):
        history.look_up({"NextToken": token, "StartTime": NOON}, ACCOUNT, REGION)


def test_there_are_no_insights() -> None:
    asked = {"EventCategory": "insight"}
    assert _history(_record(1)).look_up(asked, ACCOUNT, REGION) == {"Events": []}


OTHER = {"resources": [{"type": "AWS::SQS::Queue", "ARN": f"{ARN}2"}]}


def test_what_happened_to_a_queue_is_put_back_among_all() -> None:
    history = _history(_record(60), _record(120, **OTHER), _record(180), _record(240))
    history.put_back(ARN, seconds=100, since_seconds=NOON + 180)
    assert _ids(history) == ["event-240", "event-120", "event-180", "event-60"]
    (at, *_) = (each["EventTime"] for each in history.look_up({}, ACCOUNT, REGION)["Events"])
    assert at == NOON + 140
    history.put_back(ARN, seconds=3600)
    assert _ids(history) == ["event-120", "event-240", "event-180", "event-60"]
    history.take(_record(300))
    assert _ids(history)[0] == "event-300"


def test_only_what_went_through_has_changed_a_queue() -> None:
    history = _history(
        _record(60),
        _record(70, **OTHER),
        _record(80, readOnly=True),
        _record(90, errorCode="AccessDenied"),
    )
    assert history.changed_at(ARN) == [NOON + 60]
