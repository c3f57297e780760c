"""moto would need the whole stack: botocore's Stubber answers for one part of it."""

from __future__ import annotations

from typing import Any

import boto3
import pytest
from botocore.stub import Stubber

from cli.doctor.check import Check, Status
from cli.doctor.deployment import Deployment
from tests.cli.conftest import Operator

MAPPING = "0b4f1f0e-1111-2222-3333-444455556666"


def _look(
    operator: Operator, monkeypatch: pytest.MonkeyPatch, kind: str, logical: str, physical: str
) -> Check:
    monkeypatch.setattr(Deployment, "parts", [(kind, logical, physical)])
    (check,) = Deployment(operator.account).look()
    return check


@pytest.mark.parametrize(("state", "status"), [("ENABLED", Status.OK), ("DISABLED", Status.FAIL)])
def test_a_rule_that_is_switched_off(
    operator: Operator, monkeypatch: pytest.MonkeyPatch, state: str, status: Status
) -> None:
    events: Any = boto3.client("events", region_name="us-east-1")
    with Stubber(events) as stub:
        stub.add_response("describe_rule", {"State": state}, {"Name": "mendq-errors"})
        monkeypatch.setattr(operator.account.session, "client", lambda _: events)
        check = _look(operator, monkeypatch, "AWS::Events::Rule", "FailedCalls", "mendq-errors")
    assert check.status is status
    assert check.cure == ("aws events enable-rule --name mendq-errors" if state[0] == "D" else "")


@pytest.mark.parametrize(
    ("logical", "depth", "status"),
    [
        ("HealDeadLetters", 0, Status.OK),
        ("HealDeadLetters", 2, Status.FAIL),
        ("UndeliveredPages", 1, Status.FAIL),
        ("Intake", 9, Status.OK),
    ],
)
def test_letters_that_wait_for_a_person(
    operator: Operator, monkeypatch: pytest.MonkeyPatch, logical: str, depth: int, status: Status
) -> None:
    url = operator.aws.url(operator.aws.queue("letters", tag=None))
    for _ in range(depth):
        operator.aws.clients.sqs.send_message(QueueUrl=url, MessageBody="dead")
    check = _look(operator, monkeypatch, "AWS::SQS::Queue", logical, url)
    assert check.status is status
    assert f"{depth} message(s)" in check.says
    cure = f"aws sqs receive-message --queue-url {url}"
    assert check.cure == (cure if status is Status.FAIL else "")


@pytest.mark.parametrize(
    ("state", "status"),
    [
        ("Enabled", Status.OK),
        ("Updating", Status.OK),
        ("Disabled", Status.FAIL),
        ("Disabling", Status.FAIL),
    ],
)
def test_what_feeds_heal(
    operator: Operator, monkeypatch: pytest.MonkeyPatch, state: str, status: Status
) -> None:
    kind = "AWS::Lambda::EventSourceMapping"
    with Stubber(operator.account.clients.functions) as stub:
        stub.add_response("get_event_source_mapping", {"State": state}, {"UUID": MAPPING})
        check = _look(operator, monkeypatch, kind, "HealIntake", MAPPING)
    assert check.status is status
    cure = f"aws lambda update-event-source-mapping --uuid {MAPPING} --enabled"
    assert check.cure == (cure if status is Status.FAIL else "")
