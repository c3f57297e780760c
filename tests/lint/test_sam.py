"""What `mendq lint` and `mendq patch` make of SAM templates."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from samtranslator.translator.translator import Translator

from mendq.lint.decode import read_template
from mendq.lint.judging import LintResult, lint
from mendq.lint.patch import WantedValues, make_patch
from mendq.lint.template import NotATemplate, WorkBudget
from mendq.lint.values import DeployTarget
from mendq.model.severity_class import SeverityClass

HEADER = "Transform: AWS::Serverless-2016-10-31\n"
# A queue that has nothing to find, unless its consumer needs more than six seconds.
SOUND_QUEUES = """
  Orders:
    Type: AWS::SQS::Queue
    Properties:
      VisibilityTimeout: 36
      SqsManagedSseEnabled: true
      RedrivePolicy: {deadLetterTargetArn: !GetAtt OrdersDlq.Arn, maxReceiveCount: 5}
  OrdersDlq:
    Type: AWS::SQS::Queue
    Properties: {MessageRetentionPeriod: 1209600, SqsManagedSseEnabled: true}
  TlsOnly:
    Type: AWS::SQS::QueuePolicy
    Properties:
      Queues: [!Ref Orders, !Ref OrdersDlq]
      PolicyDocument:
        Statement:
          - {Effect: Deny, Principal: "*", Action: "sqs:*", Resource: "*",
             Condition: {Bool: {"aws:SecureTransport": "false"}}}
"""
SQS_EVENT = "Events: {New: {Type: SQS, Properties: {Queue: !GetAtt Orders.Arn, BatchSize: 1}}}"


def _lint_sam(resources: str, *, sections: str = "") -> LintResult:
    text = f"{HEADER}{sections}Resources:\n{resources}"
    return lint(read_template(text.encode()), "template.yaml", DeployTarget())


def _list_findings(result: LintResult) -> list[str]:
    return [f"{finding.resource}: {finding.symptom}" for finding in result.findings]


def _make_function(timeout_line: str, more: str = SQS_EVENT) -> str:
    return f"""
  Bill:
    Type: AWS::Serverless::Function
    Properties:
      CodeUri: ./bill
      Handler: app.handler
      Runtime: python3.13
      {timeout_line}
      {more}
"""


def test_lint_of_sam_function_with_timeout_within_a_sixth_of_the_queues_finds_nothing() -> None:
    result = _lint_sam(SOUND_QUEUES + _make_function("Timeout: 6"))
    assert _list_findings(result) == []
    assert result.not_judged == []


def test_lint_of_sam_function_with_longer_timeout_finds_the_queues_timeout_with_its_line() -> None:
    result = _lint_sam(SOUND_QUEUES + _make_function("Timeout: 60"))
    assert _list_findings(result) == ["Orders: visibility_timeout_too_short"]
    (finding,) = result.findings
    assert finding.path == "Resources.Orders.Properties.VisibilityTimeout"
    assert finding.line == 7
    assert finding.remedy == ("VisibilityTimeout: 360",)


def test_lint_takes_a_sam_functions_timeout_from_globals() -> None:
    sections = "Globals: {Function: {Timeout: 60, MemorySize: 512, Layers: [a]}}\n"
    result = _lint_sam(SOUND_QUEUES + _make_function("MemorySize: 128"), sections=sections)
    assert _list_findings(result) == ["Orders: visibility_timeout_too_short"]


def test_lint_names_the_parameter_whose_default_decided_about_a_sam_function() -> None:
    sections = "Parameters: {Seconds: {Type: Number, Default: 60}}\n"
    function = _make_function("Timeout: !Ref Seconds")
    result = _lint_sam(SOUND_QUEUES + function, sections=sections)
    assert _list_findings(result) == ["Orders: visibility_timeout_too_short"]
    assert result.defaults == [{"parameter": "Seconds", "value": "60"}]


@pytest.mark.parametrize(
    ("seconds", "more_symptoms"), [(5, []), (60, ["visibility_timeout_too_short"])]
)
def test_lint_of_a_disabled_event_reports_it_and_the_timeout_that_lambda_refuses(
    seconds: int, more_symptoms: list[str]
) -> None:
    properties = "{Queue: !GetAtt Orders.Arn, Enabled: false, BatchSize: 1}"
    event = f"Events: {{New: {{Type: SQS, Properties: {properties}}}}}"
    result = _lint_sam(SOUND_QUEUES + _make_function(f"Timeout: {seconds}", event))
    symptoms = {finding.symptom for finding in result.findings if finding.resource == "Orders"}
    assert symptoms == {"consumer_stopped", *more_symptoms}


@pytest.mark.parametrize("function_name", ["!Ref Bill", "!GetAtt Bill.Arn"])
def test_lint_of_a_mapping_to_a_sam_function_names_the_function_and_no_stand_in(
    function_name: str,
) -> None:
    mapping = f"""
  BillOrders:
    Type: AWS::Lambda::EventSourceMapping
    Properties: {{EventSourceArn: !GetAtt Orders.Arn, FunctionName: {function_name}}}
