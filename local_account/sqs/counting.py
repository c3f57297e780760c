"""CloudWatch metrics of queues in namespace AWS/SQS: one value per minute, as SQS reports them.

A message can reach a queue through the API, EventBridge, SNS or a Lambda. Therefore, sent messages
are counted in the queue itself: each message is counted once, and gets a mark with the queue's ARN.
A message with another queue's mark was moved from that queue. SQS does not count a move as a send.

AWS documents that SQS reports ApproximateNumberOfMessagesVisible, and in FIFO queues
ApproximateNumberOfGroupsWithInflightMessages, each minute while a queue is active: for six hours
after any call. Of the other metrics, its present page says that they are reported if there is
something to report; an older version said of them too that "a non-negative value is reported if the
queue is active". This account follows the older version, for every queue. No code of Mendq may
depend on a 0 of the other metrics.

A caller whose clock is ahead asks about minutes that have not come yet (`JumpedTime`). Nothing
happens in them: counts are 0, and the messages stay as they are now and grow older.
https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-available-cloudwatch-metrics.html
"""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ministack.services import sqs

from local_account.hooks import replace_functions

Queue = dict[str, Any]
SQS_NAMESPACE = "AWS/SQS"
SENT_METRIC = "NumberOfMessagesSent"
RECEIVED_METRIC = "NumberOfMessagesReceived"
DELETED_METRIC = "NumberOfMessagesDeleted"
EMPTY_RECEIVES_METRIC = "NumberOfEmptyReceives"
# Only FIFO queues that dropped a duplicate have this metric.
DEDUPLICATED_METRIC = "NumberOfDeduplicatedSentMessages"
# SQS also reports these if the value is 0.
COUNTER_METRICS = (SENT_METRIC, RECEIVED_METRIC, DELETED_METRIC, EMPTY_RECEIVES_METRIC)
OLDEST_AGE_METRIC = "ApproximateAgeOfOldestMessage"
GROUPS_IN_FLIGHT_METRIC = "ApproximateNumberOfGroupsWithInflightMessages"  # only of FIFO queues
# Metric -> the queue attribute that has its value.
_ATTRIBUTE_BY_METRIC = {
    "ApproximateNumberOfMessagesVisible": "ApproximateNumberOfMessages",
    "ApproximateNumberOfMessagesNotVisible": "ApproximateNumberOfMessagesNotVisible",
    "ApproximateNumberOfMessagesDelayed": "ApproximateNumberOfMessagesDelayed",
}
MINUTE_SECONDS = 60
# The number of earlier minutes for which `QueueCounter.measure` adds missing values.
MOST_UNMEASURED_MINUTES = 10
# A standard queue's message that was received more often no longer counts as the oldest.
MAXIMUM_RECEIVES_OF_OLDEST_MESSAGE = 3
# Lambda's event source mappings use long polls of this length. MiniStack's poll once a second.
# https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-scaling.html
LONG_POLL_SECONDS = 20
# Keys of the marks in a message: the ARN of its queue, the time at which it arrived there (seconds
# since the epoch), and its receive count at that time.
_QUEUE_ARN_MARK = "local_account_in"
_ARRIVAL_MARK = "local_account_since"
RECEIVES_BEFORE_MARK = "local_account_received_before"


@dataclass(frozen=True)
class JumpedTime:
    """Minutes between now and the clock of a caller that is ahead, and the queues it asks about.

    `minutes` are the minutes' starts, in seconds since the epoch.
    """

    minutes: tuple[float, ...]
    queue_names: frozenset[str]


