"""Emulate message movement tasks: SQS's own redrive, which moves a DLQ's messages to other queues.

Errors and responses marked (recorded) were seen from the real SQS. The rest comes from the API
reference and from SQS's guide. Three things are assumed, because AWS does not document them:

- A redriven message is a new message: it counts in NumberOfMessagesSent of its new queue, and its
  receive count begins at 0. In the DLQ it counts as received and deleted.
- A task ends when it has moved as many messages as were visible when it began, or when no message
  is visible.
- A task does not begin if the caller lacks a permission on the DLQ or on the given destination. If
  the caller lacks a permission on another queue or on a KMS key, the task fails with the error's
  code as FailureReason.

https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_StartMessageMoveTask.html
https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-configure-dead-letter-queue-redrive.html
"""

from __future__ import annotations

import base64
import contextvars
import json
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ministack.core.concurrency import esm_wake
from ministack.core.responses import new_uuid
from ministack.services import sqs

from local_account.permissions import ResourceCall, is_allowed
from local_account.sqs import encryption
from local_account.sqs.errors import make_denial_message
from local_account.sqs.queues import (
    find_locked_group_ids,
    make_invalid_parameter_error,
    read_dlq_arn,
)

Parameters = Mapping[str, Any]
Queue = dict[str, Any]
Message = dict[str, Any]
RUNNING, COMPLETED, FAILED = "RUNNING", "COMPLETED", "FAILED"
CANCELLING, CANCELLED = "CANCELLING", "CANCELLED"
HIGHEST_RATE = 500
MOST_RESULTS = 10
DEFAULT_RESULTS = 1
DLQ_ACTIONS = ("sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes")
SEND_ACTION = "sqs:SendMessage"
MISSING_QUEUE_REASON = "AWS.SimpleQueueService.NonExistentQueue"  # (recorded)
UNKNOWN_SOURCE_REASON = "CouldNotDetermineMessageSource"
# The fields that a redriven message keeps. All other fields are new.
KEPT_FIELDS = ("body", "md5_body", "md5_attrs", "message_attributes", "group_id", "dedup_id")


@dataclass
class MoveTask:
    """A message movement task.

    Attributes:
        source_arn: ARN of the DLQ.
        destination_arn: ARN of the queue to which messages go; empty if each goes to its source.
        messages_per_second: The rate; None if the caller gave none.
        messages_to_move: Messages that were visible when the task began.
        principal: MiniStack's principal of the caller.
    """

    source_arn: str
    destination_arn: str
    messages_per_second: int | None
    messages_to_move: int
    principal: Any
    task_id: str = field(default_factory=new_uuid)
    started_milliseconds: int = field(default_factory=lambda: int(time.time() * 1000))
    status: str = RUNNING
    moved_messages: int = 0
    failure_reason: str = ""

    @property
    def handle(self) -> str:
        """The task's handle."""
        content = {"taskId": self.task_id, "sourceArn": self.source_arn}
        return base64.b64encode(json.dumps(content).encode()).decode()

    def describe(self) -> dict[str, Any]:
        """Return the task as ListMessageMoveTasks lists it. (recorded)"""
        description = {
            "TaskHandle": self.handle if self.status == RUNNING else None,
            "Status": self.status,
            "SourceArn": self.source_arn,
            "DestinationArn": self.destination_arn or None,
            "MaxNumberOfMessagesPerSecond": self.messages_per_second,
            "ApproximateNumberOfMessagesMoved": self.moved_messages,
            "ApproximateNumberOfMessagesToMove": self.messages_to_move,
            "FailureReason": self.failure_reason or None,
            "StartedTimestamp": self.started_milliseconds,
        }
        return {name: value for name, value in description.items() if value is not None}


class _MoveFailed(Exception):
    """Raised if a task cannot continue. The text is the task's FailureReason."""


