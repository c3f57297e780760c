"""Nested stacks whose templates are files beside the template."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from mendq.cli.app import app
from mendq.lint.decode import read_template_source
from mendq.lint.files import list_template_sources
from mendq.lint.folder import MOST_NAMED_FILES
from mendq.lint.judging import LintResult, lint
from mendq.lint.nested import MOST_LEVELS
from mendq.lint.patch import WantedValues, make_patch
from mendq.lint.template import MOST_RESOURCES, NotATemplate
from tests.lint.builders import make_stack_artifact, write_cloud_assembly

QUEUES = """
Parameters:
  Visible: {Type: Number, Default: 30}
Resources:
  Orders:
    Type: AWS::SQS::Queue
    Properties:
      VisibilityTimeout: !Ref Visible
      RedrivePolicy: {deadLetterTargetArn: !GetAtt Dlq.Arn, maxReceiveCount: 5}
  Dlq: {Type: AWS::SQS::Queue, Properties: {MessageRetentionPeriod: 1209600}}
Outputs:
  Arn: {Value: !GetAtt Orders.Arn}
  Url: {Value: !Ref Orders}
"""
WORKER = """
Parameters:
  QueueArn: {Type: String}
Resources:
  Bill: {Type: AWS::Lambda::Function, Properties: {Timeout: 30}}
  BillOrders:
    Type: AWS::Lambda::EventSourceMapping
    Properties:
      {EventSourceArn: !Sub "${QueueArn}", FunctionName: !Ref Bill, BatchSize: 1}
"""
ROOT = """
Resources:
  Queues:
    Type: AWS::CloudFormation::Stack
    Properties: {TemplateURL: parts/queues.yaml, Parameters: {Visible: 20}}
  Worker:
    Type: AWS::CloudFormation::Stack
    Properties: {TemplateURL: ./worker.yaml, Parameters: {QueueArn: !GetAtt Queues.Outputs.Arn}}
