"""The thread that moves: it ends with the process, and one task's end is no other's."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest

from local_account.sqs.move_tasks import MoveTask
from local_account.sqs.move_tasks_mover import Mover
from local_account.where import ACCESS_KEY, REGION, REPOSITORY, SECRET_KEY
from tests.local_account.assemblies import write_assembly
from tests.local_account.dead_letters import naming, tasks
from tests.local_account.queues import Queue, eventually

ARN = "arn:aws:sqs:us-east-1:000000000000:"


@pytest.fixture
def mover() -> Iterator[Mover]:
    made = Mover()
    yield made
    made.stop()


def _begun(mover: Mover, name: str) -> MoveTask:
    task = MoveTask(ARN + name, None, 1, to_move=1, started_at=time.time())
    mover.begin(task, {"messages": []})
    return task


def test_a_task_out_of_a_queue_that_is_gone_fails(mover: Mover) -> None:
    task = _begun(mover, "gone")
    eventually(lambda: not task.is_active)
    assert task.failure_reason == "AWS.SimpleQueueService.NonExistentQueue"
    eventually(lambda: mover.active_tasks("000000000000") == 0)


def test_active_tasks_are_counted_by_account() -> None:
    mover = Mover()
    mover.stop()
    _begun(mover, "a")
    _begun(mover, "b")
    assert mover.active_tasks("000000000000") == 2
    assert mover.active_tasks("111111111111") == 0


def test_nothing_moves_and_no_thread_is_left_after_the_stop() -> None:
    before = threading.active_count()
    mover = Mover()
    _begun(mover, "gone")
    mover.stop()
    assert threading.active_count() == before
    assert _begun(mover, "late").is_active


@pytest.mark.account
def test_a_task_that_runs_does_not_hold_up_the_end(tmp_path: Path) -> None:
    assembly = write_assembly(tmp_path / "cdk.out")
    command = [sys.executable, "-m", "local_account", "--assembly", str(assembly), "--port", "0"]
    with subprocess.Popen(
        command,
        cwd=REPOSITORY,
        env={**os.environ, "TMPDIR": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            sqs = _client(_ready(process))
            dead = _running_task(sqs)
            assert tasks(dead)[0]["Status"] == "RUNNING"
            process.send_signal(signal.SIGTERM)
            assert process.wait(10) == 0
        finally:
            process.kill()
        assert process.stderr is not None
        assert process.stderr.read() == ""


def _ready(process: subprocess.Popen[str]) -> str:
    """Where it listens."""
    assert process.stdout is not None
    lines = iter(process.stdout.readline, "")
    return next(each for each in lines if each.startswith("ready ")).split()[1]


def _client(endpoint_url: str) -> Any:
    return boto3.client(
        "sqs",
        endpoint_url=endpoint_url,
        region_name=REGION,
        aws_access_key_id=ACCESS_KEY,
        aws_secret_access_key=SECRET_KEY,
    )


def _running_task(sqs: Any) -> Queue:
    """The queue that a slow task empties."""
    dead = Queue(sqs, sqs.create_queue(QueueName="dead")["QueueUrl"], is_fifo=False)
    source = sqs.create_queue(QueueName="source", Attributes={"RedrivePolicy": naming(dead)})
    to = Queue(sqs, source["QueueUrl"], is_fifo=False)
    for _ in range(9):
        dead.send()
    sqs.start_message_move_task(
        SourceArn=dead.arn, DestinationArn=to.arn, MaxNumberOfMessagesPerSecond=1
    )
    return dead
