"""Reading the trail's files and the bus of a running account."""

from __future__ import annotations

import gzip
import json
import uuid
from typing import Any

from local_account.process import LocalAccount
from tests.local_account.queues import Queue, eventually, new_queue


class TrailFiles:
    """The trail's bucket; reads each file once."""

    def __init__(self, account: LocalAccount) -> None:
        self._s3, self._bucket = account.client("s3"), account.outputs["TrailBucket"]
        self._records: dict[str, list[dict[str, Any]]] = {}

    @property
    def keys(self) -> list[str]:
        """The names of the files so far."""
        self._read()
        return list(self._records)

    def records(self, queue: Queue, event_name: str) -> list[dict[str, Any]]:
        """The records of one kind of call on a queue so far."""
        self._read()
        return [
            record
            for records in self._records.values()
            for record in records
            if record["eventName"] == event_name and _is_about(record, queue.arn)
        ]

    def _read(self) -> None:
        for page in self._s3.get_paginator("list_objects_v2").paginate(Bucket=self._bucket):
            for key in (each["Key"] for each in page.get("Contents", [])):
                if key not in self._records:
                    body = self._s3.get_object(Bucket=self._bucket, Key=key)["Body"].read()
                    self._records[key] = json.loads(gzip.decompress(body))["Records"]


def _is_about(record: dict[str, Any], arn: str) -> bool:
    return any(each["ARN"] == arn for each in record.get("resources", []))


class Listener:
    """A rule of one's own on the default bus, and the queue that its events end in."""

    def __init__(
        self, account: LocalAccount, pattern: dict[str, Any], state: str = "ENABLED"
    ) -> None:
        self._account = account
        self.queue = new_queue(account)
        self._events = account.client("events")
        self._rule = f"test-{uuid.uuid4()}"
        rule_arn = self._events.put_rule(
            Name=self._rule, EventPattern=json.dumps(pattern), State=state
        )["RuleArn"]
        self.queue.set(Policy=_letting_in(self.queue.arn, rule_arn))
        self._events.put_targets(Rule=self._rule, Targets=[{"Id": "queue", "Arn": self.queue.arn}])

    def events(self, at_least: int) -> list[dict[str, Any]]:
        """The events that came, once there are that many."""
        came: list[dict[str, Any]] = []

        def enough() -> bool:
            answer = self.queue.sqs.receive_message(
                QueueUrl=self.queue.url, MaxNumberOfMessages=10, VisibilityTimeout=600
            )
            came.extend(json.loads(each["Body"]) for each in answer.get("Messages", []))
            return len(came) >= at_least

        eventually(enough)
        return came


def _letting_in(queue_arn: str, rule_arn: str) -> str:
    statement = {
        "Effect": "Allow",
        "Principal": {"Service": "events.amazonaws.com"},
        "Action": "sqs:SendMessage",
        "Resource": queue_arn,
        "Condition": {"ArnEquals": {"aws:SourceArn": rule_arn}},
    }
    return json.dumps({"Version": "2012-10-17", "Statement": [statement]})
