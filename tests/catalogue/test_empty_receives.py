"""When readers should wait longer, beyond the entry's own examples."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mendq.catalogue import examples, match
from mendq.catalogue.empty_receives import EMPTY_RECEIVES, plan
from mendq.model.case import State
from mendq.model.facts import Facts, LambdaConsumer
from mendq.model.limits import Limits, Mode
from mendq.model.plan import Plan, Refusal
from tests.architecture import test_documents as documents

LIMITS = Limits()


def queue(wait_seconds: int, *event_names: str, lambdas: int = 0) -> Facts:
    facts = examples.queue(
        queue_arn=examples.STANDARD_ARN, ReceiveMessageWaitTimeSeconds=str(wait_seconds)
    )
    consumers = (LambdaConsumer("arn:f", 30, 0),) * lambdas
    return replace(facts, event_names=event_names, lambda_consumers=consumers)


@pytest.mark.parametrize(
    ("facts", "code", "becomes", "says"),
    [
        (queue(0, "SendMessage"), "senders_throttled", State.REFUSED, "are SendMessage:"),
        (
            queue(20, "DeleteMessage", "SendMessageBatch"),
            "senders_throttled",
            State.REFUSED,
            "are DeleteMessage, SendMessageBatch:",
        ),
        (queue(20, "ReceiveMessage"), "already_long_polling", State.ESCALATED, "wait 20 s"),
    ],
)
def test_what_is_refused(facts: Facts, code: str, becomes: State, says: str) -> None:
    answer = plan(facts, LIMITS)
    assert isinstance(answer, Refusal)
    assert (answer.code, answer.becomes) == (code, becomes)
    assert says in answer.reason
    documents.test_an_aws_command_exists_and_takes_these_options(answer.next_command)


@given(st.integers(0, 20), st.booleans(), st.integers(0, 2))
def test_a_plan_goes_to_the_longest_wait(seconds: int, sends: bool, lambdas: int) -> None:
    names = ("ReceiveMessage", "SendMessage") if sends else ("ReceiveMessage",)
    answer = plan(queue(seconds, *names, lambdas=lambdas), LIMITS)
    assert isinstance(answer, Plan) == (seconds < 20)
    if isinstance(answer, Plan):
        (step,) = answer.steps
        assert (step.before, step.after) == (seconds, 20)
        assert step.out_of_bounds() is None


IN_VAIN = examples.measured(empty_receives=60_000, received=6_000)


def test_what_a_scan_counted_is_said() -> None:
    facts = replace(queue(0), measured=IN_VAIN)
    assert EMPTY_RECEIVES.detection is not None
    found = EMPTY_RECEIVES.detection.detect(facts)
    assert found is not None
    answer = plan(replace(facts, found=found.because), LIMITS)
    assert isinstance(answer, Plan)
    assert answer.reason.startswith("60,000 receives in 6.0 h found nothing, while 6,000 messages")
    assert "throttled" not in answer.reason


def test_where_nothing_is_throttled_or_in_vain_nothing_is_done() -> None:
    answer = plan(queue(0), LIMITS)
    assert isinstance(answer, Refusal)
    assert (answer.code, answer.becomes) == ("need_already_met", None)


@pytest.mark.parametrize("hours", [1, 3, 6])
def test_the_bound_is_ten_thousand_an_hour(hours: int) -> None:
    assert EMPTY_RECEIVES.detection is not None
    since = IN_VAIN.until - timedelta(hours=hours)
    for empty, found in ((10_000 * hours, True), (10_000 * hours - 1, False)):
        measured = replace(IN_VAIN, since=since, empty_receives=empty, received=0)
        facts = replace(queue(0), measured=measured)
        assert bool(EMPTY_RECEIVES.detection.detect(facts)) is found


def test_a_queue_that_does_not_say_polls_short() -> None:
    facts = replace(
        examples.queue(queue_arn=examples.STANDARD_ARN), event_names=("ReceiveMessage",)
    )
    answer = plan(facts, LIMITS)
    assert isinstance(answer, Plan)
    assert [(each.before, each.after) for each in answer.steps] == [(0, 20)]


def test_a_reader_learns_what_short_read_timeouts_do() -> None:
    answer = plan(queue(5, "ReceiveMessage"), LIMITS)
    assert isinstance(answer, Plan)
    assert "read timeout is shorter than 20 s" in answer.reason
    assert "leaves messages in flight" in answer.reason
    assert answer.at_most is Mode.HEAL


def test_with_a_lambda_consumer_a_person_sees_it_first() -> None:
    answer = plan(queue(0, "ReceiveMessage", lambdas=1), LIMITS)
    assert isinstance(answer, Plan)
    assert answer.at_most is Mode.PROPOSE
    assert "if nobody else reads the queue, this changes nothing" in answer.reason


@pytest.mark.parametrize("code", ["RequestThrottled", "ThrottlingException", "Throttling"])
def test_standard_queues_alone_are_caught(code: str) -> None:
    call = examples.failed_call("ReceiveMessage", code)
    assert match(call) is not EMPTY_RECEIVES
    assert match(replace(call, queue_arn=examples.STANDARD_ARN)) is EMPTY_RECEIVES
    assert match(replace(call, queue_arn=None)) is EMPTY_RECEIVES


@pytest.mark.parametrize("event_name", ["GetQueueAttributes", "ListQueues", "CreateQueue"])
def test_calls_without_messages_are_no_evidence(event_name: str) -> None:
    assert not EMPTY_RECEIVES.speaks(examples.failed_call(event_name, "RequestThrottled"))


@pytest.mark.parametrize("event_name", ["SendMessage", "ReceiveMessage", "DeleteMessage"])
def test_message_traffic_is_evidence(event_name: str) -> None:
    assert EMPTY_RECEIVES.speaks(examples.failed_call(event_name, "RequestThrottled"))
