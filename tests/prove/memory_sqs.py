"""SQS in memory, below botocore's parsing: queues, and the move tasks between them.

https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_StartMessageMoveTask.html
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from hashlib import md5
from random import Random
from typing import Any

from tests.functions.aws.conftest import ACCOUNT, REGION
from tests.prove.memory_queue import MemoryQueue, Message

# How long a cancel takes, at most.
CANCEL_SECONDS = 20.0
ACTIVE = ("RUNNING", "CANCELLING")
_ARNS = f"arn:aws:sqs:{REGION}:{ACCOUNT}:"
Asked = Mapping[str, Any]
Answer = dict[str, Any]


class Refuses(Exception):
    """SQS's answer with this code."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass
class Task:
    """`due` are letters of which the rate's seconds have come, in parts."""

    handle: str
    started_at: float
    per_second: int
    status: str = "RUNNING"
    moved: int = 0
    due: float = 0.0
    ends_at: float | None = None

    def document(self, queue_arn: str) -> Answer:
        told = {"TaskHandle": self.handle} if self.status == "RUNNING" else {}
        return told | {
            "Status": self.status,
            "SourceArn": queue_arn,
            "MaxNumberOfMessagesPerSecond": self.per_second,
            "ApproximateNumberOfMessagesMoved": self.moved,
            "StartedTimestamp": int(self.started_at * 1000),
        }


