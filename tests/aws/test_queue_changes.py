"""Test who changed a queue according to CloudTrail. Missing answers never count as no change."""

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


def _list_changes(account: Account) -> Any:
    return list_changes_since(account.clients, QUEUE, account.now - timedelta(days=1))


def _read_single_change(
    account: Account, event_name: str = "SetQueueAttributes", **over: Any
) -> QueueChange:
    """Return the change that this CloudTrail event is read as."""
    account.history = [make_policy_event(account, QUEUE, event_name, **over)]
    (found,) = _list_changes(account)
    assert isinstance(found, QueueChange)
    return found


@pytest.mark.parametrize("event_name", sorted(QUEUE_CHANGE_CALLS - {"SetQueueAttributes"}))
def test_every_call_that_changes_queues_counts_as_a_possible_policy_change(
    account: Account, event_name: str
) -> None:
    found = _read_single_change(account, event_name)
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
def test_failed_calls_purges_and_calls_to_other_services_queues_or_regions_are_no_queue_change(
    account: Account, over: dict[str, Any]
) -> None:
    account.history = [make_policy_event(account, QUEUE, **over)]
    assert _list_changes(account) == ()


QUEUE_URL = make_public_queue_url(QUEUE)


def test_set_queue_attributes_without_the_policy_is_no_possible_policy_change(
    account: Account,
) -> None:
    parameters = {"queueUrl": QUEUE_URL, "attributes": {"VisibilityTimeout": "31"}}
    change = _read_single_change(account, requestParameters=parameters)
    assert not change.may_change_policy


@pytest.mark.parametrize(
    "parameters",
    [
        None,
        [],
        {},
        {"queueUrl": "orders"},
        {"queueUrl": QUEUE_URL},
        {"queueUrl": QUEUE_URL, "attributes": "cut"},
        {"queueUrl": QUEUE_URL, "attributes": {"policy": ""}},
        {"queueUrl": QUEUE_URL, "attributes": {"Policy": "", "DelaySeconds": "1"}},
    ],
)
def test_set_queue_attributes_with_unclear_parameters_may_have_changed_the_policy(
    account: Account, parameters: object
) -> None:
    change = _read_single_change(account, requestParameters=parameters)
    assert change.may_change_policy


def test_change_by_cloudformation_is_recognised(account: Account) -> None:
    assert _read_single_change(account, **cloudformation_fields()).by_cloudformation


@pytest.mark.parametrize(
    "over",
    [
        {"userAgent": "cloudformation.amazonaws.com"},
        {"userIdentity": make_identity(f"{ALICE}/cloudformation.amazonaws.com")},
        {"userIdentity": make_identity(ALICE, userName="cloudformation.amazonaws.com")},
        {"sourceIPAddress": "cloudformation.amazonaws.com.example.org"},
        {"invokedBy": "cloudformation.amazonaws.com"},
    ],
)
def test_change_by_a_caller_that_imitates_cloudformation_does_not_count_as_cloudformations(
    account: Account, over: dict[str, Any]
) -> None:
    assert not _read_single_change(account, **over).by_cloudformation


def test_change_by_an_assumed_role_names_the_roles_arn_and_not_the_session(
    account: Account,
) -> None:
    session = f"arn:aws:sts::{ACCOUNT}:assumed-role/operators/{DEPLOYS}"
    found = _read_single_change(account, userIdentity=make_identity(ALICE, arn=session))
    assert found.principal_arn == ALICE


@pytest.mark.parametrize("text", ["", "[]", "null", "{", '"text"'])
def test_history_with_an_unreadable_event_is_reported_as_not_readable(
    account: Account, text: str
) -> None:
    account.history = [{"EventTime": account.now, "CloudTrailEvent": text}]
    assert "is not readable" in _list_changes(account)


def test_history_of_too_many_pages_is_reported_instead_of_read_further(account: Account) -> None:
    with Stubber(account.clients.cloudtrail_in_full) as stub:
        for page in range(MOST_PAGES_FOR_DECISION):
            stub.add_response("lookup_events", {"Events": [], "NextToken": str(page)})
        assert (
            _list_changes(account)
            == f"more than {MOST_PAGES_FOR_DECISION * 50} calls of AddPermission since"
        )
        stub.assert_no_pending_responses()


def test_changes_are_read_from_all_pages_of_every_call_since_the_given_time(
    account: Account,
) -> None:
    since = account.now - timedelta(days=1)
    with Stubber(account.clients.cloudtrail_in_full) as stub:
        for name in sorted(QUEUE_CHANGE_CALLS):
            kind = [{"AttributeKey": "EventName", "AttributeValue": name}]
            request = {"LookupAttributes": kind, "StartTime": since, "MaxResults": 50}
            first_page = {"Events": [make_policy_event(account, QUEUE, name)], "NextToken": "more"}
            stub.add_response("lookup_events", first_page, request)
            last_page = {"Events": [make_policy_event(account, QUEUE, name)]}
            stub.add_response("lookup_events", last_page, {**request, "NextToken": "more"})
        assert len(_list_changes(account)) == 2 * len(QUEUE_CHANGE_CALLS)


