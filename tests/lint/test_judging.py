"""The findings of `mendq lint` in CloudFormation templates, near-misses and undecided checks."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from mendq.catalogue.examples import queue
from mendq.catalogue.visibility.needed_timeout import (
    MAX_PROCESSING_TAG,
    MAX_VISIBILITY_TAG,
    list_readable_needs,
    list_unmet_needs,
)
from mendq.catalogue.visibility.visibility_timeout_too_short import (
    VISIBILITY_TIMEOUT_TOO_SHORT as TOO_SHORT,
)
from mendq.lint.decode import read_template
from mendq.lint.judging import LintFinding, LintResult, LintSeverity, lint
from mendq.lint.queues import EVENT_SOURCE_MAPPING_TYPE
from mendq.lint.run import LintRun
from mendq.lint.template import MAXIMUM_NESTED_LEVELS, NotATemplate
from mendq.lint.values import DeployTarget
from mendq.lint.view import list_github_commands, make_document
from mendq.model.facts import LambdaConsumer
from mendq.model.plan import Plan
from tests.catalogue.asking import answer_to, only_step_of

CASES = {
    case["title"]: case
    for case in yaml.safe_load(Path(__file__).with_name("templates.yaml").read_text())
}
TITLES_WITH_FINDINGS = [title for title, case in CASES.items() if "findings" in case]
# A person must choose the queue to change, so the remedy is text and no template lines.
SYMPTOMS_WITH_TEXT_REMEDY = {
    "redrive_cycle",
    "tag_not_understood",
    "dlq_type_mismatch",
    "invalid_request",
}
QUEUE = "AWS::SQS::Queue"
TOO_SHORT_NAME = TOO_SHORT.name
SECTIONS = "Parameters: {Open: {Type: String}, Days: {Type: Number, Default: 60}}\nResources:\n"
TLS = """
{0}Tls:
  Type: AWS::SQS::QueuePolicy
  Properties:
    Queues: [!Ref {0}]
    PolicyDocument:
      Statement:
        - {{Effect: Deny, Principal: "*", Action: "sqs:*", Resource: !GetAtt {0}.Arn,
            Condition: {{Bool: {{"aws:SecureTransport": "false"}}}}}}
