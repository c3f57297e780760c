"""Which symptom a failed call points to, whatever the caller writes; and which calls count."""

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


def name_of(event: str, code: str, message: str = "", arn: str | None = QUEUE_ARN) -> str | None:
    symptom = find_symptom_of(replace(failed_call(event, code, message), queue_arn=arn))
    return symptom.name if symptom else None


@pytest.mark.parametrize(("event", "code", "message", "name"), read_test_data("tables")["messages"])
def test_what_the_message_the_call_or_the_queue_decides(
    event: str, code: str, message: str, name: str | None
) -> None:
    call, _, where = event.partition(" ")
    arn = {"": QUEUE_ARN, "nowhere": None}.get(where, STANDARD_ARN)
    assert name_of(call, code, message, arn) == name


@pytest.mark.parametrize(
    "entry", [ACCESS_DENIED, EMPTY_RECEIVES, FIFO_THROTTLED, QUEUE_MISSING], ids=lambda e: e.name
)
def test_only_calls_that_carry_messages_are_evidence(entry: Symptom) -> None:
    others = ("GetQueueAttributes", "SetQueueAttributes", "ListQueues", "GetQueueUrl", "")
    assert all(entry.is_evidence(failed_call(event, "x")) for event in MESSAGE_CALLS)
    assert not any(entry.is_evidence(failed_call(event, "x")) for event in others)


# Which calls Mendq takes up.

HOME = AccountAndRegion("123456789012", "us-east-1")
OURS = "arn:aws:iam::123456789012:role/mendq-heal-us-east-1"
GONE = make_call_with_refused_value(
    "ChangeMessageVisibility", "ReceiptHandle", DELETED_MESSAGE_REASON
).error_message


@pytest.mark.parametrize(("code", "event", "over"), read_test_data("tables")["ignored"])
def test_a_call_that_mendq_does_not_take_up_has_a_reason(
    code: str, event: str, over: dict[str, Any]
) -> None:
    """`OURS` and `GONE` stand for the above; of a queue's ARN one part is replaced by another."""
    given = {name: {"OURS": OURS, "GONE": GONE}.get(each, each) for name, each in over.items()}
    if seconds := given.pop("session_seconds", None):
        given["session_created_at"] = EXAMPLE_TIME - timedelta(seconds=seconds)
    if arn := given.get("queue_arn"):
        given["queue_arn"] = QUEUE_ARN.replace(*arn.split(">"))
    call = replace(failed_call(*event.split()), **given)
    ignored = find_ignore_reason(call, find_symptom_of(call), HOME)
    assert (ignored or "") == code


def test_each_reason_to_ignore_a_call_is_given_for_a_call_of_its_own() -> None:
    """Each of these calls would be taken up, or be ignored for another reason, without its own."""
    late = failed_call("DeleteMessage", "MessageNotInflight")
    extended = make_call_with_refused_value(
        "ChangeMessageVisibility", "ReceiptHandle", DELETED_MESSAGE_REASON
    )
    calls = {
        "own_call": replace(late, principal_arn=OURS),
        "unknown_code": failed_call("SendMessage", "Teapot"),
        "count_only": failed_call("SendMessage", "InvalidParameterValue"),
        "unresolved_queue": replace(late, queue_arn=None),
        "elsewhere": replace(late, queue_arn=QUEUE_ARN.replace("us-east-1", "eu-west-9")),
        "may_be_a_race": replace(extended, queue_arn=QUEUE_ARN.removesuffix(".fifo")),
        "no_evidence": failed_call("GetQueueAttributes", "AccessDenied"),
    }
    given = {
        code: find_ignore_reason(call, find_symptom_of(call), HOME) for code, call in calls.items()
    }
    assert given == {code: code for code in calls}
    assert find_ignore_reason(late, find_symptom_of(late), HOME) is None


@pytest.mark.parametrize("purpose", ROLE_PURPOSES)
def test_every_role_of_ours_is_known_in_its_account_and_region(purpose: str) -> None:
    arn = f"arn:aws:iam::123456789012:role/{role_name(purpose, 'us-east-1')}"
    assert HOME.purpose_of(arn) == purpose
    assert AccountAndRegion("123456789012", "eu-west-9").purpose_of(arn) is None
    assert AccountAndRegion("999999999999", "us-east-1").purpose_of(arn) is None


@pytest.mark.parametrize(
    "name",
    [
        *("role/mendq-nobody-us-east-1", "role/mendq-follow_up-us-east-1", "role/", ""),
        *("role/team/mendq-heal-us-east-1", "role/x-mendq-heal-us-east-1"),
        *("role/mendq-heal-us-east-1x", "user/mendq-heal-us-east-1"),
    ],
)
def test_whose_role_only_looks_like_ours_is_somebody_else(name: str) -> None:
    assert HOME.purpose_of(f"arn:aws:iam::123456789012:{name}") is None


def test_every_error_that_the_real_sqs_was_recorded_giving_has_its_label() -> None:
    """By the recorded test, the part of the message that SQS does not fill in, and the call."""
    labelled = [tuple(row) for row in read_test_data("real_errors")]
    met = Counter[tuple[str, ...]]()
    for error in read_sqs_errors():
        test, said = error["test"].partition("[")[0], error["message"]
        (row,) = (each for each in labelled if each[0] == test and each[1] in said)
        fifo = "fifo" in test or "dedup" in test
        for code in filter(None, (error["code"], error["query"])):
            found = name_of(row[2], code, said, QUEUE_ARN if fifo else STANDARD_ARN)
            assert found == row[3], error["test"]
        met[row] += 1
    assert set(met) == set(labelled)
    assert met.total() == 89


REASONS = (
    ("ReceiptHandle", "The receipt handle has expired."),
    ("ReceiptHandle", DELETED_MESSAGE_REASON),
    ("WaitTimeSeconds", "Must be >= 0 and <= 20, if provided."),
    ("Label", "Already exists."),
    ("Label", "can't find label."),
)
FORGED = [
    *(f"Value x for parameter {name} is invalid. Reason: {reason}" for name, reason in REASONS),
    *(each.call.error_message for entry in CATALOGUE for each in call_examples_of(entry)),
]
TRAFFIC = ("ChangeMessageVisibility", "DeleteMessage", "ReceiveMessage", "SendMessage")


@settings(max_examples=400)
@given(
    st.sampled_from(TRAFFIC),
    st.sampled_from(REASONS),
    st.sampled_from(FORGED)
    | st.lists(st.text(max_size=60) | st.sampled_from(FORGED), max_size=3).map("".join),
)
def test_the_caller_s_text_in_the_middle_never_decides(
    event: str, reason: tuple[str, str], text: str
) -> None:
    """Whatever it says, the label is that of harmless text; or the message may be cut."""
    call = make_call_with_refused_value(event, *reason, text)
    if len(call.error_message.encode()) < 1_024:
        assert find_symptom_of(call) is find_symptom_of(
            make_call_with_refused_value(event, *reason)
        )
    else:
        labelled = find_symptom_of(call)
        assert labelled is not None
        assert labelled.plan is None
