"""moto would need the whole stack: botocore's Stubber answers for one part of it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import boto3
import pytest
from botocore.stub import Stubber

from mendq.cli.doctor.check import Check, Command, Log, Status
from mendq.cli.doctor.deployment import Deployment
from tests.architecture.aws_commands import mistake_in
from tests.cli.conftest import Operator

NOW = datetime(2026, 11, 22, 4, tzinfo=UTC)
MAPPING = "0b4f1f0e-1111-2222-3333-444455556666"


def _look(
    operator: Operator, monkeypatch: pytest.MonkeyPatch, kind: str, logical: str, physical: str
) -> Check:
    monkeypatch.setattr(Deployment, "parts", [(kind, logical, physical)])
    (check,) = Deployment(operator.account, NOW).look()
    if check.remedy:
        assert isinstance(check.remedy, Command)
        assert mistake_in(check.remedy) == ""
    return check


@pytest.mark.parametrize(("state", "status"), [("ENABLED", Status.OK), ("DISABLED", Status.FAIL)])
@pytest.mark.parametrize("bus", ["", "shop"])
def test_a_rule_that_is_switched_off(
    operator: Operator, monkeypatch: pytest.MonkeyPatch, state: str, status: Status, bus: str
) -> None:
    events: Any = boto3.client("events", region_name="us-east-1")
    asked = {"Name": "mendq-errors"} | ({"EventBusName": bus} if bus else {})
    with Stubber(events) as stub:
        stub.add_response("describe_rule", {"State": state}, asked)
        monkeypatch.setattr(operator.account.session, "client", lambda _: events)
        physical = f"{bus}|mendq-errors" if bus else "mendq-errors"
        check = _look(operator, monkeypatch, "AWS::Events::Rule", "FailedCalls", physical)
    assert check.status is status
    of_the_bus = f" --event-bus-name {bus}" if bus else ""
    remedy = f"aws events enable-rule --region us-east-1{of_the_bus} --name mendq-errors"
    assert check.remedy == (remedy if status is Status.FAIL else "")


@pytest.mark.parametrize(
    ("logical", "depth", "status"),
    [
        ("HealDlq", 0, Status.OK),
        ("HealDlq", 2, Status.FAIL),
        ("UndeliveredPages", 1, Status.FAIL),
        ("Intake", 9, Status.OK),
    ],
)
def test_messages_that_wait_for_a_person(
    operator: Operator, monkeypatch: pytest.MonkeyPatch, logical: str, depth: int, status: Status
) -> None:
    url = operator.aws.url(operator.aws.queue("messages", tag=None))
    for _ in range(depth):
        operator.aws.clients.sqs.send_message(QueueUrl=url, MessageBody="dead")
    check = _look(operator, monkeypatch, "AWS::SQS::Queue", logical, url)
    assert check.status is status
    assert f"{depth} message(s)" in check.says
    remedy = (
        f"aws sqs receive-message --region us-east-1 --queue-url {url} "
        "--message-attribute-names All --max-number-of-messages 10"
    )
    assert check.remedy == (remedy if status is Status.FAIL else "")


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
    update = "aws lambda update-event-source-mapping --region us-east-1"
    remedy = f"{update} --uuid {MAPPING} --enabled"
    assert check.remedy == (remedy if status is Status.FAIL else "")


@pytest.mark.parametrize(
    ("said", "group"),
    [({}, ""), ({"LoggingConfig": {"LogGroup": "Mendq-HealLog"}}, "Mendq-HealLog")],
)
def test_the_log_of_a_lambda_is_the_one_that_lambda_names(
    operator: Operator, monkeypatch: pytest.MonkeyPatch, said: dict[str, Any], group: str
) -> None:
    monkeypatch.setattr(Deployment, "parts", [("AWS::Lambda::Function", "HealFunction", "heal-1")])
    stack = Deployment(operator.account, NOW)
    with Stubber(operator.account.clients.functions) as stub:
        stub.add_response("get_function_configuration", said, {"FunctionName": "heal-1"})
        assert [each.status for each in stack.look()] == [Status.OK]
    read = (
        f"aws logs filter-log-events --region us-east-1 --log-group-name {group} "
        "--start-time 1795316400000 --query 'events[].[message]' --output text"
    )
    assert stack.logs == ({"heal-1": Log(group, Command(read))} if group else {})
    assert [mistake_in(each.read) for each in stack.logs.values()] == [""] * bool(group)