"""
    queue_without_dlq = "  Orders: {Type: AWS::SQS::Queue, Properties: {VisibilityTimeout: 36}}\n"
    result = _lint_sam(
        queue_without_dlq + _make_function("Timeout: 6", "MemorySize: 128") + mapping
    )
    (reason,) = [finding.because for finding in result.findings if finding.symptom == "dlq_missing"]
    assert "Bill" in reason
    assert "resource-" not in reason


def test_lint_of_a_mapping_to_a_function_alias_of_sam_finds_the_functions_timeout() -> None:
    function = _make_function("Timeout: 60", f"AutoPublishAlias: live\n      {SQS_EVENT}")
    assert _list_findings(_lint_sam(SOUND_QUEUES + function)) == [
        "Orders: visibility_timeout_too_short"
    ]


def test_lint_of_an_sqs_event_in_batches_without_failure_reports_points_to_the_event() -> None:
    event = "Events: {New: {Type: SQS, Properties: {Queue: !GetAtt Orders.Arn}}}"
    result = _lint_sam(SOUND_QUEUES + _make_function("Timeout: 6", event))
    assert _list_findings(result) == ["Orders: batch_failures_not_reported"]
    (finding,) = result.findings
    assert finding.path == "Resources.Bill.Properties.Events.New"
    assert finding.remedy[0].startswith("# add to Bill.Properties.Events.New. ")
    assert "FunctionResponseTypes:" in finding.remedy


SQS_SUBSCRIPTION = """
  Paid: {Type: AWS::SNS::Topic}
  Bill:
    Type: AWS::Serverless::Function
    Properties:
      Timeout: 60
      Events:
        OnPaid: {Type: SNS, Properties: {Topic: !Ref Paid, SqsSubscription: true}}
"""


def test_lint_of_a_queue_that_sam_makes_points_to_the_event_and_prints_no_lines_for_it() -> None:
    result = _lint_sam(SQS_SUBSCRIPTION)
    assert result.queues == 1
    assert {"BillOnPaidQueue: dlq_missing", "BillOnPaidQueue: visibility_timeout_too_short"} <= set(
        _list_findings(result)
    )
    for finding in result.findings:
        assert finding.path == "Resources.Bill.Properties.Events.OnPaid"
        assert finding.line == 10
        (remedy,) = finding.remedy
        assert remedy.startswith("# SAM makes this queue")


def test_lint_ignores_what_the_sam_function_of_a_generated_queue_ignores() -> None:
    ignoring = SQS_SUBSCRIPTION.replace(
        "Properties:\n      Timeout",
        "Metadata: {mendq: {ignore: [dlq_missing]}}\n    Properties:\n      Timeout",
    )
    result = _lint_sam(ignoring)
    assert "BillOnPaidQueue: dlq_missing" not in _list_findings(result)
    assert [finding.symptom for finding in result.ignored] == ["dlq_missing"]


def test_lint_of_a_subscription_to_an_own_queue_says_that_sam_writes_its_policy() -> None:
    subscription = "SqsSubscription: {QueueArn: !GetAtt Orders.Arn, QueueUrl: !Ref Orders}"
    queue = "  Orders: {Type: AWS::SQS::Queue, Properties: {VisibilityTimeout: 360}}\n"
    result = _lint_sam(queue + SQS_SUBSCRIPTION.replace("SqsSubscription: true", subscription))
    (remedy,) = [
        finding.remedy for finding in result.findings if finding.symptom == "tls_not_enforced"
    ]
    assert remedy[0].startswith("# SAM or the Serverless Framework generates this queue's policy")


def test_remedy_for_batch_failures_sets_nothing_that_a_sqs_subscription_does_not_take() -> None:
    """SAM refuses FunctionResponseTypes in an SNS event."""
    subscription = "SqsSubscription: {QueueArn: !GetAtt Orders.Arn, QueueUrl: !Ref Orders}"
    queue = "  Orders: {Type: AWS::SQS::Queue, Properties: {VisibilityTimeout: 360}}\n"
    result = _lint_sam(queue + SQS_SUBSCRIPTION.replace("SqsSubscription: true", subscription))
    (remedy,) = [
        finding.remedy
        for finding in result.findings
        if finding.symptom == "batch_failures_not_reported"
    ]
    assert all(line.startswith("# ") for line in remedy)
    assert "give the function an SQS event" in remedy[0]


def test_lint_judges_other_functions_if_sam_cannot_expand_one_and_says_why() -> None:
    broken = """
  Broken:
    Type: AWS::Serverless::Function
    Properties: {Events: {New: {Type: SQS, Properties: {BatchSize: 5}}}}