"""


def _write(folder: Path, **files: str) -> Path:
    """Write the three templates, or others, and return the path of the outermost."""
    texts = {"root": ROOT, "parts/queues": QUEUES, "worker": WORKER} | files
    for name, text in texts.items():
        path = folder / f"{name}.yaml"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    return folder / "root.yaml"


def _lint(path: Path) -> LintResult:
    (source, *_) = list_template_sources(str(path))
    return lint(read_template_source(source), source.file, source.deploy_target)


def _list_findings(result: LintResult) -> dict[str, str]:
    return {
        f"{finding.resource}: {finding.symptom}": f"{finding.file}:{finding.line}"
        for finding in result.findings
        if finding.severity != "note"
    }


def _list_reasons(result: LintResult) -> list[str]:
    return [place.because for place in result.not_judged]


def test_nested_stacks_are_judged_with_parameters_and_outputs_in_their_own_files(
    tmp_path: Path,
) -> None:
    result = _lint(_write(tmp_path))
    assert _list_findings(result) == {
        "Queues.Orders: visibility_timeout_too_short": "parts/queues.yaml:8"
    }
    assert "may run 30 s" in result.findings[0].because
    assert result.findings[0].path == "Resources.Orders.Properties.VisibilityTimeout"
    assert result.queues == 2
    assert result.not_judged == []
    assert result.defaults == []
    assert result.nested_files == ("parts/queues.yaml", "worker.yaml")


def test_nested_queue_whose_parameter_is_long_enough_has_no_finding(tmp_path: Path) -> None:
    result = _lint(_write(tmp_path, root=ROOT.replace("Visible: 20", "Visible: 180")))
    assert _list_findings(result) == {}


def test_nested_parameter_that_is_not_passed_is_taken_at_its_default(tmp_path: Path) -> None:
    root = ROOT.replace(", Parameters: {Visible: 20}", "")
    result = _lint(_write(tmp_path, root=root))
    assert [*_list_findings(result)] == ["Queues.Orders: visibility_timeout_too_short"]
    assert result.defaults == [{"parameter": "Queues.Visible", "value": "30"}]


def test_remedy_for_a_nested_queue_has_the_names_of_its_own_file(tmp_path: Path) -> None:
    queues = QUEUES.replace("      RedrivePolicy:", "      # RedrivePolicy:")
    result = _lint(_write(tmp_path, **{"parts/queues": queues}))
    remedies = [line for finding in result.findings for line in finding.remedy]
    assert "OrdersDlq:" in remedies
    assert "    - OrdersDlq" in remedies
    assert not [line for line in remedies if "Queues." in line]


def test_same_template_in_two_stacks_is_judged_once_for_each(tmp_path: Path) -> None:
    root = f"{ROOT}  More:\n    Type: AWS::CloudFormation::Stack\n"
    root += "    Properties: {TemplateURL: parts/queues.yaml, Parameters: {Visible: 180}}\n"
    worker = "    Properties: {TemplateURL: worker.yaml, Parameters: {QueueArn: !GetAtt More."
    root += f"  MoreWorker:\n    Type: AWS::CloudFormation::Stack\n{worker}Outputs.Arn}}}}\n"
    result = _lint(_write(tmp_path, root=root))
    assert [*_list_findings(result)] == ["Queues.Orders: visibility_timeout_too_short"]
    assert result.queues == 4


def test_mappings_conditions_and_the_stack_name_of_a_nested_template_are_its_own(
    tmp_path: Path,
) -> None:
    sections = "Mappings: {Stages: {prod: {seconds: 20}}}\nParameters: {Stage: {Type: String}}\n"
    queues = QUEUES.replace("Parameters:\n  Visible: {Type: Number, Default: 30}\n", sections)
    queues = queues.replace("!Ref Visible", "!FindInMap [Stages, !Ref Stage, seconds]")
    queues = queues.replace(
        "Properties:\n", 'Properties:\n      QueueName: !Sub "${AWS::StackName}"\n'
    )
    root = f"Mappings: {{Stages: {{prod: {{seconds: 180}}}}}}{ROOT}"
    root = root.replace("Visible: 20", "Stage: prod")
    result = _lint(_write(tmp_path, root=root, **{"parts/queues": queues}))
    assert [*_list_findings(result)] == ["Queues.Orders: visibility_timeout_too_short"]
    assert result.queue_name_by_id["Queues.Orders"] == "stack-name-Queues"


def test_list_that_an_outer_template_passes_is_split_into_its_items(tmp_path: Path) -> None:
    queues = QUEUES.replace("Number, Default: 30", "CommaDelimitedList")
    queues = queues.replace("!Ref Visible", "!Length {Ref: Visible}")
    result = _lint(_write(tmp_path, **{"parts/queues": queues}, root=ROOT.replace("20", "'a, b'")))
    assert "the visibility timeout of 2 s" in result.findings[0].because
    root = ROOT.replace("20", "!Join [',', [a, b]]")
    result = _lint(_write(tmp_path, **{"parts/queues": queues}, root=root))
    assert [*_list_findings(result)] == []
    assert "Fn::Split: known when it is deployed" in _list_reasons(result)


def test_nested_sam_application_with_a_local_location_is_judged(tmp_path: Path) -> None:
    root = ROOT.replace("AWS::CloudFormation::Stack", "AWS::Serverless::Application")
    root = root.replace("TemplateURL", "Location")
    worker = (
        "Transform: AWS::Serverless-2016-10-31\nParameters: {QueueArn: {Type: String}}\n"
        "Resources:\n  Bill:\n    Type: AWS::Serverless::Function\n    Properties:\n"
        "      Timeout: 30\n      Events:\n"
        "        Paid: {Type: SQS, Properties: {Queue: !Ref QueueArn, BatchSize: 5}}\n"
    )
    result = _lint(
        _write(tmp_path, root=f"Transform: AWS::Serverless-2016-10-31{root}", worker=worker)
    )
    assert _list_findings(result) == {
        "Queues.Orders: visibility_timeout_too_short": "parts/queues.yaml:8",
        "Queues.Orders: batch_failures_not_reported": "worker.yaml:9",
    }
    assert result.not_judged == []


def test_nested_stack_of_a_cdk_app_is_found_by_its_asset(tmp_path: Path) -> None:
    out = write_cloud_assembly(tmp_path / "cdk.out", {"A": make_stack_artifact("A.json")})
    stack: Any = {
        "Type": "AWS::CloudFormation::Stack",
        "Properties": {"TemplateURL": {"Fn::Sub": "https://s3/${AWS::Region}"}},
        "Metadata": {"aws:asset:path": "inner.json", "aws:asset:property": "TemplateURL"},
    }
    (out / "A.json").write_text(json.dumps({"Resources": {"Inner": stack}}))
    queue = {
        "Type": "AWS::SQS::Queue",
        "Properties": {"DelaySeconds": 900, "MessageRetentionPeriod": 60},
    }
    (out / "inner.json").write_text(json.dumps({"Resources": {"Orders": queue}}))
    result = _lint(out)
    assert [*_list_findings(result)] == ["Inner.Orders: messages_expire"]


@pytest.mark.parametrize(
    ("location", "reason"),
    [
        ("https://s3.amazonaws.com/b/queues.yaml", "is not a file below this template's folder"),
        ("!Sub 's3://${Bucket}/queues.yaml'", "is not a file below this template's folder"),
        ("../queues.yaml", "it is not below the template's folder"),
        ("/etc/hostname", "it is not below the template's folder"),
        ("link.yaml", "it is not below the template's folder"),
        ("gone.yaml", "there is no such file"),
        ("root.yaml", "root.yaml contains itself"),
        ("broken.yaml", "broken.yaml: line 2: no YAML"),
        ("list.yaml", "list.yaml: no CloudFormation template"),
    ],
)
def test_nested_stack_that_cannot_be_read_is_listed_with_the_reason(
    tmp_path: Path, location: str, reason: str
) -> None:
    (tmp_path / "queues.yaml").write_text(QUEUES)
    folder = tmp_path / "shop"
    folder.mkdir()
    (folder / "link.yaml").symlink_to(tmp_path / "queues.yaml")
    root = _write(folder, root=ROOT.replace("parts/queues.yaml", location))
    (folder / "broken.yaml").write_text("a: [")
    (folder / "list.yaml").write_text("[a]")
    result = _lint(root)
    assert result.queues == 0
    (place,) = [place for place in result.not_judged if place.path == "Resources.Queues"]
    assert place.because.startswith("a nested stack: ")
    assert reason in place.because


def test_templates_that_contain_each_other_or_are_nested_too_deep_end_with_a_reason(
    tmp_path: Path,
) -> None:
    stack = (
        "Resources:\n  In: {{Type: AWS::CloudFormation::Stack, Properties: {{TemplateURL: {}}}}}"
    )
    root = _write(tmp_path, root=stack.format("a.yaml"), a=stack.format("root.yaml"))
    result = _lint(root)
    assert _list_reasons(result) == ["a nested stack: root.yaml contains itself"]
    assert (result.not_judged[0].file, result.not_judged[0].line) == ("a.yaml", 2)
    deep = {f"d{number}": stack.format(f"d{number + 1}.yaml") for number in range(MOST_LEVELS + 1)}
    result = _lint(_write(tmp_path, root=stack.format("d0.yaml"), **deep))
    assert _list_reasons(result) == [
        f"a nested stack: it is nested more than {MOST_LEVELS} levels deep"
    ]


def test_nested_stack_with_too_many_resources_is_listed(tmp_path: Path) -> None:
    topics = "".join(f"  T{number}: {{Type: A}}\n" for number in range(MOST_RESOURCES - 2))
    queues = f"Resources:\n{topics}"
    result = _lint(_write(tmp_path, **{"parts/queues": queues}))
    reasons = [place.because for place in result.not_judged if place.path == "Resources.Worker"]
    assert reasons == ["a nested stack: with it, there are more than 2,000 resources"]


def test_template_with_too_many_or_too_costly_nested_stacks_is_refused(tmp_path: Path) -> None:
    stack = "  S{}: {{Type: AWS::CloudFormation::Stack, Properties: {{TemplateURL: {}.yaml}}}}\n"
    stacks = "".join(stack.format(number, number) for number in range(MOST_NAMED_FILES + 1))
    root = _write(tmp_path, root=f"Resources:\n{stacks}")
    with pytest.raises(NotATemplate, match="more than 200 other files"):
        _lint(root)
    root = _write(tmp_path, root=f"Resources:\n{stack.format(1, 'b')}")
    (tmp_path / "b.yaml").write_text("[" + "a," * 500_000 + "a]")
    with pytest.raises(NotATemplate, match="more than 8,000,000 steps"):
        _lint(root)


def test_output_that_depends_on_itself_is_not_known(tmp_path: Path) -> None:
    root = ROOT.replace("{Visible: 20}", "{Visible: !GetAtt Queues.Outputs.Loop}")
    queues = f"{QUEUES}  Loop: {{Value: !Ref Visible}}\n"
    result = _lint(_write(tmp_path, root=root, **{"parts/queues": queues}))
    assert any("refers to itself" in reason for reason in _list_reasons(result))


TOPIC = """  Paid: {Type: AWS::SNS::Topic}
  ToOrders:
    Type: AWS::SNS::Subscription
    Properties: {TopicArn: !Ref Paid, Protocol: sqs, Endpoint: !GetAtt Queues.Outputs.Arn}
