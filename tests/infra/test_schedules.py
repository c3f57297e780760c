from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from typing import Any

import pytest

from functions.start_nightly import JOBS
from infra.settings.deployment import WEEKDAYS
from tests.infra.permissions import decision
from tests.infra.synthesized import ACCOUNT, template_of

# Minutes, hours, day of the month, month, day of the week, year; one of the two days is a `?`.
# https://docs.aws.amazon.com/scheduler/latest/UserGuide/schedule-types.html#cron-based
NIGHTLY = re.compile(r"cron\(0 (1?[0-9]|2[0-3]) \* \* \? \*\)")
WEEKLY = re.compile(r"cron\(0 (1?[0-9]|2[0-3]) \? \* (MON|TUE|WED|THU|FRI|SAT|SUN) \*\)")


def _schedule(start: str, name: str = "default") -> Any:
    return template_of(name).only("AWS::Scheduler::Schedule", f"Schedules{start}")


TICKS = ["FollowUp", "Scan", "Probe"]


def _role() -> list[dict[str, Any]]:
    return template_of("default").statements("SchedulesRole")


@pytest.mark.parametrize("name", ["default", "named"])
def test_the_expressions_are_ones_that_scheduler_reads(name: str) -> None:
    assert NIGHTLY.fullmatch(_schedule("Nightly", name)["ScheduleExpression"])
    assert WEEKLY.fullmatch(_schedule("Weekly", name)["ScheduleExpression"])


def test_the_nightly_starts_when_the_settings_say_in_utc() -> None:
    for name, hour in (("default", 2), ("named", 3)):
        schedule = _schedule("Nightly", name)
        assert schedule["ScheduleExpression"] == f"cron(0 {hour} * * ? *)"
        assert schedule["ScheduleExpressionTimezone"] == "UTC"


def test_the_week_starts_when_and_where_the_settings_say() -> None:
    default, named = _schedule("Weekly"), _schedule("Weekly", "named")
    assert default["ScheduleExpression"] == "cron(0 6 ? * MON *)"
    assert default["ScheduleExpressionTimezone"] == "UTC"
    assert named["ScheduleExpression"] == "cron(0 9 ? * FRI *)"
    assert named["ScheduleExpressionTimezone"] == "Europe/Berlin"


def test_every_weekday_that_can_be_set_is_one_that_scheduler_knows() -> None:
    assert {day[:3] for day in WEEKDAYS} == set(
        WEEKLY.pattern.split("(")[-1].split(")")[0].split("|")
    )


@pytest.mark.parametrize(("start", "job"), [("Nightly", "nightly"), ("Weekly", "week")])
def test_each_sends_a_job_that_start_nightly_knows_and_the_time_it_stands_for(
    start: str, job: str
) -> None:
    sent = json.loads(_schedule(start)["Target"]["Input"])
    assert sent == {"job": job, "time": "<aws.scheduler.scheduled-time>"}
    assert job in JOBS
    # Scheduler's own example of what stands there then.
    assert datetime.fromisoformat("2022-03-22T18:59:43Z").tzinfo == UTC


def test_open_cases_are_looked_after_each_minute() -> None:
    assert _schedule("FollowUp")["ScheduleExpression"] == "rate(1 minute)"


def test_what_is_left_of_an_hours_scan_is_done_every_ten_minutes() -> None:
    assert _schedule("Scan")["ScheduleExpression"] == "rate(10 minutes)"


def test_the_probe_is_made_as_often_as_the_settings_say() -> None:
    assert _schedule("Probe")["ScheduleExpression"] == "rate(60 minutes)"
    assert _schedule("Probe", "proposing")["ScheduleExpression"] == "rate(20 minutes)"


@pytest.mark.parametrize("start", TICKS)
def test_a_tick_sends_the_time_it_stands_for_and_gives_up_before_it_is_old_news(
    start: str,
) -> None:
    target = _schedule(start)["Target"]
    assert json.loads(target["Input"]) == {"time": "<aws.scheduler.scheduled-time>"}
    assert target["RetryPolicy"] == {"MaximumEventAgeInSeconds": 300, "MaximumRetryAttempts": 2}
    assert target["Arn"].startswith(f"arn:{start}Function")
    assert f"{start}Dlq" in target["DeadLetterConfig"]["Arn"]


@pytest.mark.parametrize("start", ["Nightly", "Weekly"])
def test_each_is_punctual_tried_again_within_bounds_and_then_parked(start: str) -> None:
    schedule = _schedule(start)
    target = schedule["Target"]
    assert schedule["FlexibleTimeWindow"] == {"Mode": "OFF"}
    assert 0 < target["RetryPolicy"]["MaximumRetryAttempts"] <= 185
    assert 60 <= target["RetryPolicy"]["MaximumEventAgeInSeconds"] <= 86_400
    assert "StartNightlyDlq" in target["DeadLetterConfig"]["Arn"]
    assert target["Arn"].startswith("arn:StartNightlyFunction")


def test_scheduler_alone_may_be_their_role_for_this_account() -> None:
    role = template_of("default").only("AWS::IAM::Role", "SchedulesRole")
    (trust,) = role["AssumeRolePolicyDocument"]["Statement"]
    assert role["RoleName"] == "mendq-schedule-us-east-1"
    assert trust["Principal"] == {"Service": "scheduler.amazonaws.com"}
    assert trust["Condition"] == {"StringEquals": {"aws:SourceAccount": ACCOUNT}}


def test_their_role_may_start_these_and_park_beside_them() -> None:
    template = template_of("default")
    started = ("StartNightly", *TICKS)
    functions = {template.arn_of("AWS::Lambda::Function", each) for each in started}
    parked = {template.arn_of("AWS::SQS::Queue", f"{each}Dlq") for each in started}
    assert {(each["Action"], one) for each in _role() for one in _as_list(each["Resource"])} == {
        *(("lambda:InvokeFunction", each) for each in functions),
        *(("sqs:SendMessage", each) for each in parked),
    }
    heal = template.arn_of("AWS::Lambda::Function", "Heal")
    assert decision(_role(), "lambda:InvokeFunction", heal) == "ImplicitDeny"


@pytest.mark.parametrize("start", ["Nightly", "Weekly", *TICKS])
def test_they_wait_until_their_role_can_be_used(start: str) -> None:
    schedules = template_of("default").all("AWS::Scheduler::Schedule")
    (waits,) = (each["DependsOn"] for name, each in schedules.items() if start in name)
    assert any(each.startswith("SchedulesRoleDefaultPolicy") for each in waits)


def _as_list(value: Any) -> list[str]:
    return value if isinstance(value, list) else [value]
