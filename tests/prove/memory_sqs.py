"""SQS in memory, below botocore's parsing: queues, and other people's tasks between them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import md5
from random import Random

from tests.account.account import ACCOUNT, REGION
from tests.prove.memory_account import ARNS, Asked, RefusedCallError
from tests.prove.memory_account import Item as Answer
from tests.prove.memory_queue import MemoryQueue, Message


@dataclass
class Task:
    """Somebody else's message movement task: it moves what it finds, and marks nothing."""

    ends_at: float
    per_second: int

    def document(self, now: float) -> Answer:
        return {"Status": "RUNNING" if now < self.ends_at else "COMPLETED"}


@dataclass
class MemorySqs:
    """`into` counts what was sent on by queue, `sent` by queue and body, `happened` what else."""

    random: Random
    now: float
    fails: float = 0.0
    queues: dict[str, MemoryQueue] = field(default_factory=dict)
    tasks: dict[str, Task] = field(default_factory=dict)
    into: Counter[str] = field(default_factory=Counter)
    sent: Counter[tuple[str, str]] = field(default_factory=Counter)
    happened: Counter[str] = field(default_factory=Counter)

    def make(self, name: str, **attributes: str) -> MemoryQueue:
        attributes["CreatedTimestamp"] = str(int(self.now))
        queue = MemoryQueue(f"{ARNS}{name}", self.random, attributes, happened=self.happened)
        self.queues[name] = queue
        return queue

    def task_of(self, queue: MemoryQueue) -> Task | None:
        """The one that runs."""
        task = self.tasks.get(queue.arn)
        return task if task is not None and self.now < task.ends_at else None

    def somebody_moves(self, queue: MemoryQueue, seconds: float, per_second: int) -> None:
        """Start a message movement task that ends by itself."""
        self.tasks[queue.arn] = Task(self.now + seconds, per_second)
        self.happened["tasks_of_others"] += 1

    def tasks_move(self, seconds: float) -> None:
        """Let this much time pass."""
        for queue in list(self.queues.values()):
            if (task := self.task_of(queue)) is None:
                continue
            for message in queue.take_visible(int(seconds * task.per_second), self.now):
                self.queues[message.source_arn.rpartition(":")[2]].put(
                    message.copy_unread(self.now), self.now
                )
                self.happened["moved_by_others"] += 1

    def _queue(self, asked: Asked) -> MemoryQueue:
        name = str(asked["QueueUrl"]).rpartition("/")[2]
        if name not in self.queues:
            raise RefusedCallError("AWS.SimpleQueueService.NonExistentQueue")
        return self.queues[name]

    def _create_queue(self, asked: Asked) -> Answer:
        if asked["QueueName"] not in self.queues:
            self.make(asked["QueueName"], **asked.get("Attributes", {}))
        return {"QueueUrl": f"https://sqs/{ACCOUNT}/{asked['QueueName']}"}

    def _get_queue_attributes(self, asked: Asked) -> Answer:
        queue = self._queue(asked)
        return {"Attributes": {**queue.attributes, **queue.counts(self.now)}}

    def _list_queue_tags(self, asked: Asked) -> Answer:
        return {"Tags": self._queue(asked).tags}

    def _list_dead_letter_source_queues(self, asked: Asked) -> Answer:
        target = self._queue(asked)
        names = [name for name, queue in self.queues.items() if queue.dlq is target]
        return {
            "queueUrls": [f"https://sqs.{REGION}.amazonaws.com/{ACCOUNT}/{name}" for name in names]
        }

    def _receive_message(self, asked: Asked) -> Answer:
        queue = self._queue(asked)
        received = queue.receive(asked["MaxNumberOfMessages"], self.now, asked["VisibilityTimeout"])
        self.happened["empty_receives"] += not received
        return {"Messages": [_as_received(message) for message in received]} if received else {}

    def _send_message_batch(self, asked: Asked) -> Answer:
        queue = self._queue(asked)
        answer: Answer = {"Successful": [], "Failed": []}
        beside = queue.dlq is not None and self.task_of(queue.dlq) is not None
        self.happened["sent_beside_a_task"] += beside
        for entry in asked["Entries"]:
            if self.random.random() < self.fails:
                self.happened["sends_refused_by_sqs"] += 1
                failed = {"Id": entry["Id"], "Code": "InternalError", "SenderFault": False}
                answer["Failed"].append(failed)
                continue
            answer["Successful"].append(self._send_entry(entry, queue))
        return answer

    def _send_entry(self, entry: Asked, queue: MemoryQueue) -> Answer:
        body = entry["MessageBody"]
        group = entry.get("MessageGroupId", "")
        message = Message(body, self.now, entry.get("MessageAttributes", {}), group)
        sent = queue.put(message, self.now, entry.get("MessageDeduplicationId", ""))
        self.into[queue.name] += sent == message.message_id
        self.sent[queue.name, body] += sent == message.message_id
        digest = md5(body.encode(), usedforsecurity=False).hexdigest()
        return {"Id": entry["Id"], "MessageId": sent, "MD5OfMessageBody": digest}

    def _delete_message(self, asked: Asked) -> Answer:
        if not self._queue(asked).delete(asked["ReceiptHandle"], self.now):
            raise RefusedCallError("InvalidParameterValue")
        return {}

    def _change_message_visibility(self, asked: Asked) -> Answer:
        seconds = asked["VisibilityTimeout"]
        if not self._queue(asked).hide(asked["ReceiptHandle"], self.now, seconds):
            raise RefusedCallError("AWS.SimpleQueueService.MessageNotInflight")
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
            except RefusedCallError as error:
                answer["Failed"].append({"Id": entry["Id"], **error.document["Error"]})
        return answer

    def _list_message_move_tasks(self, asked: Asked) -> Answer:
        task = self.tasks.get(asked["SourceArn"])
        return {"Results": [task.document(self.now)] if task else []}


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
