"""Test the estimate of what the deployed scan costs a month."""

from __future__ import annotations

import pytest

from mendq.cli.cost.scan_cost import estimate_scan_cost
from mendq.model.limits import Limits

LIMIT = Limits().scan_metrics_per_day


def test_scan_of_500_queues_in_use_costs_at_most_10_dollars_a_month_with_sqs_and_lambda() -> None:
    cost = estimate_scan_cost(500, LIMIT)
    assert cost.dollars <= 10
    assert round(cost.sums_dollars, 2) == 5.40
    assert round(cost.suspects_dollars, 2) == 3.60
    assert cost.longest_pause_hours == 2


@pytest.mark.parametrize(("queue_count", "hours"), [(501, 4), (1_000, 4), (5_000, 20)])
def test_more_queues_take_turns_and_their_metrics_cost_no_more(
    queue_count: int, hours: int
) -> None:
    cost = estimate_scan_cost(queue_count, LIMIT)
    assert cost.longest_pause_hours == hours
    assert round(cost.sums_dollars + cost.suspects_dollars, 2) == 9


def test_limit_of_zero_metrics_costs_only_calls_and_has_no_turn() -> None:
    cost = estimate_scan_cost(500, 0)
    assert (cost.sums_dollars, cost.suspects_dollars, cost.longest_pause_hours) == (0, 0, 0)
