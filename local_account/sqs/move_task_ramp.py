"""StartMessageMoveTask and CancelMessageMoveTask, for as long as a redrive of ours uses them.

A task moves one message after the other at its rate until nothing visible is left. Each is sent
anew: with a new id and time and no receives; in a FIFO queue it keeps its group.
"""

from __future__ import annotations

import contextvars
import threading
import time
from collections.abc import Iterator, Mapping
from typing import Any

import ministack.app
from ministack.core import iam_actions, iam_evaluator
from ministack.core.responses import get_region, new_uuid
from ministack.core.router import extract_access_key_id
from ministack.services import sqs

from local_account.hooks import around
from local_account.sqs.attributes import dlq_arn
from local_account.sqs.counting import note_moved
from local_account.sqs.denials import DENIED, denial
from local_account.sqs.move_tasks import Task, source_queue, tasks_of

RECEIVING = ("sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes")
MOST_PER_SECOND = 500
_BY_SQS = {"aws:CalledViaLast": "sqs.amazonaws.com", "aws:ViaAWSService": "true"}
_access_key: contextvars.ContextVar[str] = contextvars.ContextVar("access_key", default="")
_sources: dict[str, str] = {}  # TaskHandle -> SourceArn


def install() -> None:
    """Hook both actions, and who calls them; once per process."""
    sqs._HANDLERS.update(StartMessageMoveTask=_start, CancelMessageMoveTask=_cancel)

    @around(iam_actions, "extract_resource_arn")
    def extract(inner: Any, service: str, *rest: Any) -> Any:
        _method, _path, headers, body, *_ = rest
        if service != "sqs":
            return inner(service, *rest)
        _access_key.set(extract_access_key_id(headers, {}))
        handle = iam_actions._param(body, {}, "TaskHandle")
        return _sources.get(handle) or inner(service, *rest)


def _start(data: Mapping[str, Any], _url: str) -> dict[str, Any]:
    source = source_queue(data, "StartMessageMoveTask")
    arn = source["attributes"]["QueueArn"]
    named = str(data.get("DestinationArn") or "")
    destinations = [named] if named else list(_sources_of(arn))
    if not any(_sources_of(arn)) or sqs._queue_by_arn(destinations[0]) is None:
        message = "Source queue must be configured as a Dead Message Queue."  # (recorded)
        raise sqs._Err("InvalidParameterValueException", message)
    for action in RECEIVING:
        _require(action, arn)
    for each in destinations:
        _require("sqs:SendMessage", each)
    with sqs._queues_lock:
        if any(each["Status"] in ("RUNNING", "CANCELLING") for each in tasks_of(source)):
            message = "There is already a task running. Only one active task is allowed."
            raise sqs._Err("InvalidParameterValueException", message)
        sqs._refresh_counts(source)
        asked = ("DestinationArn", "MaxNumberOfMessagesPerSecond")
        task: Task = {
            "TaskHandle": new_uuid(),
            "Status": "RUNNING",
            "SourceArn": arn,
            **{name: data[name] for name in asked if data.get(name)},
            "ApproximateNumberOfMessagesMoved": 0,
            "ApproximateNumberOfMessagesToMove": int(
                source["attributes"]["ApproximateNumberOfMessages"]
            ),
            "StartedTimestamp": int(time.time() * 1000),
        }
        tasks_of(source).append(task)
    handle = str(task["TaskHandle"])
    _sources[handle] = arn
    run = contextvars.copy_context().run
    threading.Thread(target=run, args=(_carry_out, task, source), daemon=True).start()
    return {"TaskHandle": handle}


def _cancel(data: Mapping[str, Any], _url: str) -> dict[str, Any]:
    handle = str(data.get("TaskHandle") or "")
    source = source_queue({"SourceArn": _sources.get(handle)}, "CancelMessageMoveTask")
    task = next(each for each in tasks_of(source) if each.get("TaskHandle") == handle)
    task["Status"] = "CANCELLING"
    return {"ApproximateNumberOfMessagesMoved": task["ApproximateNumberOfMessagesMoved"]}


def _carry_out(task: Task, source: dict[str, Any]) -> None:
    gap = 1 / int(task.get("MaxNumberOfMessagesPerSecond") or MOST_PER_SECOND)
    try:
        while task["Status"] == "RUNNING" and _move_one(task, source):
            time.sleep(gap)
        task["Status"] = "COMPLETED" if task["Status"] == "RUNNING" else "CANCELLED"
    except sqs._Err as failed:
        code = sqs._QUERY_COMPAT_CODES.get(failed.code, failed.code)
        task.update(Status="FAILED", FailureReason=code)
    task.pop("TaskHandle")


def _move_one(task: Task, source: dict[str, Any]) -> bool:
    """Move one message; tell whether there was one."""
    with sqs._queues_lock:
        sqs._expire_retained(source)
        received = sqs._collect_msgs(source, 1, 30)
        if not received:
            return False
        (message,) = received
        arn = task.get("DestinationArn") or message["sys"].get("DeadLetterQueueSourceArn", "")
        destination = sqs._queue_by_arn(arn)
        if destination is None:
            raise sqs._Err("CouldNotDetermineMessageSource", "")
        _require("sqs:SendMessage", arn)
        sent = {
            "QueueUrl": destination["url"],
            "MessageBody": message["body"],
            "MessageAttributes": message["message_attributes"],
            "MessageGroupId": message["group_id"],
            **({"MessageDeduplicationId": message["id"]} if destination["is_fifo"] else {}),
        }
        sqs._act_send_message(sent, destination["url"])
        note_moved(destination["messages"][-1], task["SourceArn"])
        source["messages"] = [each for each in source["messages"] if each is not message]
        task["ApproximateNumberOfMessagesMoved"] += 1
    return True


def _require(action: str, queue_arn: str) -> None:
    """Raise the denial that the caller gets who lacks an action on a queue."""
    if not ministack.app.AUTH:
        return
    found = iam_evaluator.enforce(
        _access_key.get(), action, "sqs", get_region(), queue_arn, dict(_BY_SQS)
    )
    if found is not None:
        caller = getattr(found, "principal_arn", None) or iam_evaluator.caller_arn()
        by_queue = bool(getattr(found, "resource_policy_arn", None))
        explicit = getattr(found, "decision", "") == "Deny"
        said = denial(caller, action, queue_arn, by_queue=by_queue, explicit=explicit)
        raise sqs._Err(DENIED, said, 403)


def _sources_of(arn: str) -> Iterator[str]:
    for queue in list(sqs._queues.values()):
        if dlq_arn(queue["attributes"].get("RedrivePolicy")) == arn:
            yield queue["attributes"]["QueueArn"]
