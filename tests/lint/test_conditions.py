"""Conditions of a template, worked out with the defaults of its parameters."""

from __future__ import annotations

from pathlib import Path

import pytest

from mendq.lint.decode import read_template
from mendq.lint.folder import TemplateFolder
from mendq.lint.judging import LintResult, lint
from mendq.lint.template import NotATemplate
from mendq.lint.values import DeployTarget, ValueResolver

HEAD = """
Parameters:
  Stage: {Type: String, Default: dev}
  Open: {Type: String}
Conditions:
  IsDev: !Equals [!Ref Stage, dev]
  IsProd: !Not [!Condition IsDev]
  IsOpen: !Equals [!Ref Open, "yes"]
  IsHere: !Equals [!Ref AWS::Region, eu-west-1]
  IsStack: !Equals [!Sub "${AWS::StackName}", stack-name]
  Both: !And [!Condition IsDev, !Condition IsOpen]
  Neither: !And [!Condition IsProd, !Condition IsOpen]
  Either: !Or [!Condition IsOpen, !Condition IsDev]
  Maybe: !Or [!Condition IsOpen, !Condition IsProd]
  Itself: !Not [!Condition Itself]
  Wrong: {"Fn::Equals": [a]}
Resources:
"""
WORKER = """
  Bill: {Type: AWS::Lambda::Function, Properties: {Timeout: 30}}
  Dlq: {Type: AWS::SQS::Queue, Properties: {MessageRetentionPeriod: 1209600}}
"""
MAPPING = """
  BillOrders:
    Type: AWS::Lambda::EventSourceMapping
    Properties: {EventSourceArn: !GetAtt Orders.Arn, FunctionName: !Ref Bill, BatchSize: 1}
"""


def _make_queue(timeout: str, condition: str = "") -> str:
    return f"""
  Orders:
    Type: AWS::SQS::Queue
    {condition}
    Properties:
      VisibilityTimeout: {timeout}
      RedrivePolicy: {{deadLetterTargetArn: !GetAtt Dlq.Arn, maxReceiveCount: 5}}
"""


def _lint(resources: str, head: str = HEAD, target: DeployTarget | None = None) -> LintResult:
    template = read_template(f"{head}{resources}".encode())
    return lint(template, "it", target or DeployTarget())


def _list_findings(result: LintResult) -> list[str]:
    return [finding.symptom for finding in result.findings if finding.severity != "note"]


def _list_reasons(result: LintResult) -> list[str]:
    return [place.because for place in result.not_judged]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("IsDev", True),
        ("IsProd", False),
        ("IsOpen", None),
        ("IsHere", None),
        ("IsStack", None),
        ("Both", None),
        ("Neither", False),
        ("Either", True),
        ("Maybe", None),
        ("Itself", None),
        ("Wrong", None),
        ("Gone", None),
    ],
)
def test_condition_is_worked_out_if_parameters_with_defaults_decide_it(
    name: str, expected: bool | None
) -> None:
    resolver = ValueResolver(
        read_template(f"{HEAD}  A: {{Type: A}}".encode()), DeployTarget().pseudo_parameters
    )
    assert resolver.find_condition(name) is expected


def test_condition_on_the_region_is_worked_out_if_the_region_is_known() -> None:
    mapping = MAPPING.replace("    Properties", "    Condition: IsHere\n    Properties")
    resources = f"{WORKER}{_make_queue('30')}{mapping}"
    target = DeployTarget("111122223333", "eu-west-1")
    assert _list_findings(_lint(resources, target=target)) == ["visibility_timeout_too_short"]
    assert _list_findings(_lint(resources)) == []


@pytest.mark.parametrize(
    ("timeout", "expected"),
    [
        ("!If [IsDev, 30, 300]", ["visibility_timeout_too_short"]),
        ("!If [IsDev, 300, 30]", []),
        ("!If [IsProd, 30, !If [IsDev, 300, 30]]", []),
    ],
)
def test_value_that_a_condition_decides_is_judged_at_the_defaults(
    timeout: str, expected: list[str]
) -> None:
    result = _lint(f"{WORKER}{_make_queue(timeout)}{MAPPING}")
    assert _list_findings(result) == expected
    assert result.defaults == [{"parameter": "Stage", "value": "dev"}]
    assert result.not_judged == []


def test_value_that_an_open_condition_decides_is_not_judged() -> None:
    result = _lint(f"{WORKER}{_make_queue('!If [IsOpen, 30, 300]')}{MAPPING}")
    assert _list_findings(result) == []
    assert _list_reasons(result) == ["Fn::If: a condition decides it"]


@pytest.mark.parametrize(
    ("condition", "expected"),
    [("IsDev", ["visibility_timeout_too_short"]), ("IsProd", []), ("IsOpen", [])],
)
def test_mapping_is_judged_only_if_its_condition_holds_at_the_defaults(
    condition: str, expected: list[str]
) -> None:
    mapping = MAPPING.replace("    Properties", f"    Condition: {condition}\n    Properties")
    result = _lint(f"{WORKER}{_make_queue('30')}{mapping}")
    assert _list_findings(result) == expected
    reasons = [] if expected else ["a condition decides whether it reads Orders"]
    assert _list_reasons(result) == reasons


def test_disabled_mapping_whose_condition_is_false_is_not_reported() -> None:
    mapping = MAPPING.replace(
        "    Properties: {", "    Condition: IsProd\n    Properties: {Enabled: false, "
    )
    assert _list_findings(_lint(f"{WORKER}{_make_queue('30')}{mapping}")) == []


