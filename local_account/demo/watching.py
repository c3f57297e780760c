"""What a story sees of the account while it runs: calls, attributes, cases."""

from __future__ import annotations

import json
import time
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

from functions.aws.telemetry import NAMESPACE
from functions.healing.error_messages import reason_given

if TYPE_CHECKING:
    from mypy_boto3_cloudwatch import CloudWatchClient
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_sqs import SQSClient

# What changes while a queue is used, without anybody configuring it.
_MOVING = ("Approximate", "LastModifiedTimestamp")


@dataclass
class Seen:
    """One queue as the story has seen it so far; times are seconds of the story."""

    queue_arn: str
    queue_url: str
    before: dict[str, str]
    now: dict[str, str]
    failed_calls: int = 0
    deletes_in_time: int = 0
    first_failure_at: datetime | None = None
    changed_at: datetime | None = None
    case: dict[str, Any] | None = None

    def changed(self) -> dict[str, tuple[str | None, str | None]]:
        """Attributes that differ from the beginning: (before, after)."""
        names = sorted(self.before.keys() | self.now.keys())
        pairs = {name: (self.before.get(name), self.now.get(name)) for name in names}
        return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}

    def seconds_to_heal(self) -> float | None:
        """From the first failing call to the changed attribute; None where there was none."""
        if self.first_failure_at is None or self.changed_at is None:
            return None
        return (self.changed_at - self.first_failure_at).total_seconds()


def configuration(sqs: SQSClient, queue_url: str) -> dict[str, str]:
    """The attributes that somebody configures."""
    answer = sqs.get_queue_attributes(QueueUrl=queue_url, AttributeNames=["All"])
    return {
        str(name): value
        for name, value in answer["Attributes"].items()
        if not name.startswith(_MOVING)
    }


@dataclass
class Watch:
    """Polls the account; everything it knows, it was told by AWS's own calls."""

    sqs: SQSClient
    s3: S3Client
    cloudwatch: CloudWatchClient
    case_bucket: str
    queues: dict[str, Seen] = field(default_factory=dict)
    cases: list[dict[str, Any]] = field(default_factory=list)
    started: float = field(default_factory=time.monotonic)
    outcomes: SimpleQueue[tuple[str, str | None]] = field(default_factory=SimpleQueue)
    _keys: set[str] = field(default_factory=set)

    def seconds(self) -> float:
        return time.monotonic() - self.started

    def heard(self, name: str, fault: str | None) -> None:
        """A consumer's delete has ended, with `fault` or in time; called from its threads."""
        self.outcomes.put((name, fault and (reason_given(fault, "ReceiptHandle") or fault)))
        seen = self.queues[name]
        if fault is None:
            seen.deletes_in_time += 1
            return
        seen.failed_calls += 1
        seen.first_failure_at = seen.first_failure_at or datetime.now(UTC)

    def outcomes_since(self) -> Counter[tuple[str, str | None]]:
        """How often each consumer heard what since the last call."""
        return Counter(self.outcomes.get() for _ in range(self.outcomes.qsize()))

    def metric(self, name: str) -> float:
        """A metric of Mendq's in the last hour, over all dimensions of none."""
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
        """Look once; the cases that are new since the last look."""
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

    def _new_cases(self) -> list[dict[str, Any]]:
        listed = self.s3.list_objects_v2(Bucket=self.case_bucket, Prefix="cases/")
        keys = [each["Key"] for each in listed.get("Contents", []) if each["Key"] not in self._keys]
        self._keys.update(keys)
        bodies = (self.s3.get_object(Bucket=self.case_bucket, Key=key)["Body"] for key in keys)
        found = [json.loads(body.read()) for body in bodies]
        return sorted(found, key=lambda case: str(case["at"]))
