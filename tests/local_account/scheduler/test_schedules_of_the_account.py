"""The deployed schedules, fired now: from the schedule to the table, and what stops them."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from local_account.account_page import NotFired, SwitchRefused
from local_account.process import LocalAccount
from tests.local_account.queues import Queue, eventually, new_queue
from tests.local_account.roles import allow, new_role

pytestmark = pytest.mark.account


def _deployed(account: LocalAccount, job: str) -> dict[str, Any]:
    """The schedule that starts `job`."""
    scheduler = account.client("scheduler")
    names = [each["Name"] for each in scheduler.list_schedules()["Schedules"]]
    found = [scheduler.get_schedule(Name=name) for name in names]
    (schedule,) = (each for each in found if f'"{job}"' in each["Target"].get("Input", ""))
    return dict(schedule)


def _new_schedule(account: LocalAccount, **target: Any) -> str:
    deployed = _deployed(account, "nightly")["Target"]
    both = {"Arn": deployed["Arn"], "RoleArn": deployed["RoleArn"]}
    return _schedule(account, "rate(1 days)", {**both, **target})


def test_what_scheduler_could_not_invoke_is_not_fired(account: LocalAccount) -> None:
    queue, role = new_queue(account), "arn:aws:iam::000000000000:role/mendq-heal-us-east-1"
    for target, because in (
        ({"Arn": queue.arn}, "sqs:SendMessage"),
        ({"RoleArn": role}, r"does not let scheduler\.amazonaws\.com assume it"),
    ):
        name = _new_schedule(account, **target)
        with pytest.raises(NotFired, match=because):
            account.fire(name, datetime.now(UTC))
    assert queue.count() == 0
    with pytest.raises(NotFired, match="there is no schedule nobody"):
        account.fire("nobody", datetime.now(UTC))
    with pytest.raises(SwitchRefused, match="which zone"):
        account.fire("nobody", datetime(2026, 11, 10, 2))  # noqa: DTZ001  what is refused


@pytest.fixture
def ticking(account: LocalAccount) -> tuple[Queue, dict[str, Any]]:
    """A queue, and a target that may send the time to it."""
    queue = new_queue(account)
    role = new_role(account, "scheduler.amazonaws.com", allow("sqs:SendMessage", queue.arn))
    target = {
        "Arn": queue.arn,
        "RoleArn": role,
        "Input": "<aws.scheduler.scheduled-time>",
    }
    return queue, target


def _body(queue: Queue) -> str:
    eventually(lambda: queue.count() == 1)
    (message,) = queue.sqs.receive_message(QueueUrl=queue.url)["Messages"]
    body: str = message["Body"]
    return body


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


def test_a_schedule_that_is_due_fires_by_itself(
    account: LocalAccount, ticking: tuple[Queue, dict[str, Any]]
) -> None:
    queue, target = ticking
    at = (datetime.now(UTC) + timedelta(seconds=1)).replace(microsecond=0)
    _schedule(account, f"at({at:%Y-%m-%dT%H:%M:%S})", target)
    assert _body(queue) == f"{at:%Y-%m-%dT%H:%M:%SZ}"


def test_a_time_ahead_of_the_clock_does_not_move_the_beat(
    account: LocalAccount, ticking: tuple[Queue, dict[str, Any]]
) -> None:
    queue, target = ticking
    start = datetime.now(UTC).replace(microsecond=0) - timedelta(seconds=55)
    name = _schedule(account, "rate(1 minute)", target, StartDate=start)
    ahead = datetime.now(UTC).replace(microsecond=0) + timedelta(days=3)
    account.fire(name, ahead)
    assert _body(queue) == f"{ahead:%Y-%m-%dT%H:%M:%SZ}"
    assert _body(queue) == f"{start + timedelta(minutes=1):%Y-%m-%dT%H:%M:%SZ}"
