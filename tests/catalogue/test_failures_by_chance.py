"""Failures by chance are no messages that never finish, and a varying backlog is no growth."""

from __future__ import annotations

from typing import Any

import pytest

from mendq.catalogue.consumers.backlog_grows import BACKLOG_GROWS
from mendq.catalogue.dlq.dlq_missing import DLQ_MISSING
from mendq.catalogue.examples import make_half_hours, replace_values
from mendq.catalogue.symptom import QueueNearMiss, Symptom
from mendq.model.facts import Facts
from tests.catalogue.asking import detect_fault


def find_near_miss(entry: Symptom, title: str) -> Facts:
    (facts,) = (
        example.facts
        for example in entry.examples()
        if isinstance(example, QueueNearMiss) and example.title == title
    )
    return facts


@pytest.mark.parametrize(
    ("counts", "is_found"),
    [
        pytest.param({"fewest_messages": 0}, False, id="it was empty once"),
        pytest.param({"fewest_messages": 2}, False, id="never below two, as chance explains"),
        pytest.param({"fewest_messages": 3}, True, id="never below three"),
        pytest.param({"fewest_messages": 1, "usual_messages": 2}, True, id="mean of two"),
        pytest.param({"fewest_messages": None}, True, id="the backlogs are not known"),
    ],
)
def test_dlq_missing_is_found_only_if_chance_seldom_explains_that_the_queue_was_never_empty(
    counts: dict[str, Any], is_found: bool
) -> None:
    by_chance = find_near_miss(
        DLQ_MISSING, "receives fail by chance, and the queue was never empty"
    )
    assert bool(detect_fault(DLQ_MISSING, replace_values(by_chance, **counts))) is is_found


@pytest.mark.parametrize(
    ("fewest_of_last_third", "is_found"),
    [pytest.param(87, False, id="by chance"), pytest.param(88, True, id="more than chance")],
)
def test_backlog_grows_only_by_more_than_three_standard_deviations_of_chance(
    fewest_of_last_third: int, is_found: bool
) -> None:
    """The square root of 64 is 8, so each third must have at least 24 messages more."""
    varies = find_near_miss(
        BACKLOG_GROWS, "messages are delayed, and their number varies by chance"
    )
    half_hours = make_half_hours(
        *(
            {"fewest_messages": fewest_messages, "deleted": 140}
            for fewest_messages in (36,) * 4 + (64,) * 4 + (fewest_of_last_third,) * 4
        )
    )
    facts = replace_values(varies, recent=half_hours)
    assert bool(detect_fault(BACKLOG_GROWS, facts)) is is_found
