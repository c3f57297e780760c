"""Test that docs/scan.md has the figures of the code."""

from __future__ import annotations

from pathlib import Path

from mendq.aws.consumers import FUNCTION_METRIC_BY_KEY
from mendq.model.limits import Limits
from mendq.model.metrics import select_series
from mendq.model.prices import METRIC_READ
from mendq.model.traffic import SUMS_EVERY_HOURS

PAGE = (Path(__file__).parents[2] / "docs" / "scan.md").read_text("utf-8")
SUMS = len(select_series(["sums"]))
STANDARD, FIFO = (len(select_series(["every queue", *more])) for more in ([], ["FIFO"]))


def test_scan_docs_state_the_metrics_of_sums_and_of_one_suspect_queue() -> None:
    more = f"{len(FUNCTION_METRIC_BY_KEY)} more for each"
    rest, fifo_rest = STANDARD - SUMS, FIFO - SUMS
    for row, metric_count in (
        (f"the sums of one queue | {SUMS}", SUMS),
        (f"one suspect besides | {rest}; FIFO {fifo_rest}; {more} Lambda function behind it", rest),
        (f"the same in an hour without sums | {STANDARD}; FIFO {FIFO}; {more} function", STANDARD),
    ):
        assert f"| {row} | {METRIC_READ.cost(metric_count):.5f} |" in PAGE


def test_scan_docs_state_the_monthly_cost_of_500_queues_and_of_the_metric_budget() -> None:
    sums = 500 * SUMS * 30 * 24 // SUMS_EVERY_HOURS
    budget = Limits().scan_metrics_per_day * 30
    for row, metric_count in (
        ("the sums of 500 queues in use, a month", sums),
        ("the most that `limits.scanMetricsPerDay` lets it ask for, a month", budget),
    ):
        assert f"| {row} | {metric_count:,} | {METRIC_READ.cost(metric_count):.2f} |" in PAGE
