"""Lint says which producers of a template the policies of a queue, key or role refuse."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from mendq.lint.decode import read_template
from mendq.lint.judging import LintResult, LintSeverity, lint
from mendq.lint.values import DeployTarget
from mendq.model.severity_class import SeverityClass

CASES = {
    case["title"]: case
    for case in yaml.safe_load(Path(__file__).with_name("producers.yaml").read_text())
}
REFUSED_TITLES = [title for title, case in CASES.items() if "refused" in case]
ADMITTED_TITLES = [title for title in CASES if title not in REFUSED_TITLES]


def _write_template(title: str) -> str:
    case = CASES[title]
    key = "KmsMasterKeyId: !Ref Key" if "key" in case else ""
    resources = [
        f"Orders: {{Type: AWS::SQS::Queue, Properties: {{{key}}}}}",
        *case.get("resources", "").splitlines(),
    ]
    if "policy" in case:
        resources.append(
            "OrdersPolicy: {Type: AWS::SQS::QueuePolicy, Properties: {Queues: [!Ref Orders], "
            f"PolicyDocument: {{Statement: [{case['policy']}]}}}}}}"
        )
    if "key" in case:
        resources.append(
            "Key: {Type: AWS::KMS::Key, Properties: {KeyPolicy: "
            f"{{Statement: [{case['key']}]}}}}}}"
        )
    transform = f"Transform: {case['transform']}\n" if "transform" in case else ""
    indented_resources = "".join(f"  {line}\n" for line in resources)
    return f"{transform}Parameters: {{Open: {{Type: String}}}}\nResources:\n{indented_resources}"


def _lint_text(text: str) -> LintResult:
    return lint(read_template(text.encode()), "template.yaml", DeployTarget())


def _list_refusals(result: LintResult) -> list[Any]:
    return [finding for finding in result.findings if finding.symptom == "producer_refused"]


@pytest.mark.parametrize("title", ADMITTED_TITLES)
def test_lint_reports_no_producer_that_may_be_admitted_and_lists_what_it_leaves_open(
    title: str,
) -> None:
    result = _lint_text(_write_template(title))
    assert _list_refusals(result) == []
    open_places = [
        place.path for place in result.not_judged if place.symptoms == ("producer_refused",)
    ]
    assert open_places == [f"Resources.{name}" for name in CASES[title].get("open", [])]


def test_lint_lists_a_queue_whose_policy_another_stack_has_as_not_judged() -> None:
    result = _lint_text(
        "Resources:\n  Orders: {Type: AWS::SQS::Queue}\n  Paid: {Type: AWS::SNS::Topic, "
        "Properties: {Subscription: [{Protocol: sqs, Endpoint: !GetAtt Orders.Arn}]}}\n"
        "  OrdersPolicy: {Type: AWS::SQS::QueuePolicy, Properties: {Queues: [!Ref Orders], "
        "PolicyDocument: {Statement: [!ImportValue statement]}}}\n"
    )
    assert _list_refusals(result) == []
    (place,) = [place for place in result.not_judged if "producer_refused" in place.symptoms]
    assert place.path == "Resources.OrdersPolicy.Properties.PolicyDocument"


@pytest.mark.parametrize("title", REFUSED_TITLES)
def test_lint_reports_a_refused_producer_once_as_error_with_the_policy_that_refuses(
    title: str,
) -> None:
    (finding,) = _list_refusals(_lint_text(_write_template(title)))
    assert finding.resource == "Orders"
    assert finding.severity is LintSeverity.ERROR
    assert CASES[title]["refused"] in finding.because
    is_refused_at_deployment = "AWS refuses to deploy it" in finding.because
    assert (finding.severity_class is SeverityClass.STANDING_STILL) == is_refused_at_deployment
    assert finding.path.startswith(CASES[title].get("path", "Resources.Orders"))
    assert finding.line
    assert finding.remedy


@pytest.mark.parametrize(
    "title", [title for title in REFUSED_TITLES if "keeps_finding" not in CASES[title]]
)
def test_statement_of_the_remedy_lets_the_refused_producer_send(title: str) -> None:
    text = _write_template(title)
    (finding,) = _list_refusals(_lint_text(text))
    resources = read_template(text.encode()).root["Resources"]
    remedy = yaml.safe_load("\n".join(finding.remedy))
    if isinstance(remedy, list):
        place, _, logical_id = finding.remedy[0].removeprefix("# add to the ").partition(" of ")
        document_name = {"Statement": "PolicyDocument", "KeyPolicy": "KeyPolicy"}[place]
        resources[logical_id]["Properties"][document_name]["Statement"] += remedy
    else:
        resources |= remedy
    parameters = {"Open": {"Type": "String"}}
    result = _lint_text(json.dumps({"Parameters": parameters, "Resources": resources}))
    assert _list_refusals(result) == []


def test_remedy_for_a_producer_that_a_deny_refuses_adds_no_grant() -> None:
    """A Deny outweighs every Allow, so one more Allow would change nothing."""
    (finding,) = _list_refusals(_lint_text(_write_template("a deny that takes the grant away")))
    assert "Allow" not in "\n".join(finding.remedy)


def test_service_that_cannot_use_awss_key_is_reported_under_one_name() -> None:
    text = _write_template("a key that only its account may use").replace(
        "KmsMasterKeyId: !Ref Key", "KmsMasterKeyId: alias/aws/sqs"
    )
    symptoms = [finding.symptom for finding in _lint_text(text).findings]
    assert "service_cannot_use_key" in symptoms
    assert "producer_refused" not in symptoms


def test_producers_that_one_policy_refuses_are_named_in_one_sentence() -> None:
    topics = "".join(
        f"  Topic{number}: {{Type: AWS::SNS::Topic, Properties: {{Subscription: "
        f"[{{Protocol: sqs, Endpoint: !GetAtt Orders.Arn}}]}}}}\n"
        for number in range(5)
    )
    result = _lint_text(f"Resources:\n  Orders: {{Type: AWS::SQS::Queue}}\n{topics}")
    (finding,) = _list_refusals(result)
    assert finding.because.count("sns.amazonaws.com") == 1
    assert "and 2 more" in finding.because


def test_dead_letter_queue_of_a_sam_event_needs_a_policy_unless_sam_makes_the_queue() -> None:
    text = """
