"""When SQS may make a deduplication id of the body, beyond the entry's own examples."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mendq.catalogue import examples, match
from mendq.catalogue.dedup_id_missing import DEDUP_ID_MISSING, plan
from mendq.model.limits import Limits
from mendq.model.plan import Plan, Refusal
from mendq.model.steps import DeduplicateByContent
from tests.real_records import SQS_ERRORS, sqs_errors

LIMITS = Limits()
TEXT = (
    "The queue should either have ContentBasedDeduplication enabled "
    "or MessageDeduplicationId provided explicitly"
)


def test_a_queue_where_it_is_on_is_left_alone() -> None:
    answer = plan(examples.queue(ContentBasedDeduplication="true"), LIMITS)
    assert isinstance(answer, Refusal)
    assert (answer.code, answer.becomes) == ("already_on", None)


@pytest.mark.parametrize(
    ("event_name", "code", "message"),
    [
        ("SendMessage", "InvalidParameterValue", ""),
        ("SendMessage", "InvalidParameterValue", TEXT + "\n"),
        ("SendMessage", "InvalidParameterValue", f"x {TEXT}"),
        ("SendMessage", "InvalidParameterValue", TEXT.lower()),
        ("SendMessage", "InvalidParameterValue", TEXT[:80]),
        ("SendMessage", "MissingParameter", TEXT),
        ("ReceiveMessage", "InvalidParameterValue", TEXT),
    ],
)
def test_what_is_not_caught(event_name: str, code: str, message: str) -> None:
    assert match(examples.failed_call(event_name, code, message)) is not DEDUP_ID_MISSING


def test_a_standard_queue_has_no_such_attribute() -> None:
    call = examples.failed_call("SendMessage", "InvalidParameterValue", TEXT)
    assert match(replace(call, queue_arn=examples.STANDARD_ARN)) is not DEDUP_ID_MISSING
    assert match(call) is DEDUP_ID_MISSING


@pytest.mark.parametrize("attributes", [{}, {"ContentBasedDeduplication": "false"}])
def test_it_is_turned_on_and_said_what_that_drops(attributes: dict[str, str]) -> None:
    facts = examples.queue()
    answer = plan(replace(facts, attributes={**facts.attributes, **attributes}), LIMITS)
    assert isinstance(answer, Plan)
    assert answer.steps == (DeduplicateByContent("false", "true"),)
    assert "accepted and dropped" in answer.reason
    assert "5 minutes" in answer.reason


@given(st.text(max_size=60))
def test_the_caller_s_text_never_decides(text: str) -> None:
    message = f"Value {text}{TEXT} for parameter MessageDeduplicationId is invalid. Reason: {text}"
    call = examples.failed_call("SendMessage", "InvalidParameterValue", message)
    assert match(call) is not DEDUP_ID_MISSING


@pytest.mark.skipif(not SQS_ERRORS.exists(), reason=f"{SQS_ERRORS.name} is not here")
def test_of_the_real_errors_only_this_sentence_is_caught() -> None:
    caught = [
        error["message"]
        for error in sqs_errors()
        if match(examples.failed_call("SendMessage", error["code"], error["message"]))
        is DEDUP_ID_MISSING
    ]
    assert set(caught) == {TEXT}
    assert len(caught) == 6
