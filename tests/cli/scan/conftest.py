"""An operator's account to scan, in moto."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

from mendq.cases.pins import Pins
from tests.cli.conftest import Operator

RETENTION = "345600"


@pytest.fixture
def operator(operator: Operator) -> Operator:
    """Moto cannot list move tasks."""
    answer: Any = (SimpleNamespace(status_code=200), {"Results": []})
    none: Any = lambda **_: answer  # noqa: E731
    operator.account.session.events.register("before-call.sqs.ListMessageMoveTasks", none)
    operator.aws.clients.sqs.meta.events.register("before-call.sqs.ListMessageMoveTasks", none)
    return operator


def pair(operator: Operator, mode: str, name: str = "orders") -> str:
    """A source, and a DLQ that keeps messages no longer than it, approved once; its ARN."""
    dead = operator.aws.queue(f"{name}-dlq", mode, MessageRetentionPeriod=RETENTION)
    redrive = json.dumps({"deadLetterTargetArn": dead, "maxReceiveCount": "5"})
    source = operator.aws.queue(name, mode, RedrivePolicy=redrive)
    Pins(operator.aws.clients.dynamodb, "case_store").approve_source(dead, source)
    return dead


def everything(operator: Operator) -> dict[str, Any]:
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


def finding(found: list[dict[str, Any]], queue_arn: str, symptom: str) -> dict[str, Any]:
    """What was said of one queue and symptom."""
    (one,) = (e for e in found if (e["queue_arn"], e["symptom"]) == (queue_arn, symptom))
    return one
