"""The catalogue's checks on what is declared: near-misses, findings, and what nobody can say."""

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
from mendq.catalogue.visibility.needed_timeout import MAX_PROCESSING_TAG, MAX_VISIBILITY_TAG
from mendq.catalogue.visibility.visibility_timeout_too_short import (
    VISIBILITY_TIMEOUT_TOO_SHORT as TOO_SHORT,
)
from mendq.lint.decode import read_template
from mendq.lint.judging import LintResult, LintSeverity, lint
from mendq.lint.queues import EVENT_SOURCE_MAPPING_TYPE
from mendq.lint.template import MAXIMUM_NESTED_LEVELS, NotATemplate
from mendq.lint.values import DeployTarget
from mendq.lint.view import list_github_commands, make_document
from mendq.model.facts import LambdaConsumer
from mendq.model.plan import Plan
from tests.catalogue.asking import answer_to, only_step_of

CASES = {
    each["title"]: each
    for each in yaml.safe_load(Path(__file__).with_name("templates.yaml").read_text())
}
WRONG = [title for title, each in CASES.items() if "findings" in each]
# Which queue is the last, and which is to be of the other type, is for people to say.
IN_WORDS = {"redrive_cycle", "tag_not_understood", "dlq_type_mismatch"}
QUEUE, NAME = "AWS::SQS::Queue", TOO_SHORT.name
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


def _text(title: str) -> str:
    """The case as a template, with TLS seen to where the case does not."""
    resources = CASES[title]["resources"]
    found = read_template(f"{SECTIONS}{_indented(resources)}".encode())
    if not list(found.list_resources("AWS::SQS::QueuePolicy")) and "as_it_is" not in CASES[title]:
        resources += "".join(TLS.format(each.logical_id) for each in found.list_resources(QUEUE))
    return f"{SECTIONS}{_indented(resources)}"


def _indented(text: str) -> str:
    return "".join(f"  {line}\n" for line in text.splitlines())


def _linted(text: str, environment: DeployTarget | None = None) -> LintResult:
    return lint(read_template(text.encode()), "template.yaml", environment or DeployTarget())


def _of(resources: dict[str, Any], **sections: Any) -> LintResult:
    return _linted(json.dumps({**sections, "Resources": resources}))


@pytest.mark.parametrize("title", CASES)
def test_lint_of_each_example_template_gives_exactly_the_listed_findings(title: str) -> None:
    case = CASES[title]
    result = _linted(_text(title), DeployTarget(*case.get("environment", ())))
    said = [f"{each.resource}: {each.severity} {each.symptom}" for each in result.findings]
    assert said == case.get("findings", [])
    not_judged = [{each.path: each.because} for each in result.not_judged]
    assert not_judged == case.get("not_judged", [])
    if "remedy" in case:
        (finding,) = result.findings
        assert "\n".join(finding.remedy) == case["remedy"].strip()
        assert finding.path.startswith(case.get("path", ""))
    shown = json.dumps(make_document([result]))
    assert "000000000000" not in shown
    assert "any-region" not in shown
    assert all(each.line for each in result.findings)


@pytest.mark.parametrize("title", WRONG)
def test_lint_finding_disappears_after_its_remedy_is_put_into_the_template(title: str) -> None:
    text = _text(title)
    result = _linted(text, DeployTarget(*CASES[title].get("environment", ())))
    annotations = "".join(list_github_commands([result]))
    for each in result.findings:
        assert "%0A".join(each.remedy) in annotations, "each line as far in as it is"
        if each.symptom in IN_WORDS:
            assert each.remedy
        else:
            again = _of(_changed(text, each.resource, each.remedy))
            found = [(one.resource, one.symptom) for one in again.findings]
            assert (each.resource, each.symptom) not in found


def _changed(text: str, name: str, lines: tuple[str, ...]) -> dict[str, Any]:
    resources = read_template(text.encode()).root["Resources"]
    own = resources[name]
    left_out = {line.split()[2] for line in lines if line.startswith("# leave ")}
    written = own.get("Properties", {}).items()
    properties = {key: each for key, each in written if key not in left_out}
    new, said = {}, yaml.safe_load("\n".join(lines)) or {}
    if isinstance(said, list):
        policy = resources[lines[0].removeprefix("# add to the Statement of ")]
        policy["Properties"]["PolicyDocument"]["Statement"] += said
        said = {}
    for key, each in said.items():
        if isinstance(each, dict) and "Type" in each:
            new[key] = each
        elif key == "maxReceiveCount":
            properties["RedrivePolicy"] = {**properties["RedrivePolicy"], key: each}
        else:
            properties[key] = each
    return {**resources, **new, name: {**own, "Properties": properties}}


@pytest.mark.parametrize("name", ["dlq", "x" * 81, "with space", "\x1b[31m", ""])
def test_lint_judges_queues_with_invalid_or_duplicate_names(name: str) -> None:
    named = {"Type": QUEUE, "Properties": {"QueueName": name}}
    assert len(_of({"A": named, "B": named, "\x1b[2J": {"Type": QUEUE}}).findings) == 3


