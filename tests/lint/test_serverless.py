"""What `mendq lint` makes of a `serverless.yml`."""

from __future__ import annotations

import pytest

from mendq.lint.decode import read_template
from mendq.lint.judging import LintResult, lint
from mendq.lint.template import NotATemplate, WorkBudget
from mendq.lint.values import DeployTarget

QUEUES = """
resources:
  Resources:
    Orders:
      Type: AWS::SQS::Queue
      Properties:
        VisibilityTimeout: 36
        RedrivePolicy: {deadLetterTargetArn: !GetAtt OrdersDlq.Arn, maxReceiveCount: 5}
    OrdersDlq:
      Type: AWS::SQS::Queue
      Properties: {MessageRetentionPeriod: 1209600}
    TlsOnly:
      Type: AWS::SQS::QueuePolicy
      Properties:
        Queues: [!Ref Orders, !Ref OrdersDlq]
        PolicyDocument:
          Statement:
            - {Effect: Deny, Principal: "*", Action: "sqs:*", Resource: "*",
               Condition: {Bool: {"aws:SecureTransport": "false"}}}
"""
HEAD = "service: shop\nprovider: {name: aws}\n"
EVENT = "events: [{sqs: {arn: !GetAtt Orders.Arn, batchSize: 1}}]"


def _lint_serverless(functions: str, *, head: str = HEAD, queues: str = QUEUES) -> LintResult:
    content = f"{head}functions:\n{functions}{queues}".encode()
    return lint(read_template(content), "serverless.yml", DeployTarget())


def _list_findings(result: LintResult) -> list[str]:
    return [f"{finding.resource}: {finding.symptom}" for finding in result.findings]


def test_lint_of_a_function_with_the_default_timeout_of_the_framework_needs_36_seconds() -> None:
    """The Serverless Framework's default is 6 seconds."""
    function = f"  bill: {{handler: a.b, {EVENT}}}\n"
    result = _lint_serverless(function)
    assert _list_findings(result) == []
    assert result.not_judged == []
    shorter = QUEUES.replace("VisibilityTimeout: 36", "VisibilityTimeout: 35")
    result = _lint_serverless(function, queues=shorter)
    assert _list_findings(result) == ["Orders: visibility_timeout_too_short"]


@pytest.mark.parametrize(
    ("head", "timeout"),
    [
        (HEAD, "60"),
        (f"{HEAD}custom: {{seconds: 60}}\n", "'${self:custom.seconds}'"),
        (f"{HEAD}custom: {{seconds: {{dev: 60}}}}\n", "'${self:custom.seconds.${opt:stage}}'"),
        (HEAD, "\"${self:custom.none, '60'}\""),
        (HEAD, '"${self:custom.none, 60}"'),
    ],
    ids=["number", "custom", "variable in a variable", "default text", "default number"],
)
def test_lint_finds_a_timeout_that_is_too_short_with_its_line(head: str, timeout: str) -> None:
    function = f"  bill: {{handler: a.b, timeout: {timeout}, {EVENT}}}\n"
    result = _lint_serverless(function, head=head)
    assert _list_findings(result) == ["Orders: visibility_timeout_too_short"]
    (finding,) = result.findings
    assert finding.path == "resources.Resources.Orders.Properties.VisibilityTimeout"
    assert finding.remedy == ("VisibilityTimeout: 360",)
    assert finding.line is not None


def test_lint_takes_a_functions_timeout_from_its_provider() -> None:
    head = "service: shop\nprovider: {name: aws, timeout: 60}\n"
    result = _lint_serverless(f"  bill: {{handler: a.b, {EVENT}}}\n", head=head)
    assert _list_findings(result) == ["Orders: visibility_timeout_too_short"]


def test_lint_says_which_default_of_a_variable_it_used() -> None:
    function = f"  bill: {{handler: a.b, timeout: \"${{self:custom.none, '60'}}\", {EVENT}}}\n"
    result = _lint_serverless(function)
    assert result.defaults == [{"parameter": "self:custom.none, '60'", "value": "60"}]


def test_lint_leaves_a_timeout_of_an_unknown_variable_undecided() -> None:
    function = f"  bill: {{handler: a.b, timeout: '${{ssm:/shop/timeout}}', {EVENT}}}\n"
    result = _lint_serverless(function)
    assert _list_findings(result) == []
    (place,) = result.not_judged
    assert place.path == "functions.bill.events.0.sqs"
    assert place.symptoms == ("visibility_timeout_too_short",)


@pytest.mark.parametrize(
    ("event", "findings"),
    [
        ("sqs: !GetAtt Orders.Arn", ["Orders: batch_failures_not_reported"]),
        ("sqs: {arn: !GetAtt Orders.Arn, enabled: false}", []),
        ("sqs: {arn: !GetAtt Orders.Arn, functionResponseType: ReportBatchItemFailures}", []),
        ("sqs: {arn: !GetAtt Orders.Arn, batchSize: 10}", ["Orders: batch_failures_not_reported"]),
        ("http: {path: /, method: get}", []),
    ],
)
def test_lint_reads_the_settings_of_an_sqs_event(event: str, findings: list[str]) -> None:
    result = _lint_serverless(f"  bill: {{handler: a.b, events: [{{{event}}}]}}\n")
    assert _list_findings(result) == findings


def test_lint_finding_about_an_event_points_to_its_line() -> None:
    function = """  bill:
    handler: a.b
    events:
      - http: {path: /, method: get}
      - sqs: {arn: !GetAtt Orders.Arn}
"""
    (finding,) = _lint_serverless(function).findings
    assert finding.path == "functions.bill.events.1.sqs"
    assert finding.line == 8


def test_lint_reads_resources_in_a_list_and_names_those_in_other_files() -> None:
    queues = """
resources:
  - ${file(other.yml)}
  - Resources:
      Orders: {Type: AWS::SQS::Queue, Properties: {VisibilityTimeout: 36}}
"""
    result = _lint_serverless(f"  bill: {{handler: a.b, {EVENT}}}\n", queues=queues)
    assert result.queues == 1
    (finding,) = [finding for finding in result.findings if finding.symptom == "dlq_missing"]
    assert finding.path == "resources.1.Resources.Orders"
    (place,) = result.not_judged
    assert place.path == "resources.0"
    assert "another file" in place.because


@pytest.mark.parametrize(
    "functions",
    [
        "  bill: ${file(bill.yml)}\n",
        "  bill: [1, 2]\n",
        "  bill: {events: '${file(events.yml)}'}\n",
        "  bill: {events: [1, ~, {sqs: ~}, {sqs: [a]}, {sqs: {arn: {a: b}}}]}\n",
        "  - ${file(functions.yml)}\n",
        "  bill: {timeout: '${self:functions.bill.timeout}', events: [sqs: !GetAtt Orders.Arn]}\n",
    ],
)
def test_lint_of_malformed_or_split_functions_still_judges_the_queues(functions: str) -> None:
    result = _lint_serverless(functions)
    assert result.queues == 2
    assert "Orders: visibility_timeout_too_short" not in _list_findings(result)


def test_lint_refuses_a_serverless_file_whose_variables_take_too_much_work() -> None:
    custom = "custom: {long: '" + "x" * 60_000 + "'}\n"
    names = "".join(
        f"    Queue{number}: {{Type: AWS::SQS::Queue, Properties: {{QueueName: "
        "'${self:custom.long}${self:custom.long}'}}\n"
        for number in range(100)
    )
    content = f"{HEAD}{custom}resources:\n  Resources:\n{names}".encode()
    with pytest.raises(NotATemplate, match="steps"):
        read_template(content, WorkBudget(1_000_000))
