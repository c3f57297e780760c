"""Whose change a page names."""

from __future__ import annotations

import json
from typing import Any

import pytest
from botocore.stub import Stubber

from mendq.aws.recent_changes import last_change
from mendq.notifications.configuration import Change
from tests.account.answers import answer_instead
from tests.heal.conftest import ACCOUNT, REGION, Account

QUEUE = f"arn:aws:sqs:{REGION}:{ACCOUNT}:orders"
URL = f"https://sqs.{REGION}.amazonaws.com/{ACCOUNT}/orders"
PERSON = f"arn:aws:iam::{ACCOUNT}:user/ada"


def event(account: Account, **over: Any) -> dict[str, Any]:
    record = {
        "eventName": "SetQueueAttributes",
        "awsRegion": REGION,
        "userIdentity": {"type": "IAMUser", "arn": PERSON},
        "requestParameters": {"queueUrl": URL, "attributes": {"Policy": "", "DelaySeconds": "1"}},
        **over,
    }
    return {"EventTime": account.now, "CloudTrailEvent": json.dumps(record)}


@pytest.mark.parametrize(
    "over",
    [
        {"errorCode": "AccessDenied"},
        {"eventName": "PurgeQueue"},
        {"awsRegion": "eu-west-1"},
        {"requestParameters": None},
        {"requestParameters": {"queueUrl": URL + "-other"}},
        {"requestParameters": [URL]},
    ],
)
def test_what_changed_nothing_here_is_passed_over(account: Account, over: dict[str, Any]) -> None:
    account.history = [event(account, **over)]
    assert last_change(account.clients, QUEUE) is None


@pytest.mark.parametrize("text", ["", "[]", "null", "{", '"text"'])
def test_an_event_that_cannot_be_read_is_passed_over(account: Account, text: str) -> None:
    account.history = [{"EventTime": account.now, "CloudTrailEvent": text}, {}, event(account)]
    assert isinstance(last_change(account.clients, QUEUE), Change)


CREATED = {"eventName": "CreateQueue", "requestParameters": {"queueName": "orders"}}


@pytest.mark.parametrize(
    ("over", "said"),
    [
        ({}, ("SetQueueAttributes", PERSON, ("DelaySeconds", "Policy"))),
        ({**CREATED, "responseElements": {"queueUrl": URL}}, ("CreateQueue", PERSON)),
        *(
            ({"userIdentity": each}, ("SetQueueAttributes", "unknown", ("DelaySeconds", "Policy")))
            for each in (None, "ada", {}, {"sessionContext": "x"})
        ),
    ],
)
def test_the_newest_change_is_named_with_what_it_set(
    account: Account, over: dict[str, Any], said: tuple[Any, ...]
) -> None:
    account.history = [event(account, **over), event(account, userIdentity={"arn": "older"})]
    assert last_change(account.clients, QUEUE) == Change(account.now, *said)


def test_a_busy_account_says_how_far_it_looked(account: Account) -> None:
    with Stubber(account.clients.cloudtrail) as cloudtrail:
        for token in ("next", "more"):
            answer = {"Events": [{"EventName": "CreateQueue"}] * 50, "NextToken": token}
            cloudtrail.add_response("lookup_events", answer)
        assert "newest" in str(last_change(account.clients, QUEUE))


@pytest.mark.parametrize("answer", [{}, {"Events": None}, {"Events": "busy"}, {"Events": {}}])
def test_an_answer_without_events_is_not_that_nobody_changed_it(
    account: Account, answer: dict[str, Any]
) -> None:
    answer_instead(account.clients.cloudtrail, answer)
    assert last_change(account.clients, QUEUE) == (
        "CloudTrail did not say (no events in its answer)"
    )