class QueueCounter:
    """Metrics of all queues: counts of calls and messages, and samples of state. Thread-safe."""

    def __init__(self) -> None:
        # (queue ARN, metric) -> start of the minute (seconds since the epoch) -> value
        self._value_by_minute_by_key: dict[tuple[str, str], dict[float, float]] = defaultdict(dict)
        # Queue URL -> when the mapping's current run of empty polls began
        self._empty_since_by_queue: dict[str, float] = {}
        self._lock = threading.Lock()

    def install(self) -> None:
        """Make MiniStack count the messages that are sent, received and deleted.

        Call this once per process, after `messages.install`, which replaces the handlers that are
        counted here. A refused call raises an error and is not counted.
        """
        self._count_polls()

        @replace_functions(sqs, "_collect_msgs")
        def collect_messages(original_function: Any, queue: Queue, *other_arguments: Any) -> Any:
            with sqs._queues_lock:
                self._mark_arrivals(queue)
                return original_function(queue, *other_arguments)

        @replace_functions(sqs._HANDLERS, "SendMessage", "SendMessageBatch")
        def count_sends(original_function: Any, parameters: Mapping[str, Any], url: str) -> Any:
            queue = _find_queue(parameters, url)
            sequence_number_before = queue["fifo_seq"]
            response = original_function(parameters, url)
            with sqs._queues_lock:
                self._mark_arrivals(queue)
            if queue["is_fifo"]:
                stored_message_count = queue["fifo_seq"] - sequence_number_before
                duplicate_message_count = _count_successes(response) - stored_message_count
                if duplicate_message_count:
                    self._add_to_metric(queue, DEDUPLICATED_METRIC, duplicate_message_count)
            return response

        @replace_functions(sqs._HANDLERS, "ReceiveMessage")
        async def count_receives(
            original_function: Any, parameters: Mapping[str, Any], url: str
        ) -> Any:
            queue = _find_queue(parameters, url)
            response = await original_function(parameters, url)
            message_count = len(response.get("Messages", ()))
            if message_count:
                self._add_to_metric(queue, RECEIVED_METRIC, message_count)
            else:
                self._add_to_metric(queue, EMPTY_RECEIVES_METRIC, 1)
            return response

        @replace_functions(sqs._HANDLERS, "DeleteMessage", "DeleteMessageBatch")
        def count_deletes(original_function: Any, parameters: Mapping[str, Any], url: str) -> Any:
            """Count every delete that succeeds. A repeated delete succeeds too."""
            response = original_function(parameters, url)
            self._add_to_metric(
                _find_queue(parameters, url), DELETED_METRIC, _count_successes(response)
            )
            return response

    def _count_polls(self) -> None:
        """Make MiniStack count what event source mappings receive and delete."""

        @replace_functions(sqs, "_receive_messages_for_esm")
        def count_poll(original_function: Any, queue_url: str, maximum_messages: int) -> Any:
            messages = original_function(queue_url, maximum_messages)
            now = time.time()
            if messages:
                self._empty_since_by_queue.pop(queue_url, None)
                self._add_to_metric(sqs._get_q(queue_url), RECEIVED_METRIC, len(messages))
            elif now - self._empty_since_by_queue.setdefault(queue_url, now) >= LONG_POLL_SECONDS:
                self._empty_since_by_queue[queue_url] = now
                self._add_to_metric(sqs._get_q(queue_url), EMPTY_RECEIVES_METRIC, 1)
            return messages

        @replace_functions(sqs, "_delete_messages_for_esm")
        def count_poll_deletes(
            original_function: Any, queue_url: str, receipt_handles: set[str]
        ) -> None:
            original_function(queue_url, receipt_handles)
            if receipt_handles:
                self._add_to_metric(sqs._get_q(queue_url), DELETED_METRIC, len(receipt_handles))

    def count_move(self, dlq: Queue) -> None:
        """Count that a move task received a message from a DLQ and deleted it."""
        self._add_to_metric(dlq, RECEIVED_METRIC, 1)
        self._add_to_metric(dlq, DELETED_METRIC, 1)

    def measure(self, minute_start: float | None = None) -> None:
        """Store the state of every queue now, and 0 for each counter without a value in the minute.

        On a busy machine an earlier minute may not have been measured in time. If calls were
        counted in it, its missing values are stored now, because SQS would have reported them.

        Args:
            minute_start: Start of the minute under which the values are stored, in seconds since
                the epoch. None for the current minute.
        """
        now = time.time()
        minute_start = _round_down_to_minute(now) if minute_start is None else minute_start
        for queue in sqs._queues.all_values():
            with sqs._queues_lock:
                self._mark_arrivals(queue)
                value_by_metric = _sample_state(queue, now)
            queue_arn = _get_queue_arn(queue)
            with self._lock:
                for metric, value in value_by_metric.items():
                    self._value_by_minute_by_key[queue_arn, metric][minute_start] = value
                for metric in COUNTER_METRICS:
                    self._value_by_minute_by_key[queue_arn, metric].setdefault(minute_start, 0.0)
                self._fill_unmeasured_minutes(queue_arn, minute_start, value_by_metric)

    def _fill_unmeasured_minutes(
        self, queue_arn: str, minute_start: float, value_by_metric: Mapping[str, float]
    ) -> None:
        """Store the missing values of the minutes before `minute_start` that have any count.

        Counts are 0. The state is the one that was measured next, in `value_by_metric`.
        """
        values_by_counter = {
            metric: self._value_by_minute_by_key[queue_arn, metric] for metric in COUNTER_METRICS
        }
        for minutes_ago in range(1, MOST_UNMEASURED_MINUTES + 1):
            minute = minute_start - minutes_ago * MINUTE_SECONDS
            if any(minute in value_by_minute for value_by_minute in values_by_counter.values()):
                for value_by_minute in values_by_counter.values():
                    value_by_minute.setdefault(minute, 0.0)
                for metric, value in value_by_metric.items():
                    self._value_by_minute_by_key[queue_arn, metric].setdefault(minute, value)

    def collect_points(
        self, account: str, region: str, jumped_time: JumpedTime | None = None
    ) -> dict[tuple[str, str], list[dict[str, Any]]]:
        """Return the data points of an account and Region, by queue name and metric.

        A data point has the form in which MiniStack stores metrics. The existing queues of
        `jumped_time` have data points for its minutes too.
        """
        arn_prefix = f"arn:aws:sqs:{region}:{account}:"
        holds_messages_by_arn = {
            _get_queue_arn(queue): bool(queue["messages"]) for queue in sqs._queues.all_values()
        }
        points_by_queue_and_metric: dict[tuple[str, str], list[dict[str, Any]]] = {}
        with self._lock:
            minutes_and_values_by_key = {
                key: sorted(value_by_minute.items())
                for key, value_by_minute in self._value_by_minute_by_key.items()
            }
        for (queue_arn, metric), measured_values in minutes_and_values_by_key.items():
            if not queue_arn.startswith(arn_prefix):
                continue
            queue_name = queue_arn.removeprefix(arn_prefix)
            later_values: list[tuple[float, float]] = []
            is_existing = queue_arn in holds_messages_by_arn
            if jumped_time and queue_name in jumped_time.queue_names and is_existing:
                later_values = _continue_values(
                    metric,
                    measured_values[-1],
                    jumped_time.minutes,
                    holds_messages=holds_messages_by_arn[queue_arn],
                )
            points_by_queue_and_metric[queue_name, metric] = [
                {
                    "Timestamp": minute_start,
                    "Unit": "Seconds" if metric == OLDEST_AGE_METRIC else "Count",
                    "Dimensions": {"QueueName": queue_name},
                    "Value": value,
                }
                for minute_start, value in (*measured_values, *later_values)
            ]
        return points_by_queue_and_metric

    def put_back(self, queue: Queue, seconds: int) -> None:
        """Make a queue's metrics and messages older by `seconds`, a multiple of 60.

        First, the current state of every queue is stored. This queue's state becomes older too.
        """
        self.measure()
        with self._lock:
            for key, value_by_minute in self._value_by_minute_by_key.items():
                if key[0] == _get_queue_arn(queue):
                    self._value_by_minute_by_key[key] = {
                        minute_start - seconds: value
                        for minute_start, value in value_by_minute.items()
                    }
        for message in queue["messages"]:
            for time_key in {"sent_at", "enqueued_at", _ARRIVAL_MARK} & message.keys():
                message[time_key] -= seconds
            if sent_milliseconds := message.get("sys", {}).get("SentTimestamp"):
                message["sys"]["SentTimestamp"] = str(int(sent_milliseconds) - seconds * 1000)

    def _mark_arrivals(self, queue: Queue) -> None:
        """Mark the messages that arrived since the last call, and count the sent ones.

        MiniStack appends messages, so all unmarked messages are at the end of the list.
        """
        sent_count = 0
        for message in reversed(queue["messages"]):
            previous_queue_arn = message.get(_QUEUE_ARN_MARK)
            if previous_queue_arn == _get_queue_arn(queue):
                break
            sqs._ensure_msg_fields(message)
            message[_QUEUE_ARN_MARK] = _get_queue_arn(queue)
            if previous_queue_arn:
                # A message can be delayed in the queue that it is moved to. It is there already.
                message[_ARRIVAL_MARK] = float(min(message["visible_at"], time.time()))
                message[RECEIVES_BEFORE_MARK] = message["receive_count"]
            else:
                message[_ARRIVAL_MARK] = message["sent_at"]
                message[RECEIVES_BEFORE_MARK] = 0
                sent_count += 1
        if sent_count:
            self._add_to_metric(queue, SENT_METRIC, sent_count)

    def _add_to_metric(self, queue: Queue, metric: str, added_count: int) -> None:
        """Add `added_count` to the metric's value in the current minute."""
        minute_start = _round_down_to_minute(time.time())
        with self._lock:
            value_by_minute = self._value_by_minute_by_key[_get_queue_arn(queue), metric]
            value_by_minute[minute_start] = value_by_minute.get(minute_start, 0.0) + added_count