Transform: AWS::Serverless-2016-10-31
Resources:
  Failed: {Type: AWS::SQS::Queue}
  Bill:
    Type: AWS::Serverless::Function
    Properties:
      DeadLetterQueue: {Type: SQS, TargetArn: !GetAtt Failed.Arn}
      Events:
        Own:
          Type: EventBridgeRule
          Properties: {Pattern: {source: [a]}, DeadLetterConfig: {Type: SQS}}
        Mine:
          Type: EventBridgeRule
          Properties: {Pattern: {source: [a]}, DeadLetterConfig: {Arn: !GetAtt Failed.Arn}}
"""
    result = _lint_text(text)
    (finding,) = _list_refusals(result)
    assert finding.resource == "Failed"
    assert "the EventBridge rule Bill.Properties.Events.Mine, send" in finding.because
    assert "function Bill" not in finding.because, "SAM lets the role of the function send"
    assert not any("producer_refused" in place.symptoms for place in result.not_judged)


def test_topic_of_a_known_account_is_refused_if_the_policy_names_another_account() -> None:
    text = _write_template(
        "a topic whose ARN is written out with an account, and the account is not known"
    )
    template = read_template(text.encode())
    other_account = DeployTarget("444455556666", "eu-west-1")
    own_account = DeployTarget("123456789012", "eu-west-1")
    assert len(_list_refusals(lint(template, "", other_account))) == 1
    assert _list_refusals(lint(template, "", own_account)) == []


def test_all_findings_of_a_queue_without_policy_show_the_same_new_policy() -> None:
    """SQS keeps one policy for a queue: a second resource would replace the statements."""
    result = _lint_text(
        "Resources:\n  Orders: {Type: AWS::SQS::Queue}\n  Paid: {Type: AWS::SNS::Topic, "
        "Properties: {Subscription: [{Protocol: sqs, Endpoint: !GetAtt Orders.Arn}]}}\n"
    )
    remedies = {finding.symptom: finding.remedy for finding in result.findings}
    assert set(remedies) == {"producer_refused", "tls_not_enforced"}
    assert remedies["producer_refused"] == remedies["tls_not_enforced"]
    policy = yaml.safe_load("\n".join(remedies["producer_refused"]))["OrdersPolicy"]
    effects = [
        statement["Effect"] for statement in policy["Properties"]["PolicyDocument"]["Statement"]
    ]
    assert effects == ["Allow", "Deny"]


def _write_two_policies(first_services: str, second_services: str) -> str:
    """Return a queue to which a topic and a rule send, and two policies that each set its own."""
    policies = "".join(
        f"  Policy{number}: {{Type: AWS::SQS::QueuePolicy, Properties: {{Queues: [!Ref Orders], "
        f"PolicyDocument: {{Statement: [{{Effect: Allow, Principal: {{Service: {services}}}, "
        "Action: sqs:SendMessage, Resource: '*'}]}}}\n"
        for number, services in enumerate((first_services, second_services))
    )
    return (
        "Parameters: {Open: {Type: String}}\nResources:\n  Orders: {Type: AWS::SQS::Queue}\n"
        "  Paid: {Type: AWS::SNS::Topic, Properties: {Subscription: [{Protocol: sqs, "
        "Endpoint: !GetAtt Orders.Arn}]}}\n"
        "  Hourly: {Type: AWS::Events::Rule, Properties: {Targets: [{Id: a, "
        f"Arn: !GetAtt Orders.Arn}}]}}}}\n{policies}"
    )


def test_two_policies_of_one_queue_that_each_refuse_a_producer_are_an_error_at_the_second() -> None:
    text = _write_two_policies("sns.amazonaws.com", "events.amazonaws.com")
    (finding,) = _list_refusals(_lint_text(text))
    assert finding.severity is LintSeverity.ERROR
    assert finding.path == "Resources.Policy1"
    assert "with Policy0, its policy does not let events.amazonaws.com" in finding.because
    assert "with Policy1, its policy does not let sns.amazonaws.com" in finding.because


@pytest.mark.parametrize(
    ("first_services", "second_services"),
    [
        ("sns.amazonaws.com", "[sns.amazonaws.com, events.amazonaws.com]"),
        ("[sns.amazonaws.com, events.amazonaws.com]", "s3.amazonaws.com"),
        ("sns.amazonaws.com", "!Ref Open"),
    ],
)
def test_two_policies_of_one_queue_are_not_judged_if_one_of_them_may_admit_all(
    first_services: str, second_services: str
) -> None:
    result = _lint_text(_write_two_policies(first_services, second_services))
    assert _list_refusals(result) == []
    assert any("both set it" in place.because for place in result.not_judged)