"""
    result = _lint_sam(SOUND_QUEUES + broken + _make_function("Timeout: 60"))
    assert _list_findings(result) == [
        "Orders: visibility_timeout_too_short",
        "Broken: invalid_request",
    ]
    (unchecked,) = result.not_judged
    assert unchecked.path == "Resources.Broken"
    assert "SAM refuses it" in unchecked.because


@pytest.mark.parametrize(
    ("properties", "reason", "remedy"),
    [
        ("BatchSize: 5", "Missing required property 'Queue'", "# add Queue"),
        (
            "Queue: !GetAtt Orders.Arn, DelaySeconds: 5",
            "property DelaySeconds not defined for resource of type SQS",
            "# leave DelaySeconds out, or spell it as SAM does",
        ),
        (
            "Queue: !GetAtt Orders.Arn, BatchSize: ten",
            "Type of property 'BatchSize' is invalid",
            "# give BatchSize a value of the type that SAM takes",
        ),
    ],
)
def test_lint_reports_an_sqs_event_that_sam_refuses_as_an_error_with_sams_reason(
    properties: str, reason: str, remedy: str
) -> None:
    event = f"Events: {{New: {{Type: SQS, Properties: {{{properties}}}}}}}"
    result = _lint_sam(SOUND_QUEUES + _make_function("Timeout: 6", event))
    (finding,) = [found for found in result.findings if found.symptom == "invalid_request"]
    assert finding.severity == "error"
    assert finding.severity_class is SeverityClass.STANDING_STILL
    assert finding.resource == "Bill"
    assert finding.path == "Resources.Bill.Properties.Events.New"
    assert reason in finding.because
    assert finding.remedy == (remedy,)


@pytest.mark.parametrize(
    "properties",
    [
        "Queue: !GetAtt Orders.Arn, BatchSize: '5'",
        "Queue: !GetAtt Orders.Arn, BatchSize: !Ref Size",
        "Queue: !GetAtt Orders.Arn, FutureConfig: {Level: 1}",
        "Fn::Transform: {Name: AWS::Include, Parameters: {Location: s3://bucket/event.yaml}}",
    ],
    ids=["digits in quotes", "parameter", "property of a newer SAM", "macro"],
)
def test_lint_reports_no_sam_event_that_a_newer_sam_or_a_macro_may_make_valid(
    properties: str,
) -> None:
    event = f"Events: {{New: {{Type: SQS, Properties: {{{properties}}}}}}}"
    sections = "Parameters: {Size: {Type: Number}}\n"
    function = _make_function("Timeout: 6", event)
    result = _lint_sam(SOUND_QUEUES + function, sections=sections)
    assert [found for found in result.findings if found.symptom == "invalid_request"] == []


def test_lint_reports_no_connector_whose_end_lint_does_not_give_to_sam() -> None:
    resources = """
  Site: {Type: AWS::Serverless::Api, Properties: {StageName: live, DefinitionUri: api.yaml}}
  Link:
    Type: AWS::Serverless::Connector
    Properties: {Source: {Id: Site}, Destination: {Id: Orders}, Permissions: [Write]}
