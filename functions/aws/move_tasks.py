"""SQS's own move tasks out of one dead-letter queue: the newest, a start, a cancel.

https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_StartMessageMoveTask.html
https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_CancelMessageMoveTask.html
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from functions.aws.clients import Clients
from functions.aws.errors import code_of, looking
from functions.healing.error_codes import canonical
from functions.healing.redrive_drive import Refused
from functions.healing.redrive_look import MoveTask, TaskStatus

# As many as SQS lists.
MOST_LISTED = 10
# Of a queue that is nobody's dead-letter queue, or is gone.
_NO_TASKS = frozenset({"ResourceNotFound", "NonExistentQueue"})


def newest_task(clients: Clients, dead_letter_arn: str) -> MoveTask | None:
    """The one that runs, else the one that was started last. Raises FactsUnavailable."""
    with looking(f"move tasks of {dead_letter_arn}"):
        try:
            answer = clients.sqs.list_message_move_tasks(
                SourceArn=dead_letter_arn, MaxResults=MOST_LISTED
            )
        except ClientError as error:
            if canonical(code_of(error)) in _NO_TASKS:
                return None
            raise
        tasks = [_task(each) for each in answer.get("Results", [])]
    return max(tasks, key=lambda each: (each.is_active, each.started_at), default=None)


def start_task(clients: Clients, dead_letter_arn: str, per_second: int) -> str | Refused:
    """The task's handle. Without a destination each letter goes to the queue that it died in.

    Asked once: there is no token by which SQS would know a second request for the first.
    """
    try:
        answer = clients.sqs_for_writing.start_message_move_task(
            SourceArn=dead_letter_arn, MaxNumberOfMessagesPerSecond=per_second
        )
    except (ClientError, BotoCoreError) as error:
        return Refused(f"the move task was not started: {error}")
    return answer.get("TaskHandle", "")


def cancel_task(clients: Clients, handle: str) -> Refused | None:
    """None where SQS took it: the task goes on for a moment, and what it moved stays moved."""
    try:
        clients.sqs.cancel_message_move_task(TaskHandle=handle)
    except (ClientError, BotoCoreError) as error:
        return Refused(f"the move task was not cancelled: {error}")
    return None


def _task(entry: Mapping[str, Any]) -> MoveTask:
    """A status that SQS did not have when this was written is one that runs: nobody acts on it."""
    known = {each.value for each in TaskStatus}
    status = entry.get("Status", "")
    return MoveTask(
        TaskStatus(status) if status in known else TaskStatus.RUNNING,
        datetime.fromtimestamp(entry.get("StartedTimestamp", 0) / 1000, UTC),
        moved=entry.get("ApproximateNumberOfMessagesMoved", 0),
        handle=entry.get("TaskHandle", ""),
        failure=entry.get("FailureReason", ""),
        per_second=entry.get("MaxNumberOfMessagesPerSecond"),
        destination_arn=entry.get("DestinationArn", ""),
    )
