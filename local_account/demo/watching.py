"""What a story sees of the account while it runs: calls, attributes, cases."""

from __future__ import annotations

import json
import time
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

from functions.aws.emitting import NAMESPACE
from functions.healing.error_messages import reason_given

if TYPE_CHECKING:
    from mypy_boto3_cloudwatch import CloudWatchClient
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_sqs import SQSClient

# What nobody configures: it changes while a queue is used, or put back in time.
_MOVING = ("Approximate", "CreatedTimestamp", "LastModifiedTimestamp")


@dataclass(frozen=True)
class Outcome:
    """How a call ended, and when: with SQS's words, or well (None)."""

    name: str
    fault: str | None
    at: datetime


@dataclass
class Seen:
    """One queue as the story has seen it so far; `calls_well` are those that did not fail."""

    queue_arn: str
    queue_url: str
    before: dict[str, str]
    now: dict[str, str]
    failed_calls: int = 0
    calls_well: int = 0
    first_failure_at: datetime | None = None
    failures_at: list[datetime] = field(default_factory=list)
    well_at: datetime | None = None
    changed_at: datetime | None = None
    case: dict[str, Any] | None = None

    def heard(self, outcome: Outcome) -> None:
        """One more call has ended."""
        if outcome.fault is None:
            self.calls_well += 1
            self.well_at = outcome.at
            return
        self.failed_calls += 1
        self.failures_at.append(outcome.at)
        self.first_failure_at = self.first_failure_at or outcome.at

    def changed(self) -> dict[str, tuple[str | None, str | None]]:
        """Attributes that differ from the beginning: (before, after)."""
        names = sorted(self.before.keys() | self.now.keys())
        pairs = {name: (self.before.get(name), self.now.get(name)) for name in names}
        return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}

    def failed_since(self, moment: datetime) -> int:
        """How many calls failed after that."""
        return sum(at > moment for at in self.failures_at)

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
    outcomes: SimpleQueue[Outcome] = field(default_factory=SimpleQueue)
    _keys: set[str] = field(default_factory=set)

    def begin(self) -> None:
        """The story starts now."""
        self.started = time.monotonic()

    def seconds(self) -> float:
        return time.monotonic() - self.started

    def heard(self, name: str, fault: str | None) -> None:
        """A call to a queue has ended, with `fault` or well; for the threads that make calls."""
        words = fault and (reason_given(fault, "ReceiptHandle") or fault)
        self.outcomes.put(Outcome(name, words, datetime.now(UTC)))

    def outcomes_since(self) -> Counter[tuple[str, str | None]]:
        """How often each queue's callers heard what since the last call."""
        new = [self.outcomes.get() for _ in range(self.outcomes.qsize())]
        for each in new:
            self.queues[each.name].heard(each)
        return Counter((each.name, each.fault) for each in new)

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

    def transitions(self, name: str) -> list[dict[str, Any]]:
        """Those of one queue's cases, in their order."""
        of_queue = [c for c in self.cases if c["queue_arn"] == self.queues[name].queue_arn]
        return sorted(of_queue, key=lambda each: int(each["n"]))

    def _new_cases(self) -> list[dict[str, Any]]:
        listed = self.s3.list_objects_v2(Bucket=self.case_bucket, Prefix="cases/")
        keys = [each["Key"] for each in listed.get("Contents", []) if each["Key"] not in self._keys]
        self._keys.update(keys)
        bodies = (self.s3.get_object(Bucket=self.case_bucket, Key=key)["Body"] for key in keys)
        found = [json.loads(body.read()) for body in bodies]
        return sorted(found, key=lambda case: (str(case["at"]), int(case["n"])))