"""


def test_producer_in_another_stack_is_admitted_by_its_account_in_the_remedy(
    tmp_path: Path,
) -> None:
    """The queue's own template cannot refer to the topic."""
    result = _lint(_write(tmp_path, root=f"{ROOT}{TOPIC}"))
    (finding,) = [finding for finding in result.findings if finding.symptom == "producer_refused"]
    remedy = "\n".join(finding.remedy)
    assert "aws:SourceAccount" in remedy
    assert "Paid" not in remedy


@pytest.mark.parametrize("place", ["root", "worker"])
def test_producer_is_not_reported_if_a_resource_of_another_stack_may_set_the_policy(
    tmp_path: Path, place: str
) -> None:
    custom = "  Setter: {Type: Custom::Policy, Properties: {Queue: !Ref QueueUrl}}\n"
    texts = {"root": f"{ROOT}{TOPIC}", "worker": WORKER}
    texts[place] += custom
    result = _lint(_write(tmp_path, **texts))
    assert "producer_refused" not in {finding.symptom for finding in result.findings}


def test_macro_of_a_nested_template_is_listed_in_its_file(tmp_path: Path) -> None:
    queues = f"Transform: OurMacro{QUEUES}"
    result = _lint(_write(tmp_path, root=f"{ROOT}{TOPIC}", **{"parts/queues": queues}))
    (place,) = result.not_judged
    assert (place.file, place.line) == ("parts/queues.yaml", 1)
    assert "producer_refused" not in {finding.symptom for finding in result.findings}