class MoveTasks:
    """The message movement tasks of all queues."""

    def __init__(self, count_move: Callable[[Queue], None]) -> None:
        """Create the list of tasks.

        Args:
            count_move: Counts a message that a task has moved out of a DLQ.
        """
        self._count_move = count_move
        self._tasks_by_source: dict[str, list[MoveTask]] = {}

    def install(self) -> None:
        """Make MiniStack answer SQS's three calls about tasks. Call this once per process."""
        sqs._HANDLERS["StartMessageMoveTask"] = self._start
        sqs._HANDLERS["ListMessageMoveTasks"] = self._list
        sqs._HANDLERS["CancelMessageMoveTask"] = self._cancel

    def put_back(self, source_arn: str, seconds: int) -> None:
        """Make the start times of all tasks of a DLQ earlier by the number of seconds."""
        for task in self._tasks_by_source.get(source_arn, []):
            task.started_milliseconds -= 1000 * seconds

    def _start(self, parameters: Parameters, _url: str) -> dict[str, Any]:
        """Begin a task, and return the answer to StartMessageMoveTask."""
        source_arn = str(parameters.get("SourceArn") or "")
        dlq = _find_queue(source_arn, "SourceArn", "sqs:StartMessageMoveTask")
        if not any(
            read_dlq_arn(queue["attributes"].get("RedrivePolicy")) == source_arn
            for queue in sqs._queues.values()
        ):
            message = "Source queue must be configured as a Dead Letter Queue."  # (recorded)
            raise sqs._Err("InvalidParameterValueException", message)
        destination_arn = str(parameters.get("DestinationArn") or "")
        principal = encryption.find_caller()
        for action in DLQ_ACTIONS:
            _require_right(principal, action, dlq)
        if destination_arn:
            destination = _find_queue(destination_arn, "DestinationArn")
            _check_destination(dlq, destination)
            _require_right(principal, SEND_ACTION, destination)
        rate = parameters.get("MaxNumberOfMessagesPerSecond")
        if rate is not None and not 1 <= int(rate) <= HIGHEST_RATE:
            reason = f"Must be between 1 and {HIGHEST_RATE}, if provided."
            raise make_invalid_parameter_error(rate, "MaxNumberOfMessagesPerSecond", reason)
        with sqs._queues_lock:
            tasks = self._tasks_by_source.setdefault(source_arn, [])
            if any(task.status in (RUNNING, CANCELLING) for task in tasks):
                one_task_rule_text = "Only one active task is allowed for a source queue arn"
                message = f"There is already a task running. {one_task_rule_text} at a given time."
                raise sqs._Err("InvalidParameterValueException", message)  # (recorded)
            message_count = len(_list_movable_messages(dlq))
            task = MoveTask(source_arn, destination_arn, rate, message_count, principal)
            tasks.append(task)
        context = contextvars.copy_context()
        thread = threading.Thread(
            target=context.run, args=(self._run, task), name="move-task", daemon=True
        )
        thread.start()
        return {"TaskHandle": task.handle}

    def _list(self, parameters: Parameters, _url: str) -> dict[str, Any]:
        """Return the answer to ListMessageMoveTasks: the newest tasks of a DLQ, newest first."""
        source_arn = str(parameters.get("SourceArn") or "")
        _find_queue(source_arn, "SourceArn", "sqs:ListMessageMoveTasks")
        result_count = int(parameters.get("MaxResults") or DEFAULT_RESULTS)
        if not 1 <= result_count <= MOST_RESULTS:
            reason = f"Must be between 1 and {MOST_RESULTS}, if provided."
            raise make_invalid_parameter_error(result_count, "MaxResults", reason)
        tasks = self._tasks_by_source.get(source_arn, [])
        return {"Results": [task.describe() for task in reversed(tasks[-result_count:])]}

    def _cancel(self, parameters: Parameters, _url: str) -> dict[str, Any]:
        """Stop a task, and return the answer to CancelMessageMoveTask."""
        source_arn, task_id = _read_handle(parameters.get("TaskHandle"))
        _find_queue(source_arn, "SourceArn", "sqs:CancelMessageMoveTask")
        with sqs._queues_lock:
            for task in self._tasks_by_source.get(source_arn, []):
                if task.task_id == task_id and task.status == RUNNING:
                    task.status = CANCELLING
                    return {"ApproximateNumberOfMessagesMoved": task.moved_messages}
        raise sqs._Err("ResourceNotFoundException", "Task does not exist.", 404)  # (recorded)

    def _run(self, task: MoveTask) -> None:
        """Move messages until the task ends."""
        pause_seconds = 1 / task.messages_per_second if task.messages_per_second else 0
        try:
            while task.status == RUNNING and self._move_message(task):
                time.sleep(pause_seconds)
        except _MoveFailed as error:
            task.failure_reason = str(error)
            task.status = FAILED
            return
        with sqs._queues_lock:
            task.status = CANCELLED if task.status == CANCELLING else COMPLETED

    def _move_message(self, task: MoveTask) -> bool:
        """Move one message. Return False if no message is left to move."""
        with sqs._queues_lock:
            dlq = sqs._queue_by_arn(task.source_arn)
            if dlq is None:
                raise _MoveFailed(MISSING_QUEUE_REASON)
            messages = _list_movable_messages(dlq)
            if not messages or task.moved_messages >= task.messages_to_move:
                return False
            message = messages[0]
            source_arn = message.get("sys", {}).get("DeadLetterQueueSourceArn", "")
            destination_arn = task.destination_arn or source_arn
            if not destination_arn:
                raise _MoveFailed(UNKNOWN_SOURCE_REASON)
            destination = sqs._queue_by_arn(destination_arn)
            if destination is None:
                raise _MoveFailed(MISSING_QUEUE_REASON)
            if not _has_right(task.principal, SEND_ACTION, destination):
                raise _MoveFailed("AccessDenied")
            key_refusal = encryption.find_move_refusal(message, dlq, destination, task.principal)
            if key_refusal:
                raise _MoveFailed(encryption.QUERY_CODE_BY_ERROR[key_refusal.error])
            dlq["messages"] = [kept for kept in dlq["messages"] if kept is not message]
            encryption.append_message(destination, _make_new_message(message, destination))
            self._count_move(dlq)
            task.moved_messages += 1
        esm_wake.set()
        return True


