"""Whatever comes in, a value comes out."""

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


def call(**over: Any) -> FailedCall:
    got = read(make_record(**over))
    assert isinstance(got, FailedCall), got
    return got


@pytest.mark.parametrize(("over", "reason"), table("not failed"))
def test_what_is_no_failed_call_says_why(over: dict[str, Any], reason: str) -> None:
    assert read(make_record(**over)) == UnreadableRecord(reason)


@pytest.mark.parametrize(
    "junk", [b"", b"\xff\xfe", b"<html>", b"[]", b"3", b"null", b"NaN", "", None, 3, [], object()]
)
def test_junk_is_unreadable(junk: object) -> None:
    assert isinstance(read(junk), UnreadableRecord)


def test_what_is_nested_too_deep_or_more_than_an_event_may_be_is_unreadable() -> None:
    assert read("[" * 100_000 + "]" * 100_000) == UnreadableRecord("malformed")
    assert read(b" " * (MAXIMUM_EVENT_BYTES + 1)) == UnreadableRecord("too_large")
    assert MAXIMUM_EVENT_BYTES == 256 * 1_024


def test_a_bare_record_its_bytes_and_its_envelope_read_the_same() -> None:
    bare = make_record()
    envelope = {"detail-type": "AWS API Call via CloudTrail", "account": ACCOUNT, "detail": bare}
    assert read(bare) == read(json.dumps(bare).encode()) == read(json.dumps(envelope))


def test_the_fields_of_a_failed_call() -> None:
    assert call() == FailedCall(
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


@pytest.mark.parametrize(("over", "expected"), table("queues"))
def test_the_queue_comes_from_the_first_place_that_names_one(
    over: dict[str, Any], expected: str | None
) -> None:
    assert call(**{"resources": None, **over}).queue_arn == expected


OTHERS = "111111111111"
STRANGER = {"type": "AWSAccount", "principalId": "AROAX:s", "accountId": OTHERS}


def _refused(caller: str, identity: dict[str, Any] = STRANGER, **over: Any) -> str:
    said = (
        f"User: {caller} is not authorized to perform: sqs:sendmessage on resource: {ARN} "
        "because no resource-based policy allows the sqs:sendmessage action"
    )
    refused = {"errorCode": "AccessDenied", "errorMessage": said, "recipientAccountId": ACCOUNT}
    return call(userIdentity=identity, **{**refused, **over}).principal_arn


USER = f"arn:aws:iam::{OTHERS}:user/ann"


def test_of_another_account_s_caller_iam_s_refusal_says_who() -> None:
    own_session = {"arn": f"arn:aws:sts::{ACCOUNT}:assumed-role/worker/<script>"}
    assert call(userIdentity=own_session).principal_arn == f"arn:aws:iam::{ACCOUNT}:role/worker"
    session = f"arn:aws:sts::{OTHERS}:assumed-role/billing/<script>"
    assert _refused(session) == f"arn:aws:iam::{OTHERS}:role/billing"
    assert _refused(USER) == USER
    own = {**STRANGER, "arn": f"arn:aws:iam::{OTHERS}:user/ben"}
    assert _refused(USER, own) == own["arn"], "the ARN that CloudTrail gives is the one"


@pytest.mark.parametrize(("arn", "role"), table("roles"))
def test_a_role_has_one_arn_however_a_record_spells_it(arn: str, role: str) -> None:
    """AWS's published SQS record spells a session's issuer as an assumed role."""
    assert role_arn(arn) == role
    issuer = {"sessionContext": {"sessionIssuer": {"type": "Role", "arn": arn}}}
    session = {"arn": "arn:aws:sts::1:assumed-role/worker/me", **issuer}
    assert call(userIdentity=session).principal_arn == (role or "arn:aws:iam::1:role/worker")


@pytest.mark.parametrize(
    ("caller", "over"),
    [
        ("arn:aws:iam::444455556666:user/ann", {}),
        ("ann", {}),
        (USER, {"errorCode": "InvalidParameterValue"}),
        (USER, {"recipientAccountId": OTHERS}),
        (USER, {"errorMessage": None}),
        (USER, {"identity": {**STRANGER, "accountId": None}}),
    ],
)
def test_a_caller_whom_cloudtrail_s_account_does_not_confirm_is_not_named(
    caller: str, over: dict[str, Any]
) -> None:
    assert _refused(caller, **over) == "AROAX", "the name of its session is its own text"


@given(
    st.dictionaries(st.sampled_from(sorted(RECORD)), JSON).map(lambda over: make_record(**over))
    | st.binary(max_size=400)
    | JSON
)
def test_any_value_in_any_field_is_read_or_declined(junk: object) -> None:
    assert isinstance(read(junk), FailedCall | UnreadableRecord)


def test_read_accepts_real_failed_records_whose_source_is_changed_to_sqs() -> None:
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
def test_a_visibility_timeout_that_sqs_would_take_is_read(
    asked: object, read_as: int | None
) -> None:
    got = call(requestParameters={"visibilityTimeout": asked})
    assert got.requested_visibility_seconds == read_as


def test_a_long_text_is_cut_and_half_a_character_replaced() -> None:
    got = call(errorMessage="x" * 100_000, requestID="\ud800", eventTime="2026-11-07T23:59:11+0000")
    assert got.event_time == call().event_time, "AWS spells it in both ways"
    assert got.error_message == "x" * 2_048
    assert got.request_id == "?"


@pytest.mark.parametrize(
    ("given", "read_as"),
    [(None, ""), (7, ""), ("x" * 2_000, "x" * MAXIMUM_USER_AGENT_LENGTH), ("a\ud800", "a?")],
)
def test_a_user_agent_is_the_callers_text_and_is_bounded(given: object, read_as: str) -> None:
    assert call(userAgent=given).user_agent == read_as
