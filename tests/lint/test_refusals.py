"""Lint reports queues that SQS refuses, and says nothing about values that it cannot know."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mendq.lint.decode import read_template
from mendq.lint.judging import LintFinding, LintResult, lint
from mendq.lint.values import DeployTarget
from mendq.model.queue_limits import RANGE_BY_ATTRIBUTE
from mendq.model.severity_class import SeverityClass

DEAD_ARN = {"Fn::GetAtt": ["Dead", "Arn"]}
REDRIVE = {"deadLetterTargetArn": DEAD_ARN, "maxReceiveCount": 5}


def _lint_queue(properties: dict[str, Any], **sections: Any) -> LintResult:
    """Return the result for a queue with these properties, which may use `Dead` as its DLQ."""
    resources = {
        "Orders": {"Type": "AWS::SQS::Queue", "Properties": properties},
        "Dead": {"Type": "AWS::SQS::Queue", "Properties": {"MessageRetentionPeriod": 1_209_600}},
    }
    content = json.dumps({**sections, "Resources": resources}).encode()
    return lint(read_template(content), "", DeployTarget())


def _list_refusals(result: LintResult) -> list[LintFinding]:
    return [finding for finding in result.findings if finding.symptom == "invalid_request"]


@pytest.mark.parametrize("attribute", RANGE_BY_ATTRIBUTE)
def test_lint_reports_a_number_outside_of_the_range_of_sqs_as_an_error(attribute: str) -> None:
    number_range = RANGE_BY_ATTRIBUTE[attribute]
    for number in (
        number_range.minimum - 1,
        number_range.maximum + 1,
        str(number_range.maximum + 1),
    ):
        (finding,) = _list_refusals(_lint_queue({attribute: number}))
        assert finding.severity == "error"
        assert finding.severity_class is SeverityClass.STANDING_STILL
        assert finding.path == f"Resources.Orders.Properties.{attribute}"
        assert finding.remedy == (f"# set {attribute} to a number from {number_range}",)


@pytest.mark.parametrize("attribute", RANGE_BY_ATTRIBUTE)
def test_lint_accepts_the_ends_of_each_range_also_as_strings_of_digits(attribute: str) -> None:
    number_range = RANGE_BY_ATTRIBUTE[attribute]
    for number in (number_range.minimum, number_range.maximum):
        assert _list_refusals(_lint_queue({attribute: number})) == []
        assert _list_refusals(_lint_queue({attribute: str(number)})) == []


@pytest.mark.parametrize(
    "value",
    [
        {"Ref": "Open"},
        {"Fn::If": ["IsLive", 50_000, 30]},
        {"Fn::ImportValue": "timeout"},
        "{{resolve:ssm:/timeout}}",
        "${self:custom.timeout}",
        "3e1",
        "30.0",
        "inf",
    ],
    ids=str,
)
def test_lint_does_not_say_that_sqs_refuses_a_value_that_it_does_not_know(value: Any) -> None:
    result = _lint_queue({"VisibilityTimeout": value}, Parameters={"Open": {"Type": "Number"}})
    assert _list_refusals(result) == []


@pytest.mark.parametrize(
    ("redrive_policy", "reason"),
    [
        ({**REDRIVE, "maxReceiveCount": 0}, "maxReceiveCount is 0, and SQS accepts 1 to 1,000"),
        (
            {**REDRIVE, "maxReceiveCount": "1001"},
            "maxReceiveCount is 1,001, and SQS accepts 1 to 1,000",
        ),
        (
            {"DeadLetterTargetArn": DEAD_ARN, "MaxReceiveCount": 5},
            "it has no deadLetterTargetArn, in these letters",
        ),
        (
            {"deadLetterTargetArn": DEAD_ARN, "MaxReceiveCount": {"Ref": "Open"}},
            "it has no maxReceiveCount, in these letters",
        ),
        ('{"maxReceiveCount": 3}', "it has no deadLetterTargetArn, in these letters"),
        (
            {"deadLetterTargetArn": {"Ref": "Dead"}, "maxReceiveCount": 5},
            "deadLetterTargetArn is the URL of a queue and not its ARN",
        ),
    ],
)
def test_lint_reports_a_redrive_policy_that_sqs_refuses(redrive_policy: Any, reason: str) -> None:
    (finding,) = _list_refusals(_lint_queue({"RedrivePolicy": redrive_policy}))
    assert finding.because == f"SQS refuses the RedrivePolicy: {reason}"
    assert finding.path == "Resources.Orders.Properties.RedrivePolicy"


@pytest.mark.parametrize(
    "redrive_policy",
    [
        REDRIVE,
        {**REDRIVE, "maxReceiveCount": "1000"},
        {**REDRIVE, "maxReceiveCount": 1},
        {**REDRIVE, "maxReceiveCount": {"Ref": "Open"}},
        {"deadLetterTargetArn": {"Fn::ImportValue": "dead"}, "maxReceiveCount": 5},
        {"Fn::If": ["IsLive", REDRIVE, {"Ref": "AWS::NoValue"}]},
        {},
    ],
    ids=str,
)
def test_lint_does_not_refuse_a_redrive_policy_that_sqs_may_accept(redrive_policy: Any) -> None:
    result = _lint_queue({"RedrivePolicy": redrive_policy}, Parameters={"Open": {"Type": "Number"}})
    assert _list_refusals(result) == []


@pytest.mark.parametrize(
    "redrive_policy",
    [
        {"DeadLetterTargetArn": DEAD_ARN, "MaxReceiveCount": 5},
        {"deadLetterTargetArn": {"Ref": "Dead"}, "maxReceiveCount": 5},
        {**REDRIVE, "maxReceiveCount": 0},
    ],
    ids=["wrong letters", "URL", "count of 0"],
)
def test_dlq_of_a_refused_redrive_policy_is_still_judged_as_a_dlq(redrive_policy: Any) -> None:
    mapping = {
        "EventSourceArn": DEAD_ARN,
        "FunctionName": {"Ref": "Look"},
        "BatchSize": 1,
    }
    resources = {
        "Orders": {"Type": "AWS::SQS::Queue", "Properties": {"RedrivePolicy": redrive_policy}},
        "Dead": {"Type": "AWS::SQS::Queue", "Properties": {"MessageRetentionPeriod": 1_209_600}},
        "Look": {"Type": "AWS::Lambda::Function", "Properties": {"Timeout": 5}},
        "Reads": {"Type": "AWS::Lambda::EventSourceMapping", "Properties": mapping},
    }
    result = lint(read_template(json.dumps({"Resources": resources}).encode()), "", DeployTarget())
    errors = [finding.symptom for finding in result.findings if finding.severity == "error"]
    assert errors == ["invalid_request"], "a DLQ needs no DLQ"


@pytest.mark.parametrize(
    ("properties", "attribute"),
    [
        ({"FifoQueue": True, "QueueName": "orders"}, "QueueName"),
        ({"QueueName": "orders.fifo"}, "QueueName"),
        ({"QueueName": "orders.new"}, "QueueName"),
        ({"QueueName": "o" * 81}, "QueueName"),
        ({"ContentBasedDeduplication": True}, "ContentBasedDeduplication"),
        ({"KmsMasterKeyId": "alias/own", "SqsManagedSseEnabled": True}, "SqsManagedSseEnabled"),
    ],
    ids=str,
)
def test_lint_reports_settings_that_sqs_refuses_together(
    properties: dict[str, Any], attribute: str
) -> None:
    (finding,) = _list_refusals(_lint_queue(properties))
    assert finding.path == f"Resources.Orders.Properties.{attribute}"
    assert finding.because.startswith("SQS refuses the queue: ")
    assert finding.remedy


@pytest.mark.parametrize(
    "properties",
    [
        {"FifoQueue": True, "QueueName": "orders.fifo", "ContentBasedDeduplication": True},
        {"FifoQueue": True},
        {"FifoQueue": "True", "ContentBasedDeduplication": "True"},
        {"QueueName": "o" * 80},
        {"QueueName": "{{resolve:ssm:/name}}"},
        {"QueueName": ".fifo", "FifoQueue": True},
        {"QueueName": {"Fn::Sub": "${AWS::StackName}-orders"}},
        {"QueueName": {"Fn::ImportValue": "name"}},
        {"ContentBasedDeduplication": False},
        {"KmsMasterKeyId": "alias/own", "SqsManagedSseEnabled": False},
        {"KmsMasterKeyId": {"Fn::If": ["IsLive", "x", ""]}, "SqsManagedSseEnabled": True},
    ],
    ids=str,
)
def test_lint_reports_no_settings_that_sqs_accepts_together(properties: dict[str, Any]) -> None:
    assert _list_refusals(_lint_queue(properties)) == []


@pytest.mark.parametrize(
    ("properties", "reason"),
    [
        ({"VisibilityTimeout": "soon"}, "its VisibilityTimeout is 'soon', and SQS accepts a whole"),
        ({"DelaySeconds": "30.5"}, "its DelaySeconds is '30.5', and SQS accepts a whole number"),
        ({"FifoQueue": "perhaps"}, "its FifoQueue is 'perhaps', and SQS accepts true or false"),
        (
            {"FifoQueue": True, "DeduplicationScope": "group"},
            "its DeduplicationScope is 'group', and SQS accepts messageGroup or queue",
        ),
        ({"DeduplicationScope": "queue"}, "only a FIFO queue has DeduplicationScope"),
        ({"FifoThroughputLimit": "perQueue"}, "only a FIFO queue has FifoThroughputLimit"),
        (
            {
                "FifoQueue": True,
                "DeduplicationScope": "queue",
                "FifoThroughputLimit": "perMessageGroupId",
            },
            "a FifoThroughputLimit of perMessageGroupId needs the DeduplicationScope messageGroup",
        ),
        ({"VisibilityTimeoutSeconds": 30}, "it has no property 'VisibilityTimeoutSeconds'"),
    ],
    ids=str,
)
def test_lint_reports_a_value_or_property_of_a_queue_that_aws_refuses(
    properties: dict[str, Any], reason: str
) -> None:
    (finding,) = _list_refusals(_lint_queue(properties))
    assert reason in finding.because
    assert finding.severity == "error"
    assert finding.remedy[0].startswith("# ")


def test_remedy_for_an_unknown_property_of_a_queue_names_the_similar_one() -> None:
    (finding,) = _list_refusals(_lint_queue({"VisibilityTimeoutSeconds": 30}))
    assert finding.path == "Resources.Orders.Properties.VisibilityTimeoutSeconds"
    assert finding.remedy[0].endswith("or write it as VisibilityTimeout")


@pytest.mark.parametrize(
    "properties",
    [
        {"VisibilityTimeouts": {"Ref": "AWS::NoValue"}},
        {"Fn::Transform": {"Name": "AWS::Include"}},
        {"FifoQueue": True, "DeduplicationScope": "queue", "FifoThroughputLimit": "perQueue"},
        {"FifoQueue": True, "DeduplicationScope": "messageGroup"},
        {"DeduplicationScope": {"Fn::ImportValue": "scope"}},
        {"Tags": []},
    ],
    ids=str,
)
def test_lint_reports_no_property_of_a_queue_that_aws_may_accept(
    properties: dict[str, Any],
) -> None:
    assert _list_refusals(_lint_queue(properties)) == []


@pytest.mark.parametrize(
    ("redrive_allow_policy", "reason"),
    [
        ({"redrivePermission": "all"}, "its redrivePermission is 'all', and SQS accepts allowAll"),
        ({"RedrivePermission": "denyAll"}, "it has no redrivePermission, in these letters"),
        (
            {"redrivePermission": "allowAll", "sourceQueueArns": [DEAD_ARN]},
            "only byQueue takes sourceQueueArns",
        ),
        (
            {"redrivePermission": "byQueue", "sourceQueueArns": ["arn:aws:sqs:a:1:b"] * 11},
            "it names 11 queues, and SQS accepts 10",
        ),
    ],
    ids=str,
)
def test_lint_reports_a_redrive_allow_policy_that_sqs_refuses(
    redrive_allow_policy: Any, reason: str
) -> None:
    (finding,) = _list_refusals(_lint_queue({"RedriveAllowPolicy": redrive_allow_policy}))
    assert finding.because.startswith(f"SQS refuses the RedriveAllowPolicy: {reason}")
    assert finding.path == "Resources.Orders.Properties.RedriveAllowPolicy"


@pytest.mark.parametrize(
    "redrive_allow_policy",
    [
        {"redrivePermission": "denyAll"},
        {"redrivePermission": "byQueue", "sourceQueueArns": ["arn:aws:sqs:a:1:b"] * 10},
        {"redrivePermission": {"Ref": "Open"}},
        {"redrivePermission": "${permission}"},
        "",
    ],
    ids=str,
)
def test_lint_does_not_refuse_a_redrive_allow_policy_that_sqs_may_accept(
    redrive_allow_policy: Any,
) -> None:
    result = _lint_queue(
        {"RedriveAllowPolicy": redrive_allow_policy}, Parameters={"Open": {"Type": "String"}}
    )
    assert _list_refusals(result) == []


def test_lint_reports_a_word_in_place_of_the_receive_count_of_a_redrive_policy() -> None:
    (finding,) = _list_refusals(
        _lint_queue({"RedrivePolicy": {**REDRIVE, "maxReceiveCount": "five"}})
    )
    assert "maxReceiveCount is 'five', and SQS accepts 1 to 1,000" in finding.because


GRANT = {"Effect": "Allow", "Principal": "*", "Action": "sqs:SendMessage", "Resource": "*"}


def _lint_policy(*statements: Any) -> list[LintFinding]:
    """Return what SQS refuses of a queue with a policy of these statements."""
    policy = {"Queues": [{"Ref": "Orders"}], "PolicyDocument": {"Statement": [*statements]}}
    resources = {
        "Orders": {"Type": "AWS::SQS::Queue"},
        "OrdersPolicy": {"Type": "AWS::SQS::QueuePolicy", "Properties": policy},
    }
    content = json.dumps({"Parameters": {"Open": {"Type": "String"}}, "Resources": resources})
    return _list_refusals(lint(read_template(content.encode()), "", DeployTarget()))


def _leave_out(element: str) -> dict[str, Any]:
    return {name: value for name, value in GRANT.items() if name != element}


@pytest.mark.parametrize(
    ("statement", "reason"),
    [
        (_leave_out("Principal"), "its statement 2 has no Principal"),
        (_leave_out("Action"), "its statement 2 has no Action"),
        (_leave_out("Effect"), "its statement 2 has no Effect"),
        ({**GRANT, "Effect": "allow"}, "its statement 2 has the Effect 'allow'"),
        ({**GRANT, "Sid": "Send", "Action": "sns:Publish"}, "'Send' has the Action 'sns:Publish'"),
        ({**GRANT, "Action": ["sqs:SendMessage"] * 8}, "8 actions, and SQS accepts 7"),
    ],
    ids=str,
)
def test_lint_reports_a_statement_that_sqs_refuses_in_a_policy(
    statement: dict[str, Any], reason: str
) -> None:
    (finding,) = _lint_policy(GRANT, statement)
    assert reason in finding.because
    assert finding.path == "Resources.OrdersPolicy.Properties.PolicyDocument"
    assert finding.severity == "error"


@pytest.mark.parametrize(
    "statement",
    [
        GRANT,
        {**_leave_out("Principal"), "NotPrincipal": {"AWS": "123456789012"}, "Effect": "Deny"},
        {**_leave_out("Action"), "NotAction": "sqs:DeleteQueue"},
        {**GRANT, "Action": ["SQS:SendMessage", "*", "sqs:*"]},
        {**GRANT, "Action": ["sqs:SendMessage"] * 7},
        {**GRANT, "Effect": {"Ref": "Open"}, "Action": {"Ref": "Open"}},
        {"Ref": "Open"},
        {"Fn::Transform": {"Name": "AWS::Include"}},
    ],
    ids=str,
)
def test_lint_reports_no_statement_that_sqs_may_accept(statement: dict[str, Any]) -> None:
    assert _lint_policy(statement) == []
