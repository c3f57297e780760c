"""Schedules come due in their own time zone and can be fired on request."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from local_account.account_page import ScheduleNotFired, SwitchRefused
from local_account.process import LocalAccount
from local_account.scheduler import find_next_time
from tests.local_account.callers import allow, new_role
from tests.local_account.queues import Queue, eventually, new_queue

NOW = datetime(2026, 3, 28, 12, 30, tzinfo=UTC)  # a Saturday; Europe's clocks change that night


@pytest.mark.parametrize(
    ("expression", "zone", "due"),
    [
        ("cron(0 2 * * ? *)", "UTC", "2026-03-29T02:00Z"),
        ("cron(0 6 ? * MON *)", "Europe/Zurich", "2026-03-30T04:00Z"),
        ("rate(5 minutes)", "UTC", "2026-03-28T12:35Z"),
        ("at(2026-03-28T14:00:00)", "Europe/Zurich", "2026-03-28T13:00Z"),
        ("at(2026-03-28T12:00:00)", "UTC", None),
        ("cron(0 2 * * *)", "UTC", None),
    ],
)
def test_next_time_of_a_schedule_follows_its_time_zone_and_is_none_if_past_or_unreadable(
    expression: str, zone: str, due: str | None
) -> None:
    schedule = {"ScheduleExpression": expression, "ScheduleExpressionTimezone": zone}
    assert find_next_time(schedule, NOW) == (due and datetime.fromisoformat(due))


def _schedule(account: LocalAccount, expression: str, target: Any, **more: Any) -> str:
    name = f"test-{uuid.uuid4()}"
    account.client("scheduler").create_schedule(
        Name=name,
        ScheduleExpression=expression,
        FlexibleTimeWindow={"Mode": "OFF"},
        Target=target,
        **more,
    )
    return name


def _target(account: LocalAccount, queue: Queue) -> dict[str, str]:
    """One that may send the time to a queue."""
    service = {"Service": "scheduler.amazonaws.com"}
    role = new_role(account, service, allow("sqs:SendMessage", queue.arn))
    return {"Arn": queue.arn, "RoleArn": role, "Input": "<aws.scheduler.scheduled-time>"}


@pytest.mark.account
def test_firing_a_schedule_is_refused_if_its_role_cannot_reach_the_target(
    account: LocalAccount,
) -> None:
    queue = new_queue(account)
    closed = new_queue(account)
    now = datetime.now(UTC)
    target = _target(account, queue)
    heals = "arn:aws:iam::000000000000:role/mendq-heal-us-east-1"
    for wrong, because in (
        ({"Arn": closed.arn}, "sqs:SendMessage"),
        ({"RoleArn": heals}, r"does not let scheduler\.amazonaws\.com assume it"),
    ):
        name = _schedule(account, "rate(1 days)", {**target, **wrong})
        with pytest.raises(ScheduleNotFired, match=because):
            account.fire(name, now)
    assert queue.count() == closed.count() == 0


@pytest.mark.account
def test_firing_a_missing_schedule_or_at_a_time_without_a_time_zone_is_refused(
    account: LocalAccount,
) -> None:
    now = datetime.now(UTC)
    with pytest.raises(ScheduleNotFired, match="there is no schedule nobody"):
        account.fire("nobody", now)
    with pytest.raises(SwitchRefused, match=r"timezone.*send"):
        account.fire("nobody", datetime(2026, 11, 10, 2))  # noqa: DTZ001  what is refused


def _bodies(queue: Queue, how_many: int) -> list[str]:
    eventually(lambda: queue.count() == how_many)
    found = queue.sqs.receive_message(QueueUrl=queue.url, MaxNumberOfMessages=10)["Messages"]
    return sorted(message["Body"] for message in found)


@pytest.mark.clock
@pytest.mark.account
def test_due_schedule_fires_automatically_and_firing_ahead_keeps_its_rhythm(
    account: LocalAccount,
) -> None:
    once = new_queue(account)
    beat = new_queue(account)
    once_target, beat_target = _target(account, once), _target(account, beat)
    # Both come due after ten seconds, so that they are made before that on a slow machine too.
    now = datetime.now(UTC).replace(microsecond=0)
    at = now + timedelta(seconds=10)
    start = at - timedelta(minutes=1)
    ahead = now + timedelta(3)
    _schedule(account, f"at({at:%Y-%m-%dT%H:%M:%S})", once_target)
    name = _schedule(account, "rate(1 minute)", beat_target, StartDate=start)
    account.fire(name, ahead)
    assert _bodies(beat, 2) == [f"{due_at:%Y-%m-%dT%H:%M:%SZ}" for due_at in (at, ahead)]
    assert _bodies(once, 1) == [f"{at:%Y-%m-%dT%H:%M:%SZ}"]
