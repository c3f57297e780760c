"""What a story sees of the account while it runs: calls, attributes, cases."""

from __future__ import annotations

import json
import time
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

from mendq.model.failed_call import refusal_reason
from mendq.model.names import NAMESPACE

if TYPE_CHECKING:
    from mypy_boto3_cloudwatch import CloudWatchClient
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_sqs import SQSClient

# What nobody configures: it changes while a queue is used, or put back in time.
_MOVING = ("Approximate", "CreatedTimestamp", "LastModifiedTimestamp")


@dataclass
class Observation:
    """One queue as the story has seen it so far; `calls_well` are those that did not fail."""

    queue_arn: str
    queue_url: str
    before: dict[str, str]
    now: dict[str, str]
    failures_at: list[datetime] = field(default_factory=list)
    calls_well: int = 0
    well_at: datetime | None = None
    changed_at: datetime | None = None
    case: dict[str, Any] | None = None

    @property
    def failed_calls(self) -> int:
        """The number of calls that failed."""
        return len(self.failures_at)

    def heard(self, fault: str | None, at: datetime) -> None:
        """Count one more call that has ended."""
        if fault is not None:
            self.failures_at.append(at)
            return
        self.calls_well += 1
        self.well_at = at

    def changed(self) -> dict[str, tuple[str | None, str | None]]:
        """Attributes that differ from the beginning: (before, after)."""
        names = sorted(self.before.keys() | self.now.keys())
        pairs = {name: (self.before.get(name), self.now.get(name)) for name in names}
        return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}

    def seconds_to_heal(self) -> float | None:
        """From the first failing call to the changed attribute; None where there was none."""
        if not self.failures_at or self.changed_at is None:
            return None
        return (self.changed_at - self.failures_at[0]).total_seconds()


def configuration(sqs: SQSClient, queue_url: str) -> dict[str, str]:
    """The attributes that somebody configures."""
    answer = sqs.get_queue_attributes(QueueUrl=queue_url, AttributeNames=["All"])
    attributes = answer["Attributes"].items()
    return {str(name): value for name, value in attributes if not name.startswith(_MOVING)}


def messages_in(sqs: SQSClient, queue_url: str) -> int:
    """The number of messages in a queue, visible or held."""
    answer = sqs.get_queue_attributes(
        QueueUrl=queue_url,
        AttributeNames=["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"],
    )
    return sum(map(int, answer["Attributes"].values()))


@dataclass
class Watch:
    """Polls the account; everything it knows, it was told by AWS's own calls."""

    sqs: SQSClient
    s3: S3Client
    cloudwatch: CloudWatchClient
    case_bucket: str
    queues: dict[str, Observation] = field(default_factory=dict)
    cases: list[dict[str, Any]] = field(default_factory=list)
    started: float = field(default_factory=time.monotonic)
    _ended: SimpleQueue[tuple[str, str | None, datetime]] = field(default_factory=SimpleQueue)
    _keys: set[str] = field(default_factory=set)

    def seconds(self) -> float:
        """The time since the story began."""
        return time.monotonic() - self.started

    def heard(self, name: str, fault: str | None) -> None:
        """Note that a call to a queue has ended, with `fault` or well; for the calling threads."""
        words = fault and (refusal_reason(fault, "ReceiptHandle") or fault)
        self._ended.put((name, words, datetime.now(UTC)))

    def outcomes_since(self) -> Counter[tuple[str, str | None]]:
        """How often each queue's callers heard what since the last call."""
        new = [self._ended.get() for _ in range(self._ended.qsize())]
        for name, fault, at in new:
            self.queues[name].heard(fault, at)
        return Counter((name, fault) for name, fault, _ in new)

    def metric(self, name: str) -> float:
        """Return a metric of Mendq's in the last hour, over all dimensions of none."""
        now = datetime.now(UTC)
        answer = self.cloudwatch.get_metric_statistics(
            Namespace=NAMESPACE,
            MetricName=name,
            Dimensions=[],
            StartTime=now - timedelta(hours=1),
            EndTime=now + timedelta(minutes=1),
            Period=3600,
            Statistics=["Sum"],
        )
        return sum(each["Sum"] for each in answer["Datapoints"])

    def look(self) -> list[dict[str, Any]]:
        """Look once; return the cases that are new since the last look."""
        for seen in self.queues.values():
            seen.now = configuration(self.sqs, seen.queue_url)
            if seen.changed() and seen.changed_at is None:
                seen.changed_at = datetime.now(UTC)
        new = self._new_cases()
        self.cases += new
        for case in new:
            for seen in self.queues.values():
                if seen.queue_arn == case["queue_arn"]:
                    seen.case = case
        return new

    def transitions(self, name: str) -> list[dict[str, Any]]:
        """The transitions of one queue's cases, in their order."""
        of_queue = [c for c in self.cases if c["queue_arn"] == self.queues[name].queue_arn]
        return sorted(of_queue, key=lambda case: int(case["n"]))

    def _new_cases(self) -> list[dict[str, Any]]:
        listed = self.s3.list_objects_v2(Bucket=self.case_bucket, Prefix="cases/")
        keys = [each["Key"] for each in listed.get("Contents", []) if each["Key"] not in self._keys]
        self._keys.update(keys)
        bodies = (self.s3.get_object(Bucket=self.case_bucket, Key=key)["Body"] for key in keys)
        found = [json.loads(body.read()) for body in bodies]
        return sorted(found, key=lambda case: (str(case["at"]), int(case["n"])))
