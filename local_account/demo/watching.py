"""Observe the account while a story runs: calls, queue attributes and cases."""

from __future__ import annotations

import json
import time
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

from mendq.model.failed_call import find_parameter_refusal_reason
from mendq.model.names import METRIC_NAMESPACE

if TYPE_CHECKING:
    from mypy_boto3_cloudwatch import CloudWatchClient
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_sqs import SQSClient

# Prefixes of attributes that cannot be configured. They change while a queue is used or made older.
_UNCONFIGURABLE_ATTRIBUTE_PREFIXES = ("Approximate", "CreatedTimestamp", "LastModifiedTimestamp")


@dataclass
class QueueObservation:
    """Observations of one queue since the story began.

    Attributes:
        initial_configuration: The queue's configuration at the beginning.
        latest_configuration: The queue's configuration when it was last read.
        failure_times: The times of failed calls.
        successful_calls: Number of calls that succeeded.
        last_success_at: Time of the last call that succeeded; None if none did.
        changed_at: Time at which a changed attribute was first observed; None without a change.
        newest_transition: Newest transition of the queue's cases; None without a case.
    """

    queue_arn: str
    queue_url: str
    initial_configuration: dict[str, str]
    latest_configuration: dict[str, str]
    failure_times: list[datetime] = field(default_factory=list)
    successful_calls: int = 0
    last_success_at: datetime | None = None
    changed_at: datetime | None = None
    newest_transition: dict[str, Any] | None = None

    @property
    def failed_calls(self) -> int:
        """The number of calls that failed."""
        return len(self.failure_times)

    def count_call(self, fault: str | None, ended_at: datetime) -> None:
        """Count a call that has ended. `fault` is the error message, or None if it succeeded."""
        if fault is not None:
            self.failure_times.append(ended_at)
            return
        self.successful_calls += 1
        self.last_success_at = ended_at

    def changes(self) -> dict[str, tuple[str | None, str | None]]:
        """Return the attributes that changed since the beginning, as name -> (before, now)."""
        attribute_names = sorted(
            self.initial_configuration.keys() | self.latest_configuration.keys()
        )
        values_by_name = {
            name: (self.initial_configuration.get(name), self.latest_configuration.get(name))
            for name in attribute_names
        }
        return {
            name: values_before_and_after
            for name, values_before_and_after in values_by_name.items()
            if values_before_and_after[0] != values_before_and_after[1]
        }

    def seconds_to_heal(self) -> float | None:
        """Return the seconds from the first failed call to the change.

        None if no call failed or nothing was changed.
        """
        if not self.failure_times or self.changed_at is None:
            return None
        return (self.changed_at - self.failure_times[0]).total_seconds()


def read_configuration(sqs: SQSClient, queue_url: str) -> dict[str, str]:
    """Return the attributes of a queue that can be configured, by name. Also QueueArn."""
    response = sqs.get_queue_attributes(QueueUrl=queue_url, AttributeNames=["All"])
    attributes = response["Attributes"].items()
    return {
        str(name): value
        for name, value in attributes
        if not name.startswith(_UNCONFIGURABLE_ATTRIBUTE_PREFIXES)
    }


def count_messages(sqs: SQSClient, queue_url: str) -> int:
    """Return the number of messages in a queue that are visible or in flight."""
    response = sqs.get_queue_attributes(
        QueueUrl=queue_url,
        AttributeNames=["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"],
    )
    return sum(map(int, response["Attributes"].values()))


@dataclass
class AccountWatcher:
    """Reads the account repeatedly, with AWS's own calls.

    Attributes:
        queues: Observations of each queue, by its name.
        case_transitions: All transitions of cases, in the order in which they were found.
        started_at: Time at which the story began, in seconds of the monotonic clock.
    """

    sqs: SQSClient
    s3: S3Client
    cloudwatch: CloudWatchClient
    case_bucket: str
    queues: dict[str, QueueObservation] = field(default_factory=dict)
    case_transitions: list[dict[str, Any]] = field(default_factory=list)
    started_at: float = field(default_factory=time.monotonic)
    _uncounted_calls: SimpleQueue[tuple[str, str | None, datetime]] = field(
        default_factory=SimpleQueue
    )
    _keys_of_read_transitions: set[str] = field(default_factory=set)

    def elapsed_seconds(self) -> float:
        """Return the seconds since the story began."""
        return time.monotonic() - self.started_at

    def report_call(self, name: str, fault: str | None) -> None:
        """Record that a call to the queue `name` has ended. Can be called from any thread.

        `fault` is the error message, or None if the call succeeded. If it says why a receipt handle
        was refused, only the reason is recorded.
        """
        fault_text = fault and (find_parameter_refusal_reason(fault, "ReceiptHandle") or fault)
        self._uncounted_calls.put((name, fault_text, datetime.now(UTC)))

    def count_new_calls(self) -> Counter[tuple[str, str | None]]:
        """Return how many calls ended since the last time, by queue name and error message.

        The error message is None for calls that succeeded. The calls are also counted in the
        observations of their queues.
        """
        new_calls = [self._uncounted_calls.get() for _ in range(self._uncounted_calls.qsize())]
        for name, fault, ended_at in new_calls:
            self.queues[name].count_call(fault, ended_at)
        return Counter((name, fault) for name, fault, _ in new_calls)

    def sum_metric(self, metric_name: str) -> float:
        """Return the sum of one of Mendq's metrics, without dimensions, in the last hour."""
        now = datetime.now(UTC)
        response = self.cloudwatch.get_metric_statistics(
            Namespace=METRIC_NAMESPACE,
            MetricName=metric_name,
            Dimensions=[],
            StartTime=now - timedelta(hours=1),
            EndTime=now + timedelta(minutes=1),
            Period=3600,
            Statistics=["Sum"],
        )
        return sum(data_point["Sum"] for data_point in response["Datapoints"])

    def read_changes(self) -> list[dict[str, Any]]:
        """Read all queues and cases. Return the transitions that are new since the last call."""
        for queue in self.queues.values():
            queue.latest_configuration = read_configuration(self.sqs, queue.queue_url)
            if queue.changes() and queue.changed_at is None:
                queue.changed_at = datetime.now(UTC)
        new_transitions = self._read_new_transitions()
        self.case_transitions += new_transitions
        for transition in new_transitions:
            for queue in self.queues.values():
                if queue.queue_arn == transition["queue_arn"]:
                    queue.newest_transition = transition
        return new_transitions

    def transitions(self, name: str) -> list[dict[str, Any]]:
        """Return the transitions of the cases of the queue `name`, sorted by their number."""
        queue_arn = self.queues[name].queue_arn
        queue_transitions = [
            transition
            for transition in self.case_transitions
            if transition["queue_arn"] == queue_arn
        ]
        return sorted(queue_transitions, key=lambda transition: int(transition["n"]))

    def _read_new_transitions(self) -> list[dict[str, Any]]:
        response = self.s3.list_objects_v2(Bucket=self.case_bucket, Prefix="cases/")
        stored_keys = [listed_object["Key"] for listed_object in response.get("Contents", [])]
        unread_keys = [key for key in stored_keys if key not in self._keys_of_read_transitions]
        self._keys_of_read_transitions.update(unread_keys)
        transitions = []
        for key in unread_keys:
            body = self.s3.get_object(Bucket=self.case_bucket, Key=key)["Body"]
            transitions.append(json.loads(body.read()))
        return sorted(
            transitions, key=lambda transition: (str(transition["at"]), int(transition["n"]))
        )
