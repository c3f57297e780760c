"""Test that the framework that reads a queue is recognized, and that a guess is called one."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mendq.model.frameworks import (
    CONSUMER_TAG,
    FRAMEWORKS,
    Framework,
    is_error_queue_name,
    recognize_consumer,
)

_POLICY = '{"Statement": [{"Principal": {"Service": ["events.amazonaws.com"]}}]}'


def find_word(
    name: str = "orders",
    tags: dict[str, str] | None = None,
    attributes: dict[str, str] | None = None,
    user_agents: tuple[str, ...] = (),
) -> str:
    consumer = recognize_consumer(name, attributes or {}, tags or {}, user_agents)
    return consumer.framework.word if consumer else ""


@pytest.mark.parametrize("framework", FRAMEWORKS, ids=lambda framework: framework.word)
def test_consumer_tag_settles_the_framework_whatever_else_suggests(framework: Framework) -> None:
    tags = {CONSUMER_TAG.key: framework.word, "app": "rebus"}
    consumer = recognize_consumer("dramatiq", {}, tags)
    assert consumer is not None
    assert (consumer.framework, consumer.is_guess) == (framework, False)
    assert "guess" not in consumer.describe()


@pytest.mark.parametrize("word", ["lambda", "other", "error-queue", "Dramatiq", ""])
def test_consumer_tag_that_names_no_framework_ends_the_guessing(word: str) -> None:
    assert find_word("dramatiq", {CONSUMER_TAG.key: word}) == ""


@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("dramatiq-orders", "dramatiq"),
        ("DramatiqOrders", "dramatiq"),
        ("acme.NServiceBus.orders", "nservicebus"),
        ("orders-delay.fifo", "nservicebus"),
        ("orders_error", "masstransit"),
        ("orders_skipped", "masstransit"),
        ("celery", "celery"),
        ("a1b2-celery-pidbox", "celery"),
        ("databricks-auto-ingest-42", "databricks"),
        ("filebeat_logs", "filebeat"),
        ("sqs-consumer-orders", "sqs-consumer"),
    ],
)
def test_consumer_is_guessed_by_the_queues_name_and_called_a_guess(name: str, word: str) -> None:
    consumer = recognize_consumer(name, {}, {})
    assert consumer is not None
    assert (consumer.framework.word, consumer.is_guess) == (word, True)
    assert "a guess" in consumer.describe()


@pytest.mark.parametrize(
    "name",
    [
        *("orders", "vector-embeddings", "spring-sale", "broadway-tickets", "camel-rides"),
        *("undramatiqal", "orders-delay", "orders-error", "celerys", "dramatiq-to-rebus"),
    ],
)
def test_consumer_is_not_guessed_by_an_everyday_or_ambiguous_name(name: str) -> None:
    assert find_word(name) == ""


def test_consumer_is_guessed_by_tags_that_name_a_program_and_by_no_other_tag() -> None:
    assert find_word(tags={"App": "vector"}) == "vector"
    assert find_word(tags={"app.kubernetes.io/name": "aws-messaging"}) == "aws-messaging"
    assert find_word(tags={"note": "read by vector"}) == ""
    assert find_word(tags={"app": "vector", "service": "rebus"}) == ""


def test_consumer_is_guessed_by_a_user_agent() -> None:
    assert find_word(user_agents=("aws-sdk-go/1.44 karpenter/1.14",)) == "karpenter"
    assert find_word(user_agents=("Boto3/1.34 md/Botocore",)) == ""


def test_consumer_is_guessed_by_attributes_only_if_all_fit() -> None:
    attributes = {"MessageRetentionPeriod": "300", "Policy": _POLICY}
    assert find_word(attributes=attributes) == "karpenter"
    assert find_word(attributes={**attributes, "MessageRetentionPeriod": "345600"}) == ""
    assert find_word(attributes={"MessageRetentionPeriod": "300"}) == ""


@pytest.mark.parametrize(
    "name",
    [
        *("error", "orders_error", "orders-errors.fifo", "OrdersFailed", "orders-dlq", "OrdersDLQ"),
        *(
            "orders_skipped",
            "orders-dead-letter-queue",
            "OrdersDeadLetters",
            "poison",
            "errorQueue",
        ),
    ],
)
def test_error_queue_is_recognized_by_the_last_word_of_its_name(name: str) -> None:
    assert is_error_queue_name(name)


@pytest.mark.parametrize(
    "name", ["orders", "error-reports", "failed-payments-retry", "terror", "dlq-archive", "queue"]
)
def test_queue_with_another_last_word_is_no_error_queue(name: str) -> None:
    assert not is_error_queue_name(name)


@given(st.text(max_size=80), st.dictionaries(st.text(max_size=20), st.text(max_size=40)))
def test_recognition_of_any_name_and_tags_raises_no_error(name: str, tags: dict[str, str]) -> None:
    recognize_consumer(name, tags, tags, (name,))
    is_error_queue_name(name)


def test_every_framework_names_an_option_if_the_queues_timeout_is_not_in_force() -> None:
    for framework in FRAMEWORKS:
        sends_own = framework.own_timeout_seconds is not None
        writes_own = "VisibilityTimeout" in framework.written_attributes
        assert bool(framework.timeout_option) == (sends_own or writes_own), framework.word
        assert re.fullmatch(r"[a-z-]+", framework.word)
