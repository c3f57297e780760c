"""Test that CloudTrail records, broken or not, are read as a failed call or as unreadable."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mendq.model.failed_call import (
    MAXIMUM_EVENT_BYTES,
    MAXIMUM_USER_AGENT_LENGTH,
    FailedCall,
    UnreadableRecord,
    read,
    role_arn,
)
from tests.model.builders import JSON, RECORD, make_record
from tests.model.tables import table
from tests.real_records import read_cloudtrail_records

ACCOUNT = "123456789012"
ARN = f"arn:aws:sqs:eu-west-1:{ACCOUNT}:orders"


def read_failed_call(**fields: Any) -> FailedCall:
    failed_call = read(make_record(**fields))
    assert isinstance(failed_call, FailedCall), failed_call
    return failed_call


@pytest.mark.parametrize(("fields", "reason"), table("not failed"))
def test_read_of_a_record_without_a_failed_sqs_call_gives_the_reason(
    fields: dict[str, Any], reason: str
) -> None:
    assert read(make_record(**fields)) == UnreadableRecord(reason)


@pytest.mark.parametrize(
    "junk", [b"", b"\xff\xfe", b"<html>", b"[]", b"3", b"null", b"NaN", "", None, 3, [], object()]
)
def test_read_of_bytes_text_or_objects_that_are_no_record_gives_unreadable(junk: object) -> None:
    assert isinstance(read(junk), UnreadableRecord)


def test_read_of_deeply_nested_json_is_unreadable() -> None:
    assert read("[" * 100_000 + "]" * 100_000) == UnreadableRecord("malformed")


def test_read_of_an_event_above_256_kib_is_unreadable() -> None:
    assert MAXIMUM_EVENT_BYTES == 256 * 1_024
    assert read(b" " * (MAXIMUM_EVENT_BYTES + 1)) == UnreadableRecord("too_large")
    assert read(b" " * MAXIMUM_EVENT_BYTES) == UnreadableRecord("malformed")


def test_read_of_a_record_its_bytes_or_its_eventbridge_envelope_gives_the_same_call() -> None:
    bare = make_record()
    envelope = {"detail-type": "AWS API Call via CloudTrail", "account": ACCOUNT, "detail": bare}
    assert read(bare) == read(json.dumps(bare).encode()) == read(json.dumps(envelope))


def test_read_fills_every_field_of_a_failed_call_from_the_cloudtrail_record() -> None:
    assert read_failed_call() == FailedCall(
        event_id="e-1",
        event_time=datetime(2026, 11, 7, 23, 59, 11, tzinfo=UTC),
        event_name="DeleteMessage",
        error_code="NonExistentQueue",
        raw_error_code="AWS.SimpleQueueService.NonExistentQueue",
        error_message="The specified queue does not exist.",
        queue_arn=ARN,
        account=ACCOUNT,
        region="eu-west-1",
        principal_arn=f"arn:aws:iam::{ACCOUNT}:role/worker",
        session_created_at=datetime(2026, 11, 7, 22, 13, 6, tzinfo=UTC),
        request_id="r-1",
        source_ip="10.0.118.80",
        user_agent="Boto3/1.40.0 lang/python#3.11",
    )


@pytest.mark.parametrize(("fields", "expected"), table("queues"))
def test_queue_arn_is_read_from_the_records_fields_or_is_none_if_none_names_a_valid_queue(
    fields: dict[str, Any], expected: str | None
) -> None:
    assert read_failed_call(**{"resources": None, **fields}).queue_arn == expected


OTHER_ACCOUNT = "111111111111"
CALLER_OF_OTHER_ACCOUNT = {
    "type": "AWSAccount",
    "principalId": "AROAX:s",
    "accountId": OTHER_ACCOUNT,
}


def _read_principal_of_refused_call(
    caller: str, identity: dict[str, Any] = CALLER_OF_OTHER_ACCOUNT, **fields: Any
) -> str:
    message = (
        f"User: {caller} is not authorized to perform: sqs:sendmessage on resource: {ARN} "
        "because no resource-based policy allows the sqs:sendmessage action"
    )
    refusal = {"errorCode": "AccessDenied", "errorMessage": message, "recipientAccountId": ACCOUNT}
    return read_failed_call(userIdentity=identity, **{**refusal, **fields}).principal_arn


USER = f"arn:aws:iam::{OTHER_ACCOUNT}:user/ann"


def test_principal_of_a_session_in_the_own_account_is_its_role() -> None:
    own_session = {"arn": f"arn:aws:sts::{ACCOUNT}:assumed-role/worker/<script>"}
    principal = read_failed_call(userIdentity=own_session).principal_arn
    assert principal == f"arn:aws:iam::{ACCOUNT}:role/worker"


@pytest.mark.parametrize(
    ("caller", "principal"),
    [
        (
            f"arn:aws:sts::{OTHER_ACCOUNT}:assumed-role/billing/<script>",
            f"arn:aws:iam::{OTHER_ACCOUNT}:role/billing",
        ),
        (USER, USER),
    ],
)
def test_principal_of_a_caller_in_another_account_is_read_from_iams_error_message(
    caller: str, principal: str
) -> None:
    assert _read_principal_of_refused_call(caller) == principal


def test_principal_that_cloudtrail_names_is_used_instead_of_the_error_messages() -> None:
    named = {**CALLER_OF_OTHER_ACCOUNT, "arn": f"arn:aws:iam::{OTHER_ACCOUNT}:user/ben"}
    assert _read_principal_of_refused_call(USER, named) == named["arn"]


@pytest.mark.parametrize(("arn", "role"), table("roles"))
def test_role_arn_is_the_same_for_every_spelling_of_a_role_in_cloudtrail(
    arn: str, role: str
) -> None:
    """AWS's published SQS record spells a session's issuer as an assumed role."""
    assert role_arn(arn) == role
    issuer = {"sessionContext": {"sessionIssuer": {"type": "Role", "arn": arn}}}
    session = {"arn": "arn:aws:sts::1:assumed-role/worker/me", **issuer}
    assert read_failed_call(userIdentity=session).principal_arn == (
        role or "arn:aws:iam::1:role/worker"
    )


@pytest.mark.parametrize(
    ("caller", "fields"),
    [
        pytest.param("arn:aws:iam::444455556666:user/ann", {}, id="a third account"),
        pytest.param("ann", {}, id="no ARN"),
        pytest.param(USER, {"errorCode": "InvalidParameterValue"}, id="another error code"),
        pytest.param(USER, {"recipientAccountId": OTHER_ACCOUNT}, id="the caller's own account"),
        pytest.param(USER, {"errorMessage": None}, id="no error message"),
        pytest.param(
            USER, {"identity": {**CALLER_OF_OTHER_ACCOUNT, "accountId": None}}, id="no account id"
        ),
    ],
)
def test_principal_in_an_error_message_counts_only_if_iam_refused_that_account(
    caller: str, fields: dict[str, Any]
) -> None:
    """Otherwise the caller may have chosen the text, as it chooses the name of its session."""
    assert _read_principal_of_refused_call(caller, **fields) == "AROAX"


@given(
    st.dictionaries(st.sampled_from(sorted(RECORD)), JSON).map(lambda fields: make_record(**fields))
    | st.binary(max_size=400)
    | JSON
)
def test_read_never_raises_for_any_json_value_in_any_field(junk: object) -> None:
    assert isinstance(read(junk), FailedCall | UnreadableRecord)


def test_read_of_real_failed_records_with_sqs_as_their_service_names_roles_not_sessions() -> None:
    failed_records = [record for record in read_cloudtrail_records() if record.get("errorCode")]
    assert len(failed_records) == 6
    for record_of_other_service in failed_records:
        got = read({**record_of_other_service, "eventSource": "sqs.amazonaws.com"})
        assert isinstance(got, FailedCall)
        assert ":assumed-role/" not in got.principal_arn


@pytest.mark.parametrize(
    ("asked", "read_as"),
    [(0, 0), (43_200, 43_200), (43_201, None), (-1, None), (True, None), ("30", None), (1.5, None)],
)
def test_requested_visibility_timeout_is_read_only_if_sqs_would_accept_the_value(
    asked: object, read_as: int | None
) -> None:
    got = read_failed_call(requestParameters={"visibilityTimeout": asked})
    assert got.requested_visibility_seconds == read_as


def test_read_truncates_an_error_message_to_2048_characters() -> None:
    assert read_failed_call(errorMessage="x" * 100_000).error_message == "x" * 2_048


def test_read_replaces_lone_surrogates_so_that_the_text_can_be_stored() -> None:
    assert read_failed_call(requestID="\ud800").request_id == "?"


def test_read_accepts_both_of_awss_spellings_of_utc() -> None:
    with_offset = read_failed_call(eventTime="2026-11-07T23:59:11+0000")
    assert with_offset.event_time == read_failed_call().event_time


@pytest.mark.parametrize(
    ("given", "read_as"),
    [(None, ""), (7, ""), ("x" * 2_000, "x" * MAXIMUM_USER_AGENT_LENGTH), ("a\ud800", "a?")],
)
def test_user_agent_is_truncated_made_valid_text_and_empty_if_it_is_no_text(
    given: object, read_as: str
) -> None:
    assert read_failed_call(userAgent=given).user_agent == read_as
