"""A probe goes the whole way: SQS, the trail, the rule, the intake, heal, the case store.

Permissions are enforced by the local account, not by AWS; how AWS's CloudTrail spells the error is
what the probe is there to tell.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from local_account.process import LocalAccount
from mendq.probe.probe import QUEUE_NAME, Probe
from mendq.probe.send import ProbeRecord
from tests.local_account.queues import eventually

pytestmark = pytest.mark.account


def _known(account: LocalAccount) -> Probe | None:
    return ProbeRecord(account.client("dynamodb"), account.outputs["CaseTable"]).read()


def _seen(account: LocalAccount, since: datetime) -> bool:
    probe = _known(account)
    return probe is not None and probe.sent_at >= since and probe.was_seen


def _beat(account: LocalAccount, scheduled_at: datetime) -> dict[str, Any]:
    answer = account.client("lambda").invoke(
        FunctionName=account.outputs["ProbeFunction"],
        Payload=json.dumps({"time": scheduled_at.isoformat()}),
    )
    announced = json.loads(answer["Payload"].read())
    assert "FunctionError" not in answer, announced
    return dict(announced)


def test_a_probe_comes_round_to_heal_and_opens_no_case(account: LocalAccount) -> None:
    now = datetime.now(UTC).replace(microsecond=0)
    # Whatever probe the schedule has made in this account, this one comes long after it.
    _beat(account, now + timedelta(hours=2))
    eventually(lambda: _seen(account, now), seconds=60)
    probe = _known(account)
    assert probe is not None
    assert probe.spelled.startswith("InvalidParameterValue")
    arn = f"arn:aws:sqs:us-east-1:000000000000:{QUEUE_NAME}"
    items = account.client("dynamodb").query(
        TableName=account.outputs["CaseTable"],
        KeyConditionExpression="pk = :queue",
        ExpressionAttributeValues={":queue": {"S": arn}},
    )
    assert items["Items"] == []
