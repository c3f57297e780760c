"""What a real move task brings back looks like a race, and only the task tells that it is none."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import boto3
import pytest

from functions.aws.clients import Clients
from functions.aws.dead_letters_look import SOURCES, moved_lately_to
from local_account.demo.steering import SWEEP, DeployedSchedule
from local_account.process import LocalAccount
from local_account.where import ACCESS_KEY, REGION, SECRET_KEY
from tests.local_account.dead_letters import ended, naming, new_pipe
from tests.local_account.queues import Queue, eventually, new_queue

HEALED = {"mendq": "heal", "mendq:max-processing-seconds": "40"}
LEASE, RAISED = "30", "60"
FOUND_WITHIN_SECONDS = 90
SENT, LETTERS = 200, 60
LONG_AGO_MINUTES = 60 * 24 * 3

pytestmark = pytest.mark.account


@dataclass(frozen=True)
class Consumed:
    """A healed queue that somebody consumes well, and its dead-letter queue."""

    queue: Queue
    dead: Queue

    def is_fed(self, letters_of: Queue) -> None:
        """New messages and redriven letters, each received and deleted once."""
        _send(self.queue, SENT)
        _send(letters_of, LETTERS)
        letters_of.sqs.start_message_move_task(
            SourceArn=letters_of.arn, DestinationArn=self.queue.arn
        )
        ended(letters_of, "COMPLETED")
        deleted: list[str] = []

        def all_deleted() -> bool:
            answer = self.queue.sqs.receive_message(QueueUrl=self.queue.url, MaxNumberOfMessages=10)
            for message in answer.get("Messages", []):
                self.queue.delete(message["ReceiptHandle"])
                deleted.append(message["MessageId"])
            return len(deleted) >= SENT + LETTERS

        eventually(all_deleted)
        assert len(set(deleted)) == len(deleted) == SENT + LETTERS


def _send(queue: Queue, how_many: int) -> None:
    for _ in range(how_many // 10):
        entries = [{"Id": f"{n}", "MessageBody": f"work {n}"} for n in range(10)]
        queue.sqs.send_message_batch(QueueUrl=queue.url, Entries=entries)


def _consumed(account: LocalAccount) -> Consumed:
    dead = new_queue(account)
    policy = naming(dead, receives=1000)
    queue = new_queue(account, tags=HEALED, RedrivePolicy=policy, VisibilityTimeout=LEASE)
    return Consumed(queue, dead)


def _cases(account: LocalAccount) -> dict[tuple[str, str], str]:
    s3, bucket = account.client("s3"), account.outputs["CaseBucket"]
    listed = s3.list_objects_v2(Bucket=bucket, Prefix="cases/").get("Contents", [])
    bodies = (s3.get_object(Bucket=bucket, Key=each["Key"])["Body"] for each in listed)
    cases: list[dict[str, Any]] = [json.loads(body.read()) for body in bodies]
    return {(each["queue_arn"], each["symptom"]): each["to"] for each in cases}


def _have_rounds_end(account: LocalAccount, fed: list[Consumed]) -> None:
    for each in fed:
        for minutes in (1, 65):
            account.put_back(each.queue.arn, minutes=minutes)


@pytest.mark.long
def test_a_sweep_takes_no_redriven_letters_for_a_race() -> None:
    with LocalAccount() as account:
        own, from_elsewhere, forgotten = fed = [_consumed(account) for _ in range(3)]
        for each in fed:
            for _ in range(2):  # the first whole minute is quiet
                account.put_back(each.queue.arn, minutes=1)
        own.is_fed(letters_of=own.dead)
        from_elsewhere.is_fed(letters_of=own.dead)
        forgotten.is_fed(letters_of=forgotten.dead)
        _have_rounds_end(account, fed)
        # The counts are the same, but nobody knows any more that a task may have caused them.
        account.put_back(forgotten.dead.arn, minutes=LONG_AGO_MINUTES)
        DeployedSchedule.of(account, SWEEP).fire(datetime.now(UTC))
        eventually(lambda: _cases(account), FOUND_WITHIN_SECONDS)
        assert _cases(account) == {(forgotten.queue.arn, "lease_expired"): "applied"}
        name = "VisibilityTimeout"
        after = [each.queue.attributes(name)[name] for each in fed]
        assert after == [LEASE, LEASE, RAISED]


def test_where_messages_were_moved_lately_is_read_from_real_tasks(account: LocalAccount) -> None:
    session = boto3.Session(ACCESS_KEY, SECRET_KEY, region_name=REGION)
    sqs = account.client("sqs")
    clients = Clients(session)
    clients.__dict__["sqs"] = sqs
    pipe, to = new_pipe(account), new_queue(account)

    def moved() -> frozenset[str]:
        return moved_lately_to(clients, pipe.dead.arn, datetime.now(UTC))

    assert moved() == frozenset()
    pipe.die("letter")
    sqs.start_message_move_task(SourceArn=pipe.dead.arn)
    assert moved() == {SOURCES}
    ended(pipe.dead, "COMPLETED")
    sqs.start_message_move_task(SourceArn=pipe.dead.arn, DestinationArn=to.arn)
    ended(pipe.dead, "COMPLETED")
    assert moved() == {SOURCES, to.arn}
    account.put_back(pipe.dead.arn, minutes=60 * 36)
    assert moved() == {SOURCES, to.arn}
    account.put_back(pipe.dead.arn, minutes=LONG_AGO_MINUTES)
    assert moved() == frozenset()
