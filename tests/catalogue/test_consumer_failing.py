"""How many receives have to come to nothing, and where the page points."""

from __future__ import annotations

import shlex
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mendq.catalogue import examples
from mendq.catalogue.consumer_failing import detect, plan
from mendq.model.facts import Facts, LambdaConsumer
from mendq.model.limits import Limits

FAILING = LambdaConsumer(
    "arn:aws:lambda:us-east-1:123456789012:function:bill", 30, 0, 0.4, error_share=0.9
)


def queue(*lambdas: LambdaConsumer, **counted: int) -> Facts:
    facts = examples.queue(queue_arn=examples.STANDARD_ARN)
    measured = examples.measured(**counted)
    return replace(facts, lambda_consumers=lambdas, dlq_sources=(), measured=measured)


@pytest.mark.parametrize(
    ("counted", "found"),
    [
        ({"sent": 100, "received": 200, "deleted": 100}, True),
        ({"sent": 100, "received": 199, "deleted": 100}, False),
        ({"sent": 99, "received": 500, "deleted": 99}, False),
        ({"sent": 40, "backlog_before": 60, "received": 200, "deleted": 100}, True),
        ({"sent": 1_000, "received": 1_999, "deleted": 1_000}, False),
        ({"sent": 1_000, "received": 2_000, "deleted": 1_000, "in_flight_now": 1}, False),
    ],
)
def test_half_of_the_receives_and_a_hundred_of_many_messages(
    counted: dict[str, int], found: bool
) -> None:
    assert bool(detect(queue(**counted))) is found


@pytest.mark.parametrize(
    ("consumer", "received", "found"),
    [
        (FAILING, 20, True),
        (FAILING, 19, False),
        (replace(FAILING, error_share=0.49), 90, False),
        (replace(FAILING, duration_p99_seconds=27.0), 90, False),
        (replace(FAILING, error_share=None), 90, False),
    ],
)
def test_what_lambda_counts_itself_takes_fewer(
    consumer: LambdaConsumer, received: int, found: bool
) -> None:
    assert bool(detect(queue(consumer, sent=9, received=received, backlog_now=9))) is found


@given(st.integers(0, 24), st.integers(0, 10**6))
def test_a_few_messages_never_page_however_often_they_are_given_back(
    messages: int, received: int
) -> None:
    facts = queue(sent=messages, received=received, deleted=messages)
    assert detect(facts) is None


def test_the_page_says_what_becomes_of_what_fails() -> None:
    redrive = '{"deadLetterTargetArn":"arn:aws:sqs:us-east-1:123456789012:d","maxReceiveCount":5}'
    facts = queue(sent=100, received=300, deleted=100)
    assert "no DLQ takes what fails" in plan(facts, Limits()).reason
    retained = replace(facts, attributes={**facts.attributes, "RedrivePolicy": redrive})
    assert "after 5 receives a message goes to" in plan(retained, Limits()).reason


@pytest.mark.parametrize("version", ["", ":7", ":prod"])
def test_the_page_points_at_the_log_of_a_function_that_fails(version: str) -> None:
    failing = replace(FAILING, function_arn=f"{FAILING.function_arn}{version}")
    words = shlex.split(plan(queue(failing), Limits()).next_command)
    assert words[words.index("--log-group-name") + 1] == "/aws/lambda/bill"
    other = shlex.split(plan(queue(), Limits()).next_command)
    assert "NumberOfMessagesReceived" in other


def test_what_is_held_is_said_so_that_the_numbers_add_up() -> None:
    found = detect(queue(sent=120, received=1_700, deleted=0, in_flight_now=100))
    assert found is not None
    assert found.because == (
        "1,600 of 1,700 receives in 6.0 h ended in no delete, 100 are still held: 120 messages "
        "came and 0 went by a delete"
    )
