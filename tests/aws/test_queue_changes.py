"""Who changed a queue: what CloudTrail leaves open is said, and never taken for nobody."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError
from botocore.stub import Stubber

from mendq.aws.clients import CallRateLimit
from mendq.aws.recent_changes import (
    MOST_PAGES_FOR_DECISION,
    QUEUE_CHANGE_CALLS,
    RecentQueueChanges,
    list_changes_since,
)
from mendq.model.policy import QueueChange
from mendq.model.queue import make_public_queue_url
from tests.account.account import ACCOUNT, REGION, Account
from tests.account.answers import answer_instead
from tests.heal.policy_events import (
    ALICE,
    DEPLOYS,
    cloudformation_fields,
    make_identity,
    make_policy_event,
)

QUEUE = f"arn:aws:sqs:{REGION}:{ACCOUNT}:orders"


def _since(account: Account) -> Any:
    return list_changes_since(account.clients, QUEUE, account.now - timedelta(days=1))


def _changed(account: Account, event_name: str = "SetQueueAttributes", **over: Any) -> QueueChange:
    """The one change that this event is taken for."""
    account.history = [make_policy_event(account, QUEUE, event_name, **over)]
    (found,) = _since(account)
    assert isinstance(found, QueueChange)
    return found


@pytest.mark.parametrize("event_name", sorted(QUEUE_CHANGE_CALLS - {"SetQueueAttributes"}))
def test_every_other_change_may_be_one_of_the_policy(account: Account, event_name: str) -> None:
    found = _changed(account, event_name)
    assert found == QueueChange(account.now, event_name, ALICE, ("Policy",))


@pytest.mark.parametrize(
    "over",
    [
        {"errorCode": "AccessDenied"},
        {"eventSource": "sns.amazonaws.com"},
        {"eventName": "PurgeQueue"},
        {"requestParameters": {"queueUrl": make_public_queue_url(f"{QUEUE}2"), "attributes": {}}},
        {"awsRegion": "eu-west-1"},
    ],
)
def test_what_changed_nothing_of_this_queue(account: Account, over: dict[str, Any]) -> None:
    account.history = [make_policy_event(account, QUEUE, **over)]
    assert _since(account) == ()


@pytest.mark.parametrize(
    ("asked", "may_be"),
    [
        (
            {"queueUrl": make_public_queue_url(QUEUE), "attributes": {"VisibilityTimeout": "31"}},
            False,
        ),
        (None, True),
        ([], True),
        ({}, True),
        ({"queueUrl": "orders"}, True),
        ({"queueUrl": make_public_queue_url(QUEUE)}, True),
        *(
            ({"queueUrl": make_public_queue_url(QUEUE), "attributes": given}, True)
            for given in ("cut", {"policy": ""}, {"Policy": "", "DelaySeconds": "1"})
        ),
    ],
)
def test_what_may_be_one_of_this_queue_s_policy_is_taken_for_one(
    account: Account, asked: object, *, may_be: bool
) -> None:
    assert _changed(account, requestParameters=asked).may_change_policy is may_be


@pytest.mark.parametrize(
    ("over", "is_cloudformation"),
    [
        (cloudformation_fields(), True),
        ({"userAgent": "cloudformation.amazonaws.com"}, False),
        ({"userIdentity": make_identity(f"{ALICE}/cloudformation.amazonaws.com")}, False),
        ({"userIdentity": make_identity(ALICE, userName="cloudformation.amazonaws.com")}, False),
        ({"sourceIPAddress": "cloudformation.amazonaws.com.example.org"}, False),
        ({"invokedBy": "cloudformation.amazonaws.com"}, False),
    ],
)
def test_cloudformation_is_recognised_by_what_aws_writes_and_no_caller_can(
    account: Account, over: dict[str, Any], *, is_cloudformation: bool
) -> None:
    assert _changed(account, **over).by_cloudformation is is_cloudformation


def test_a_role_is_named_by_its_arn_and_not_by_its_session(account: Account) -> None:
    session = f"arn:aws:sts::{ACCOUNT}:assumed-role/operators/{DEPLOYS}"
    found = _changed(account, userIdentity=make_identity(ALICE, arn=session))
    assert found.principal_arn == ALICE


@pytest.mark.parametrize("text", ["", "[]", "null", "{", '"text"'])
def test_an_event_that_cannot_be_read_leaves_it_open(account: Account, text: str) -> None:
    account.history = [{"EventTime": account.now, "CloudTrailEvent": text}]
    assert "is not readable" in _since(account)


def test_a_history_that_does_not_end_leaves_it_open(account: Account) -> None:
    with Stubber(account.clients.cloudtrail_in_full) as stub:
        for page in range(MOST_PAGES_FOR_DECISION):
            stub.add_response("lookup_events", {"Events": [], "NextToken": str(page)})
        assert (
            _since(account)
            == f"more than {MOST_PAGES_FOR_DECISION * 50} calls of AddPermission since"
        )
        stub.assert_no_pending_responses()


def test_all_pages_of_every_kind_are_read_from_that_moment_on(account: Account) -> None:
    since = account.now - timedelta(days=1)
    with Stubber(account.clients.cloudtrail_in_full) as stub:
        for name in sorted(QUEUE_CHANGE_CALLS):
            kind = [{"AttributeKey": "EventName", "AttributeValue": name}]
            asked = {"LookupAttributes": kind, "StartTime": since, "MaxResults": 50}
            more = {"Events": [make_policy_event(account, QUEUE, name)], "NextToken": "more"}
            stub.add_response("lookup_events", more, asked)
            last = {"Events": [make_policy_event(account, QUEUE, name)]}
            stub.add_response("lookup_events", last, {**asked, "NextToken": "more"})
        assert len(_since(account)) == 2 * len(QUEUE_CHANGE_CALLS)


@pytest.mark.parametrize("answer", [{}, {"Events": None}, {"Events": "busy"}, {"Events": {}}])
def test_an_answer_without_events_is_not_that_nobody_changed_it(
    account: Account, answer: dict[str, Any]
) -> None:
    """As where something between us and AWS answers in its place."""
    answer_instead(account.clients.cloudtrail_in_full, answer)
    found = _since(account)
    assert isinstance(found, str)
    assert "holds no events" in found
    answer_instead(account.clients.cloudtrail, answer)
    assert _last(account) == "CloudTrail did not say (no events in its answer)"


def _last(account: Account, queue_arn: str = QUEUE) -> Any:
    return RecentQueueChanges(account.clients).find_last_change(queue_arn)


def test_reads_of_our_own_do_not_hide_who_changed_a_queue_last(account: Account) -> None:
    read = make_policy_event(account, QUEUE, eventName="ListMessageMoveTasks", readOnly=True)
    account.history = [*[read] * 300, make_policy_event(account, QUEUE)]
    assert _last(account) == QueueChange(account.now, "SetQueueAttributes", ALICE, ("Policy",))


def test_the_newest_of_every_kind_is_named_behind_what_cannot_be_read(account: Account) -> None:
    made = make_policy_event(
        account, QUEUE, "CreateQueue", responseElements={"queueUrl": make_public_queue_url(QUEUE)}
    )
    account.later(minutes=1)
    changed = make_policy_event(account, QUEUE, userIdentity={})
    unreadable = [{"EventTime": account.now, "CloudTrailEvent": text} for text in ("", "null")]
    account.history = [*unreadable, {}, changed, made]
    found = _last(account)
    assert (found.event_name, found.principal_arn) == ("SetQueueAttributes", "unknown")
    account.history = [made]
    assert _last(account).event_name == "CreateQueue"
    assert _last(account, f"{QUEUE}2") is None


def test_a_change_that_older_ones_may_follow_is_not_called_the_last(account: Account) -> None:
    """101 changes of another queue hide those before; the making of this one is older still."""
    made = make_policy_event(account, QUEUE, "CreateQueue")
    account.later(minutes=1)
    others = [make_policy_event(account, f"{QUEUE}2") for _ in range(101)]
    account.history = [*others, made]
    assert _last(account) == "not among the newest 101 changes of this account's queues"
    account.later(minutes=1)
    account.history.insert(0, make_policy_event(account, QUEUE, "AddPermission"))
    assert _last(account).event_name == "AddPermission"


def test_queues_that_others_make_hide_no_change_of_this_one(account: Account) -> None:
    changed = make_policy_event(account, QUEUE, "SetQueueAttributes")
    account.later(minutes=1)
    made = [make_policy_event(account, f"{QUEUE}2", "CreateQueue") for _ in range(101)]
    account.history = [*made, changed]
    assert _last(account).event_name == "SetQueueAttributes"


def test_it_is_asked_once_for_all_queues_and_no_faster_than_an_account_may(
    account: Account,
) -> None:
    slept = list[float]()
    paced = CallRateLimit(per_second=2, sleep=slept.append, clock=lambda: 0.0)
    account.clients.__dict__["event_history_pace"] = paced
    asked = list[Any]()
    events = account.clients.cloudtrail.meta.events
    events.register("before-call.cloudtrail.LookupEvents", lambda **_: asked.append(1))
    account.history = [make_policy_event(account, QUEUE)]
    recent = RecentQueueChanges(account.clients)
    assert [recent.find_last_change(each) is None for each in (QUEUE, f"{QUEUE}2", QUEUE)] == [
        0,
        1,
        0,
    ]
    assert len(asked) == len(QUEUE_CHANGE_CALLS)
    assert slept == [n / 2 for n in range(len(QUEUE_CHANGE_CALLS))]


def test_the_last_change_comes_with_a_few_before_it(account: Account) -> None:
    for _ in range(6):
        account.history.insert(0, make_policy_event(account, QUEUE))
        account.later(hours=1)
    last = RecentQueueChanges(account.clients).find_last_change(QUEUE)
    assert isinstance(last, QueueChange)
    hours = [(account.now - each.at).total_seconds() / 3600 for each in (last, *last.earlier)]
    assert hours == [1, 2, 3, 4]


@pytest.mark.parametrize(
    "error",
    [
        ClientError({"Error": {"Code": "ThrottlingException", "Message": "slow"}}, "LookupEvents"),
        EndpointConnectionError(endpoint_url="cloudtrail"),
    ],
)
def test_cloudtrail_that_does_not_answer_is_not_that_nobody_changed_the_queue(
    account: Account, error: Exception
) -> None:
    def fail(**_: Any) -> None:
        raise error

    for client in (account.clients.cloudtrail_in_full, account.clients.cloudtrail):
        client.meta.events.register_first("before-call.cloudtrail.LookupEvents", fail)
    name = type(error).__name__
    assert _since(account) == f"CloudTrail did not answer ({name})"
    assert _last(account) == f"CloudTrail did not say ({name})"