def test_queue_and_mapping_with_the_same_condition_are_judged_as_if_it_holds() -> None:
    """With the default neither is made, so nothing about them could be wrong."""
    mapping = MAPPING.replace("    Properties", "    Condition: IsProd\n    Properties")
    queue = _make_queue("!If [IsProd, 30, 300]", "Condition: IsProd")
    result = _lint(f"{WORKER}{queue}{mapping}")
    assert _list_findings(result) == ["visibility_timeout_too_short"]


@pytest.mark.parametrize("timeout", ["!If [IsDev, 30, 300]", "!Ref Stage"])
def test_value_that_depends_on_what_makes_a_resource_is_not_judged_at_the_default(
    timeout: str,
) -> None:
    """The queue is only made if `Stage` has another value than its default."""
    mapping = MAPPING.replace("    Properties", "    Condition: IsProd\n    Properties")
    queue = _make_queue(timeout, "Condition: IsProd")
    result = _lint(f"{WORKER}{queue}{mapping}")
    assert _list_findings(result) == []
    assert len(result.not_judged) == 1


TLS = """
  Tls{name}:
    Type: AWS::SQS::QueuePolicy
    Condition: {name}
    Properties:
      Queues: [!Ref Orders]
      PolicyDocument:
        Statement:
          - !If [IsDev, !Ref AWS::NoValue, {{Effect: Allow, Principal: "*", Action: "sqs:*"}}]
          - {{Effect: {effect}, Principal: "*", Action: "sqs:*", Resource: "*",
             Condition: {{Bool: {{"aws:SecureTransport": "false"}}}}}}
"""


@pytest.mark.parametrize("is_first", [True, False])
def test_of_two_policies_with_opposite_conditions_that_of_the_defaults_is_judged(
    is_first: bool,
) -> None:
    policies = [TLS.format(name="IsDev", effect="Deny"), TLS.format(name="IsProd", effect="Allow")]
    if not is_first:
        policies.reverse()
    result = _lint(f"{WORKER}{_make_queue('300')}{''.join(policies)}")
    symptoms = {f"{finding.resource}: {finding.symptom}" for finding in result.findings}
    assert symptoms == {"Dlq: tls_not_enforced"}
    assert result.not_judged == []


def test_policy_whose_condition_is_false_is_not_judged() -> None:
    policy = TLS.format(name="IsProd", effect="Deny")
    result = _lint(f"{WORKER}{_make_queue('300')}{policy}")
    assert "a condition decides whether it has this policy" in _list_reasons(result)


def test_pipe_counts_as_a_consumer_only_if_its_condition_holds() -> None:
    queue = "  Orders: {Type: AWS::SQS::Queue, Properties: {}}\n"
    pipe = "  Pipe: {Type: AWS::Pipes::Pipe, Condition: IsDev, "
    pipe += "Properties: {Source: !GetAtt Orders.Arn}}"
    assert _list_findings(_lint(f"{queue}{pipe}")) == ["dlq_missing"]
    assert _list_findings(_lint(f"{queue}{pipe.replace('IsDev', 'IsProd')}")) == []


@pytest.mark.parametrize(
    ("condition", "expected"),
    [("IsDev", ["visibility_timeout_too_short"]), ("IsProd", [])],
)
def test_condition_of_a_nested_stack_decides_about_its_resources(
    tmp_path: Path, condition: str, expected: list[str]
) -> None:
    inner = f"""
Parameters: {{Arn: {{Type: String}}, Kind: {{Type: String, Default: a}}}}
Conditions: {{IsKind: !Equals [!Ref Kind, a]}}
Resources:{WORKER}{MAPPING.replace("!GetAtt Orders.Arn", "!Ref Arn")}    Condition: IsKind
"""
    (tmp_path / "inner.yaml").write_text(inner)
    stack = f"""
  In:
    Type: AWS::CloudFormation::Stack
    Condition: {condition}
    Properties: {{TemplateURL: inner.yaml, Parameters: {{Arn: !GetAtt Orders.Arn}}}}
"""
    content = f"{HEAD}{_make_queue('30')}{WORKER}{stack}".encode()
    result = lint(read_template(content, folder=TemplateFolder(tmp_path)), "it", DeployTarget())
    assert _list_findings(result) == expected


def test_long_chain_of_conditions_is_not_worked_out() -> None:
    lines = ["  C0: !Equals [a, a]"]
    lines += [f"  C{number}: !Not [!Condition C{number - 1}]" for number in range(1, 2_000)]
    head = "Conditions:\n" + "\n".join(lines) + "\nResources:\n"
    result = _lint(f"{WORKER}{_make_queue('!If [C1999, 30, 300]')}{MAPPING}", head)
    assert _list_reasons(result) == ["Fn::If: a condition decides it"]


def test_conditions_that_multiply_are_refused() -> None:
    lines = ["  C0: !Equals [a, a]"]
    lines += [
        f"  C{number}: !And [!Condition C{number - 1}, !Condition C{number - 1}]"
        for number in range(1, 40)
    ]
    head = "Conditions:\n" + "\n".join(lines) + "\nResources:\n"
    with pytest.raises(NotATemplate, match="steps"):
        _lint(f"{WORKER}{_make_queue('!If [C39, 30, 300]')}{MAPPING}", head)


def test_condition_on_a_long_text_counts_each_time() -> None:
    head = f"Conditions:\n  IsLong: !Equals ['{'x' * 400_000}', y]\nResources:\n"
    queue = _make_queue(f"!Join ['', [{'!If [IsLong, 3, 0], ' * 500}]]")
    with pytest.raises(NotATemplate, match="steps"):
        _lint(f"{WORKER}{queue}{MAPPING}", head)
