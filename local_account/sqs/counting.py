"""The metrics of queues in namespace AWS/SQS: one value a minute of each, as SQS reports them.

A message is noted once, in itself, whoever put it in the queue: API, EventBridge, SNS, Lambda. One
that comes noted by another queue was moved there, which SQS does not count as sent.
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
SENT, RECEIVED = "NumberOfMessagesSent", "NumberOfMessagesReceived"
DELETED, EMPTY_RECEIVES = "NumberOfMessagesDeleted", "NumberOfEmptyReceives"
DEDUPLICATED = "NumberOfDeduplicatedSentMessages"  # of FIFO queues that drop any
COUNTED = (SENT, RECEIVED, DELETED, EMPTY_RECEIVES)
OLDEST_AGE = "ApproximateAgeOfOldestMessage"
GROUPS_IN_FLIGHT = "ApproximateNumberOfGroupsWithInflightMessages"  # of FIFO queues alone
_READ_OFF = {
    "ApproximateNumberOfMessagesVisible": "ApproximateNumberOfMessages",
    "ApproximateNumberOfMessagesNotVisible": "ApproximateNumberOfMessagesNotVisible",
    "ApproximateNumberOfMessagesDelayed": "ApproximateNumberOfMessagesDelayed",
}
MINUTE_SECONDS = 60
POISON_AFTER_RECEIVES = 3
# Lambda's pollers ask with long polls of this length; MiniStack's asks each second.
# https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-scaling.html
POLL_SECONDS = 20
_IN = "local_account_in"
_SINCE = "local_account_since"
_RECEIVED_BEFORE = "local_account_received_before"


class Counting:
    """Counts what happens to queues, and measures them; for several threads."""

    def __init__(self) -> None:
        self._values: dict[tuple[str, str], dict[float, float]] = defaultdict(dict)
        self._polled_since: dict[str, float] = {}
        self._lock = threading.Lock()

    def install(self) -> None:
        """Hook everything, inside what refuses calls; once per process."""
        self._count_polls()

        @around(sqs, "_collect_msgs")
        def collect(inner: Any, queue: Queue, *rest: Any) -> Any:
            with sqs._queues_lock:
                self._note_arrivals(queue)
                return inner(queue, *rest)

        @around(sqs._HANDLERS, "SendMessage", "SendMessageBatch")
        def send(inner: Any, data: Mapping[str, Any], url: str) -> Any:
            queue = _queue(data, url)
            before = queue["fifo_seq"]
            answer = inner(data, url)
            with sqs._queues_lock:
                self._note_arrivals(queue)
            kept = queue["fifo_seq"] - before
            if queue["is_fifo"] and (dropped := len(answer.get("Successful", "1")) - kept):
                self._count(queue, DEDUPLICATED, dropped)
            return answer

        @around(sqs._HANDLERS, "ReceiveMessage")
        async def receive(inner: Any, data: Mapping[str, Any], url: str) -> Any:
            queue = _queue(data, url)
            answer = await inner(data, url)
            received = len(answer.get("Messages", ()))
            self._count(queue, RECEIVED if received else EMPTY_RECEIVES, received or 1)
            return answer

        @around(sqs._HANDLERS, "DeleteMessage", "DeleteMessageBatch")
        def delete(inner: Any, data: Mapping[str, Any], url: str) -> Any:
            """Count every delete that answers 200, duplicates among them."""
            answer = inner(data, url)
            self._count(_queue(data, url), DELETED, len(answer.get("Successful", "1")))
            return answer

    def _count_polls(self) -> None:
        """What mappings receive and delete inside MiniStack."""

        @around(sqs, "_receive_messages_for_esm")
        def poll(inner: Any, queue_url: str, most: int) -> Any:
            received, now = inner(queue_url, most), time.time()
            if received:
                self._polled_since.pop(queue_url, None)
                self._count(sqs._get_q(queue_url), RECEIVED, len(received))
            elif now - self._polled_since.setdefault(queue_url, now) >= POLL_SECONDS:
                self._polled_since[queue_url] = now
                self._count(sqs._get_q(queue_url), EMPTY_RECEIVES, 1)
            return received

        @around(sqs, "_delete_messages_for_esm")
        def delete(inner: Any, queue_url: str, receipt_handles: set[str]) -> None:
            inner(queue_url, receipt_handles)
            if receipt_handles:
                self._count(sqs._get_q(queue_url), DELETED, len(receipt_handles))

    def measure(self, minute: float | None = None) -> None:
        """Measure every queue now, and let those that count nothing report zeros.

        It stands for the running minute, or for the one that begins at `minute`.
        """
        now = time.time()
        minute = _minute(now) if minute is None else minute
        for queue in sqs._queues.all_values():
            with sqs._queues_lock:
                self._note_arrivals(queue)
                measured = _measured(queue, now)
            with self._lock:
                for name, value in measured.items():
                    self._values[_arn(queue), name][minute] = value
                for name in COUNTED:
                    self._values[_arn(queue), name].setdefault(minute, 0.0)

    def series(self, account: str, region: str) -> dict[tuple[str, str], list[dict[str, Any]]]:
        """The points of each (queue's name, metric) of one account and Region, for MiniStack."""
        prefix = f"arn:aws:sqs:{region}:{account}:"
        with self._lock:
            found = {key: sorted(values.items()) for key, values in self._values.items()}
        return {
            (arn.removeprefix(prefix), name): [
                {
                    "Timestamp": at,
                    "Unit": "Seconds" if name == OLDEST_AGE else "Count",
                    "Dimensions": {"QueueName": arn.removeprefix(prefix)},
                    "Value": value,
                }
                for at, value in points
            ]
            for (arn, name), points in found.items()
            if arn.startswith(prefix)
        }

    def put_back(self, queue: Queue, seconds: int) -> None:
        """Have what is known of a queue, and its messages, be so much earlier; whole minutes."""
        self.measure()  # how it stands now belongs to its past
        with self._lock:
            for key, values in self._values.items():
                if key[0] == _arn(queue):
                    self._values[key] = {at - seconds: value for at, value in values.items()}
        for message in queue["messages"]:
            for name in {"sent_at", "enqueued_at", _SINCE} & message.keys():
                message[name] -= seconds
            if sent := message.get("sys", {}).get("SentTimestamp"):
                message["sys"]["SentTimestamp"] = str(int(sent) - seconds * 1000)

    def _note_arrivals(self, queue: Queue) -> None:
        """Whatever arrives is appended, so that what is not noted yet stands at the end."""
        sent = 0
        for message in reversed(queue["messages"]):
            noted = message.get(_IN)
            if noted == _arn(queue):
                break
            sqs._ensure_msg_fields(message)
            message[_IN] = _arn(queue)
            # What is delayed where it is moved to has come all the same.
            moved_at = min(message["visible_at"], time.time())
            message[_SINCE] = float(moved_at) if noted else message["sent_at"]
            message[_RECEIVED_BEFORE] = message["receive_count"] if noted else 0
            sent += not noted
        if sent:
            self._count(queue, SENT, sent)

    def _count(self, queue: Queue, name: str, how_many: int) -> None:
        """Add to what this minute has counted."""
        minute = _minute(time.time())
        with self._lock:
            values = self._values[_arn(queue), name]
            values[minute] = values.get(minute, 0.0) + how_many


def _minute(at_seconds: float) -> float:
    return float(at_seconds // MINUTE_SECONDS * MINUTE_SECONDS)


def _arn(queue: Queue) -> str:
    return str(queue["attributes"]["QueueArn"])


def _queue(data: Mapping[str, Any], url: str) -> Queue:
    queue: Queue = sqs._get_q(data.get("QueueUrl") or url)
    return queue


def _measured(queue: Queue, now: float) -> dict[str, float]:
    """A message received more than three times here is no longer the oldest, but in FIFO queues."""
    sqs._refresh_counts(queue)
    measured = {name: float(queue["attributes"][read]) for name, read in _READ_OFF.items()}
    most = float("inf") if queue["is_fifo"] else POISON_AFTER_RECEIVES
    arrivals = [
        each[_SINCE]
        for each in queue["messages"]
        if _IN in each and each["receive_count"] - each.get(_RECEIVED_BEFORE, 0) <= most
    ]
    measured[OLDEST_AGE] = float(int(now - min(arrivals))) if arrivals else 0.0
    if queue["is_fifo"]:  # what was never received and is not visible is delayed
        held = (
            each for each in queue["messages"] if each["receive_count"] and each["visible_at"] > now
        )
        measured[GROUPS_IN_FLIGHT] = float(len({each.get("group_id") for each in held}))
    return measured
