"""Test the consequences of the framework that reads a queue: what Mendq proposes and reports."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from mendq.catalogue.dlq.attach import plan_new_dlq
from mendq.catalogue.dlq.error_queue_grows import ERROR_QUEUE_GROWS
from mendq.catalogue.examples import DLQ_ARN, LAMBDA_FUNCTION, replace_values, standard_queue
from mendq.catalogue.visibility.needed_timeout import plan_needed_timeout
from mendq.catalogue.visibility.timeout_not_in_force import TIMEOUT_NOT_IN_FORCE
from mendq.model.facts import Facts, QueueFacts
from mendq.model.frameworks import CONSUMER_TAG
from mendq.model.limits import Limits
from mendq.model.plan import Plan, Refusal
from mendq.model.queue import parse_redrive_policy
from mendq.model.steps import AttachDlq

_FREE_DLQ_NAME: Any = {"dlq_namesake": QueueFacts(DLQ_ARN, {})}
_NEED = {"mendq:max-processing-seconds": "100"}


def make_queue(word: str = "", **overrides: Any) -> Facts:
    tags = {**_NEED, CONSUMER_TAG.key: word} if word else _NEED
    return standard_queue(tags=tags, VisibilityTimeout=40, **overrides)


def plan_timeout(facts: Facts) -> Plan | Refusal:
    return plan_needed_timeout(facts, Limits())


@pytest.mark.parametrize(
    ("word", "option"),
    [
        ("dramatiq", "SQSBroker"),
        ("vector", "visibility_timeout_secs"),
        ("karpenter", "20 s"),
        ("rebus", "MessageLeaseDuration"),
        ("camel", "endpoint"),
    ],
)
def test_no_timeout_is_proposed_that_the_consumer_does_not_use_or_writes_back(
    word: str, option: str
) -> None:
    assert isinstance(plan_timeout(make_queue()), Plan)
    refusal = plan_timeout(make_queue(word))
    assert isinstance(refusal, Refusal)
    assert refusal.code == "timeout_not_in_force"
    assert option in refusal.reason


@pytest.mark.parametrize("word", ["celery", "laravel", "spring", "other", "lambda"])
def test_timeout_is_proposed_if_the_consumer_uses_the_queues(word: str) -> None:
    assert isinstance(plan_timeout(make_queue(word)), Plan)


def test_timeout_is_proposed_for_a_function_whatever_the_queue_is_called() -> None:
    read_by_lambda = replace_values(
        make_queue(), queue_arn="arn:aws:sqs:us-east-1:123456789012:dramatiq"
    )
    assert isinstance(plan_timeout(read_by_lambda), Refusal)
    read_by_lambda = replace(read_by_lambda, lambda_consumers=(LAMBDA_FUNCTION,))
    assert isinstance(plan_timeout(read_by_lambda), Plan)


@pytest.mark.parametrize(("word", "least"), [("nservicebus", 7), ("rebus", 6), ("spring", 5)])
def test_new_dlq_leaves_the_framework_its_own_tries(word: str, least: int) -> None:
    plan = plan_new_dlq(make_queue(word, sent=10, received=10, deleted=10, **_FREE_DLQ_NAME), "why")
    assert isinstance(plan, Plan)
    (attach,) = [step for step in plan.steps if isinstance(step, AttachDlq)]
    redrive_policy = parse_redrive_policy(str(attach.after))
    assert redrive_policy is not None
    assert redrive_policy.max_receive_count >= least
    assert (redrive_policy.max_receive_count == 5) == (word == "spring")


def test_guessed_framework_is_called_a_guess_in_the_finding() -> None:
    guessed = standard_queue(tags={"app": "vector"}, VisibilityTimeout=900)
    assert TIMEOUT_NOT_IN_FORCE.detection is not None
    fault = TIMEOUT_NOT_IN_FORCE.detection.detect(guessed)
    assert fault is not None
    assert "a guess" in fault.because
    assert fault.is_hygiene


def test_error_queue_is_not_reported_if_consumers_handle_it_unless_its_tag_says_so() -> None:
    arn = "arn:aws:sqs:us-east-1:123456789012:page-errors"
    handled = replace_values(
        standard_queue(queue_arn=arn), sent=100, received=60, deleted=50, visible_now=50
    )
    assert ERROR_QUEUE_GROWS.detection is not None
    detect = ERROR_QUEUE_GROWS.detection.detect
    assert detect(handled) is None
    assert detect(replace_values(handled, deleted=49)) is not None
    assert detect(replace(handled, tags={CONSUMER_TAG.key: "error-queue"})) is not None
