"""How urgent a growing backlog is."""

from __future__ import annotations

import pytest

from mendq.catalogue import SYMPTOM_BY_NAME
from mendq.catalogue.examples import make_half_hours, standard_queue

GROWTH = tuple({"fewest_messages": 100 * number, "deleted": 50} for number in range(12))
HOUR = 3_600


@pytest.mark.parametrize(
    ("age_before", "age_now", "seconds_left"),
    [
        pytest.param(42 * HOUR, 48 * HOUR, 48 * HOUR, id="as fast as time, within three days"),
        pytest.param(21 * HOUR, 24 * HOUR, None, id="half as fast, after six days"),
        pytest.param(90 * HOUR, 96 * HOUR, 0, id="now"),
        pytest.param(48 * HOUR, 48 * HOUR, None, id="the oldest does not become older"),
    ],
)
def test_growing_backlog_is_urgent_only_if_its_first_message_expires_within_three_days(
    age_before: int, age_now: int, seconds_left: float | None
) -> None:
    """The retention period is four days."""
    facts = standard_queue(
        sent=2_000,
        received=800,
        deleted=800,
        backlog_before=0,
        backlog_now=1_200,
        oldest_age_seconds_before=age_before,
        oldest_age_seconds_now=age_now,
        recent=make_half_hours(*GROWTH),
    )
    detection = SYMPTOM_BY_NAME["backlog_grows"].detection
    assert detection
    fault = detection.detect(facts)
    assert fault
    assert fault.seconds_left == (None if seconds_left is None else pytest.approx(seconds_left))
