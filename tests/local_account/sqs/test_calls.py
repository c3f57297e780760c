"""Reading calls and answers in either protocol."""

from __future__ import annotations

from urllib.parse import urlencode

import pytest

from local_account.sqs.calls import Answer, is_sqs_call, read_answer, read_call

SIGNED = "AWS4-HMAC-SHA256 Credential=AKIA/20261121/eu-west-1/{}/aws4_request, SignedHeaders=host"
JSON = {"x-amz-target": "AmazonSQS.DeleteMessage", "authorization": SIGNED.format("sqs")}
QUERY = {"authorization": SIGNED.format("sqs"), "user-agent": "old"}


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({}, False),
        ({"authorization": SIGNED.format("s3")}, False),
        ({"x-amz-target": "DynamoDB_20120810.PutItem"}, False),
        (JSON, True),
        (QUERY, True),
    ],
)
def test_which_requests_are_for_sqs(headers: dict[str, str], expected: bool) -> None:
    assert is_sqs_call(headers) is expected


def test_a_json_call() -> None:
    call = read_call(JSON, "/", b'{"QueueUrl": "u/1/q"}', "10.0.0.1", "us-east-1")
    assert call is not None
    assert (call.action, call.access_key, call.region) == ("DeleteMessage", "AKIA", "eu-west-1")
    assert call.parameters == {"QueueUrl": "u/1/q"}


def test_a_query_call_reads_like_a_json_one() -> None:
    body = urlencode(
        {
            "Action": "SetQueueAttributes",
            "Attribute.1.Name": "VisibilityTimeout",
            "Attribute.1.Value": "60",
        }
    ).encode()
    call = read_call(QUERY, "/000000000000/orders", body, "10.0.0.1", "us-east-1")
    assert call is not None
    assert call.action == "SetQueueAttributes"
    assert call.parameters["Attributes"] == {"VisibilityTimeout": "60"}
    assert call.parameters["QueueUrl"].endswith("/000000000000/orders")


@pytest.mark.parametrize("body", [b"{", b"[]", b'"text"'])
def test_a_body_that_is_no_object_is_no_call(body: bytes) -> None:
    assert read_call(JSON, "/", body, "10.0.0.1", "us-east-1") is None


def test_a_json_error_has_both_of_its_names() -> None:
    headers = {
        "content-type": "application/x-amz-json-1.0",
        "x-amzn-query-error": "AWS.SimpleQueueService.NonExistentQueue;Sender",
        "x-amzn-requestid": "r1",
    }
    body = b'{"__type": "com.amazonaws.sqs#QueueDoesNotExist", "message": "gone"}'
    assert read_answer(400, headers, body) == Answer(
        "r1", "AWS.SimpleQueueService.NonExistentQueue", "QueueDoesNotExist", "gone", {}
    )


def test_a_query_error_has_one() -> None:
    body = b"<ErrorResponse><Error><Code>InvalidParameterValue</Code>"
    body += b"<Message>no</Message></Error></ErrorResponse>"
    answer = read_answer(400, {"content-type": "application/xml"}, body)
    assert (answer.error_code, answer.error_message) == ("InvalidParameterValue", "no")


@pytest.mark.parametrize("content_type", ["application/xml", "application/json", ""])
def test_an_unreadable_error_is_still_one(content_type: str) -> None:
    answer = read_answer(500, {"content-type": content_type}, b"oops")
    assert answer.error_code == "InternalFailure"
