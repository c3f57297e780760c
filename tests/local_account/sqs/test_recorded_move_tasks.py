"""The conversations about move tasks that somebody had with the real SQS, had here again."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from botocore.exceptions import ClientError

from local_account.process import LocalAccount
from local_account.sqs.move_tasks import handle_of, read_handle
from tests.local_account.dead_letters import bodies, ended, new_pipe, received, tasks
from tests.local_account.queues import Queue, new_queue
from tests.real_records import SQS_MOVE_TASKS, sqs_move_tasks

pytestmark = pytest.mark.account
SOME_ID = "10f57157-fc38-4da9-a113-4de7e12d05dd"
TEN = [f"message-{n}" for n in range(10)]
# As the recording's own tests: how far a task has come when it is looked at is chance.
_BY_CHANCE = frozenset({"ApproximateNumberOfMessagesMoved"})
_OF_HTTP = frozenset({"RequestId", "RetryAttempts", "HTTPHeaders"})


class Conversation:
    """What was recorded, compared with what is answered here: placeholders stand for one thing."""

    def __init__(self, name: str) -> None:
        if not SQS_MOVE_TASKS.exists():
            pytest.skip("the recorded conversations are not here: name their folder MENDQ_RECORDED")
        self._recorded = sqs_move_tasks()[name]
        self._stands_for: dict[str, object] = {}
        self.compared: set[str] = set()

    def same(self, key: str, answer: object, *, by_chance: bool = False) -> None:
        self.compared.add(key)
        self._same(self._recorded[key], answer, key, _BY_CHANCE if by_chance else frozenset())
        assert self.compared <= self._recorded.keys()

    def same_error(self, call: Callable[[], object]) -> None:
        with pytest.raises(ClientError) as failed:
            call()
        self.same("error", failed.value.response)

    def is_over(self) -> bool:
        """Whether all that was recorded has been compared."""
        return self.compared == set(self._recorded)

    def _same(self, recorded: Any, found: Any, at: str, by_chance: frozenset[str]) -> None:
        if isinstance(recorded, dict):
            assert recorded.keys() - _OF_HTTP == found.keys() - _OF_HTTP, at
            for name in recorded.keys() - _OF_HTTP - by_chance:
                self._same(recorded[name], found[name], f"{at}.{name}", by_chance)
        elif isinstance(recorded, list):
            assert len(recorded) == len(found), at
            for one, other in zip(recorded, found, strict=True):
                self._same(one, other, at, by_chance)
        elif isinstance(recorded, str) and ("<" in recorded or recorded == "timestamp"):
            assert self._stands_for.setdefault(recorded, found) == found, at
        else:
            assert recorded == found, at


def _start(dead: Queue, to: Queue | None = None, per_second: int | None = None) -> dict[str, Any]:
    asked: dict[str, Any] = {"SourceArn": dead.arn}
    if to:
        asked["DestinationArn"] = to.arn
    if per_second:
        asked["MaxNumberOfMessagesPerSecond"] = per_second
    answer: dict[str, Any] = dead.sqs.start_message_move_task(**asked)
    return answer


def _list(dead: Queue) -> dict[str, Any]:
    answer: dict[str, Any] = dead.sqs.list_message_move_tasks(SourceArn=dead.arn)
    return answer


def test_basic_move_task_workflow(account: LocalAccount) -> None:
    recorded = Conversation("test_basic_move_task_workflow")
    pipe, to = new_pipe(account), new_queue(account)
    pipe.die("message-1", "message-2")
    started = _start(pipe.dead, to)
    recorded.same("start-message-move-task-response", started)
    named = read_handle(started["TaskHandle"])
    assert named is not None
    assert named[1] == pipe.dead.arn
    assert bodies(received(to, 2)) == ["message-1", "message-2"]
    ended(pipe.dead, "COMPLETED")
    recorded.same("list-message-move-task-response", _list(pipe.dead))
    assert pipe.dead.count() == 0
    assert recorded.is_over()


def test_source_needs_redrive_policy(account: LocalAccount) -> None:
    recorded = Conversation("test_source_needs_redrive_policy")
    recorded.same_error(lambda: _start(new_queue(account), new_queue(account)))


def test_cancel_with_invalid_task_handle(account: LocalAccount) -> None:
    recorded = Conversation("test_cancel_with_invalid_task_handle")
    sqs = account.client("sqs")
    recorded.same_error(lambda: sqs.cancel_message_move_task(TaskHandle="foobared"))


def test_cancel_with_invalid_source_arn_in_task_handle(account: LocalAccount) -> None:
    recorded = Conversation("test_cancel_with_invalid_source_arn_in_task_handle")
    handle = handle_of(SOME_ID, f"{new_queue(account).arn}-gone")
    sqs = account.client("sqs")
    recorded.same_error(lambda: sqs.cancel_message_move_task(TaskHandle=handle))


def test_cancel_with_invalid_task_id_in_task_handle(account: LocalAccount) -> None:
    recorded = Conversation("test_cancel_with_invalid_task_id_in_task_handle")
    handle = handle_of(SOME_ID, new_queue(account).arn)
    sqs = account.client("sqs")
    recorded.same_error(lambda: sqs.cancel_message_move_task(TaskHandle=handle))


def test_move_task_with_throughput_limit(account: LocalAccount) -> None:
    recorded = Conversation("test_move_task_with_throughput_limit")
    pipe, to = new_pipe(account), new_queue(account)
    pipe.die(*TEN[:4])
    began = time.monotonic()
    recorded.same("start-message-move-task-response", _start(pipe.dead, to, per_second=1))
    assert bodies(received(to, 4)) == TEN[:4]
    assert time.monotonic() - began >= 3
    assert recorded.is_over()


def test_destination_needs_to_exist(account: LocalAccount) -> None:
    recorded = Conversation("test_destination_needs_to_exist")
    dead = new_pipe(account).dead
    gone = partial(
        dead.sqs.start_message_move_task,
        SourceArn=dead.arn,
        DestinationArn=f"{new_queue(account).arn}doesntexist",
    )
    recorded.same_error(gone)


def test_move_task_cancel(account: LocalAccount) -> None:
    recorded = Conversation("test_move_task_cancel")
    pipe, to = new_pipe(account), new_queue(account)
    pipe.die(*TEN)
    handle = _start(pipe.dead, to, per_second=1)["TaskHandle"]
    received(to, 2)
    recorded.same("list-while", _list(pipe.dead), by_chance=True)
    cancelled = pipe.dead.sqs.cancel_message_move_task(TaskHandle=handle)
    recorded.same("cancel", cancelled, by_chance=True)
    moved = cancelled["ApproximateNumberOfMessagesMoved"]
    (cancelling,) = tasks(pipe.dead, most=1)
    assert cancelling["Status"] == "CANCELLING"
    assert "TaskHandle" not in cancelling
    after = ended(pipe.dead, "CANCELLED")["ApproximateNumberOfMessagesMoved"]
    recorded.same("list-after", _list(pipe.dead), by_chance=True)
    assert moved < after < len(TEN)
    assert pipe.dead.count() == len(TEN) - after
    assert recorded.is_over()


def test_move_task_delete_destination_queue_while_running(account: LocalAccount) -> None:
    recorded = Conversation("test_move_task_delete_destination_queue_while_running")
    pipe, to = new_pipe(account), new_queue(account)
    pipe.die(*TEN)
    _start(pipe.dead, to, per_second=1)
    to.sqs.delete_queue(QueueUrl=to.url)
    failed = ended(pipe.dead, "FAILED")
    recorded.same("list", _list(pipe.dead), by_chance=True)
    assert pipe.dead.count() == len(TEN) - failed["ApproximateNumberOfMessagesMoved"] > 0
    assert recorded.is_over()


def test_start_multiple_move_tasks(account: LocalAccount) -> None:
    recorded = Conversation("test_start_multiple_move_tasks")
    pipe, to = new_pipe(account), new_queue(account)
    pipe.die(*TEN)
    _start(pipe.dead, to, per_second=1)
    recorded.same_error(lambda: _start(pipe.dead, to, per_second=1))
    assert len(tasks(pipe.dead)) == 1


def test_move_task_workflow_with_default_destination(account: LocalAccount) -> None:
    recorded = Conversation("test_move_task_workflow_with_default_destination")
    pipe = new_pipe(account)
    pipe.die("message-1", "message-2")
    recorded.same("source-arn", pipe.dead.arn)
    recorded.same("original-source", pipe.source.arn)
    recorded.same("start-message-move-task-response", _start(pipe.dead))
    assert bodies(received(pipe.source, 2)) == ["message-1", "message-2"]
    ended(pipe.dead, "COMPLETED")
    recorded.same("list-message-move-task-response", _list(pipe.dead))
    assert recorded.is_over()


def test_move_task_workflow_with_multiple_sources_as_default_destination(
    account: LocalAccount,
) -> None:
    recorded = Conversation("test_move_task_workflow_with_multiple_sources_as_default_destination")
    one = new_pipe(account)
    two = new_pipe(account, dead=one.dead)
    one.die("message-1-1", "message-1-2")
    two.die("message-2-1", "message-2-2")
    recorded.same("source-arn", one.dead.arn)
    recorded.same("original-source-1", one.source.arn)
    recorded.same("original-source-2", two.source.arn)
    recorded.same("start-message-move-task-response", _start(one.dead))
    assert bodies(received(one.source, 2)) == ["message-1-1", "message-1-2"]
    assert bodies(received(two.source, 2)) == ["message-2-1", "message-2-2"]
    ended(one.dead, "COMPLETED")
    recorded.same("list-message-move-task-response", _list(one.dead))
    assert recorded.is_over()


def test_every_recorded_conversation_is_had_again() -> None:
    if not SQS_MOVE_TASKS.exists():
        pytest.skip("the recorded conversations are not here: name their folder MENDQ_RECORDED")
    assert sqs_move_tasks().keys() <= globals().keys()