@dataclass
class MemorySqs:
    """`into` counts what was sent on, by queue; `happened` what else is worth a figure."""

    random: Random
    now: float
    fails: float = 0.0
    queues: dict[str, MemoryQueue] = field(default_factory=dict)
    tasks: dict[str, list[Task]] = field(default_factory=dict)
    into: Counter[str] = field(default_factory=Counter)
    happened: Counter[str] = field(default_factory=Counter)

    def make(self, name: str, **attributes: str) -> MemoryQueue:
        queue = MemoryQueue(f"{_ARNS}{name}", self.random, attributes, happened=self.happened)
        self.queues[name] = queue
        return queue

    def answer(self, operation: str, asked: Asked) -> Answer:
        """Raises Refuses."""
        named = re.sub(r"(?<!^)([A-Z])", r"_\1", operation).lower()
        does: Callable[[Asked], Answer] = getattr(self, f"_{named}")
        return does(asked)

    def task_of(self, queue: MemoryQueue) -> Task | None:
        """The one that runs."""
        tasks = self.tasks.get(queue.arn, [])
        return next((each for each in tasks if each.status in ACTIVE), None)

    def tasks_move(self, seconds: float) -> None:
        """So much time has passed up to now; a cancel lets a few more through."""
        for queue in list(self.queues.values()):
            if task := self.task_of(queue):
                self._move(task, queue, seconds)

    def _move(self, task: Task, queue: MemoryQueue, seconds: float) -> None:
        task.due += seconds * task.per_second
        letters = queue.take_visible(int(task.due), self.now)
        task.due -= int(task.due)
        for each in letters:
            name = each.source_arn.rpartition(":")[2]
            self.queues[name].put(each.copied(self.now), self.now)
            self.into[name] += 1
            self.happened["moved_by_tasks"] += 1
        task.moved += len(letters)
        if task.status == "CANCELLING" and task.ends_at is not None and self.now >= task.ends_at:
            task.status = "CANCELLED"
        elif task.status == "RUNNING" and not queue.messages:
            task.status = "COMPLETED"

    def _queue(self, asked: Asked) -> MemoryQueue:
        name = str(asked["QueueUrl"]).rpartition("/")[2]
        if name not in self.queues:
            raise Refuses("AWS.SimpleQueueService.NonExistentQueue", "There is none.")
        return self.queues[name]

    def _create_queue(self, asked: Asked) -> Answer:
        self.make(asked["QueueName"], **asked.get("Attributes", {}))
        return {"QueueUrl": f"https://sqs/{ACCOUNT}/{asked['QueueName']}"}

    def _get_queue_attributes(self, asked: Asked) -> Answer:
        queue = self._queue(asked)
        return {"Attributes": {**queue.attributes, **queue.counts(self.now)}}

    def _list_queue_tags(self, asked: Asked) -> Answer:
        return {"Tags": self._queue(asked).tags}

    def _list_dead_letter_source_queues(self, asked: Asked) -> Answer:
        target = self._queue(asked)
        names = [name for name, each in self.queues.items() if each.dead_letters is target]
        return {
            "queueUrls": [f"https://sqs.{REGION}.amazonaws.com/{ACCOUNT}/{name}" for name in names]
        }

    def _receive_message(self, asked: Asked) -> Answer:
        queue = self._queue(asked)
        received = queue.receive(asked["MaxNumberOfMessages"], self.now, asked["VisibilityTimeout"])
        return {"Messages": [_as_received(each) for each in received]} if received else {}

    def _send_message_batch(self, asked: Asked) -> Answer:
        queue = self._queue(asked)
        answer: Answer = {"Successful": [], "Failed": []}
        for entry in asked["Entries"]:
            if self.random.random() < self.fails:
                self.happened["sends_refused_by_sqs"] += 1
                failed = {"Id": entry["Id"], "Code": "InternalError", "SenderFault": False}
                answer["Failed"].append(failed)
                continue
            answer["Successful"].append(self._sent(entry, queue))
        return answer

    def _sent(self, entry: Asked, queue: MemoryQueue) -> Answer:
        body, group = entry["MessageBody"], entry.get("MessageGroupId", "")
        message = Message(body, self.now, entry.get("MessageAttributes", {}), group)
        sent = queue.put(message, self.now, entry.get("MessageDeduplicationId", ""))
        self.into[queue.name] += sent == message.message_id
        digest = md5(body.encode(), usedforsecurity=False).hexdigest()
        return {"Id": entry["Id"], "MessageId": sent, "MD5OfMessageBody": digest}

    def _delete_message(self, asked: Asked) -> Answer:
        if not self._queue(asked).delete(asked["ReceiptHandle"], self.now):
            raise Refuses("InvalidParameterValue", "The receipt handle has expired.")
        return {}

    def _change_message_visibility(self, asked: Asked) -> Answer:
        seconds = asked["VisibilityTimeout"]
        if not self._queue(asked).hide(asked["ReceiptHandle"], self.now, seconds):
            raise Refuses("AWS.SimpleQueueService.MessageNotInflight", "It is not in flight.")
        return {}

    def _delete_message_batch(self, asked: Asked) -> Answer:
        return self._each(asked, self._delete_message)

    def _change_message_visibility_batch(self, asked: Asked) -> Answer:
        return self._each(asked, self._change_message_visibility)

    def _each(self, asked: Asked, does: Callable[[Asked], Answer]) -> Answer:
        answer: Answer = {"Successful": [], "Failed": []}
        for entry in asked["Entries"]:
            try:
                does({**entry, "QueueUrl": asked["QueueUrl"]})
                answer["Successful"].append({"Id": entry["Id"]})
            except Refuses as error:
                answer["Failed"].append({"Id": entry["Id"], "Code": error.code})
        return answer

    def _start_message_move_task(self, asked: Asked) -> Answer:
        queue = self.queues[asked["SourceArn"].rpartition(":")[2]]
        if queue.is_fifo:
            self.happened["tasks_asked_for_a_fifo_queue"] += 1
            raise Refuses("AWS.SimpleQueueService.UnsupportedOperation", "Not of FIFO queues.")
        if self.task_of(queue):
            self.happened["second_tasks_asked_for"] += 1
            raise Refuses("InvalidParameterValue", "There is already a task running.")
        tasks = self.tasks.setdefault(queue.arn, [])
        handle = f"handle-{queue.name}-{len(tasks)}"
        tasks.append(Task(handle, self.now, asked["MaxNumberOfMessagesPerSecond"]))
        self.happened["tasks_started"] += 1
        return {"TaskHandle": handle}

    def _cancel_message_move_task(self, asked: Asked) -> Answer:
        running = (each for tasks in self.tasks.values() for each in tasks)
        for task in running:
            if task.handle == asked["TaskHandle"] and task.status == "RUNNING":
                task.status = "CANCELLING"
                task.ends_at = self.now + self.random.uniform(1, CANCEL_SECONDS)
                self.happened["tasks_cancelled"] += 1
                return {"ApproximateNumberOfMessagesMoved": task.moved}
        raise Refuses("ResourceNotFoundException", "Task does not exist.")

    def _list_message_move_tasks(self, asked: Asked) -> Answer:
        tasks = self.tasks.get(asked["SourceArn"], [])
        return {"Results": [each.document(asked["SourceArn"]) for each in reversed(tasks[-10:])]}


def _as_received(message: Message) -> Answer:
    system = {
        "SentTimestamp": str(int(message.sent_at * 1000)),
        "ApproximateReceiveCount": str(message.receives),
        "DeadLetterQueueSourceArn": message.source_arn,
        "MessageGroupId": message.group,
    }
    return {
        "MessageId": message.message_id,
        "ReceiptHandle": message.handle,
        "Body": message.body,
        "Attributes": {name: text for name, text in system.items() if text},
        "MessageAttributes": dict(message.attributes),
    }
