"""Test that docs/scan.md has the figures of the code."""

from __future__ import annotations

from pathlib import Path

from mendq.aws.consumers import FUNCTION_METRIC_BY_KEY
from mendq.cli.scan.dry_run import SCANS_PER_MONTH, estimate_monthly_dollars
from mendq.model.limits import Limits
from mendq.model.metrics import select_series
from mendq.model.prices import METRIC_READ

PAGE = (Path(__file__).parents[2] / "docs" / "scan.md").read_text("utf-8")
STANDARD, FIFO = (len(select_series(["every queue", *more])) for more in ([], ["FIFO"]))


def test_scan_docs_state_the_metric_cost_of_one_suspect_queue() -> None:
    more = len(FUNCTION_METRIC_BY_KEY)
    row = f"| {STANDARD}; FIFO {FIFO}; {more} more for each Lambda function behind it | "
    assert f"{row}{METRIC_READ.cost(STANDARD):.5f} |" in PAGE


def test_scan_docs_state_the_monthly_cost_of_100_suspects_and_of_the_metric_budget() -> None:
    of_a_round = 100 * STANDARD
    dollars = f"{estimate_monthly_dollars(of_a_round):.2f}"
    assert f"| {of_a_round * SCANS_PER_MONTH:,} | {dollars} |" in PAGE
    a_day = Limits().scan_metrics_per_day
    assert f"| {a_day * 30:,} | {METRIC_READ.cost(a_day * 30):.2f} |" in PAGE
    assert f"The budget of {a_day:,}\na day is {a_day // 24 // STANDARD} standard queues" in PAGE
