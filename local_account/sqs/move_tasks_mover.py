"""Moves the messages of move tasks, at the rate that was asked for, while the account serves.

Each moved message is sent anew: with a new id, a new enqueue time, no receives, its attributes and
its trace header. In a FIFO queue it keeps its group, and its own id becomes the deduplication id,
so that none is dropped. A task goes on until nothing visible is left, so that what dies again
meanwhile moves again; what somebody holds stays.
https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/troubleshooting-dlq-redrive.html
"""

from __future__ import annotations

import atexit
import contextvars
import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ministack.services import sqs

from local_account.sqs.counting import note_moved
from local_account.sqs.move_tasks import MoveTask, remember
from local_account.sqs.move_tasks_permissions import RECEIVING, SENDING, move_as_caller, require

Queue = dict[str, Any]
Message = dict[str, Any]
TICK_SECONDS = 0.02
HIDDEN_SECONDS = 30
GONE = "AWS.SimpleQueueService.NonExistentQueue"  # (recorded)
FROM_NOWHERE = "CouldNotDetermineMessageSource"
logger = logging.getLogger("mendq.move-tasks")


class _CannotMove(Exception):
    """Why a task fails: its FailureReason."""


@dataclass(frozen=True)
class _UnderWay:
    """A task, the queue that it empties, and the context of the call that started it."""

    task: MoveTask
    source: Queue
    context: contextvars.Context = field(default_factory=contextvars.copy_context)


class Mover:
    """A thread that lives from the first task on; the clock is the account's."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._under_way: list[_UnderWay] = []
        self._changed = threading.Condition()
        self._stopping = False
        self._thread: threading.Thread | None = None

    def begin(self, task: MoveTask, source: Queue) -> None:
        """Have a task move what it can from now on, in the caller's name."""
        remember(source, task)
        with self._changed:
            self._under_way.append(_UnderWay(task, source))
            self._changed.notify()
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="move-tasks", daemon=True)
            self._thread.start()
            atexit.register(self.stop)

    def active_tasks(self, account: str) -> int:
        """How many tasks of an account are running or being cancelled."""
        with self._changed:
            arns = [each.task.source_arn for each in self._under_way]
        return sum(arn.split(":")[4] == account for arn in arns)

    def stop(self) -> None:
        """Move nothing more; return when nothing moves."""
        with self._changed:
            self._stopping = True
            self._changed.notify()
        if self._thread:
            self._thread.join()

    def tick(self) -> None:
        """Move what is due of every task."""
        now = self._clock()
        with self._changed:
            under_way = list(self._under_way)
        for each in under_way:
            with sqs._queues_lock:
                each.context.copy().run(_advance, each, now)
        with self._changed:
            self._under_way = [each for each in self._under_way if each.task.is_active]

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._under_way or self._stopping)
                self._changed.wait_for(lambda: self._stopping, TICK_SECONDS)
                if self._stopping:
                    return
            self.tick()


def _advance(under_way: _UnderWay, now: float) -> None:
    task = under_way.task
    if task.ends_by_itself(now):
        return
    try:
        move_as_caller(lambda: _move(task, under_way.source, now))
    except _CannotMove as failed:
        task.fail(f"{failed}")
    except sqs._Err as failed:
        task.fail(sqs._QUERY_COMPAT_CODES.get(failed.code, failed.code))
    except Exception:
        logger.exception("a move task out of %s ended", task.source_arn)
        task.fail("InternalError")


def _move(task: MoveTask, source: Queue, now: float) -> None:
    if sqs._queue_by_arn(task.source_arn) is not source:
        raise _CannotMove(GONE)
    if not (due := task.due(now)):
        return
    require(RECEIVING, task.source_arn)
    sqs._expire_retained(source)
    received = sqs._collect_msgs(source, due, HIDDEN_SECONDS)
    if not received:
        task.drained()
        return
    moved: list[Message] = []
    permitted: set[str] = set()
    try:
        for message in received:
            _send(message, task, permitted)
            moved.append(message)
    finally:
        _delete(source, moved)
        task.moved += len(moved)
        for message in received[len(moved) :]:
            message["visible_at"] = now


def _delete(source: Queue, moved: list[Message]) -> None:
    gone = {id(each) for each in moved}
    source["messages"] = [each for each in source["messages"] if id(each) not in gone]


def _send(message: Message, task: MoveTask, permitted: set[str]) -> None:
    arn = task.destination_arn or message["sys"].get("DeadLetterQueueSourceArn")
    if not arn:
        raise _CannotMove(FROM_NOWHERE)
    destination = sqs._queue_by_arn(arn)
    if destination is None:
        raise _CannotMove(GONE)
    if arn not in permitted:
        require(SENDING, arn)
        permitted.add(arn)
    answer = sqs._act_send_message(_sent_anew(message, destination), destination["url"])
    for newest in destination["messages"][-1:]:
        if newest["id"] == answer["MessageId"]:  # or FIFO took it for a duplicate after all
            note_moved(newest, task.source_arn)


def _sent_anew(message: Message, destination: Queue) -> dict[str, Any]:
    data: dict[str, Any] = {
        "QueueUrl": destination["url"],
        "MessageBody": message["body"],
        "MessageAttributes": message["message_attributes"],
        "MessageGroupId": message["group_id"],
    }
    if destination["is_fifo"]:
        data["MessageDeduplicationId"] = message["id"]
    if trace := message["sys"].get("AWSTraceHeader"):
        data["MessageSystemAttributes"] = {
            "AWSTraceHeader": {"DataType": "String", "StringValue": trace}
        }
    return data
