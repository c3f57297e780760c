"""Test which symptom a failed call belongs to, and which failed calls Mendq ignores."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mendq.catalogue import CATALOGUE, find_symptom_of
from mendq.catalogue.access.access_denied import ACCESS_DENIED
from mendq.catalogue.access.queue_missing import QUEUE_MISSING
from mendq.catalogue.consumers.empty_receives import EMPTY_RECEIVES
from mendq.catalogue.examples import (
    EXAMPLE_TIME,
    QUEUE_ARN,
    STANDARD_ARN,
    failed_call,
    make_call_with_refused_value,
)
from mendq.catalogue.fifo.fifo_throttled import FIFO_THROTTLED
from mendq.catalogue.symptom import Symptom
from mendq.model.account_and_region import AccountAndRegion
from mendq.model.failed_call import DELETED_MESSAGE_REASON
from mendq.model.ignored_calls import find_ignore_reason
from mendq.model.message_calls import MESSAGE_CALLS
from mendq.model.names import ROLE_PURPOSES, role_name
from tests.catalogue.asking import call_examples_of, read_test_data
from tests.real_records import read_sqs_errors


def find_symptom_name(
    event: str, code: str, message: str = "", arn: str | None = QUEUE_ARN
) -> str | None:
    symptom = find_symptom_of(replace(failed_call(event, code, message), queue_arn=arn))
    return symptom.name if symptom else None


@pytest.mark.parametrize(("event", "code", "message", "name"), read_test_data("tables")["messages"])
def test_symptom_of_a_failed_call_follows_from_its_error_code_message_operation_and_queue(
    event: str, code: str, message: str, name: str | None
) -> None:
    call, _, where = event.partition(" ")
    arn = {"": QUEUE_ARN, "nowhere": None}.get(where, STANDARD_ARN)
    assert find_symptom_name(call, code, message, arn) == name


@pytest.mark.parametrize(
    "entry",
    [ACCESS_DENIED, EMPTY_RECEIVES, FIFO_THROTTLED, QUEUE_MISSING],
    ids=lambda entry: entry.name,
)
def test_only_calls_that_send_receive_or_change_messages_are_evidence(entry: Symptom) -> None:
    others = ("GetQueueAttributes", "SetQueueAttributes", "ListQueues", "GetQueueUrl", "")
    assert all(entry.is_evidence(failed_call(event, "x")) for event in MESSAGE_CALLS)
    assert not any(entry.is_evidence(failed_call(event, "x")) for event in others)


ACCOUNT_AND_REGION = AccountAndRegion("123456789012", "us-east-1")
MENDQ_ROLE = "arn:aws:iam::123456789012:role/mendq-heal-us-east-1"
DELETED_MESSAGE_TEXT = make_call_with_refused_value(
    "ChangeMessageVisibility", "ReceiptHandle", DELETED_MESSAGE_REASON
).error_message


@pytest.mark.parametrize(("code", "event", "over"), read_test_data("tables")["ignored"])
def test_failed_call_is_handled_or_ignored_for_the_reason_of_the_table(
    code: str, event: str, over: dict[str, Any]
) -> None:
    """In the table, `OURS` is Mendq's role and `GONE` SQS's text about a deleted message.

    A queue ARN is given as `old>new`, the part to replace.
    """
    text_by_placeholder = {"OURS": MENDQ_ROLE, "GONE": DELETED_MESSAGE_TEXT}
    given = {name: text_by_placeholder.get(value, value) for name, value in over.items()}
    if seconds := given.pop("session_seconds", None):
        given["session_created_at"] = EXAMPLE_TIME - timedelta(seconds=seconds)
    if arn := given.get("queue_arn"):
        given["queue_arn"] = QUEUE_ARN.replace(*arn.split(">"))
    call = replace(failed_call(*event.split()), **given)
    ignored = find_ignore_reason(call, find_symptom_of(call), ACCOUNT_AND_REGION)
    assert (ignored or "") == code


def test_failed_call_is_ignored_for_each_reason_alone_and_handled_without_one() -> None:
    """Without this reason, Mendq would handle the call or ignore it for another reason."""
    late = failed_call("DeleteMessage", "MessageNotInflight")
    extended = make_call_with_refused_value(
        "ChangeMessageVisibility", "ReceiptHandle", DELETED_MESSAGE_REASON
    )
    calls = {
        "own_call": replace(late, principal_arn=MENDQ_ROLE),
        "unknown_code": failed_call("SendMessage", "Teapot"),
        "count_only": failed_call("SendMessage", "InvalidParameterValue"),
        "unresolved_queue": replace(late, queue_arn=None),
        "elsewhere": replace(late, queue_arn=QUEUE_ARN.replace("us-east-1", "eu-west-9")),
        "may_be_a_race": replace(extended, queue_arn=QUEUE_ARN.removesuffix(".fifo")),
        "no_evidence": failed_call("GetQueueAttributes", "AccessDenied"),
    }
    for code, call in calls.items():
        assert find_ignore_reason(call, find_symptom_of(call), ACCOUNT_AND_REGION) == code
    assert find_ignore_reason(late, find_symptom_of(late), ACCOUNT_AND_REGION) is None


@pytest.mark.parametrize("purpose", ROLE_PURPOSES)
def test_mendqs_roles_are_recognised_only_in_their_own_account_and_region(purpose: str) -> None:
    arn = f"arn:aws:iam::123456789012:role/{role_name(purpose, 'us-east-1')}"
    assert ACCOUNT_AND_REGION.purpose_of(arn) == purpose
    assert AccountAndRegion("123456789012", "eu-west-9").purpose_of(arn) is None
    assert AccountAndRegion("999999999999", "us-east-1").purpose_of(arn) is None


@pytest.mark.parametrize(
    "name",
    [
        "role/mendq-nobody-us-east-1",
        "role/mendq-follow_up-us-east-1",
        "role/",
        "",
        "role/team/mendq-heal-us-east-1",
        "role/x-mendq-heal-us-east-1",
        "role/mendq-heal-us-east-1x",
        "user/mendq-heal-us-east-1",
    ],
)
def test_role_with_a_name_similar_to_mendqs_is_not_recognised(name: str) -> None:
    assert ACCOUNT_AND_REGION.purpose_of(f"arn:aws:iam::123456789012:{name}") is None


def test_every_error_recorded_from_real_sqs_gets_its_expected_symptom() -> None:
    """A row has the recorded test, the constant part of the message, the call and the symptom."""
    rows = [tuple(row) for row in read_test_data("real_errors")]
    count_by_row = Counter[tuple[str, ...]]()
    for error in read_sqs_errors():
        test = error["test"].partition("[")[0]
        message = error["message"]
        (row,) = [row for row in rows if row[0] == test and row[1] in message]
        is_fifo = "fifo" in test or "dedup" in test
        queue_arn = QUEUE_ARN if is_fifo else STANDARD_ARN
        for code in filter(None, (error["code"], error["query"])):
            name = find_symptom_name(row[2], code, message, queue_arn)
            assert name == row[3], error["test"]
        count_by_row[row] += 1
    assert set(count_by_row) == set(rows)
    assert count_by_row.total() == 89


REASONS = (
    ("ReceiptHandle", "The receipt handle has expired."),
    ("ReceiptHandle", DELETED_MESSAGE_REASON),
    ("WaitTimeSeconds", "Must be >= 0 and <= 20, if provided."),
    ("Label", "Already exists."),
    ("Label", "can't find label."),
)
FORGED = [
    *(f"Value x for parameter {name} is invalid. Reason: {reason}" for name, reason in REASONS),
    *(example.call.error_message for entry in CATALOGUE for example in call_examples_of(entry)),
]
TRAFFIC = ("ChangeMessageVisibility", "DeleteMessage", "ReceiveMessage", "SendMessage")


@settings(max_examples=400)
@given(
    st.sampled_from(TRAFFIC),
    st.sampled_from(REASONS),
    st.sampled_from(FORGED)
    | st.lists(st.text(max_size=60) | st.sampled_from(FORGED), max_size=3).map("".join),
)
def test_text_that_a_caller_put_into_an_error_message_never_changes_the_symptom(
    event: str, reason: tuple[str, str], text: str
) -> None:
    """The symptom is that of harmless text. Only a message that may be cut may differ."""
    call = make_call_with_refused_value(event, *reason, text)
    if len(call.error_message.encode()) < 1_024:
        assert find_symptom_of(call) is find_symptom_of(
            make_call_with_refused_value(event, *reason)
        )
    else:
        labelled = find_symptom_of(call)
        assert labelled is not None
        assert labelled.plan is None
