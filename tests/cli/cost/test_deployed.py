"""Who is started how often by the clock, and what is no template of ours."""

from __future__ import annotations

from typing import Any

import pytest

from cli.cost.deployed import Deployed, NotPriced, times_a_month


@pytest.mark.parametrize(
    ("expression", "times"),
    [
        ("rate(1 minute)", 43_200),
        ("rate(10 minutes)", 4_320),
        ("rate(1 hour)", 720),
        ("rate(2 days)", 15),
        ("cron(0 2 * * ? *)", 30),
        ("cron(30 6 ? * MON *)", 30 / 7),
    ],
)
def test_schedules_are_counted(expression: str, times: float) -> None:
    assert times_a_month(expression) == pytest.approx(times)


@pytest.mark.parametrize(
    "expression",
    [
        "",
        "rate(0 minutes)",
        "rate(1 fortnight)",
        "cron(0 2 * * MON-FRI *)",
        "cron(*/5 * * * ? *)",
        "cron(0 2 1 * ? *)",
        "at(2026-01-01T00:00:00)",
    ],
)
def test_a_schedule_of_another_kind_is_refused(expression: str) -> None:
    with pytest.raises(NotPriced, match="cannot be counted"):
        times_a_month(expression)


@pytest.mark.parametrize("template", ["Resources:\n", {}, {"Outputs": {}}])
def test_what_is_no_template_of_ours_is_refused(template: Any) -> None:
    with pytest.raises(NotPriced):
        _ = Deployed(template).types
