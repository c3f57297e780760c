"""Who takes letters away from a dead-letter queue, and who only looks at them."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from functions.healing.examples import AT, DEAD_LETTER_ARN, measured, queue
from functions.healing.facts import LambdaConsumer
from functions.healing.measured import LATELY
from functions.healing.measuring import Window
from functions.healing.measuring import measured as measured_in
from functions.healing.redriving import who_reads, who_takes

LETTERS = queue(queue_arn=DEAD_LETTER_ARN)
HANDLER = LambdaConsumer("arn:aws:lambda:us-east-1:123456789012:function:letters", 30, 0)
WINDOW = Window(AT - timedelta(hours=6), AT)


def taken(*minutes_ago: int) -> str | None:
    """Who takes letters where so many minutes ago some were deleted."""
    series = {
        "visible": [(AT - timedelta(minutes=each), 200.0) for each in range(1, 360)],
        "received": [(AT - timedelta(minutes=each), 200.0) for each in range(1, 360)],
        "deleted": [(AT - timedelta(minutes=each), 5.0) for each in minutes_ago],
    }
    return who_takes(replace(LETTERS, measured=measured_in(series, WINDOW)))


def test_a_lambda_consumer_reads_it_whatever_was_measured() -> None:
    assert HANDLER.function_arn in str(who_reads(replace(LETTERS, lambda_consumers=(HANDLER,))))
    assert who_reads(LETTERS) is None


@pytest.mark.parametrize(
    "counted",
    [
        {"received": 200, "visible_now": 200},
        {"received": 5 * 200, "visible_now": 200, "empty_receives": 60},
        {"received": 100_000, "visible_now": 4_000},
        {"empty_receives": 2_160},
    ],
)
def test_however_often_letters_are_looked_at_nobody_takes_them(counted: dict[str, int]) -> None:
    """A preview, a census and a sweep read every letter each time."""
    assert who_takes(replace(LETTERS, measured=measured(**counted))) is None


def test_a_person_s_hand_is_over_after_a_while() -> None:
    quiet = int(LATELY.total_seconds()) // 60 + 1
    assert taken() is None
    assert taken(quiet) is None
    assert taken(200, quiet) is None
    assert "5 letters were deleted in the last 15 minutes" in str(taken(quiet - 2))


def test_who_comes_back_hour_after_hour_is_at_work_between_two_visits_too() -> None:
    assert taken(30, 45, 55) is None, "one hour"
    assert taken(30, 90) is None
    said = str(taken(30, 90, 150))
    assert "15 letters were deleted in 3 different hours" in said


def test_nobody_is_known_where_nothing_was_measured() -> None:
    assert who_takes(LETTERS) is None
