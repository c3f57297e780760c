"""Counting what happens to queues, in front of MiniStack's handlers, pollers among the callers.

A message is noted once, in itself, whoever put it in the queue: API, EventBridge, SNS, Lambda. One
that comes noted by another queue was moved there, which SQS does not count as sent where it is a
dead letter. Of move tasks AWS says nothing: "Reported for each successful manual send" speaks
against counting them. So they count nowhere here, neither as sent to the destination, where they
look like messages handled twice, nor as received and deleted from the dead-letter queue, where they
hide letters that still arrive: what Mendq concludes must stand that.
https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-available-cloudwatch-metrics.html
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from ministack.services import sqs

from local_account.sqs import queue_metrics as metric
from local_account.sqs.move_tasks import put_back_tasks
from local_account.sqs.queue_metrics import QueueMetrics

Parameters = Mapping[str, Any]
Queue = dict[str, Any]
Handler = Callable[[Parameters, str], dict[str, Any]]
# Lambda's pollers ask with long polls of this length; MiniStack's asks each second.
# https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-scaling.html
POLL_SECONDS = 20
_ACCESSED = "local_account_accessed_at"
_IN = "local_account_in"
_SINCE = "local_account_since"
_RECEIVED_BEFORE = "local_account_received_before"


class Counting:
    """Hooks that write into one QueueMetrics; the clock is theirs to read."""

    def __init__(self, metrics: QueueMetrics, clock: Callable[[], float] = time.time) -> None:
        self._metrics = metrics
        self._clock = clock
        self._polled_since: dict[str, float] = {}

    def install(self) -> None:
        """Hook everything, inside what refuses calls; once per process."""
        sqs._get_q = self._noting_access(sqs._get_q)
        sqs._collect_msgs = self._noting_arrivals(sqs._collect_msgs)
        handlers = sqs._HANDLERS
        for name in ("SendMessage", "SendMessageBatch"):
            handlers[name] = self._counting_sent(handlers[name])
        handlers["ReceiveMessage"] = self._counting_received(handlers["ReceiveMessage"])
        handlers["DeleteMessage"] = self._counting_deleted(handlers["DeleteMessage"], _one)
        handlers["DeleteMessageBatch"] = self._counting_deleted(
            handlers["DeleteMessageBatch"], lambda answer: len(answer["Successful"])
        )
        sqs._receive_messages_for_esm = self._counting_polls(sqs._receive_messages_for_esm)
        sqs._delete_messages_for_esm = self._counting_polled(sqs._delete_messages_for_esm)

    def measure(self) -> None:
        """Measure every queue now, and let those that count nothing report zeros."""
        now = self._clock()
        for queue in sqs._queues.all_values():
            with sqs._queues_lock:
                self._note_arrivals(queue)
                created_at = float(queue["attributes"].get("CreatedTimestamp") or now)
                if not metric.is_active(
                    has_messages=bool(queue["messages"]),
                    accessed_at=queue.get(_ACCESSED, created_at),
                    now=now,
                ):
                    continue
                measured = _measured(queue, now)
            arn = queue["attributes"]["QueueArn"]
            self._metrics.measure(arn, measured, now)
            for counted in metric.COUNTED:
                self._metrics.count(arn, counted, 0, now)

    def _noting_access(self, get: Callable[..., Queue]) -> Callable[..., Queue]:
        def getting(url: str, action: str | None = None) -> Queue:
            queue = get(url, action)
            queue[_ACCESSED] = self._clock()
            return queue

        return getting

    def _noting_arrivals(self, collect: Callable[..., list[Any]]) -> Callable[..., list[Any]]:
        def collecting(queue: Queue, *rest: Any) -> list[Any]:
            with sqs._queues_lock:
                self._note_arrivals(queue)
                return collect(queue, *rest)

        return collecting

    def _note_arrivals(self, queue: Queue) -> None:
        """Whatever arrives is appended, so that what is not noted yet stands at the end."""
        arn = queue["attributes"]["QueueArn"]
        sent = 0
        for message in reversed(queue["messages"]):
            noted = message.get(_IN)
            if noted == arn:
                break
            sqs._ensure_msg_fields(message)
            message[_IN] = arn
            message[_SINCE] = _moved_at(message, self._clock()) if noted else message["sent_at"]
            message[_RECEIVED_BEFORE] = message["receive_count"] if noted else 0
            sent += not noted
        if sent:
            self._count(queue, metric.SENT, sent)

    def _counting_sent(self, send: Handler) -> Handler:
        def sending(data: Parameters, url: str) -> dict[str, Any]:
            answer = send(data, url)
            with sqs._queues_lock:
                self._note_arrivals(_queue(data, url))
            return answer

        return sending

    def _counting_received(
        self, receive: Callable[[Parameters, str], Awaitable[dict[str, Any]]]
    ) -> Callable[[Parameters, str], Awaitable[dict[str, Any]]]:
        async def receiving(data: Parameters, url: str) -> dict[str, Any]:
            queue = _queue(data, url)
            answer = await receive(data, url)
            received = len(answer.get("Messages", ()))
            self._count(
                queue, metric.RECEIVED if received else metric.EMPTY_RECEIVES, received or 1
            )
            return answer

        return receiving

    def _counting_deleted(
        self, delete: Handler, how_many: Callable[[dict[str, Any]], int]
    ) -> Handler:
        """Every delete that answers 200, duplicates among them."""

        def deleting(data: Parameters, url: str) -> dict[str, Any]:
            answer = delete(data, url)
            self._count(_queue(data, url), metric.DELETED, how_many(answer))
            return answer

        return deleting

    def _counting_polls(self, receive: Callable[..., list[Any]]) -> Callable[..., list[Any]]:
        def polling(queue_url: str, most: int) -> list[Any]:
            received = receive(queue_url, most)
            now = self._clock()
            if received:
                self._polled_since.pop(queue_url, None)
                self._count(sqs._get_q(queue_url), metric.RECEIVED, len(received))
            elif now - self._polled_since.setdefault(queue_url, now) >= POLL_SECONDS:
                self._polled_since[queue_url] = now
                self._count(sqs._get_q(queue_url), metric.EMPTY_RECEIVES, 1)
            return received

        return polling

    def _counting_polled(self, delete: Callable[..., None]) -> Callable[..., None]:
        def deleting(queue_url: str, receipt_handles: set[str]) -> None:
            delete(queue_url, receipt_handles)
            if receipt_handles:
                self._count(sqs._get_q(queue_url), metric.DELETED, len(receipt_handles))

        return deleting

    def _count(self, queue: Queue, name: str, how_many: int) -> None:
        self._metrics.count(queue["attributes"]["QueueArn"], name, how_many, self._clock())


def note_moved(message: dict[str, Any], from_arn: str) -> None:
    """Say of a message that has just been put in a queue that it comes from another one."""
    message[_IN] = from_arn


def put_back_arrivals(queue: Queue, seconds: float) -> None:
    """Have a queue's messages and move tasks be so much older; leases that run go on."""
    put_back_tasks(queue, seconds)
    for message in queue["messages"]:
        for name in ("sent_at", "enqueued_at", _SINCE):
            if name in message:
                message[name] -= seconds
        told = message.get("sys", {})
        if "SentTimestamp" in told:
            told["SentTimestamp"] = str(int(told["SentTimestamp"]) - int(seconds * 1000))