"""


def _write_template(title: str) -> str:
    """Return the example as a template. It gets a TLS policy if it has no policy."""
    resources = CASES[title]["resources"]
    template = read_template(f"{SECTIONS}{_indent(resources)}".encode())
    if (
        not list(template.list_resources("AWS::SQS::QueuePolicy"))
        and "as_it_is" not in CASES[title]
    ):
        resources += "".join(
            TLS.format(queue.logical_id) for queue in template.list_resources(QUEUE)
        )
    return f"{SECTIONS}{_indent(resources)}"


def _indent(text: str) -> str:
    return "".join(f"  {line}\n" for line in text.splitlines())


def _lint_text(text: str, environment: DeployTarget | None = None) -> LintResult:
    return lint(read_template(text.encode()), "template.yaml", environment or DeployTarget())


def _lint_resources(resources: dict[str, Any], **sections: Any) -> LintResult:
    return _lint_text(json.dumps({**sections, "Resources": resources}))


@pytest.mark.parametrize("title", CASES)
def test_lint_of_each_example_template_gives_exactly_the_listed_findings_and_undecided_checks(
    title: str,
) -> None:
    case = CASES[title]
    result = _lint_text(_write_template(title), DeployTarget(*case.get("environment", ())))
    findings = [
        f"{finding.resource}: {finding.severity} {finding.symptom}" for finding in result.findings
    ]
    assert findings == case.get("findings", [])
    not_judged = [{place.path: place.because} for place in result.not_judged]
    assert not_judged == case.get("not_judged", [])
    if "remedy" in case:
        (finding,) = result.findings
        assert "\n".join(finding.remedy) == case["remedy"].strip()
        assert finding.path.startswith(case.get("path", ""))
    shown = json.dumps(make_document(LintRun([result])))
    assert "000000000000" not in shown
    assert "any-region" not in shown
    assert all(finding.line for finding in result.findings)


@pytest.mark.parametrize("title", TITLES_WITH_FINDINGS)
def test_lint_finding_disappears_after_its_remedy_is_put_into_the_template(title: str) -> None:
    text = _write_template(title)
    result = _lint_text(text, DeployTarget(*CASES[title].get("environment", ())))
    annotations = "".join(list_github_commands(LintRun([result])))
    for finding in result.findings:
        assert "%0A".join(finding.remedy) in annotations, "the annotation keeps the indentation"
        if finding.symptom in SYMPTOMS_WITH_TEXT_REMEDY:
            assert finding.remedy
        else:
            result_after = _lint_resources(_apply_remedy(text, finding.resource, finding.remedy))
            remaining = [(other.resource, other.symptom) for other in result_after.findings]
            assert (finding.resource, finding.symptom) not in remaining


def _apply_remedy(text: str, name: str, lines: tuple[str, ...]) -> dict[str, Any]:
    resources = read_template(text.encode()).root["Resources"]
    resource = resources[name]
    removed = {line.split()[2] for line in lines if line.startswith("# leave ")}
    properties = {
        key: value for key, value in resource.get("Properties", {}).items() if key not in removed
    }
    new_resources = {}
    remedy = yaml.safe_load("\n".join(lines)) or {}
    if isinstance(remedy, list):
        policy = resources[lines[0].removeprefix("# add to the Statement of ")]
        policy["Properties"]["PolicyDocument"]["Statement"] += remedy
        remedy = {}
    for key, value in remedy.items():
        if isinstance(value, dict) and "Type" in value:
            new_resources[key] = value
        elif key == "maxReceiveCount":
            properties["RedrivePolicy"] = {**properties["RedrivePolicy"], key: value}
        else:
            properties[key] = value
    return {**resources, **new_resources, name: {**resource, "Properties": properties}}


@pytest.mark.parametrize("name", ["dlq", "x" * 81, "with space", "\x1b[31m", ""])
def test_lint_judges_queues_with_invalid_or_duplicate_names(name: str) -> None:
    named = {"Type": QUEUE, "Properties": {"QueueName": name}}
    result = _lint_resources({"A": named, "B": named, "\x1b[2J": {"Type": QUEUE}})
    symptoms = [finding.symptom for finding in result.findings]
    assert symptoms.count("tls_not_enforced") == 3


LAMBDA_CONSUMERS = st.lists(st.tuples(st.integers(1, 900), st.integers(0, 300)), max_size=3)
NEED_TAGS = st.dictionaries(
    st.sampled_from([MAX_PROCESSING_TAG, MAX_VISIBILITY_TAG]), st.integers(1, 43_200), max_size=2
)


@settings(deadline=None)
@given(st.integers(0, 1_500) | st.integers(0, 43_200), NEED_TAGS, LAMBDA_CONSUMERS)
def test_lint_heal_and_scan_need_the_same_visibility_timeout(
    visibility: int, tags: dict[str, int], functions: list[tuple[int, int]]
) -> None:
    result = _lint_resources(_make_consumed_queue(visibility, tags, functions))
    findings = [finding for finding in result.findings if finding.symptom == TOO_SHORT_NAME]
    consumers = tuple(LambdaConsumer("arn:f", *function) for function in functions)
    tag_texts = {name: str(seconds) for name, seconds in tags.items()}
    facts = queue(tag_texts, VisibilityTimeout=visibility, lambda_consumers=consumers)
    finding = next(iter(findings), None)
    is_need_known = bool(tags.get(MAX_PROCESSING_TAG) or functions)
    # Only late messages show that a consumer works on batches: lint asks for one message's time.
    is_need_met = not list_unmet_needs(facts, list_readable_needs(facts))
    found_facts = () if is_need_met else (replace(facts, found="messages were handled twice"),)
    for queue_facts in (facts, *found_facts):
        _check_finding(finding, answer_to(TOO_SHORT, queue_facts), is_need_known=is_need_known)


def _check_finding(finding: LintFinding | None, answer: Any, *, is_need_known: bool) -> None:
    """Check that lint wants the visibility timeout that heal or a scan would set."""
    if isinstance(answer, Plan):
        if not is_need_known:
            assert finding is None, "lint does not guess a processing time"
            return
        assert finding is not None
        assert finding.remedy == (f"VisibilityTimeout: {only_step_of(answer).after}",)
    elif answer.code == "over_ceiling" and is_need_known:
        (line,) = finding.remedy if finding else ("",)
        (seconds,) = re.findall(r"(\d+) s are needed", answer.reason.replace(",", ""))
        longest = "# no visibility timeout is longer than 43200 s"
        assert line == f"VisibilityTimeout: {seconds}" or line.startswith(longest)
    elif answer.code in (
        "need_already_met",
        "race_despite_named_need",
        "race_without_named_need",
    ):
        assert finding is None or finding.severity is LintSeverity.WARNING


def _make_consumed_queue(
    visibility: int, tags: Mapping[str, int], functions: list[tuple[int, int]]
) -> dict[str, Any]:
    tag_list = [{"Key": name, "Value": str(seconds)} for name, seconds in tags.items()]
    resources: dict[str, Any] = {
        "Q": {"Type": QUEUE, "Properties": {"VisibilityTimeout": visibility, "Tags": tag_list}}
    }
    for n, (timeout, window) in enumerate(functions):
        mapping = {
            "EventSourceArn": {"Fn::GetAtt": ["Q", "Arn"]},
            "FunctionName": {"Ref": f"F{n}"},
            "MaximumBatchingWindowInSeconds": window,
        }
        resources[f"F{n}"] = {"Type": "AWS::Lambda::Function", "Properties": {"Timeout": timeout}}
        resources[f"M{n}"] = {"Type": EVENT_SOURCE_MAPPING_TYPE, "Properties": mapping}
    return resources


def test_lint_warning_offers_a_visibility_timeout_only_up_to_the_ceiling() -> None:
    for visibility, remedy in ((449, "VisibilityTimeout: 450"), (450, "# over the ceiling of 900")):
        findings = _lint_resources(_make_consumed_queue(visibility, {}, [(300, 0)])).findings
        (warning,) = (finding for finding in findings if finding.symptom == TOO_SHORT_NAME)
        assert warning.severity == "warning"
        assert warning.because.endswith("AWS recommends 1,800 s")
        assert warning.remedy[0].startswith(remedy)


def _make_queues(count: int, **more: Any) -> dict[str, Any]:
    return {f"Q{n}": {"Type": QUEUE, **more} for n in range(count)}


def test_lint_refuses_a_template_with_more_than_2000_resources() -> None:
    with pytest.raises(NotATemplate, match="more than 2,000 resources"):
        _lint_resources(_make_queues(2_001))


@pytest.mark.parametrize("innermost", ["x", {"Ref": "x"}])
def test_lint_resolves_functions_nested_to_the_readable_depth(innermost: Any) -> None:
    nested = innermost
    for _ in range(MAXIMUM_NESTED_LEVELS // 3 - 2):
        nested = {"Fn::Sub": ["${a}", {"a": nested}]}
    assert _lint_resources({"Q": {"Type": QUEUE, "Properties": {"QueueName": nested}}}).queues == 1


ANY_VALUE = st.recursive(
    st.sampled_from(["", "x", "*", "Orders", "-1", "9" * 30, None, True, 5, "\x1b[2J", "Allow"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["Ref", "Fn::GetAtt", "Fn::Sub", "Fn::Join", "Key", "Effect", "AWS"]),
            inner,
            max_size=2,
        )
    ),
    max_leaves=6,
)
KEYS = """
    QueueName FifoQueue VisibilityTimeout MessageRetentionPeriod RedrivePolicy RedriveAllowPolicy
    KmsMasterKeyId SqsManagedSseEnabled Tags Queues Queue PolicyDocument EventSourceArn Enabled
    FunctionName Timeout MaximumBatchingWindowInSeconds
