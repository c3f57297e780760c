"""LookupEvents tells who changed a Lambda function, a mapping or a KMS key."""

from __future__ import annotations

import json
from typing import Any

import pytest

from local_account.lambdas.routes import find_call
from local_account.process import LocalAccount
from tests.local_account.callers import ALL_OF_SQS, allow, new_function, user
from tests.local_account.queues import error_of, new_queue


def _look_up(account: LocalAccount, key: str, value: str) -> list[dict[str, Any]]:
    """The records of the events with this attribute, the oldest first."""
    pages = account.client("cloudtrail").get_paginator("lookup_events")
    attribute: Any = {"AttributeKey": key, "AttributeValue": value}
    events = [
        event for page in pages.paginate(LookupAttributes=[attribute]) for event in page["Events"]
    ]
    return [json.loads(event["CloudTrailEvent"]) for event in reversed(events)]


@pytest.mark.account
def test_lookup_events_returns_the_changes_of_a_function_by_its_name(tiny: LocalAccount) -> None:
    secrets = {"Variables": {"PASSWORD": "never in a record"}}
    function = new_function(tiny, Environment=secrets)
    named = {"FunctionName": function.name}
    function.client.update_function_configuration(**named, Timeout=7, Environment=secrets)
    function.client.put_function_concurrency(**named, ReservedConcurrentExecutions=0)
    function.client.delete_function_concurrency(**named)
    function.client.get_function_configuration(**named)
    function.client.delete_function(**named)
    records = _look_up(tiny, "ResourceName", function.name)
    assert [record["eventName"] for record in records] == [
        "CreateFunction20150331",
        "UpdateFunctionConfiguration20150331v2",
        "PutFunctionConcurrency20171031",
        "DeleteFunctionConcurrency20171031",
        "DeleteFunction20150331",
    ]
    created, updated, limited, *_ = records
    assert created["responseElements"]["functionName"] == function.name
    assert updated["requestParameters"] == {"functionName": function.name, "timeout": 7}
    assert limited["requestParameters"]["reservedConcurrentExecutions"] == 0
    assert {record["eventSource"] for record in records} == {"lambda.amazonaws.com"}
    assert {record["userIdentity"]["type"] for record in records} == {"Root"}
    text = json.dumps(records)
    assert "never in a record" not in text
    assert "zipFile" not in text


@pytest.mark.account
def test_lookup_events_says_who_disabled_a_mapping(tiny: LocalAccount) -> None:
    queue = new_queue(tiny)
    function = new_function(tiny, ALL_OF_SQS)
    mapping_id = function.client.create_event_source_mapping(
        FunctionName=function.name, EventSourceArn=queue.arn
    )["UUID"]
    arn, credentials = user(tiny, allow("lambda:UpdateEventSourceMapping", "*"))
    client = tiny.client("lambda", **credentials)
    client.update_event_source_mapping(UUID=mapping_id, Enabled=False)
    function.client.delete_event_source_mapping(UUID=mapping_id)
    (updated,) = [
        record
        for record in _look_up(tiny, "EventName", "UpdateEventSourceMapping20150331")
        if record["userIdentity"]["arn"] == arn
    ]
    assert updated["requestParameters"] == {"uUID": mapping_id, "enabled": False}
    assert updated["responseElements"]["eventSourceArn"] == queue.arn
    (created,) = _look_up(tiny, "ResourceName", function.name)[1:]
    assert created["eventName"] == "CreateEventSourceMapping20150331"
    deleted = _look_up(tiny, "EventName", "DeleteEventSourceMapping20150331")[-1]
    assert deleted["requestParameters"] == {"uUID": mapping_id}


@pytest.mark.account
def test_lookup_events_returns_the_changes_of_a_key_by_its_arn(tiny: LocalAccount) -> None:
    kms = tiny.client("kms")
    key = kms.create_key()["KeyMetadata"]
    kms.create_alias(AliasName="alias/changed", TargetKeyId=key["KeyId"])
    kms.disable_key(KeyId="alias/changed")
    kms.describe_key(KeyId=key["KeyId"])
    kms.schedule_key_deletion(KeyId=key["KeyId"], PendingWindowInDays=7)
    records = _look_up(tiny, "ResourceName", key["Arn"])
    assert [record["eventName"] for record in records] == [
        "CreateKey",
        "CreateAlias",
        "DisableKey",
        "ScheduleKeyDeletion",
    ]
    assert {record["eventSource"] for record in records} == {"kms.amazonaws.com"}
    assert {(record["managementEvent"], record["readOnly"]) for record in records} == {
        (True, False)
    }


@pytest.mark.account
def test_refused_change_is_recorded_with_its_error(tiny: LocalAccount) -> None:
    queue = new_queue(tiny, VisibilityTimeout="3")
    function = new_function(tiny, ALL_OF_SQS, Timeout=20)
    code, text = error_of(
        lambda: function.client.create_event_source_mapping(
            FunctionName=function.name, EventSourceArn=queue.arn
        )
    )
    record = _look_up(tiny, "ResourceName", function.name)[-1]
    assert (record["errorCode"], record["errorMessage"]) == (code, text)
    assert record["responseElements"] is None
    _, credentials = user(tiny)
    key_id = tiny.client("kms").create_key()["KeyMetadata"]["KeyId"]
    error_of(lambda: tiny.client("kms", **credentials).disable_key(KeyId=key_id))
    denied = _look_up(tiny, "EventName", "DisableKey")[-1]
    assert (denied["errorCode"], denied["requestParameters"]) == ("AccessDeniedException", None)


@pytest.mark.account
def test_mapping_is_changed_only_by_a_caller_with_the_right_to_change_it(
    tiny: LocalAccount,
) -> None:
    queue = new_queue(tiny)
    function = new_function(tiny, ALL_OF_SQS)
    mapping_id = function.client.create_event_source_mapping(
        FunctionName=function.name, EventSourceArn=queue.arn
    )["UUID"]
    _, credentials = user(tiny, allow(["lambda:List*", "lambda:Get*"], "*"))
    client = tiny.client("lambda", **credentials)
    calls = (
        lambda: client.update_event_source_mapping(UUID=mapping_id, Enabled=False),
        lambda: client.delete_event_source_mapping(UUID=mapping_id),
        lambda: client.delete_function_concurrency(FunctionName=function.name),
    )
    for call in calls:
        assert error_of(call)[0] == "AccessDeniedException"
    assert client.get_event_source_mapping(UUID=mapping_id)["State"] == "Enabled"
    client.get_function_concurrency(FunctionName=function.name)
    function.client.delete_event_source_mapping(UUID=mapping_id)


@pytest.mark.parametrize(
    ("method", "path", "operation"),
    [
        ("GET", "/2019-09-30/functions/f/concurrency", "GetFunctionConcurrency"),
        ("PUT", "/2015-03-31/event-source-mappings/u/", "UpdateEventSourceMapping"),
        ("PUT", "/2019-09-25/functions/f/event-invoke-config", "PutFunctionEventInvokeConfig"),
        ("POST", "/2015-03-31/functions/f/invocations", "Invoke"),
    ],
)
def test_lambda_operation_is_found_by_method_and_path(
    method: str, path: str, operation: str
) -> None:
    call = find_call(method, path)
    assert call is not None
    assert call.operation == operation


def test_path_of_no_lambda_operation_is_no_call() -> None:
    assert find_call("PUT", "/2015-03-31/event-source-mappings/u/more") is None
