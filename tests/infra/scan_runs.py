"""What the scan calls, and heal about what it found, as they do their work in an account."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from unittest.mock import patch

from mendq.catalogue import CATALOGUE
from mendq.heal.batch import heal_findings
from tests.heal.conftest import Account, moto_account
from tests.infra.aws_calls import Recorded, recording
from tests.scan.scanning import Scanning

CONSUMER = "arn:aws:lambda:us-east-1:123456789012:function:consumer"
SCANNED = "arn:aws:sqs:us-east-1:123456789012:scanned"
# What moto has no answer for, or would start a container for.
ANSWERS = {
    "ListEventSourceMappings": {
        "EventSourceMappings": [
            {"State": "Enabled", "FunctionArn": CONSUMER, "EventSourceArn": SCANNED}
        ]
    },
    "GetFunctionConfiguration": {"FunctionName": "consumer", "Timeout": 60},
    "GetMetricData": {"MetricDataResults": []},
    "ListMessageMoveTasks": {"Results": []},
    "Invoke": {"StatusCode": 202},
}


def _dlq(account: Account) -> str:
    """A queue and its DLQ, which keeps messages too short; the latter's ARN."""
    messages = account.queue("scanned-dlq", MessageRetentionPeriod="86400")
    policy = json.dumps({"deadLetterTargetArn": messages, "maxReceiveCount": 5})
    source = account.queue("scanned", RedrivePolicy=policy, VisibilityTimeout="30")
    for each in (source, messages):
        account.clients.sqs.send_message(QueueUrl=account.url(each), MessageBody="x")
    return messages


def found(account: Account, watched: Account) -> None:
    """Everything that a scan may find, said of a queue and of its DLQ."""
    messages = _dlq(account)
    watched.later(days=1)
    account.now = watched.now
    for queue_arn in (messages, messages.removesuffix("-dlq")):
        names = [each.name for each in CATALOGUE if each.plan and each.detection]
        request = {"found": [{"queue_arn": queue_arn, "symptom": each} for each in names]}
        healed = heal_findings(request, watched.run())
        assert healed.errors == {}, healed.errors
    assert account.attributes(messages)["MessageRetentionPeriod"] == "1209600"


def scanning() -> Recorded:
    """An hour's scan in two runs, the second of which finds the first's findings."""
    at = datetime.now(UTC) + timedelta(hours=23)
    metrics = {"MetricDataResults": [{"Id": "visible0", "Timestamps": [at], "Values": [1.0]}]}
    recorded = recording({**ANSWERS, "GetMetricData": metrics})
    with moto_account() as account:
        _dlq(account)
        account.later(days=1)
        account.settings = replace(account.settings, queues=("scanned*",))
        watched = Scanning(replace(account, clients=recorded.clients))
        looked_once = iter([900.0, 0.0])
        watched.remaining_seconds = lambda: next(looked_once, 900.0)
        with patch("mendq.scan.scan.QUEUES_A_STRETCH", 1):
            for _ in range(2):
                watched.scan()
        assert watched.findings()["queues_scanned"] == 2
    return recorded
