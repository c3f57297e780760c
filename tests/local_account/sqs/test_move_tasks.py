"""How fast a task moves, what is told of it, and when it ends by itself."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from local_account.sqs.move_tasks import (
    CANCELLING_SECONDS,
    LONGEST_SECONDS,
    MoveTask,
    Status,
    handle_of,
    put_back_tasks,
    read_handle,
    remember,
    tasks_of,
)

DEAD = "arn:aws:sqs:us-east-1:000000000000:orders-dlq"
NOON = 43_200.0


def _task(per_second: int | None = None, **more: Any) -> MoveTask:
    return MoveTask(DEAD, None, per_second, to_move=9, started_at=NOON, **more)


def _moves(task: MoveTask, seconds: float, tick: float) -> int:
    """How many it moves in that time when it is looked at so often."""
    return sum(task.due(NOON + n * tick) for n in range(int(seconds / tick) + 1))


@pytest.mark.parametrize("tick", [0.02, 0.1, 0.25])
@pytest.mark.parametrize("per_second", [1, 3, 100, 500])
def test_no_more_move_than_were_asked_for_and_hardly_fewer(per_second: int, tick: float) -> None:
    moved = _moves(_task(per_second), seconds=10, tick=tick)
    assert 10 * per_second * 0.97 - 1 <= moved <= 10 * per_second + 1


def test_the_first_moves_at_once_and_no_other_with_it() -> None:
    assert _task(1).due(NOON) == 1
    assert _task(500).due(NOON) == 1


def test_whoever_was_held_up_does_not_make_up_for_it() -> None:
    task = _task(100)
    task.due(NOON)
    assert task.due(NOON + 3_600) <= 26


def test_a_task_nobody_set_a_rate_for_moves_as_fast_as_one_may_ask_for() -> None:
    assert _moves(_task(), 2, 0.02) == _moves(_task(500), 2, 0.02)


def test_a_cancel_takes_a_moment() -> None:
    task = _task()
    assert not task.ends_by_itself(NOON + 60)
    task.cancel(NOON + 60)
    assert task.is_active
    assert not task.ends_by_itself(NOON + 59.9 + CANCELLING_SECONDS)
    assert task.ends_by_itself(NOON + 60 + CANCELLING_SECONDS)
    assert task.status is Status.CANCELLED


def test_a_task_ends_after_36_hours_however_far_it_has_come() -> None:
    task, queue = _task(), dict[str, Any]()
    remember(queue, task)
    assert not task.ends_by_itself(NOON + LONGEST_SECONDS - 1)
    put_back_tasks(queue, 1)
    assert task.ends_by_itself(NOON + LONGEST_SECONDS - 1)
    assert task.as_entry()["Status"] == "FAILED"
    assert "FailureReason" not in task.as_entry()


def test_nothing_left_ends_a_running_task_well_and_a_cancelled_one_as_cancelled() -> None:
    running, cancelled = _task(), _task()
    running.drained()
    cancelled.cancel(NOON)
    cancelled.drained()
    assert (running.status, cancelled.status) == (Status.COMPLETED, Status.CANCELLED)


def test_a_handle_is_told_only_of_a_running_task() -> None:
    task = _task()
    assert read_handle(task.as_entry()["TaskHandle"]) == (task.task_id, DEAD)
    task.cancel(NOON)
    assert "TaskHandle" not in task.as_entry()


@pytest.mark.parametrize(
    "handle",
    ["", "foobared", "Zm9v", "ä", base64.b64encode(b"[1]").decode(), handle_of("", "")[:-4]],
)
def test_what_is_no_handle_is_not_read(handle: str) -> None:
    assert read_handle(handle) is None


def test_the_last_ten_are_remembered() -> None:
    queue, tasks = dict[str, Any](), [_task() for _ in range(12)]
    for each in tasks:
        remember(queue, each)
    assert tasks_of(queue) == tasks[2:]