def _queue(data: Parameters, url: str) -> Queue:
    queue: Queue = sqs._get_q(data.get("QueueUrl") or url)
    return queue


def _moved_at(message: dict[str, Any], now: float) -> float:
    """What is delayed where it is moved to has come all the same."""
    return float(min(message["visible_at"], now))


def _one(_answer: dict[str, Any]) -> int:
    return 1


def _measured(queue: Queue, now: float) -> dict[str, float]:
    sqs._refresh_counts(queue)
    attributes = queue["attributes"]
    arrivals = [(each[_SINCE], _receives_here(each)) for each in queue["messages"] if _IN in each]
    return {
        **({metric.GROUPS_IN_FLIGHT: _groups_in_flight(queue, now)} if queue["is_fifo"] else {}),
        metric.VISIBLE: float(attributes["ApproximateNumberOfMessages"]),
        metric.NOT_VISIBLE: float(attributes["ApproximateNumberOfMessagesNotVisible"]),
        metric.DELAYED: float(attributes["ApproximateNumberOfMessagesDelayed"]),
        metric.OLDEST_AGE: metric.oldest_age_seconds(arrivals, is_fifo=queue["is_fifo"], now=now),
    }


def _receives_here(message: Queue) -> int:
    """A dead letter keeps its count; what it was received elsewhere makes it no poison here."""
    return int(message["receive_count"]) - int(message.get(_RECEIVED_BEFORE, 0))


def _groups_in_flight(queue: Queue, now: float) -> float:
    """What was never received and is not visible is delayed."""
    held = (
        each for each in queue["messages"] if each["receive_count"] and each["visible_at"] > now
    )
    return float(len({each.get("group_id") for each in held}))