@pytest.mark.parametrize("answer", [{}, {"Events": None}, {"Events": "busy"}, {"Events": {}}])
def test_cloudtrail_answer_without_events_is_reported_and_not_read_as_no_change(
    account: Account, answer: dict[str, Any]
) -> None:
    """For example if a proxy between Mendq and AWS answers."""
    answer_instead(account.clients.cloudtrail_in_full, answer)
    found = _list_changes(account)
    assert isinstance(found, str)
    assert "holds no events" in found
    answer_instead(account.clients.cloudtrail, answer)
    assert _find_last_change(account) == "CloudTrail did not say (no events in its answer)"


def _find_last_change(account: Account, queue_arn: str = QUEUE) -> Any:
    return RecentQueueChanges(account.clients).find_last_change(queue_arn)


def test_last_change_is_found_behind_300_read_only_calls_by_mendq(account: Account) -> None:
    read = make_policy_event(account, QUEUE, eventName="ListMessageMoveTasks", readOnly=True)
    account.history = [*[read] * 300, make_policy_event(account, QUEUE)]
    assert _find_last_change(account) == QueueChange(
        account.now, "SetQueueAttributes", ALICE, ("Policy",)
    )


def _make_creation_event(account: Account) -> Any:
    return make_policy_event(
        account, QUEUE, "CreateQueue", responseElements={"queueUrl": make_public_queue_url(QUEUE)}
    )


def test_last_change_skips_unreadable_events_and_is_the_newest_of_all_kinds_of_call(
    account: Account,
) -> None:
    made = _make_creation_event(account)
    account.later(minutes=1)
    changed = make_policy_event(account, QUEUE)
    unreadable = [{"EventTime": account.now, "CloudTrailEvent": text} for text in ("", "null")]
    account.history = [*unreadable, {}, changed, made]
    assert _find_last_change(account).event_name == "SetQueueAttributes"


def test_last_change_by_a_caller_without_an_arn_is_by_unknown(account: Account) -> None:
    account.history = [make_policy_event(account, QUEUE, userIdentity={})]
    assert _find_last_change(account).principal_arn == "unknown"


def test_creation_of_a_queue_is_its_last_change_but_not_that_of_another_queue(
    account: Account,
) -> None:
    account.history = [_make_creation_event(account)]
    assert _find_last_change(account).event_name == "CreateQueue"
    assert _find_last_change(account, f"{QUEUE}2") is None


def test_last_change_is_unknown_if_changes_of_other_queues_may_hide_a_newer_one(
    account: Account,
) -> None:
    """101 changes of another queue hide all changes before them, also newer ones of this queue."""
    made = make_policy_event(account, QUEUE, "CreateQueue")
    account.later(minutes=1)
    others = [make_policy_event(account, f"{QUEUE}2") for _ in range(101)]
    account.history = [*others, made]
    assert _find_last_change(account) == "not among the newest 101 changes of this account's queues"
    account.later(minutes=1)
    account.history.insert(0, make_policy_event(account, QUEUE, "AddPermission"))
    assert _find_last_change(account).event_name == "AddPermission"


def test_last_change_is_found_behind_101_created_queues(account: Account) -> None:
    changed = make_policy_event(account, QUEUE, "SetQueueAttributes")
    account.later(minutes=1)
    made = [make_policy_event(account, f"{QUEUE}2", "CreateQueue") for _ in range(101)]
    account.history = [*made, changed]
    assert _find_last_change(account).event_name == "SetQueueAttributes"


def test_cloudtrail_is_read_once_for_all_queues_at_two_calls_a_second(
    account: Account,
) -> None:
    slept = list[float]()
    paced = CallRateLimit(per_second=2, sleep=slept.append, clock=lambda: 0.0)
    account.clients.__dict__["event_history_pace"] = paced
    calls = list[Any]()
    events = account.clients.cloudtrail.meta.events
    events.register("before-call.cloudtrail.LookupEvents", lambda **_: calls.append(1))
    account.history = [make_policy_event(account, QUEUE)]
    recent = RecentQueueChanges(account.clients)
    assert recent.find_last_change(QUEUE) is not None
    assert recent.find_last_change(f"{QUEUE}2") is None
    assert recent.find_last_change(QUEUE) is not None
    assert len(calls) == len(QUEUE_CHANGE_CALLS)
    assert slept == [n / 2 for n in range(len(QUEUE_CHANGE_CALLS))]


def test_last_change_lists_the_three_changes_before_it(account: Account) -> None:
    for _ in range(6):
        account.history.insert(0, make_policy_event(account, QUEUE))
        account.later(hours=1)
    last = RecentQueueChanges(account.clients).find_last_change(QUEUE)
    assert isinstance(last, QueueChange)
    changes = (last, *last.earlier_changes)
    hours = [(account.now - change.at).total_seconds() / 3600 for change in changes]
    assert hours == [1, 2, 3, 4]


@pytest.mark.parametrize(
    "error",
    [
        ClientError({"Error": {"Code": "ThrottlingException", "Message": "slow"}}, "LookupEvents"),
        EndpointConnectionError(endpoint_url="cloudtrail"),
    ],
)
def test_cloudtrail_error_is_reported_and_not_read_as_no_change(
    account: Account, error: Exception
) -> None:
    def fail(**_: Any) -> None:
        raise error

    for client in (account.clients.cloudtrail_in_full, account.clients.cloudtrail):
        client.meta.events.register_first("before-call.cloudtrail.LookupEvents", fail)
    name = type(error).__name__
    assert _list_changes(account) == f"CloudTrail did not answer ({name})"
    assert _find_last_change(account) == f"CloudTrail did not say ({name})"
