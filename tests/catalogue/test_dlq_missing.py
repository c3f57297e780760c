"""When a queue needs a DLQ, and when measuring is worth its price."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mendq.catalogue.dlq_missing import detect, plan, suspects
from mendq.catalogue.examples import DLQ_ARN, QUEUE_ARN, STANDARD_ARN, measured, queue
from mendq.model.facts import DlqFacts, Facts, LambdaConsumer, SourceQueue
from mendq.model.limits import Limits
from mendq.model.plan import Plan
from mendq.model.queue import Redrive

FUNCTION = LambdaConsumer("arn:aws:lambda:us-east-1:123456789012:function:bill", 30, 5)
NONE = replace(
    queue(queue_arn=STANDARD_ARN, ApproximateNumberOfMessages="1"),
    dlq_sources=(),
    dlq_namesake=DlqFacts(DLQ_ARN, None),
)
GONE = replace(
    queue(queue_arn=STANDARD_ARN, RedrivePolicy=Redrive(DLQ_ARN, 5).text),
    dlq=DlqFacts(DLQ_ARN, None),
)


@pytest.mark.parametrize(
    ("counted", "is_needed"),
    [
        ({"received": 4, "deleted": 1, "sent": 2}, True),
        ({"received": 3, "deleted": 1, "sent": 2}, False),
        ({"received": 4, "deleted": 1, "sent": 4}, False),
        ({"received": 4, "deleted": 1, "sent": 1, "backlog_before": 3}, False),
        ({"received": 4, "deleted": 0, "sent": 1, "backlog_now": 0}, False),
        ({}, False),
    ],
)
def test_messages_come_back(counted: dict[str, int], *, is_needed: bool) -> None:
    facts = replace(NONE, measured=measured(**{"backlog_now": 1, **counted}))
    assert bool(detect(facts)) is is_needed


def test_while_messages_are_moved_back_nothing_is_judged_by_numbers() -> None:
    coming_back = replace(NONE, measured=measured(received=40, sent=1, backlog_now=1))
    assert detect(coming_back)
    assert detect(replace(coming_back, move_task_running=True)) is None


def test_a_queue_that_is_gone_is_found_although_others_send_messages_here() -> None:
    source = SourceQueue(QUEUE_ARN, {})
    assert detect(replace(GONE, dlq_sources=(source,)))


def test_nothing_is_made_that_stands_there_by_now() -> None:
    there = replace(GONE, dlq=DlqFacts(DLQ_ARN, {"QueueArn": "x"}))
    answer = plan(there, Limits())
    assert not isinstance(answer, Plan)
    assert (answer.code, answer.becomes) == ("need_already_met", None)


def test_what_was_agreed_to_is_the_same_plan_by_other_numbers() -> None:
    """An approval is taken up minutes or hours later."""
    coming_back = replace(NONE, measured=measured(received=40, sent=1, backlog_now=1))
    quiet = replace(NONE, measured=measured(received=1, sent=1, backlog_now=1))
    proposed, taken_up = (plan(each, Limits()) for each in (coming_back, quiet))
    assert isinstance(proposed, Plan)
    assert isinstance(taken_up, Plan)
    assert proposed.steps == taken_up.steps


@pytest.mark.parametrize(
    ("facts", "is_measured"),
    [
        (NONE, True),
        (replace(NONE, dlq_sources=None), True),
        (replace(NONE, lambda_consumers=(FUNCTION,)), False),
        (
            replace(NONE, attributes={"RedrivePolicy": "{}", "ApproximateNumberOfMessages": "1"}),
            False,
        ),
        (queue(queue_arn=STANDARD_ARN), False),
        (GONE, False),
    ],
)
def test_only_what_no_attribute_tells_is_measured(facts: Facts, *, is_measured: bool) -> None:
    assert suspects(facts) is is_measured
