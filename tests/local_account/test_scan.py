"""A scan of real consumers: what no call says is found in what was counted, and no more."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import Any, ClassVar

import pytest

from local_account.demo.steering import SCAN, DeployedSchedule
from local_account.demo.traffic import Caller, Crashes, Races, Running, Traffic, numbered, send
from local_account.process import LocalAccount
from tests.local_account.queues import Queue, eventually, new_queue

pytestmark = pytest.mark.account
HEAL = {"mendq": "heal"}
FOUND_WITHIN_SECONDS = 90
PUT_BACK_MINUTES = 66


@dataclass(frozen=True)
class DeletesTwice:
    """A consumer in time that deletes every message twice with one handle: clumsy, no race."""

    times: int
    messages: int = 60
    workers: int = 2
    convincing: int = 110
    noun: ClassVar[str] = "delete"
    well: ClassVar[str] = "answered 200"

    def prepare(self, caller: Caller) -> None:
        send(caller, numbered(self.messages))

    def work(self, caller: Caller) -> None:
        answer = caller.sqs.receive_message(
            QueueUrl=caller.queue_url, MaxNumberOfMessages=10, WaitTimeSeconds=1
        )
        for message in answer.get("Messages", []):
            for _ in range(self.times):
                caller.attempt(
                    partial(
                        caller.sqs.delete_message,
                        QueueUrl=caller.queue_url,
                        ReceiptHandle=message["ReceiptHandle"],
                    )
                )


@dataclass
class Consumed:
    """A queue with its consumers, and how their calls ended."""

    queue: Queue
    running: Running
    announced: list[str | None] = field(default_factory=list)

    @property
    def is_counted(self) -> bool:
        return len(self.announced) >= self.running.traffic.convincing


def _consumed(
    account: LocalAccount, traffic: Traffic, tags: dict[str, str], visibility: str
) -> Consumed:
    dead = new_queue(account)
    redrive = json.dumps({"deadLetterTargetArn": dead.arn, "maxReceiveCount": 1000})
    queue = new_queue(account, tags=tags, VisibilityTimeout=visibility, RedrivePolicy=redrive)
    announced: list[str | None] = []
    caller = Caller(account.client("sqs"), queue.url, announced.append)
    return Consumed(queue, Running(traffic, caller), announced)


def _transitions(account: LocalAccount) -> list[dict[str, Any]]:
    s3, bucket = account.client("s3"), account.outputs["CaseBucket"]
    listed = s3.list_objects_v2(Bucket=bucket, Prefix="cases/").get("Contents", [])
    bodies = (s3.get_object(Bucket=bucket, Key=each["Key"])["Body"] for each in listed)
    return [json.loads(body.read()) for body in bodies]


def _findings(account: LocalAccount) -> set[tuple[str, str]]:
    s3, bucket = account.client("s3"), account.outputs["CaseBucket"]
    (only,) = s3.list_objects_v2(Bucket=bucket, Prefix="findings/")["Contents"]
    found = json.loads(s3.get_object(Bucket=bucket, Key=only["Key"])["Body"].read())["findings"]
    return {(each["queue_arn"], each["symptom"]) for each in found}


def _work(account: LocalAccount, every: list[Consumed]) -> None:
    """Until all are counted; then it was more than an hour ago."""
    for each in every:
        for _ in range(2):  # the first whole minute is quiet
            account.put_back(each.queue.arn, minutes=1)
        each.running.start()
    try:
        eventually(lambda: all(each.is_counted for each in every), FOUND_WITHIN_SECONDS)
    finally:
        for each in every:
            each.running.put_down()
        for each in every:
            each.running.stop()
    for each in every:
        for minutes in (1, PUT_BACK_MINUTES - 1):  # and so is the last
            account.put_back(each.queue.arn, minutes=minutes)


@pytest.mark.long
def test_a_race_is_fixed_and_what_reads_like_one_is_left_alone() -> None:
    races, named = Races(works_seconds=3.0), {"mendq:max-processing-seconds": "4"}
    with LocalAccount() as account:
        race = _consumed(account, races, HEAL | named, "1")
        unnamed = _consumed(account, races, HEAL, "1")
        observed = _consumed(account, races, {**named, "mendq": "observe"}, "1")
        crash = _consumed(account, Crashes(), HEAL, "1")
        twice = _consumed(account, DeletesTwice(2), HEAL, "30")
        every = [race, unnamed, observed, crash, twice]
        before = [each.queue.attributes("VisibilityTimeout") for each in every]
        _work(account, every)
        assert not any(fault for each in every for fault in each.announced)
        DeployedSchedule.of(account, SCAN).fire(datetime.now(UTC))
        eventually(lambda: len(_transitions(account)) >= 4, FOUND_WITHIN_SECONDS)
        cases = {(e["queue_arn"], e["symptom"]): e["to"] for e in _transitions(account)}
        assert cases == {
            (race.queue.arn, "visibility_timeout_too_short"): "applied",
            (unnamed.queue.arn, "visibility_timeout_too_short"): "escalated",
            (observed.queue.arn, "visibility_timeout_too_short"): "observed",
            (crash.queue.arn, "consumer_failing"): "escalated",
        }
        after = [each.queue.attributes("VisibilityTimeout") for each in every]
        assert after == [{"VisibilityTimeout": "6"}, *before[1:]]
        # Heal hears of nothing else.
        found = {each for each in _findings(account) if each[1] != "tls_not_enforced"}
        assert found == cases.keys()
        assert all(each["evidence"]["failed_calls"] == 0 for each in _transitions(account))
