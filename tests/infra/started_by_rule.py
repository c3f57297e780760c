"""What holds for every Lambda that a rule of EventBridge starts."""

from __future__ import annotations

from tests.infra.synthesized import Template


def only_its_rule_starts_and_parks(template: Template, name: str) -> None:
    """Assert that the rule `name` alone may start the Lambda `name` and use its DLQ messages."""
    rule = template.arn_of("AWS::Events::Rule", name)
    function = template.arn_of("AWS::Lambda::Function", name)
    properties = [each["Properties"] for each in template.all("AWS::Lambda::Permission").values()]
    (permission,) = (each for each in properties if each["FunctionName"] == function)
    assert permission["Principal"] == "events.amazonaws.com"
    assert permission["SourceArn"] == rule
    policy = template.only("AWS::SQS::QueuePolicy", f"{name}Dlq")
    (allowed,) = (
        each for each in policy["PolicyDocument"]["Statement"] if each["Effect"] == "Allow"
    )
    assert allowed["Principal"] == {"Service": "events.amazonaws.com"}
    assert allowed["Condition"] == {"ArnEquals": {"aws:SourceArn": rule}}
