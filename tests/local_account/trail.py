"""Reading the trail's files and the bus of a running account."""

from __future__ import annotations

import gzip
import json
import uuid
from typing import Any

from local_account.process import LocalAccount
from tests.local_account.callers import policy
from tests.local_account.queues import Queue, eventually, new_queue


class TrailFiles:
    """The trail's bucket; reads each file once."""

    def __init__(self, account: LocalAccount) -> None:
        self._s3 = account.client("s3")
        self._bucket = account.outputs["TrailBucket"]
        self._records: dict[str, list[dict[str, Any]]] = {}

    def records(self, queue: Queue, event_name: str) -> list[dict[str, Any]]:
        """The records of one kind of call on a queue so far."""
        for page in self._s3.get_paginator("list_objects_v2").paginate(Bucket=self._bucket):
            for key in {
                content["Key"] for content in page.get("Contents", [])
            } - self._records.keys():
                body = self._s3.get_object(Bucket=self._bucket, Key=key)["Body"].read()
                self._records[key] = json.loads(gzip.decompress(body))["Records"]
        arn = queue.arn
        return [
            record
            for records in self._records.values()
            for record in records
            if record["eventName"] == event_name
            and any(resource["ARN"] == arn for resource in record.get("resources", []))
        ]


class Listener:
    """A rule of one's own on the default bus, and the queue that its events end in."""

    def __init__(self, account: LocalAccount, pattern: dict[str, Any]) -> None:
        self.queue = new_queue(account)
        events = account.client("events")
        rule = f"{uuid.uuid4()}"
        put = events.put_rule(Name=rule, EventPattern=json.dumps(pattern))
        statement = {
            "Effect": "Allow",
            "Principal": {"Service": "events.amazonaws.com"},
            "Action": "sqs:SendMessage",
            "Resource": self.queue.arn,
            "Condition": {"ArnEquals": {"aws:SourceArn": put["RuleArn"]}},
        }
        self.queue.set(Policy=policy(statement))
        events.put_targets(Rule=rule, Targets=[{"Id": "queue", "Arn": self.queue.arn}])

    def events(self, at_least: int) -> list[dict[str, Any]]:
        """The events that came, once there are that many."""
        came: list[dict[str, Any]] = []

        def enough() -> bool:
            answer = self.queue.sqs.receive_message(
                QueueUrl=self.queue.url, MaxNumberOfMessages=10, VisibilityTimeout=600
            )
            came.extend(json.loads(message["Body"]) for message in answer.get("Messages", []))
            return len(came) >= at_least

        eventually(enough)
        return came