def _run_lint(*arguments: str) -> str:
    return CliRunner().invoke(app, ["lint", *arguments]).stdout


def _list_linted_files(*arguments: str) -> list[str]:
    document = json.loads(_run_lint(*arguments, "--json"))
    return [template["file"] for template in document["templates"]]


def test_command_judges_a_nested_template_once_if_its_outer_template_is_given_too(
    tmp_path: Path,
) -> None:
    root = _write(tmp_path)
    inner = tmp_path / "parts" / "queues.yaml"
    assert _list_linted_files(str(inner), str(root)) == [str(root)]
    assert _list_linted_files(str(inner)) == [str(inner)]
    assert "nested templates that were checked too: parts/queues.yaml" in _run_lint(str(root))


def test_command_judges_both_of_two_templates_that_contain_each_other(tmp_path: Path) -> None:
    """Neither can be deployed, and no finding may get lost."""
    stack = (
        "Resources:\n  In: {{Type: AWS::CloudFormation::Stack, Properties: {{TemplateURL: {}}}}}"
    )
    root = _write(tmp_path, root=stack.format("a.yaml"), a=stack.format("root.yaml"))
    inner = tmp_path / "a.yaml"
    assert _list_linted_files(str(inner), str(root)) == [str(inner), str(root)]


def test_patch_of_a_nested_queue_names_the_file_to_patch(tmp_path: Path) -> None:
    root = _write(tmp_path)
    wanted = WantedValues(
        "arn:aws:sqs:eu-west-1:111122223333:x",
        {"VisibilityTimeout": "180"},
        requested_id="Queues.Orders",
    )
    patch = make_patch(str(root), wanted)
    assert patch.diff == []
    assert "run `mendq patch` with parts/queues.yaml" in patch.changes[0].note


