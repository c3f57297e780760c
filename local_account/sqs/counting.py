"""CloudWatch metrics of queues in namespace AWS/SQS: one value per minute, as SQS reports them.

A message can reach a queue through the API, EventBridge, SNS or a Lambda. Each message is therefore
counted by a mark that is stored in the message itself, once per queue. A message that already
carries another queue's mark was moved from there, and SQS does not count a move as a send.
https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-available-cloudwatch-metrics.html
"""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from ministack.services import sqs

from local_account.hooks import around

Queue = dict[str, Any]
NAMESPACE = "AWS/SQS"
SENT = "NumberOfMessagesSent"
RECEIVED = "NumberOfMessagesReceived"
DELETED = "NumberOfMessagesDeleted"
EMPTY_RECEIVES = "NumberOfEmptyReceives"
DEDUPLICATED = "NumberOfDeduplicatedSentMessages"  # only of FIFO queues that dropped a duplicate
# SQS reports these with the value 0 too.
COUNTED = (SENT, RECEIVED, DELETED, EMPTY_RECEIVES)
OLDEST_AGE = "ApproximateAgeOfOldestMessage"
GROUPS_IN_FLIGHT = "ApproximateNumberOfGroupsWithInflightMessages"  # only of FIFO queues
# Metric -> the queue attribute that has its value.
_ATTRIBUTE_OF_METRIC = {
    "ApproximateNumberOfMessagesVisible": "ApproximateNumberOfMessages",
    "ApproximateNumberOfMessagesNotVisible": "ApproximateNumberOfMessagesNotVisible",
    "ApproximateNumberOfMessagesDelayed": "ApproximateNumberOfMessagesDelayed",
}
MINUTE_SECONDS = 60
# A standard queue's message that was received more often no longer counts as the oldest.
POISON_AFTER_RECEIVES = 3
# Lambda's event source mappings use long polls of this length. MiniStack's poll once a second.
# https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-scaling.html
POLL_SECONDS = 20
# Keys of the marks in a message: the ARN of the queue that it is in, the time since which it is
# there (seconds since the epoch), and its receive count when it came.
_MARK_QUEUE = "local_account_in"
_MARK_SINCE = "local_account_since"
_MARK_RECEIVED_BEFORE = "local_account_received_before"