"""
    result = _lint_sam(SOUND_QUEUES + resources)
    assert [found for found in result.findings if found.symptom == "invalid_request"] == []


APPLICATION = """App:
    Type: AWS::Serverless::Application
    Properties:
      Location:
        ApplicationId: arn:aws:serverlessrepo:us-east-1:111122223333:applications/shop
        SemanticVersion: 1.0.0
"""


@pytest.mark.parametrize(
    "other_resource",
    [
        "Shop: {Type: AWS::Serverless::Api, Properties: {DefinitionUri: ./api.yaml}}",
        "Shared: {Type: AWS::Serverless::LayerVersion, Properties: {ContentUri: ./layer}}",
    ],
    ids=["api", "layer"],
)
def test_lint_of_sam_resource_without_a_queue_says_nothing_and_calls_nobody(
    other_resource: str,
) -> None:
    result = _lint_sam(f"{SOUND_QUEUES}  {other_resource}\n" + _make_function("Timeout: 6"))
    assert _list_findings(result) == []
    assert result.not_judged == []


def test_lint_lists_an_application_of_a_repository_as_not_judged() -> None:
    result = _lint_sam(f"{SOUND_QUEUES}  {APPLICATION}\n" + _make_function("Timeout: 6"))
    assert _list_findings(result) == []
    (unchecked,) = result.not_judged
    assert unchecked.path == "Resources.App"
    assert unchecked.because.startswith("a nested stack: its template is not a file")


def test_lint_reads_a_connector_between_topic_and_queue_as_the_queues_policy() -> None:
    connector = """
  Orders: {Type: AWS::SQS::Queue, Properties: {}}
  Paid: {Type: AWS::SNS::Topic}
  PaidToOrders:
    Type: AWS::Serverless::Connector
    Properties: {Source: {Id: Paid}, Destination: {Id: Orders}, Permissions: [Write]}
