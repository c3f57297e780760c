"""Queues to scan, and what a scan reports and leaves unchanged."""

from __future__ import annotations

import json
from typing import Any

from mendq.cases.pins import Pins
from tests.cli.builders import Operator

RETENTION = "345600"


def make_source_and_dlq(operator: Operator, mode: str, name: str = "orders") -> str:
    """Make a source and an approved DLQ with the source's retention. Return the DLQ's ARN."""
    dead = operator.aws.queue(f"{name}-dlq", mode, MessageRetentionPeriod=RETENTION)
    redrive = json.dumps({"deadLetterTargetArn": dead, "maxReceiveCount": "5"})
    source = operator.aws.queue(name, mode, RedrivePolicy=redrive)
    Pins(operator.aws.clients.dynamodb, "case_store").approve_source(dead, source)
    return dead


def read_account_state(operator: Operator) -> dict[str, Any]:
    """Return all that a command could have changed."""
    clients = operator.aws.clients
    urls = clients.sqs.list_queues().get("QueueUrls", [])
    return {
        "attributes": [operator.aws.attributes(url) for url in urls],
        "tags": [clients.sqs.list_queue_tags(QueueUrl=url).get("Tags") for url in urls],
        "case_store": clients.dynamodb.scan(TableName="case_store")["Items"],
        "cases": clients.s3.list_objects_v2(Bucket="cases").get("Contents", []),
        "pages": operator.aws.pages(),
    }


def select_finding(findings: list[dict[str, Any]], queue_arn: str, symptom: str) -> dict[str, Any]:
    """Return the finding of one queue and symptom."""
    (finding,) = (e for e in findings if (e["queue_arn"], e["symptom"]) == (queue_arn, symptom))
    return finding
