"""Who reads a dead-letter queue, and who only looks at it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from functions.healing.examples import DEAD_LETTER_ARN, measured, queue
from functions.healing.facts import LambdaConsumer
from functions.healing.letter_readers import A_LOOK, who_reads

LETTERS = queue(queue_arn=DEAD_LETTER_ARN)
HANDLER = LambdaConsumer("arn:aws:lambda:us-east-1:123456789012:function:letters", 30, 0)


def test_a_lambda_consumer_reads_it_whatever_was_measured() -> None:
    assert HANDLER.function_arn in str(who_reads(replace(LETTERS, lambda_consumers=(HANDLER,))))


@pytest.mark.parametrize(
    ("counted", "reads"),
    [
        ({}, False),
        ({"received": 10}, False),
        ({"received": 50, "empty_receives": 50}, False),
        ({"received": 50, "empty_receives": 51}, True),
        ({"received": A_LOOK + 200, "visible_now": 200}, False),
        ({"empty_receives": 2_160}, True),
        ({"received": 1, "deleted": 1}, True),
    ],
)
def test_a_person_who_looks_is_no_reader(counted: dict[str, int], reads: bool) -> None:
    found = who_reads(replace(LETTERS, measured=measured(**counted)))
    assert (found is not None) is reads


def test_nobody_is_known_where_nothing_was_measured() -> None:
    assert who_reads(LETTERS) is None