# One number of lint, of heal after failed calls and of a scan's finding.

FUNCTIONS = st.lists(st.tuples(st.integers(1, 900), st.integers(0, 300)), max_size=3)
TAGGED = st.dictionaries(
    st.sampled_from([MAX_PROCESSING_TAG, MAX_VISIBILITY_TAG]), st.integers(1, 43_200), max_size=2
)


@settings(deadline=None)
@given(st.integers(0, 1_500) | st.integers(0, 43_200), TAGGED, FUNCTIONS)
def test_lint_heal_and_scan_need_the_same_visibility_timeout(
    visibility: int, tags: dict[str, int], functions: list[tuple[int, int]]
) -> None:
    said = [e for e in _of(_consumed(visibility, tags, functions)).findings if e.symptom == NAME]
    consumers = tuple(LambdaConsumer("arn:f", *each) for each in functions)
    words = {name: str(each) for name, each in tags.items()}
    facts = queue(words, VisibilityTimeout=visibility, lambda_consumers=consumers)
    for asked in (facts, replace(facts, found="messages were handled twice")):
        answer = answer_to(TOO_SHORT, asked)
        finding = next(iter(said), None)
        if isinstance(answer, Plan):
            guessed = not tags.get(MAX_PROCESSING_TAG) and not functions
            lines = (f"VisibilityTimeout: {only_step_of(answer).after}",)
            assert finding is None if guessed else finding and finding.remedy == lines
        elif answer.code == "over_ceiling" and (tags.get(MAX_PROCESSING_TAG) or functions):
            (wanted,) = finding.remedy if finding else ("",)
            (seconds,) = re.findall(r"(\d+) s are needed", answer.reason.replace(",", ""))
            longest = "# no visibility timeout is longer than 43200 s"
            assert wanted == f"VisibilityTimeout: {seconds}" or wanted.startswith(longest)
        elif answer.code in ("need_already_met", "race_without_named_need"):
            assert finding is None or finding.severity is LintSeverity.WARNING


def _consumed(
    visibility: int, tags: Mapping[str, int], functions: list[tuple[int, int]]
) -> dict[str, Any]:
    listed = [{"Key": name, "Value": str(each)} for name, each in tags.items()]
    made: dict[str, Any] = {
        "Q": {"Type": QUEUE, "Properties": {"VisibilityTimeout": visibility, "Tags": listed}}
    }
    for n, (timeout, window) in enumerate(functions):
        reads = {"EventSourceArn": {"Fn::GetAtt": ["Q", "Arn"]}, "FunctionName": {"Ref": f"F{n}"}}
        reads["MaximumBatchingWindowInSeconds"] = window
        made[f"F{n}"] = {"Type": "AWS::Lambda::Function", "Properties": {"Timeout": timeout}}
        made[f"M{n}"] = {"Type": EVENT_SOURCE_MAPPING_TYPE, "Properties": reads}
    return made


def test_lint_warning_above_the_timeout_ceiling_offers_no_value() -> None:
    for visibility, remedy in ((449, "VisibilityTimeout: 450"), (450, "# over the ceiling of 900")):
        found = _of(_consumed(visibility, {}, [(300, 0)])).findings
        (said,) = (each for each in found if each.symptom == NAME)
        assert (said.severity, said.because[-22:]) == ("warning", "AWS recommends 1,800 s")
        assert said.remedy[0].startswith(remedy)


# Hostile templates.


def _many(count: int, **more: Any) -> dict[str, Any]:
    return {f"Q{n}": {"Type": QUEUE, **more} for n in range(count)}


def test_lint_refuses_a_template_with_more_than_2000_resources() -> None:
    with pytest.raises(NotATemplate, match="more than 2,000 resources"):
        _of(_many(2_001))


@pytest.mark.parametrize("innermost", ["x", {"Ref": "x"}])
def test_lint_resolves_functions_nested_to_the_readable_depth(innermost: Any) -> None:
    deep = innermost
    for _ in range(MAXIMUM_NESTED_LEVELS // 3 - 2):
        deep = {"Fn::Sub": ["${a}", {"a": deep}]}
    assert _of({"Q": {"Type": QUEUE, "Properties": {"QueueName": deep}}}).queues == 1


ODD = st.recursive(
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
ODD_RESOURCE = st.fixed_dictionaries(
    {
        "Type": st.sampled_from([f"AWS::{each}" for each in TYPES.split()]),
        "Properties": st.dictionaries(st.sampled_from(KEYS.split()), ODD, max_size=4),
    }
)


@settings(deadline=None)
@given(st.lists(ODD_RESOURCE, min_size=1, max_size=4), ODD)
def test_lint_of_arbitrary_resources_never_raises(
    resources: list[dict[str, Any]], odd: Any
) -> None:
    named = dict(zip(["Orders", "Dead", "Bill", "Sender"], resources, strict=False))
    sections = {"Parameters": {"x": odd}, "Mappings": odd, "Transform": odd}
    assert isinstance(_of({**named, "Odd": odd}, **sections), LintResult)