def _round_down_to_minute(time_seconds: float) -> float:
    return float(time_seconds // MINUTE_SECONDS * MINUTE_SECONDS)


def _continue_values(
    metric: str,
    minute_and_value: tuple[float, float],
    later_minutes: Sequence[float],
    *,
    holds_messages: bool,
) -> list[tuple[float, float]]:
    """Return the metric's values in later minutes in which nothing happens, by minute.

    Counts are 0. The other values stay, except that the oldest message grows older.
    """
    last_minute, last_value = minute_and_value
    minutes_and_values: list[tuple[float, float]] = []
    for minute in later_minutes:
        if minute <= last_minute or metric == DEDUPLICATED_METRIC:
            continue
        value = 0.0 if metric in COUNTER_METRICS else last_value
        if metric == OLDEST_AGE_METRIC and holds_messages:
            value += minute - last_minute
        minutes_and_values.append((minute, value))
    return minutes_and_values


def _get_queue_arn(queue: Queue) -> str:
    return str(queue["attributes"]["QueueArn"])


def _find_queue(parameters: Mapping[str, Any], url: str) -> Queue:
    queue: Queue = sqs._get_q(parameters.get("QueueUrl") or url)
    return queue


def _count_successes(response: Mapping[str, Any]) -> int:
    """Return how many messages a call handled: 1, or the number of a batch's successful entries."""
    if "Successful" in response:
        return len(response["Successful"])
    return 1


def _sample_state(queue: Queue, now: float) -> dict[str, float]:
    """Return the current values of the metrics about the queue's state, by metric."""
    sqs._refresh_counts(queue)
    value_by_metric = {
        metric: float(queue["attributes"][attribute])
        for metric, attribute in _ATTRIBUTE_BY_METRIC.items()
    }
    arrival_times = [
        message[_ARRIVAL_MARK]
        for message in queue["messages"]
        if _QUEUE_ARN_MARK in message and _counts_as_oldest(message, is_fifo=queue["is_fifo"])
    ]
    value_by_metric[OLDEST_AGE_METRIC] = (
        float(int(now - min(arrival_times))) if arrival_times else 0.0
    )
    if queue["is_fifo"]:
        # A message that is not visible and was never received is delayed, not in flight.
        messages_in_flight = [
            message
            for message in queue["messages"]
            if message["receive_count"] and message["visible_at"] > now
        ]
        value_by_metric[GROUPS_IN_FLIGHT_METRIC] = float(
            len({message.get("group_id") for message in messages_in_flight})
        )
    return value_by_metric


def _counts_as_oldest(message: Mapping[str, Any], *, is_fifo: bool) -> bool:
    """Return False if a message of a standard queue was received more than three times.

    Receives in a queue from which the message was moved do not count. In a FIFO queue, every
    message counts.
    """
    receives_from_this_queue = message["receive_count"] - message.get(RECEIVES_BEFORE_MARK, 0)
    return is_fifo or receives_from_this_queue <= MAXIMUM_RECEIVES_OF_OLDEST_MESSAGE