class Counting:
    """Counts the calls and messages of all queues, and samples the queues. Thread-safe."""

    def __init__(self) -> None:
        # (queue ARN, metric) -> start of the minute (seconds since the epoch) -> value
        self._values: dict[tuple[str, str], dict[float, float]] = defaultdict(dict)
        # Queue URL -> when the mapping's current run of empty polls began
        self._polled_since: dict[str, float] = {}
        self._lock = threading.Lock()

    def install(self) -> None:
        """Make MiniStack count the messages that are sent, received and deleted.

        Call this once per process, after `messages.install`, which replaces the handlers that are
        counted here. A refused call raises an error and is not counted.
        """
        self._count_polls()

        @around(sqs, "_collect_msgs")
        def collect(inner: Any, queue: Queue, *rest: Any) -> Any:
            with sqs._queues_lock:
                self._mark_arrivals(queue)
                return inner(queue, *rest)

        @around(sqs._HANDLERS, "SendMessage", "SendMessageBatch")
        def send(inner: Any, data: Mapping[str, Any], url: str) -> Any:
            queue = _queue(data, url)
            sequence_before = queue["fifo_seq"]
            answer = inner(data, url)
            with sqs._queues_lock:
                self._mark_arrivals(queue)
            if queue["is_fifo"]:
                stored = queue["fifo_seq"] - sequence_before
                dropped = _successes(answer) - stored
                if dropped:
                    self._count(queue, DEDUPLICATED, dropped)
            return answer

        @around(sqs._HANDLERS, "ReceiveMessage")
        async def receive(inner: Any, data: Mapping[str, Any], url: str) -> Any:
            queue = _queue(data, url)
            answer = await inner(data, url)
            messages = len(answer.get("Messages", ()))
            if messages:
                self._count(queue, RECEIVED, messages)
            else:
                self._count(queue, EMPTY_RECEIVES, 1)
            return answer

        @around(sqs._HANDLERS, "DeleteMessage", "DeleteMessageBatch")
        def delete(inner: Any, data: Mapping[str, Any], url: str) -> Any:
            """Count every delete that succeeds. A repeated delete succeeds too."""
            answer = inner(data, url)
            self._count(_queue(data, url), DELETED, _successes(answer))
            return answer

    def _count_polls(self) -> None:
        """Count what event source mappings receive and delete, which they do inside MiniStack."""

        @around(sqs, "_receive_messages_for_esm")
        def poll(inner: Any, queue_url: str, most: int) -> Any:
            messages = inner(queue_url, most)
            now = time.time()
            if messages:
                self._polled_since.pop(queue_url, None)
                self._count(sqs._get_q(queue_url), RECEIVED, len(messages))
            elif now - self._polled_since.setdefault(queue_url, now) >= POLL_SECONDS:
                self._polled_since[queue_url] = now
                self._count(sqs._get_q(queue_url), EMPTY_RECEIVES, 1)
            return messages

        @around(sqs, "_delete_messages_for_esm")
        def delete(inner: Any, queue_url: str, receipt_handles: set[str]) -> None:
            inner(queue_url, receipt_handles)
            if receipt_handles:
                self._count(sqs._get_q(queue_url), DELETED, len(receipt_handles))

    def measure(self, minute: float | None = None) -> None:
        """Sample every queue now, and add a zero for each counter that counted nothing.

        Args:
            minute: Start of the minute that gets the values, in seconds since the epoch. The
                current minute if None.
        """
        now = time.time()
        minute = _minute(now) if minute is None else minute
        for queue in sqs._queues.all_values():
            with sqs._queues_lock:
                self._mark_arrivals(queue)
                samples = _sample(queue, now)
            with self._lock:
                for metric, value in samples.items():
                    self._values[_arn(queue), metric][minute] = value
                for metric in COUNTED:
                    self._values[_arn(queue), metric].setdefault(minute, 0.0)

    def series(self, account: str, region: str) -> dict[tuple[str, str], list[dict[str, Any]]]:
        """Return the data points of an account and Region, as MiniStack stores metrics.

        The keys are pairs of queue name and metric.
        """
        prefix = f"arn:aws:sqs:{region}:{account}:"
        series: dict[tuple[str, str], list[dict[str, Any]]] = {}
        with self._lock:
            values_by_key = {key: sorted(values.items()) for key, values in self._values.items()}
        for (arn, metric), values in values_by_key.items():
            if not arn.startswith(prefix):
                continue
            name = arn.removeprefix(prefix)
            series[name, metric] = [
                {
                    "Timestamp": minute,
                    "Unit": "Seconds" if metric == OLDEST_AGE else "Count",
                    "Dimensions": {"QueueName": name},
                    "Value": value,
                }
                for minute, value in values
            ]
        return series

    def put_back(self, queue: Queue, seconds: int) -> None:
        """Make a queue's metrics and messages older by `seconds`, which must be whole minutes.

        The queue's current state is sampled first, so that the sample becomes older too.
        """
        self.measure()
        with self._lock:
            for key, values in self._values.items():
                if key[0] == _arn(queue):
                    self._values[key] = {
                        minute - seconds: value for minute, value in values.items()
                    }
        for message in queue["messages"]:
            for time_key in {"sent_at", "enqueued_at", _MARK_SINCE} & message.keys():
                message[time_key] -= seconds
            if sent := message.get("sys", {}).get("SentTimestamp"):
                message["sys"]["SentTimestamp"] = str(int(sent) - seconds * 1000)

    def _mark_arrivals(self, queue: Queue) -> None:
        """Mark the messages that came since the last call, and count those that were sent.

        MiniStack appends messages, so all unmarked messages are at the end of the list.
        """
        sent = 0
        for message in reversed(queue["messages"]):
            previous_queue = message.get(_MARK_QUEUE)
            if previous_queue == _arn(queue):
                break
            sqs._ensure_msg_fields(message)
            message[_MARK_QUEUE] = _arn(queue)
            if previous_queue:
                # A message can be delayed in the queue that it is moved to. It is there already.
                message[_MARK_SINCE] = float(min(message["visible_at"], time.time()))
                message[_MARK_RECEIVED_BEFORE] = message["receive_count"]
            else:
                message[_MARK_SINCE] = message["sent_at"]
                message[_MARK_RECEIVED_BEFORE] = 0
                sent += 1
        if sent:
            self._count(queue, SENT, sent)

    def _count(self, queue: Queue, metric: str, amount: int) -> None:
        """Add `amount` to the metric's value of the current minute."""
        minute = _minute(time.time())
        with self._lock:
            values = self._values[_arn(queue), metric]
            values[minute] = values.get(minute, 0.0) + amount


def _minute(at_seconds: float) -> float:
    return float(at_seconds // MINUTE_SECONDS * MINUTE_SECONDS)


def _arn(queue: Queue) -> str:
    return str(queue["attributes"]["QueueArn"])


def _queue(data: Mapping[str, Any], url: str) -> Queue:
    queue: Queue = sqs._get_q(data.get("QueueUrl") or url)
    return queue


def _successes(answer: Mapping[str, Any]) -> int:
    """Return how many messages a call handled. Only a batch's answer has a list of them."""
    if "Successful" in answer:
        return len(answer["Successful"])
    return 1


def _sample(queue: Queue, now: float) -> dict[str, float]:
    """Return the current value of each metric that describes the queue's state."""
    sqs._refresh_counts(queue)
    samples = {
        metric: float(queue["attributes"][attribute])
        for metric, attribute in _ATTRIBUTE_OF_METRIC.items()
    }
    arrivals = [
        message[_MARK_SINCE]
        for message in queue["messages"]
        if _MARK_QUEUE in message and _counts_as_oldest(message, is_fifo=queue["is_fifo"])
    ]
    samples[OLDEST_AGE] = float(int(now - min(arrivals))) if arrivals else 0.0
    if queue["is_fifo"]:
        # A message that is not visible and was never received is delayed, not in flight.
        in_flight = [
            message
            for message in queue["messages"]
            if message["receive_count"] and message["visible_at"] > now
        ]
        samples[GROUPS_IN_FLIGHT] = float(len({message.get("group_id") for message in in_flight}))
    return samples


def _counts_as_oldest(message: Mapping[str, Any], *, is_fifo: bool) -> bool:
    """Return False if a standard queue's message was received more than three times there."""
    receives_here = message["receive_count"] - message.get(_MARK_RECEIVED_BEFORE, 0)
    return is_fifo or receives_here <= POISON_AFTER_RECEIVES
