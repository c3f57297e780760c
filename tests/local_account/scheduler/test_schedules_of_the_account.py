"""The deployed schedules, fired now: from the schedule to the table, and what stops them."""

from __future__ import annotations

import io
import json
import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow.parquet as pq
import pytest

from local_account.demo.nightly import Trail
from local_account.process import LocalAccount
from local_account.switch import NotFired, SwitchRefused
from tests.local_account.queues import Queue, eventually, fail_late, new_queue

pytestmark = pytest.mark.account
INVOKE = "lambda:InvokeFunction"
# A job's JVM takes its time on a busy machine.
JOB_SECONDS = 180


def _deployed(account: LocalAccount, job: str) -> dict[str, Any]:
    """The schedule that starts `job`."""
    scheduler = account.client("scheduler")
    names = [each["Name"] for each in scheduler.list_schedules()["Schedules"]]
    found = [scheduler.get_schedule(Name=name) for name in names]
    (schedule,) = (each for each in found if f'"{job}"' in each["Target"].get("Input", ""))
    return dict(schedule)


def _named(account: LocalAccount, name: str) -> list[dict[str, Any]]:
    """The job runs of that name."""
    listed = account.client("emr-serverless").list_job_runs(
        applicationId=account.outputs["NightlyApplication"]
    )
    return [each for each in listed["jobRuns"] if each["name"] == name]


def _succeeded(account: LocalAccount, name: str) -> bool:
    states = [each["state"] for each in _named(account, name)]
    assert "FAILED" not in states, _named(account, name)
    return states == ["SUCCESS"]


def _objects(account: LocalAccount, prefix: str) -> dict[str, bytes]:
    s3, bucket = account.client("s3"), account.outputs["ReportBucket"]
    listed = s3.list_objects_v2(Bucket=bucket, Prefix=prefix).get("Contents", [])
    keys = [each["Key"] for each in listed]
    return {key: s3.get_object(Bucket=bucket, Key=key)["Body"].read() for key in keys}


@pytest.mark.long
def test_from_the_schedule_to_the_incidents_once(account: LocalAccount) -> None:
    queue = new_queue(account, fifo=True, VisibilityTimeout="1")
    fail_late(queue, times=2)
    trail = Trail(account.client("s3"), account.outputs["TrailBucket"])
    eventually(lambda: trail.look()[queue.arn] == 2)
    today = datetime.now(UTC).replace(hour=2, minute=0, second=0, microsecond=0)
    tomorrow = today + timedelta(days=1)
    nightly = _deployed(account, "nightly")["Name"]
    name = f"nightly-{today:%Y-%m-%d}"
    account.fire(nightly, tomorrow)
    account.fire(nightly, tomorrow)  # a second delivery: while the run is active, or with its token
    eventually(lambda: _succeeded(account, name), JOB_SECONDS)
    (incidents,) = _objects(account, "incidents/").values()
    rows = pq.read_table(io.BytesIO(incidents)).to_pylist()
    (found,) = (each for each in rows if each["queue_arn"] == queue.arn)
    assert (found["label"], found["failed_calls"]) == ("visibility_timeout_too_short", 2)
    assert len(_named(account, name)) == 1


def _new_schedule(account: LocalAccount, **target: Any) -> str:
    name = f"test-{uuid.uuid4()}"
    deployed = _deployed(account, "nightly")
    account.client("scheduler").create_schedule(
        Name=name,
        ScheduleExpression="rate(1 days)",
        FlexibleTimeWindow={"Mode": "OFF"},
        Target={
            "Arn": deployed["Target"]["Arn"],
            "RoleArn": deployed["Target"]["RoleArn"],
            "Input": '{"at": "<aws.scheduler.scheduled-time>"}',
        }
        | target,
    )
    return name


def test_a_schedule_whose_role_is_not_enough_invokes_nothing(
    account: LocalAccount,
) -> None:
    queue = new_queue(account)
    name = _new_schedule(account, Arn=queue.arn)
    with pytest.raises(NotFired, match="sqs:SendMessage"):
        account.fire(name, datetime.now(UTC))
    assert queue.count() == 0


def _policy(statement: dict[str, Any]) -> str:
    return json.dumps({"Version": "2012-10-17", "Statement": [statement]})


def test_a_role_that_scheduler_may_not_take_on_is_refused(
    account: LocalAccount,
) -> None:
    role = "arn:aws:iam::000000000000:role/mendq-heal-us-east-1"
    name = _new_schedule(account, RoleArn=role)
    with pytest.raises(NotFired, match=r"does not let scheduler\.amazonaws\.com assume it"):
        account.fire(name, datetime.now(UTC))


def test_an_unknown_schedule_and_a_time_without_a_zone_are_refused(account: LocalAccount) -> None:
    with pytest.raises(NotFired, match="there is no schedule nobody"):
        account.fire("nobody", datetime.now(UTC))
    with pytest.raises(SwitchRefused, match="which zone"):
        account.fire("nobody", datetime(2026, 11, 10, 2))  # noqa: DTZ001  what is refused


@pytest.fixture
def ticking(account: LocalAccount) -> tuple[Queue, dict[str, Any]]:
    """A queue, and a target that may send the time to it."""
    role = f"ticker-{uuid.uuid4().hex[:8]}"
    iam, queue = account.client("iam"), new_queue(account)
    trust = {"Service": "scheduler.amazonaws.com"}
    statement = {"Effect": "Allow", "Principal": trust, "Action": "sts:AssumeRole"}
    iam.create_role(RoleName=role, AssumeRolePolicyDocument=_policy(statement))
    sends = {"Effect": "Allow", "Action": "sqs:SendMessage", "Resource": queue.arn}
    iam.put_role_policy(RoleName=role, PolicyName="sends", PolicyDocument=_policy(sends))
    target = {
        "Arn": queue.arn,
        "RoleArn": f"arn:aws:iam::000000000000:role/{role}",
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


def test_a_rate_fires_each_minute(
    account: LocalAccount, ticking: tuple[Queue, dict[str, Any]]
) -> None:
    queue, target = ticking
    start = datetime.now(UTC).replace(microsecond=0) - timedelta(seconds=57)
    _schedule(account, "rate(1 minute)", target, StartDate=start)
    assert _body(queue) == f"{start + timedelta(minutes=1):%Y-%m-%dT%H:%M:%SZ}"
    assert queue.count() == 0


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
