"""StartMessageMoveTask, ListMessageMoveTasks, CancelMessageMoveTask, as AWS answers them.

A queue's RedriveAllowPolicy is about who may name it for dead letters, not about the way back.
https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_StartMessageMoveTask.html
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from ministack.core.responses import get_account_id
from ministack.services import sqs

from functions.healing.service_quotas import MOST_MOVE_TASKS
from local_account.sqs.dead_letter_handlers import most_results, sources_of
from local_account.sqs.message_handlers import raised
from local_account.sqs.move_tasks import (
    MOST_LISTED,
    MOST_PER_SECOND,
    MoveTask,
    Status,
    read_handle,
    tasks_of,
)
from local_account.sqs.move_tasks_mover import Mover
from local_account.sqs.move_tasks_permissions import LISTING, RECEIVING, SENDING, require
from local_account.sqs.refusal import Refusal, invalid_parameter

Parameters = Mapping[str, Any]
Queue = dict[str, Any]
Handler = Callable[[Parameters, str], dict[str, Any]]
_INVALID = "InvalidParameterValueException"
_NOT_FOUND = "ResourceNotFoundException"
# (recorded)
NO_SOURCE = Refusal(
    _NOT_FOUND, "The resource that you specified for the SourceArn parameter doesn't exist.", 404
)
NO_DESTINATION = Refusal(
    _NOT_FOUND,
    "The resource that you specified for the DestinationArn parameter doesn't exist.",
    404,
)
NO_TASK = Refusal(_NOT_FOUND, "Task does not exist.", 404)
NO_HANDLE = Refusal(_INVALID, "Value for parameter TaskHandle is invalid.")
NO_DEAD_LETTER_QUEUE = Refusal(_INVALID, "Source queue must be configured as a Dead Letter Queue.")
ALREADY_RUNNING = Refusal(
    _INVALID,
    "There is already a task running. Only one active task is allowed for a source queue arn at a "
    "given time.",
)
# The limits are documented, how SQS words them is not.
TOO_MANY = Refusal(
    "UnsupportedOperation", f"At most {MOST_MOVE_TASKS} active tasks are allowed for an account."
)
NOT_RUNNING = Refusal("UnsupportedOperation", "Only a task that is running can be cancelled.")


def install(mover: Mover) -> None:
    """Hook the three actions; once per process."""
    sqs._HANDLERS.update(
        StartMessageMoveTask=starting(mover),
        ListMessageMoveTasks=list_message_move_tasks,
        CancelMessageMoveTask=cancel_message_move_task,
    )


def starting(mover: Mover) -> Handler:
    """StartMessageMoveTask."""

    def start_message_move_task(data: Parameters, _url: str) -> dict[str, Any]:
        per_second = _per_second(data)
        with sqs._queues_lock:
            source = _source(str(data.get("SourceArn") or ""), "sqs:StartMessageMoveTask")
            arn = source["attributes"]["QueueArn"]
            destinations = _destinations(data, source)
            require(RECEIVING, arn)
            for each in destinations:
                require(SENDING, each)
            if any(each.is_active for each in tasks_of(source)):
                raise raised(ALREADY_RUNNING)
            if mover.active_tasks(get_account_id()) >= MOST_MOVE_TASKS:
                raise raised(TOO_MANY)
            sqs._refresh_counts(source)
            visible = int(source["attributes"]["ApproximateNumberOfMessages"])
            named = data.get("DestinationArn") or None
            task = MoveTask(arn, named, per_second, visible, time.time())
            mover.begin(task, source)
        return {"TaskHandle": task.handle}

    return start_message_move_task


def list_message_move_tasks(data: Parameters, _url: str) -> dict[str, Any]:
    """ListMessageMoveTasks: the newest first, one of them unless more are asked for."""
    most = most_results(data, MOST_LISTED) or 1
    source = _source(str(data.get("SourceArn") or ""), "sqs:ListMessageMoveTasks")
    require(LISTING, source["attributes"]["QueueArn"])
    with sqs._queues_lock:
        return {"Results": [each.as_entry() for each in tasks_of(source)[::-1][:most]]}


def cancel_message_move_task(data: Parameters, _url: str) -> dict[str, Any]:
    """CancelMessageMoveTask: what has moved so far; more will, for a moment."""
    named = read_handle(str(data.get("TaskHandle") or ""))
    if named is None:
        raise raised(NO_HANDLE)
    task_id, arn = named
    with sqs._queues_lock:
        source = _source(arn, "sqs:CancelMessageMoveTask")
        require(RECEIVING, arn)
        task = next((each for each in tasks_of(source) if each.task_id == task_id), None)
        if task is None:
            raise raised(NO_TASK)
        if task.status is not Status.RUNNING:
            raise raised(NOT_RUNNING)
        task.cancel(time.time())
        return {"ApproximateNumberOfMessagesMoved": task.moved}


def _source(arn: str, action: str) -> Queue:
    queue = sqs._queue_by_arn(arn)
    if queue is None:
        raise raised(NO_SOURCE)
    source: Queue = sqs._get_q(queue["url"], action)  # asks the queue's policy
    return source


def _per_second(data: Parameters) -> int | None:
    asked = data.get("MaxNumberOfMessagesPerSecond")
    if asked is None:
        return None
    if not 1 <= int(asked) <= MOST_PER_SECOND:
        reason = f"Must be between 1 and {MOST_PER_SECOND}, if provided."
        raise raised(invalid_parameter(asked, "MaxNumberOfMessagesPerSecond", reason))
    return int(asked)


def _destinations(data: Parameters, source: Queue) -> list[str]:
    """Where messages may go: the queue that is named, or every queue that they can have died in."""
    arn = source["attributes"]["QueueArn"]
    sources = sorted(sources_of(arn))
    if not sources:
        raise raised(NO_DEAD_LETTER_QUEUE)
    named = str(data.get("DestinationArn") or "")
    if not named:
        return [sqs._get_q(each)["attributes"]["QueueArn"] for each in sources]
    destination = sqs._queue_by_arn(named)
    if destination is None:
        raise raised(NO_DESTINATION)
    if named == arn:
        raise raised(invalid_parameter(named, "DestinationArn", "It is the source queue."))
    if destination["is_fifo"] != source["is_fifo"]:
        reason = "Source and destination must be of the same type, FIFO or standard."
        raise raised(invalid_parameter(named, "DestinationArn", reason))
    return [named]