"""
TYPES = """
    SQS::Queue SQS::QueuePolicy SQS::QueueInlinePolicy Lambda::Function Lambda::Alias
    Lambda::EventSourceMapping
"""
ANY_RESOURCE = st.fixed_dictionaries(
    {
        "Type": st.sampled_from([f"AWS::{name}" for name in TYPES.split()]),
        "Properties": st.dictionaries(st.sampled_from(KEYS.split()), ANY_VALUE, max_size=4),
    }
)


@settings(deadline=None)
@given(st.lists(ANY_RESOURCE, min_size=1, max_size=4), ANY_VALUE)
def test_lint_of_arbitrary_resources_never_raises(
    resources: list[dict[str, Any]], value: Any
) -> None:
    named = dict(zip(["Orders", "Dead", "Bill", "Sender"], resources, strict=False))
    sections = {"Parameters": {"x": value}, "Mappings": value, "Transform": value}
    assert isinstance(_lint_resources({**named, "Odd": value}, **sections), LintResult)


ALIAS_TEMPLATE = """
Resources:
  Dlq: {Type: AWS::SQS::Queue, Properties: &short {MessageRetentionPeriod: 60}}
  Orders:
    Type: AWS::SQS::Queue
    Properties:
      <<: *short
      RedrivePolicy: {deadLetterTargetArn: !GetAtt Dlq.Arn, maxReceiveCount: 5}
