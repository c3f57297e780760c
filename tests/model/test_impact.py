"""Test the count of messages that a symptom has affected."""

from __future__ import annotations

import pytest

from mendq.catalogue.examples import dlq, measurement, queue_with_dlq, standard_queue
from mendq.model.facts import Facts, count_affected_messages

RACE = measurement(sent=1_000, received=1_400, deleted=1_300)
TOO_SHORT = "visibility_timeout_too_short"


@pytest.mark.parametrize(
    ("symptom", "facts", "messages"),
    [
        ("consumer_stopped", standard_queue(ApproximateNumberOfMessages=340), {"delayed": 340}),
        ("consumer_stopped", standard_queue(ApproximateNumberOfMessages=0), {}),
        ("dlq_messages_arriving", dlq(ApproximateNumberOfMessages=12), {"dead": 12}),
        (TOO_SHORT, standard_queue(ApproximateNumberOfMessages=340), {}),
        (
            TOO_SHORT,
            Facts(standard_queue().queue_arn, {}, {}, measurement=RACE),
            {"handled_twice": 300},
        ),
        ("kms_throttled", Facts(standard_queue().queue_arn, {}, {}, measurement=RACE), {}),
    ],
)
def test_affected_messages_are_counted_only_from_the_facts_that_show_the_symptom(
    symptom: str, facts: Facts, messages: dict[str, int]
) -> None:
    assert count_affected_messages(symptom, facts) == messages


@pytest.mark.parametrize(("received", "messages"), [(1_200, {"dead": 400}), (100, {})])
def test_messages_that_left_count_as_moved_to_the_dlq_only_if_receives_reach_max_receive_count(
    received: int, messages: dict[str, int]
) -> None:
    counts = measurement(backlog_before=500, backlog_now=100, received=received, deleted=0)
    facts = queue_with_dlq(3)
    measured = Facts(facts.queue_arn, facts.attributes, measurement=counts)
    assert count_affected_messages(TOO_SHORT, measured) == messages
