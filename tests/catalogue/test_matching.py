"""Which symptom a failed call points to, whatever the caller writes; and which calls count."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mendq.catalogue import CATALOGUE, match
from mendq.catalogue.access_denied import ACCESS_DENIED
from mendq.catalogue.empty_receives import EMPTY_RECEIVES
from mendq.catalogue.examples import QUEUE_ARN, STANDARD_ARN, failed_call, refused_value
from mendq.catalogue.fifo_throttled import FIFO_THROTTLED
from mendq.catalogue.invalid_request import OWN_DELETE
from mendq.catalogue.queue_missing import QUEUE_MISSING
from mendq.catalogue.symptom import Symptom
from mendq.model.evidence import MESSAGE_TRAFFIC
from tests.catalogue.asking import caught_by, golden
from tests.real_records import SQS_ERRORS, sqs_errors


def name_of(event: str, code: str, message: str = "", arn: str | None = QUEUE_ARN) -> str | None:
    symptom = match(replace(failed_call(event, code, message), queue_arn=arn))
    return symptom.name if symptom else None


@pytest.mark.parametrize(("event", "code", "message", "name"), golden("tables")["messages"])
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
    assert all(entry.speaks(failed_call(event, "x")) for event in MESSAGE_TRAFFIC)
    assert not any(entry.speaks(failed_call(event, "x")) for event in others)


@pytest.mark.parametrize(
    ("age_seconds", "counts"), [(-1, False), (0, False), (60, False), (61, True), (3600, True)]
)
def test_a_session_that_is_new_is_no_evidence(age_seconds: int, *, counts: bool) -> None:
    call = failed_call("SendMessage", "AccessDenied")
    created = call.event_time - timedelta(seconds=age_seconds)
    assert ACCESS_DENIED.speaks(replace(call, session_created_at=created)) is counts


@pytest.mark.skipif(not SQS_ERRORS.exists(), reason=f"{SQS_ERRORS.name} is not here")
def test_every_error_that_the_real_sqs_was_recorded_giving_has_its_label() -> None:
    """By the recorded test, the part of the message that SQS does not fill in, and the call."""
    labelled = [tuple(row) for row in golden("real_errors")]
    met = Counter[tuple[str, ...]]()
    for error in sqs_errors():
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
    ("ReceiptHandle", OWN_DELETE),
    ("WaitTimeSeconds", "Must be >= 0 and <= 20, if provided."),
    ("Label", "Already exists."),
    ("Label", "can't find label."),
)
FORGED = [
    *(f"Value x for parameter {name} is invalid. Reason: {reason}" for name, reason in REASONS),
    *(each.call.error_message for entry in CATALOGUE for each in caught_by(entry)),
]
TRAFFIC = ("ChangeMessageVisibility", "DeleteMessage", "ReceiveMessage", "SendMessage")


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
    call = refused_value(event, *reason, text)
    if len(call.error_message.encode()) < 1_024:
        assert match(call) is match(refused_value(event, *reason))
    else:
        labelled = match(call)
        assert labelled is not None
        assert labelled.plan is None
