"""All changes or none: what CloudTrail leaves open is said, and never taken for nobody."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from botocore.stub import Stubber

from mendq.aws.recent_changes import CHANGES, MOST_PAGES, changes_since
from mendq.model.policy import QueueChange
from mendq.model.queue import public_url
from tests.account.answers import answer_instead
from tests.heal.conftest import ACCOUNT, REGION, Account
from tests.heal.policy_events import ALICE, DEPLOYS, by_cloudformation, event, identity_of

QUEUE = f"arn:aws:sqs:{REGION}:{ACCOUNT}:orders"


def _since(account: Account) -> Any:
    return changes_since(account.clients, QUEUE, account.now - timedelta(days=1))


@pytest.mark.parametrize("event_name", sorted(CHANGES - {"SetQueueAttributes"}))
def test_every_other_change_may_be_one_of_the_policy(account: Account, event_name: str) -> None:
    account.history = [event(account, QUEUE, event_name)]
    (found,) = _since(account)
    assert found == QueueChange(account.now, event_name, ALICE, ("Policy",))


@pytest.mark.parametrize(
    "over",
    [
        {"errorCode": "AccessDenied"},
        {"eventSource": "sns.amazonaws.com"},
        {"requestParameters": {"queueUrl": public_url(f"{QUEUE}2"), "attributes": {}}},
        {"awsRegion": "eu-west-1"},
    ],
)
def test_what_changed_nothing_of_this_queue(account: Account, over: dict[str, Any]) -> None:
    account.history = [event(account, QUEUE, **over)]
    assert _since(account) == ()


def test_a_change_of_other_attributes_is_said_as_such(account: Account) -> None:
    asked = {"queueUrl": public_url(QUEUE), "attributes": {"VisibilityTimeout": "31"}}
    account.history = [event(account, QUEUE, requestParameters=asked)]
    (found,) = _since(account)
    assert not found.of_policy


@pytest.mark.parametrize(
    "asked",
    [
        None,
        [],
        {},
        {"queueUrl": "orders"},
        {"queueUrl": public_url(QUEUE)},
        {"queueUrl": public_url(QUEUE), "attributes": "cut"},
        {"queueUrl": public_url(QUEUE), "attributes": {"policy": ""}},
        {"queueUrl": public_url(QUEUE), "attributes": {"Policy": "", "DelaySeconds": "1"}},
    ],
)
def test_what_may_be_one_of_this_queue_s_policy_is_taken_for_one(
    account: Account, asked: object
) -> None:
    account.history = [event(account, QUEUE, requestParameters=asked)]
    (found,) = _since(account)
    assert found.of_policy


def test_cloudformation_is_recognised_by_what_aws_writes(account: Account) -> None:
    account.history = [event(account, QUEUE, **by_cloudformation())]
    (found,) = _since(account)
    assert found.by_cloudformation


@pytest.mark.parametrize(
    "forged",
    [
        {"userAgent": "cloudformation.amazonaws.com"},
        {"userIdentity": identity_of(f"{ALICE}/cloudformation.amazonaws.com")},
        {"userIdentity": identity_of(ALICE, userName="cloudformation.amazonaws.com")},
        {"sourceIPAddress": "cloudformation.amazonaws.com.example.org"},
        {"invokedBy": "cloudformation.amazonaws.com"},
    ],
)
def test_what_the_caller_writes_makes_nobody_cloudformation(
    account: Account, forged: dict[str, Any]
) -> None:
    account.history = [event(account, QUEUE, **forged)]
    (found,) = _since(account)
    assert not found.by_cloudformation


def test_a_role_is_named_by_its_arn_and_not_by_its_session(account: Account) -> None:
    session = f"arn:aws:sts::{ACCOUNT}:assumed-role/operators/{DEPLOYS}"
    account.history = [event(account, QUEUE, userIdentity=identity_of(ALICE, arn=session))]
    (found,) = _since(account)
    assert found.principal_arn == ALICE


@pytest.mark.parametrize("text", ["", "[]", "null", "{", '"text"'])
def test_an_event_that_cannot_be_read_leaves_it_open(account: Account, text: str) -> None:
    account.history = [{"EventTime": account.now, "CloudTrailEvent": text}]
    assert "is not readable" in _since(account)


def test_a_history_that_does_not_end_leaves_it_open(account: Account) -> None:
    with Stubber(account.clients.cloudtrail_in_full) as stub:
        for page in range(MOST_PAGES):
            stub.add_response("lookup_events", {"Events": [], "NextToken": str(page)})
        assert _since(account) == f"more than {MOST_PAGES * 50} calls of AddPermission since"
        stub.assert_no_pending_responses()


def test_all_pages_of_every_kind_are_read_from_that_moment_on(account: Account) -> None:
    since = account.now - timedelta(days=1)
    with Stubber(account.clients.cloudtrail_in_full) as stub:
        for name in sorted(CHANGES):
            kind = [{"AttributeKey": "EventName", "AttributeValue": name}]
            asked = {"LookupAttributes": kind, "StartTime": since, "MaxResults": 50}
            more = {"Events": [event(account, QUEUE, name)], "NextToken": "more"}
            stub.add_response("lookup_events", more, asked)
            last = {"Events": [event(account, QUEUE, name)]}
            stub.add_response("lookup_events", last, {**asked, "NextToken": "more"})
        assert len(_since(account)) == 2 * len(CHANGES)


@pytest.mark.parametrize("answer", [{}, {"Events": None}, {"Events": "busy"}, {"Events": {}}])
def test_an_answer_without_events_is_not_that_nobody_changed_it(
    account: Account, answer: dict[str, Any]
) -> None:
    """As where something between us and AWS answers in its place."""
    answer_instead(account.clients.cloudtrail_in_full, answer)
    found = _since(account)
    assert isinstance(found, str)
    assert "holds no events" in found