def _find_queue(queue_arn: str, parameter: str, action: str = "") -> Queue:
    """Return the queue. Raise SQS's error if it does not exist, or its policy denies the call."""
    queue = sqs._queue_by_arn(queue_arn)
    if queue is None:  # (recorded)
        message = f"The resource that you specified for the {parameter} parameter doesn't exist."
        raise sqs._Err("ResourceNotFoundException", message, 404)
    if action:
        sqs._get_q(queue["url"], action)
    found_queue: Queue = queue
    return found_queue


def _check_destination(dlq: Queue, destination: Queue) -> None:
    """Raise SQS's error if the messages of the DLQ cannot go to the destination."""
    destination_arn = destination["attributes"]["QueueArn"]
    if destination is dlq:
        reason = "Source queue arn and destination queue arn cannot be the same."
        raise make_invalid_parameter_error(destination_arn, "DestinationArn", reason)
    if destination["is_fifo"] != dlq["is_fifo"]:
        reason = "It must be of the same type, FIFO or standard, as the source."
        raise make_invalid_parameter_error(destination_arn, "DestinationArn", reason)


def _has_right(principal: Any, action: str, queue: Queue) -> bool:
    """Return True if the principal may do `action` on the queue."""
    queue_arn = queue["attributes"]["QueueArn"]
    queue_policy = queue["attributes"].get("Policy") or ""
    return is_allowed(principal, ResourceCall(action, queue_arn, queue_policy))


def _require_right(principal: Any, action: str, queue: Queue) -> None:
    """Raise SQS's error if the principal may not do `action` on the queue."""
    if not _has_right(principal, action, queue):
        message = make_denial_message(
            getattr(principal, "arn", "anonymous"),
            action,
            queue["attributes"]["QueueArn"],
            is_queue_policy=False,
            is_explicit_deny=False,
        )
        raise sqs._Err("AccessDenied", message, 403)


def _read_handle(handle: object) -> tuple[str, str]:
    """Return the source's ARN and the task's id. Raise SQS's error if the handle is invalid."""
    try:
        content = json.loads(base64.b64decode(str(handle), validate=True))
        return str(content["sourceArn"]), str(content["taskId"])
    except (ValueError, LookupError, TypeError) as error:  # (recorded)
        message = "Value for parameter TaskHandle is invalid."
        raise sqs._Err("InvalidParameterValueException", message) from error


def _list_movable_messages(dlq: Queue) -> list[Message]:
    """Return the visible messages of a DLQ, without those of locked message groups."""
    now = time.time()
    locked_group_ids = find_locked_group_ids(dlq)
    return [
        message
        for message in dlq["messages"]
        if message["visible_at"] <= now and message.get("group_id") not in locked_group_ids
    ]


def _make_new_message(message: Message, destination: Queue) -> Message:
    """Return the new message that the destination gets for a redriven message."""
    sqs._ensure_msg_fields(message)
    now = time.time()
    new_message = {name: message[name] for name in KEPT_FIELDS}
    new_message |= {
        "id": new_uuid(),
        "receipt_handle": None,
        "sent_at": now,
        "visible_at": now,
        "receive_count": 0,
        "first_receive_at": None,
        "dedup_cache_key": None,
        "seq": None,
    }
    new_message["sys"] = {
        name: value for name, value in message["sys"].items() if name != "DeadLetterQueueSourceArn"
    } | {"SentTimestamp": str(int(now * 1000))}
    if destination["is_fifo"]:
        destination["fifo_seq"] += 1
        new_message["seq"] = str(destination["fifo_seq"]).zfill(20)
    return new_message
