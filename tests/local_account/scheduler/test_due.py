"""When schedules come due, in their own time zones."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from local_account.scheduler import next_after

NOW = datetime(2026, 3, 28, 12, 30, tzinfo=UTC)  # a Saturday; Europe's clocks change that night


@pytest.mark.parametrize(
    ("expression", "zone", "due"),
    [
        ("cron(0 2 * * ? *)", "UTC", "2026-03-29T02:00Z"),
        ("cron(0 6 ? * MON *)", "UTC", "2026-03-30T06:00Z"),
        ("cron(0 6 ? * MON *)", "Europe/Zurich", "2026-03-30T04:00Z"),
        ("cron(0 9 ? * SAT *)", "America/New_York", "2026-03-28T13:00Z"),
        ("rate(5 minutes)", "UTC", "2026-03-28T12:35Z"),
        ("at(2026-03-28T14:00:00)", "Europe/Zurich", "2026-03-28T13:00Z"),
    ],
)
def test_the_zone_decides(expression: str, zone: str, due: str) -> None:
    schedule = {"ScheduleExpression": expression, "ScheduleExpressionTimezone": zone}
    assert next_after(schedule, NOW) == datetime.fromisoformat(due)


@pytest.mark.parametrize("expression", ["at(2026-03-28T12:00:00)", "cron(0 2 * * *)", "nonsense"])
def test_what_is_over_or_unreadable_never_comes_due(expression: str) -> None:
    assert next_after({"ScheduleExpression": expression}, NOW) is None


@pytest.mark.parametrize(
    ("started_seconds_ago", "due_in_seconds"),
    [(-1, 1), (0, 60), (1, 59), (59, 1), (60, 60), (3601, 59)],
)
def test_a_rate_keeps_the_beat_of_its_start(started_seconds_ago: int, due_in_seconds: int) -> None:
    started = NOW.timestamp() - started_seconds_ago
    schedule = {"ScheduleExpression": "rate(1 minute)", "StartDate": started}
    assert next_after(schedule, NOW) == NOW + timedelta(seconds=due_in_seconds)