"""


def test_template_with_aliases_is_judged_and_says_that_cloudformation_takes_none() -> None:
    result = lint(read_template(ALIAS_TEMPLATE.encode()), "it", DeployTarget())
    assert "dlq_retention_too_short" in {finding.symptom for finding in result.findings}
    (place,) = result.not_judged
    assert (place.path, place.line) == ("*short", 7)
    assert "aws cloudformation package" in place.because


def test_sam_template_with_aliases_is_judged_as_sam_writes_them_out() -> None:
    template = f"Transform: AWS::Serverless-2016-10-31{ALIAS_TEMPLATE}"
    result = lint(read_template(template.encode()), "it", DeployTarget())
    assert "dlq_retention_too_short" in {finding.symptom for finding in result.findings}
    assert result.not_judged == []


def test_new_resource_of_a_remedy_never_has_the_name_of_another() -> None:
    orders_arn = {"Fn::GetAtt": ["Orders", "Arn"]}
    resources = {
        "Orders": {"Type": QUEUE},
        "OrdersDlq": {"Type": "AWS::S3::Bucket"},
        "OrdersDlq2": {"Type": "AWS::S3::Bucket"},
        "Bill": {"Type": "AWS::Lambda::Function"},
        "ReadOrders": {
            "Type": EVENT_SOURCE_MAPPING_TYPE,
            "Properties": {"EventSourceArn": orders_arn, "FunctionName": {"Ref": "Bill"}},
        },
    }
    template = read_template(json.dumps({"Resources": resources}).encode())
    result = lint(template, "shop.json", DeployTarget())
    (remedy,) = [finding.remedy for finding in result.findings if finding.symptom == "dlq_missing"]
    assert "OrdersDlq22:" in [line.partition(" {")[0] for line in remedy]


def test_policy_of_a_queue_that_another_template_declares_is_left_alone() -> None:
    url = "https://sqs.eu-west-1.amazonaws.com/111122223333/elsewhere"
    statement = {"Effect": "Allow", "Principal": "*", "Action": "sqs:*", "Resource": "*"}
    policy = {"Queues": [url, "no URL"], "PolicyDocument": {"Statement": [statement]}}
    resources = {
        "Orders": {"Type": QUEUE},
        "Policy": {"Type": "AWS::SQS::QueuePolicy", "Properties": policy},
    }
    template = read_template(json.dumps({"Resources": resources}).encode())
    result = lint(template, "shop.json", DeployTarget("111122223333", "eu-west-1"))
    assert "policy_is_public" not in {finding.symptom for finding in result.findings}
    assert result.not_judged == []
