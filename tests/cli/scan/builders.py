"""Queues to scan, and what a scan reports and leaves unchanged."""

from __future__ import annotations

import json
from typing import Any

from mendq.cases.pins import Pins
from tests.cli.builders import Operator

RETENTION = "345600"


def make_source_and_dlq(operator: Operator, mode: str, name: str = "orders") -> str:
    """A source, and a DLQ that keeps messages no longer than it, approved once; its ARN."""
    dead = operator.aws.queue(f"{name}-dlq", mode, MessageRetentionPeriod=RETENTION)
    redrive = json.dumps({"deadLetterTargetArn": dead, "maxReceiveCount": "5"})
    source = operator.aws.queue(name, mode, RedrivePolicy=redrive)
    Pins(operator.aws.clients.dynamodb, "case_store").approve_source(dead, source)
    return dead


def read_account_state(operator: Operator) -> dict[str, Any]:
    """All that a command could have changed."""
    clients = operator.aws.clients
    urls = clients.sqs.list_queues().get("QueueUrls", [])
    return {
        "attributes": [operator.aws.attributes(each) for each in urls],
        "tags": [clients.sqs.list_queue_tags(QueueUrl=each).get("Tags") for each in urls],
        "case_store": clients.dynamodb.scan(TableName="case_store")["Items"],
        "cases": clients.s3.list_objects_v2(Bucket="cases").get("Contents", []),
        "pages": operator.aws.pages(),
    }


def select_finding(found: list[dict[str, Any]], queue_arn: str, symptom: str) -> dict[str, Any]:
    """What was said of one queue and symptom."""
    (one,) = (e for e in found if (e["queue_arn"], e["symptom"]) == (queue_arn, symptom))
    return one