"""
    result = _lint_sam(connector)
    assert result.not_judged == []
    (remedy,) = [
        finding.remedy for finding in result.findings if finding.symptom == "tls_not_enforced"
    ]
    assert remedy[0].startswith("# SAM or the Serverless Framework generates this queue's policy")


def test_lint_of_a_sam_template_in_json_gives_the_same_findings() -> None:
    template = {
        "Transform": ["AWS::Serverless-2016-10-31"],
        "Resources": {
            "Orders": {"Type": "AWS::SQS::Queue", "Properties": {"VisibilityTimeout": 30}},
            "Bill": {
                "Type": "AWS::Serverless::Function",
                "Properties": {
                    "PackageType": "Image",
                    "Timeout": 60,
                    "Events": {
                        "New": {
                            "Type": "SQS",
                            "Properties": {"Queue": {"Fn::GetAtt": ["Orders", "Arn"]}},
                        }
                    },
                },
            },
        },
    }
    result = lint(read_template(json.dumps(template).encode()), "t.json", DeployTarget())
    assert "Orders: visibility_timeout_too_short" in _list_findings(result)


@pytest.mark.parametrize(
    "resources",
    [
        "  Bill: {Type: AWS::Serverless::Function}\n",
        "  Bill: {Type: AWS::Serverless::Function, Properties: {Events: [1, 2]}}\n",
        "  Bill: {Type: AWS::Serverless::Function, Properties: {Events: {New: {Type: SQS}}}}\n",
        "  Bill: {Type: AWS::Serverless::Function, Properties: {Timeout: {a: b}}}\n",
        "  Bill: {Type: AWS::Serverless::Function, Properties: !Ref Nothing}\n",
        "  Bill: {Type: AWS::Serverless::Connector, Properties: {Source: 1, Destination: [2]}}\n",
        "  Bill: nonsense\n",
        "  Bill: {Type: [AWS::Serverless::Function]}\n",
        "  'Fn::ForEach::Bills': [Name, [a, b], {}]\n",
    ],
)
def test_lint_of_malformed_sam_resource_still_judges_the_queues(resources: str) -> None:
    queue = "  Orders: {Type: AWS::SQS::Queue, Properties: {KmsMasterKeyId: alias/aws/sqs}}\n"
    assert _lint_sam(queue + resources).queues == 1


def test_lint_refuses_a_sam_template_that_takes_more_work_than_its_budget() -> None:
    text = f"{HEADER}Resources:\n" + "".join(
        f"  Bill{number}: {{Type: AWS::Serverless::Function, Properties: {{Timeout: 3}}}}\n"
        for number in range(100)
    )
    assert read_template(text.encode()).resources
    with pytest.raises(NotATemplate, match="steps"):
        read_template(text.encode(), WorkBudget(30_000))


ACCOUNT_QUEUE_ARN = "arn:aws:sqs:us-east-1:111122223333:orders"


def test_patch_of_a_sam_template_changes_the_queue_that_the_file_declares(tmp_path: Path) -> None:
    template = tmp_path / "template.yaml"
    template.write_text(f"{HEADER}Resources:\n{SOUND_QUEUES}{_make_function('Timeout: 60')}")
    wanted = WantedValues(ACCOUNT_QUEUE_ARN, {"VisibilityTimeout": "360"}, requested_id="Orders")
    result = make_patch(str(template), wanted)
    assert "+      VisibilityTimeout: 360" in [line.rstrip() for line in result.diff]


def test_patch_of_a_queue_that_sam_makes_changes_nothing_and_says_what_to_declare(
    tmp_path: Path,
) -> None:
    template = tmp_path / "template.yaml"
    template.write_text(f"{HEADER}Resources:\n{SQS_SUBSCRIPTION}")
    wanted = WantedValues(
        ACCOUNT_QUEUE_ARN, {"VisibilityTimeout": "360"}, requested_id="BillOnPaidQueue"
    )
    result = make_patch(str(template), wanted)
    assert result.diff == []
    (change,) = result.changes
    assert "declare a queue of your own" in change.note


def test_lint_judges_the_queues_if_the_sam_translator_itself_fails(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*_arguments: object, **_options: object) -> None:
        raise KeyError("a fault of the translator")

    monkeypatch.setattr(Translator, "translate", fail)
    result = _lint_sam(SOUND_QUEUES + _make_function("Timeout: 60"))
    assert result.queues == 2
    (unchecked,) = result.not_judged
    assert unchecked.path == "Resources.Bill"
    assert unchecked.because == "the SAM translator ends with KeyError"


def test_lint_names_every_sam_function_if_sam_refuses_the_template_and_names_none() -> None:
    function = _make_function("Timeout: 60", "DeadLetterQueue: {Type: {a: b}, TargetArn: x}")
    result = _lint_sam(SOUND_QUEUES + function)
    assert [place.path for place in result.not_judged] == ["Resources.Bill"]


def test_lint_expands_a_state_machine_that_brings_its_own_role() -> None:
    state_machine = """
  Flow:
    Type: AWS::Serverless::StateMachine
    Properties: {DefinitionUri: flow.asl.json, Role: !GetAtt FlowRole.Arn}
  FlowRole: {Type: AWS::IAM::Role, Properties: {AssumeRolePolicyDocument: {}}}
"""
    assert _lint_sam(SOUND_QUEUES + state_machine).not_judged == []


@pytest.mark.parametrize(
    "properties",
    [
        "Events: {A: {Type: Schedule, Properties: {Schedule: x, DeadLetterConfig: {Type: SQS}}}}",
        "EventInvokeConfig: {DestinationConfig: {OnFailure: {Type: SQS}}}",
    ],
    ids=["DLQ of a schedule", "destination of failed runs"],
)
def test_lint_judges_a_queue_that_sam_makes_for_failures_at_the_functions_lines(
    properties: str,
) -> None:
    result = _lint_sam(_make_function("Timeout: 6", properties))
    assert result.queues == 1
    assert result.findings
    assert {finding.path.split(".")[1] for finding in result.findings} == {"Bill"}


def test_lint_of_a_sam_template_prints_none_of_the_translators_warnings(tmp_path: Path) -> None:
    template = tmp_path / "template.yaml"
    template.write_text(f"{HEADER}Resources:\n{SOUND_QUEUES}{_make_function('Timeout: 6')}")
    command = [sys.executable, "-c", "from mendq.cli.app import app; app()", "lint", str(template)]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.stderr == ""
