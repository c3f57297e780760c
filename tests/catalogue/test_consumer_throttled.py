"""How much throttling pages, of which function, and what it costs."""

from __future__ import annotations

import shlex
from dataclasses import replace

import pytest

from mendq.catalogue.consumer_throttled import CONSUMER_THROTTLED, detect, is_suspect, plan
from mendq.model.facts import Facts, LambdaConsumer
from mendq.model.limits import Limits

THROTTLED = CONSUMER_THROTTLED.detected[0].facts


def functions(**shares: float | None) -> Facts:
    consumers = (
        LambdaConsumer(
            f"arn:aws:lambda:us-east-1:123456789012:function:{name}", 30, 0, None, None, share
        )
        for name, share in shares.items()
    )
    return replace(THROTTLED, lambda_consumers=tuple(consumers))


@pytest.mark.parametrize(
    ("share", "found"), [(None, False), (0.0, False), (0.0999, False), (0.1, True), (1.0, True)]
)
def test_a_tenth_pages(share: float | None, found: bool) -> None:
    assert bool(detect(functions(bill=share))) is found


def test_the_most_throttled_function_is_named() -> None:
    facts = functions(ship=None, bill=0.4, mail=0.2)
    found = detect(facts)
    assert found is not None
    assert found.because.startswith("40% of the invocations of bill were throttled")
    words = shlex.split(plan(facts, Limits()).next_command)
    assert words[words.index("--function-name") + 1] == "bill"


def test_what_it_costs_depends_on_a_dlq() -> None:
    redrive = '{"deadLetterTargetArn":"arn:aws:sqs:us-east-1:123456789012:d","maxReceiveCount":3}'
    assert "messages wait until Lambda has room" in plan(THROTTLED, Limits()).reason
    counted = replace(THROTTLED, attributes={**THROTTLED.attributes, "RedrivePolicy": redrive})
    assert "after 3 of them a message that no code has seen" in plan(counted, Limits()).reason


def test_a_queue_without_lambda_or_without_messages_is_no_suspect() -> None:
    assert is_suspect(THROTTLED)
    assert not is_suspect(functions())
    idle = {**THROTTLED.attributes, "ApproximateNumberOfMessages": "0"}
    assert not is_suspect(replace(THROTTLED, attributes=idle))