NAMES_INSIDE = """
Transform: AWS::LanguageExtensions
Conditions:
  IsTwenty: !Equals [!Ref Visible, 20]
  IsBoth: !And [Condition: IsTwenty, !Not [!Equals [!Ref Tail, 1]]]
Mappings: {Times: {"20": {seconds: 200}, "0": {seconds: 20}}}
Parameters:
  Tail: {Type: Number, Default: 0}
  Name: {Type: String, Default: Tail}
"""


GET_DLQ_ARN = "!GetAtt Dlq.Arn"
GET_ARN_BY_PARAMETER = "{Fn::GetAtt: [!Sub '${DlqId}', Arn]}"


@pytest.mark.parametrize(
    ("seconds", "dlq_arn"),
    [
        ("!Sub '${Visible}${Tail}'", GET_DLQ_ARN),
        ("!Sub ['${Visible}${Last}', {Last: !Ref Tail}]", "{Fn::GetAtt: [Dlq, Arn]}"),
        ("!Sub ['${Visible}${Tail}', {Tail: 1}]", GET_DLQ_ARN),
        ("!If [IsTwenty, 200, 20]", GET_DLQ_ARN),
        ("!If [IsBoth, 200, 20]", GET_DLQ_ARN),
        ("!FindInMap [Times, !Ref Visible, seconds]", GET_DLQ_ARN),
        ("!Join ['', [!Ref Visible, Ref: !Sub '${Name}']]", GET_ARN_BY_PARAMETER),
    ],
)
def test_names_in_a_nested_stack_are_those_of_its_own_file(
    tmp_path: Path, seconds: str, dlq_arn: str
) -> None:
    queues = QUEUES.replace("VisibilityTimeout: !Ref Visible", f"VisibilityTimeout: {seconds}")
    queues = queues.replace(GET_DLQ_ARN, dlq_arn)
    names = f"{NAMES_INSIDE}  DlqId: {{Type: String, Default: Dlq}}\n"
    queues = queues.replace("\nParameters:\n", names, 1)
    result = _lint(_write(tmp_path, **{"parts/queues": queues}))
    assert _list_findings(result) == {}
    assert _list_reasons(result) == []
    short = queues.replace("200", "20").replace("Default: 0", "Default: ''")
    short = short.replace("Tail: 1}", "Tail: ''}")
    result = _lint(_write(tmp_path, **{"parts/queues": short}))
    assert [*_list_findings(result)] == ["Queues.Orders: visibility_timeout_too_short"]


def test_stack_of_a_resource_is_named_for_nested_resources_alone(tmp_path: Path) -> None:
    (source, *_) = list_template_sources(str(_write(tmp_path)))
    template = read_template_source(source)
    assert template.find_stack_id("Queues.Orders") == "Queues"
    assert template.find_stack_id("Elsewhere") == ""
