"""ListMessageMoveTasks of tasks that somebody put here: none is started, and none moves anything.

POST /_mendq/move-task with {"queue_arn": .., "status": "RUNNING"}, and a "destination_arn" if it
has one, puts one out of a queue, or changes its status. StartMessageMoveTask and
CancelMessageMoveTask are refused as no action of SQS.
https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_ListMessageMoveTasks.html
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping
from typing import Any

from ministack.core import iam_actions
from ministack.services import sqs

from local_account.hooks import around
from local_account.switch import SwitchRefused

STATUSES = ("RUNNING", "COMPLETED", "CANCELLING", "CANCELLED", "FAILED")
MOST_LISTED = 10
NO_SOURCE = (  # (recorded)
    "ResourceNotFoundException",
    "The resource that you specified for the SourceArn parameter doesn't exist.",
    404,
)
_TASKS = "local_account_move_tasks"
Task = dict[str, Any]


def install() -> None:
    """Hook the action, and name its queue to IAM by the ARN; once per process."""
    sqs._HANDLERS["ListMessageMoveTasks"] = list_message_move_tasks

    @around(iam_actions, "extract_resource_arn")
    def extract(inner: Any, service: str, *rest: Any) -> Any:
        _method, _path, _headers, body, *_ = rest
        source = iam_actions._param(body, {}, "SourceArn") if service == "sqs" else ""
        return source or inner(service, *rest)


def tasks_of(queue: dict[str, Any]) -> list[Task]:
    """The tasks out of a queue, oldest first; they are gone when the queue is."""
    tasks: list[Task] = queue.setdefault(_TASKS, [])
    return tasks


def source_queue(data: Mapping[str, Any], action: str) -> dict[str, Any]:
    """The queue that SourceArn names, its policy asked for `action`."""
    queue = sqs._queue_by_arn(str(data.get("SourceArn") or ""))
    if queue is None:
        raise sqs._Err(*NO_SOURCE)
    source: dict[str, Any] = sqs._get_q(queue["url"], f"sqs:{action}")
    return source


def list_message_move_tasks(data: Mapping[str, Any], _url: str) -> dict[str, Any]:
    """ListMessageMoveTasks: the newest first, one of them unless more are asked for."""
    most = min(int(data.get("MaxResults") or 1), MOST_LISTED)
    tasks = tasks_of(source_queue(data, "ListMessageMoveTasks"))[::-1][:most]
    return {"Results": [dict(each) for each in tasks]}


def put_move_task(asked: object) -> Mapping[str, Any]:
    """Put a task out of a queue there, or change the newest one's status; raise SwitchRefused."""
    given = asked if isinstance(asked, Mapping) else {}
    queue = sqs._queue_by_arn(str(given.get("queue_arn", "")))
    if queue is None or given.get("status") not in STATUSES:
        raise SwitchRefused(f'send {{"queue_arn": .., "status": one of {", ".join(STATUSES)}}}')
    tasks = tasks_of(queue)
    if not tasks or tasks[-1]["Status"] not in ("RUNNING", "CANCELLING"):
        tasks.append(_new_task(queue))
    tasks[-1]["Status"] = given["status"]
    if destination := given.get("destination_arn"):
        tasks[-1]["DestinationArn"] = destination
    if given["status"] != "RUNNING":
        tasks[-1].pop("TaskHandle", None)
    return tasks[-1]


def _new_task(queue: dict[str, Any]) -> Task:
    sqs._refresh_counts(queue)
    return {
        "TaskHandle": str(uuid.uuid4()),
        "Status": "RUNNING",
        "SourceArn": queue["attributes"]["QueueArn"],
        "ApproximateNumberOfMessagesMoved": 0,
        "ApproximateNumberOfMessagesToMove": int(
            queue["attributes"]["ApproximateNumberOfMessages"]
        ),
        "StartedTimestamp": int(time.time() * 1000),
    }
