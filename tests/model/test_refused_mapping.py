"""Test that a mapping that Lambda refused is read, and that other records of Lambda are not."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given

from mendq.model.evidence import Evidence, Sighting
from mendq.model.failed_call import FailedCall, read, read_refused_mapping
from tests.model.builders import JSON, make_record

ARN = "arn:aws:sqs:eu-west-1:123456789012:orders"
SENTENCE = "Queue visibility timeout: 30 seconds is less than Function timeout: 60 seconds"


def make_refused_mapping(**fields: Any) -> dict[str, Any]:
    """Make the record of a refused mapping. No such record of AWS has been published."""
    record = make_record(
        eventSource="lambda.amazonaws.com",
        eventName="CreateEventSourceMapping20150331",
        errorCode="InvalidParameterValueException",
        errorMessage=SENTENCE,
        requestParameters={"eventSourceArn": ARN, "functionName": "bill"},
        resources=None,
    )
    return {**record, **fields}


def read_mapping(**fields: Any) -> FailedCall:
    call = read_refused_mapping(make_refused_mapping(**fields))
    assert call is not None
    return call


@pytest.mark.parametrize(
    "fields",
    [
        {"eventSource": "sqs.amazonaws.com"},
        {"eventName": "DeleteEventSourceMapping20150331"},
        {"eventName": "CreateEventSourceMappingOther"},
        {"errorCode": "ResourceConflictException"},
        {"errorCode": None},
        {"errorMessage": "Unrecognized event source."},
        {"errorMessage": f"The name '{SENTENCE}' is not valid."},
        {"errorMessage": SENTENCE.replace("60", "6000000")},
        {"errorMessage": None},
        {"eventTime": "yesterday"},
        {"eventID": ""},
    ],
)
def test_refused_mapping_is_not_read_from_another_record(fields: dict[str, Any]) -> None:
    assert read_refused_mapping(make_refused_mapping(**fields)) is None


@pytest.mark.parametrize("junk", [b"\xff", b"<html>", "[" * 100_000 + "]" * 100_000, None, "3"])
def test_refused_mapping_is_not_read_from_text_that_is_no_record(junk: object) -> None:
    assert read_refused_mapping(junk) is None


@given(JSON)
def test_refused_mapping_is_not_read_from_json_that_is_no_record(junk: object) -> None:
    assert read_refused_mapping(junk) is None


@pytest.mark.parametrize(
    "name",
    [
        "CreateEventSourceMapping20150331",
        "CreateEventSourceMapping",
        "CreateEventSourceMapping20150331v2",
    ],
)
def test_refused_mapping_has_the_function_timeout_and_a_name_without_api_version(name: str) -> None:
    call = read_mapping(eventName=name)
    assert call.refused_function_seconds == 60
    assert call.queue_arn == ARN
    assert call.event_name == "CreateEventSourceMapping"
    assert call.error_code == "QueueTimeoutBelowFunctionTimeout"
    assert call.raw_error_code == "InvalidParameterValueException"


def test_refused_mapping_is_read_from_the_event_around_the_record() -> None:
    envelope = json.dumps({"detail": make_refused_mapping()})
    assert read_refused_mapping(envelope) == read_mapping()


def test_refused_update_that_names_no_queue_has_no_queue() -> None:
    parameters = {"uUID": "5f3b9f5e-1d0e-4c2f-9a60-000000000001"}
    call = read_mapping(eventName="UpdateEventSourceMapping20150331", requestParameters=parameters)
    assert call.queue_arn is None


def test_refused_mapping_of_a_stream_has_no_queue() -> None:
    stream = {"eventSourceArn": "arn:aws:kinesis:eu-west-1:123456789012:stream/orders"}
    assert read_mapping(requestParameters=stream).queue_arn is None


def test_refused_mapping_is_no_failed_call_of_sqs() -> None:
    assert not isinstance(read(make_refused_mapping()), FailedCall)


def test_one_refused_mapping_is_sufficient_evidence_and_survives_the_case_store() -> None:
    sighting = Sighting.of(read_mapping())
    restored = Sighting.from_text(sighting.to_text())
    assert Evidence.of([restored]).is_sufficient
    assert Evidence.of([restored]).longest_refused_function_seconds() == 60
