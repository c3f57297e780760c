"""From a call to its record: in the trail's bucket, on the bus, or in neither."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import pytest

from local_account.cloudtrail.trails import is_logged
from local_account.process import LocalAccount
from tests.local_account.callers import new_role, session_of, user
from tests.local_account.queues import Queue, error_of, eventually, new_queue
from tests.local_account.trail import Listener, TrailFiles

# The members of the sample in SQS's developer guide; tlsDetails is missing, there being no TLS.
SAMPLE = {
    *("eventVersion", "userIdentity", "eventTime", "eventSource", "eventName", "awsRegion"),
    *("sourceIPAddress", "userAgent", "requestParameters", "responseElements", "requestID"),
    *("eventID", "readOnly", "resources", "eventType", "managementEvent", "recipientAccountId"),
    "eventCategory",
}


def _pattern(queue: Queue, **detail: Any) -> dict[str, Any]:
    return {"source": ["aws.sqs"], "detail": {"resources": {"ARN": [queue.arn]}, **detail}}


@pytest.fixture(scope="module")
def files(account: LocalAccount) -> TrailFiles:
    return TrailFiles(account)


@pytest.mark.account
def test_failed_call_reaches_the_trail_file_and_the_event_bus_as_the_same_record(
    account: LocalAccount, files: TrailFiles
) -> None:
    queue = new_queue(account)
    listener = Listener(account, _pattern(queue, errorCode=[{"exists": True}]))
    handle = "nonsense" * 400
    error_of(lambda: queue.delete(handle))
    (event,) = listener.events(at_least=1)
    eventually(lambda: files.records(queue, "DeleteMessage"), every_seconds=0.1)
    (record,) = files.records(queue, "DeleteMessage")
    assert event["detail"] == record
    assert event["detail-type"] == "AWS API Call via CloudTrail"
    assert record.keys() == SAMPLE | {"errorCode", "errorMessage"}
    assert record["errorCode"] == "ReceiptHandleIsInvalid"
    assert (record["userIdentity"]["type"], record["responseElements"]) == ("Root", None)
    assert handle not in json.dumps(record)


@pytest.mark.account
def test_successful_call_is_recorded_without_message_bodies_and_attributes(
    account: LocalAccount, files: TrailFiles
) -> None:
    queue = new_queue(account)
    secret = {"k": {"StringValue": "secret words", "DataType": "String"}}
    message = {"MessageBody": "secret words", "MessageAttributes": secret}
    sent = queue.sqs.send_message(QueueUrl=queue.url, **message)
    queue.sqs.send_message_batch(QueueUrl=queue.url, Entries=[{"Id": "1", **message}])
    queue.attributes()
    eventually(lambda: files.records(queue, "SendMessageBatch"))
    (record,) = files.records(queue, "SendMessage")
    assert record.keys() == SAMPLE
    assert record["requestID"] == sent["ResponseMetadata"]["RequestId"]
    assert record["responseElements"]["messageId"] == sent["MessageId"]
    assert record["requestParameters"]["queueUrl"].startswith("https://sqs.us-east-1.amazonaws.com")
    assert "secret words" not in json.dumps([record, *files.records(queue, "SendMessageBatch")])
    assert (record["eventCategory"], record["readOnly"]) == ("Data", False)
    eventually(lambda: files.records(queue, "GetQueueAttributes"))
    read = files.records(queue, "GetQueueAttributes")[0]
    assert (read["eventCategory"], read["readOnly"]) == ("Data", True)
    assert read["responseElements"] is None


@pytest.mark.account
def test_trail_record_names_the_iam_user_or_the_assumed_role_of_the_caller(
    account: LocalAccount, files: TrailFiles
) -> None:
    queue = new_queue(account)
    arn, keys = user(account)
    role = new_role(account, {"AWS": "*"})
    worker = session_of(account, role)
    for caller in (keys, worker):
        client = account.client("sqs", **caller)
        denied = error_of(partial(client.purge_queue, QueueUrl=queue.url))
        assert denied[0].startswith("AccessDenied")
    eventually(lambda: len(files.records(queue, "PurgeQueue")) == 2)
    records = files.records(queue, "PurgeQueue")
    by_user, by_role = (record["userIdentity"] for record in records)
    assert (by_user["type"], by_user["arn"], "sessionContext" in by_user) == ("IAMUser", arn, False)
    name = role.rpartition("/")[2]
    assert by_role["arn"] == f"arn:aws:sts::000000000000:assumed-role/{name}/one"
    assert by_role["sessionContext"]["sessionIssuer"]["arn"] == role
    assert by_role["sessionContext"]["attributes"]["creationDate"].endswith("Z")
    assert {record["requestParameters"] for record in records} == {None}


@pytest.mark.account
def test_call_made_while_logging_is_stopped_reaches_neither_trail_file_nor_event_bus(
    account: LocalAccount, files: TrailFiles
) -> None:
    """A rule that matches everything sees nothing of a trail that is switched off."""
    queue = new_queue(account)
    trail = account.client("cloudtrail")
    listener = Listener(account, _pattern(queue))
    trail.stop_logging(Name="mendq")
    try:
        error_of(lambda: queue.delete("unseen"))
    finally:
        trail.start_logging(Name="mendq")
    error_of(lambda: queue.delete("seen"))
    names = [event["detail"]["eventName"] for event in listener.events(at_least=1)]
    assert names == ["DeleteMessage"]
    eventually(lambda: files.records(queue, "DeleteMessage"))
    assert len(files.records(queue, "DeleteMessage")) == 1


QUEUE = "arn:aws:sqs:us-east-1:000000000000:orders"
DATA = {"Field": "eventCategory", "Equals": ["Data"]}


def _record(arn: str = QUEUE, **changed: Any) -> dict[str, Any]:
    about = {"eventName": "DeleteMessage", "eventSource": "sqs.amazonaws.com", "readOnly": False}
    kind = {"eventCategory": "Data", "managementEvent": False, "eventType": "AwsApiCall"}
    of = {"resources": [{"type": "AWS::SQS::Queue", "ARN": arn}], "userIdentity": {}}
    return {**about, **kind, **of, **changed}


@pytest.mark.parametrize(
    ("field", "takes", "leaves"),
    [
        ({"Equals": ["x", QUEUE]}, QUEUE, QUEUE.upper()),
        ({"NotEquals": ["x", QUEUE]}, "y", QUEUE),
        ({"NotStartsWith": ["arn:aws:sqs:eu-"]}, QUEUE, "arn:aws:sqs:eu-west-1:0:orders"),
        ({"StartsWith": [QUEUE], "NotEndsWith": ["-dlq"]}, QUEUE + "-2", QUEUE + "-dlq"),
        ({"StartsWith": ["x"], "EndsWith": ["orders"]}, QUEUE, "y"),
    ],
)
def test_field_selector_operator_includes_and_excludes_resource_arns(
    field: dict[str, Any], takes: str, leaves: str
) -> None:
    selectors = [{"FieldSelectors": [DATA, {"Field": "resources.ARN", **field}]}]
    assert not is_logged(_record(leaves), selectors)
    assert is_logged(_record(takes), selectors)


def test_record_is_logged_if_all_fields_of_at_least_one_event_selector_match() -> None:
    reading = {"FieldSelectors": [DATA, {"Field": "readOnly", "Equals": ["true"]}]}
    deleting = {"FieldSelectors": [DATA, {"Field": "eventName", "Equals": ["DeleteMessage"]}]}
    management: Any = {"eventCategory": "Management", "managementEvent": True}
    assert is_logged(_record(readOnly=True, eventName="GetQueueUrl"), [deleting, reading])
    for selectors, data, managing in (
        ([reading], False, False),
        ([reading, deleting], True, False),
        ([{"ReadWriteType": "All"}], False, True),
        ([{"IncludeManagementEvents": False}], False, False),
        ([], False, False),
    ):
        logged = (is_logged(_record(), selectors), is_logged(_record(**management), selectors))
        assert logged == (data, managing)


@pytest.mark.account
def test_lookup_events_returns_every_change_of_a_queue_in_pages(account: LocalAccount) -> None:
    queue = new_queue(account)
    for seconds in ("31", "32", "33"):
        queue.set(VisibilityTimeout=seconds)
    asked = [{"AttributeKey": "ResourceName", "AttributeValue": queue.arn}]
    lookup = account.client("cloudtrail").get_paginator("lookup_events").paginate
    pages = lookup(LookupAttributes=asked, PaginationConfig={"PageSize": 2})
    names = [[event["EventName"] for event in page["Events"]] for page in pages]
    assert names == [["SetQueueAttributes"] * 2, ["SetQueueAttributes", "CreateQueue"]]
