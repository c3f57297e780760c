"""A stage that a move task of the account carries out, and the tick that cancels it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest

from functions.aws.clients import Clients, LambdaSession
from functions.aws.move_tasks import cancel_task, newest_task, start_task
from functions.healing.redrive_drive import Refused
from functions.healing.redrive_look import MoveTask, TaskStatus
from local_account.process import LocalAccount
from tests.local_account.dead_letters import Pipe, new_pipe
from tests.local_account.queues import eventually, new_queue

pytestmark = pytest.mark.account


@dataclass(frozen=True)
class Session:
    """What Clients asks of one."""

    account: LocalAccount
    region_name: str = "us-east-1"

    def client(self, service_name: str, **_more: Any) -> Any:
        return self.account.client(service_name)


def _clients(account: LocalAccount) -> Clients:
    return Clients(cast("LambdaSession", Session(account)))


def _newest(clients: Clients, pipe: Pipe) -> MoveTask:
    task = newest_task(clients, pipe.dead.arn)
    assert task is not None
    return task


def _once(clients: Clients, pipe: Pipe, sees: Callable[[MoveTask], bool]) -> MoveTask:
    """The task as soon as it is so."""
    eventually(lambda: sees(_newest(clients, pipe)))
    return _newest(clients, pipe)


def test_a_task_is_known_by_its_start_its_rate_and_its_handle(account: LocalAccount) -> None:
    clients, pipe = _clients(account), new_pipe(account)
    assert newest_task(clients, pipe.dead.arn) is None
    pipe.die(*(f"letter {number}" for number in range(12)))
    asked_at = datetime.now(UTC)
    handle = start_task(clients, pipe.dead.arn, 1)
    assert isinstance(handle, str)
    running = _newest(clients, pipe)
    assert (running.status, running.handle, running.per_second) == (TaskStatus.RUNNING, handle, 1)
    assert abs(running.started_at - asked_at) < timedelta(seconds=5)
    assert not running.destination_arn
    second = start_task(clients, pipe.dead.arn, 1)
    assert isinstance(second, Refused)
    assert "already a task running" in second.because
    assert cancel_task(clients, handle) is None
    over = _once(clients, pipe, lambda task: not task.is_active)
    assert (over.status, over.handle) == (TaskStatus.CANCELLED, "")
    assert over.moved + pipe.dead.count() == 12
    assert isinstance(cancel_task(clients, handle), Refused)


def test_a_task_that_comes_to_its_end_says_how_many_it_moved(account: LocalAccount) -> None:
    clients, pipe = _clients(account), new_pipe(account)
    pipe.die("one", "two", "three")
    assert isinstance(start_task(clients, pipe.dead.arn, 500), str)
    over = _once(clients, pipe, lambda task: not task.is_active)
    assert (over.status, over.moved) == (TaskStatus.COMPLETED, 3)


def test_a_queue_that_is_nobody_s_has_no_task(account: LocalAccount) -> None:
    clients, queue = _clients(account), new_queue(account)
    refused = start_task(clients, queue.arn, 1)
    assert isinstance(refused, Refused)
    assert "must be configured as a Dead Letter Queue" in refused.because
    assert newest_task(clients, f"{queue.arn}-gone") is None
