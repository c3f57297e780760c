"""The functions of the transform AWS::LanguageExtensions in `mendq lint`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mendq.lint.decode import read_template
from mendq.lint.folder import TemplateFolder
from mendq.lint.judging import LintResult, lint
from mendq.lint.template import NotATemplate
from mendq.lint.values import DeployTarget, UnknownValue, ValueResolver

MAPPINGS = {"Stages": {"prod": {"seconds": "60", "names": ["a", "b"]}}}
PARAMETERS = {
    "Stage": {"Type": "String", "Default": "prod"},
    "Names": {"Type": "CommaDelimitedList", "Default": "a,b,c"},
    "Open": {"Type": "String"},
}


def _resolve(value: Any) -> Any:
    root = {"Mappings": MAPPINGS, "Parameters": PARAMETERS, "Resources": {}, "value": value}
    template = read_template(json.dumps(root).encode())
    return ValueResolver(template, {"Queue.Arn": "arn"}).resolve(template.root["value"])


def _find(stage: Any, key: str, *default: Any) -> Any:
    return {"Fn::FindInMap": ["Stages", stage, key, *default]}


@pytest.mark.parametrize(
    "value",
    [
        {"Fn::Length": "text"},
        {"Fn::Length": {"Ref": "Open"}},
        {"Fn::Length": {"a": "b"}},
        {"Fn::ToJsonString": {"a": {"Ref": "Open"}}},
        _find("prod", "gone"),
        _find({"Ref": "Open"}, "seconds", {"DefaultValue": "5"}),
        _find("prod", "gone", {"DefaultValue": {"Ref": "Open"}}),
        _find("prod", "gone", {"Other": "5"}),
        {"Fn::ForEach": ["x"]},
    ],
)
def test_language_extension_with_wrong_arguments_or_an_open_parameter_is_unknown(
    value: Any,
) -> None:
    with pytest.raises(UnknownValue):
        _resolve(value)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"Fn::Length": ["a", "b"]}, "2"),
        ({"Fn::Length": []}, "0"),
        ({"Fn::Length": {"Ref": "Names"}}, "3"),
        ({"Fn::Length": _find("prod", "names")}, "2"),
        ({"Fn::ToJsonString": {"a": {"Fn::GetAtt": ["Queue", "Arn"]}}}, '{"a": "arn"}'),
        ({"Fn::ToJsonString": ["a", {"Ref": "Stage"}]}, '["a", "prod"]'),
        (_find("test", "seconds", {"DefaultValue": "5"}), "5"),
        (_find("prod", "seconds", {"DefaultValue": "5"}), "60"),
        (_find({"Ref": "Stage"}, "gone", {"DefaultValue": {"Ref": "Stage"}}), "prod"),
    ],
)
def test_language_extension_is_worked_out(value: Any, expected: str) -> None:
    assert _resolve(value) == expected


HEAD = "Transform: AWS::LanguageExtensions\n"
QUEUE_LOOP = """
  Fn::ForEach::Queues:
    - Name
    - {items}
    - ${{Name}}Queue:
        Type: AWS::SQS::Queue
        Properties:
          QueueName: !Sub "${{Name}}-queue"
          VisibilityTimeout: 30
      ${{Name}}Mapping:
        Type: AWS::Lambda::EventSourceMapping
        Properties:
          EventSourceArn: !GetAtt [!Sub "${{Name}}Queue", Arn]
          FunctionName: !Ref Bill
          BatchSize: 1
"""
FUNCTION = "  Bill: {Type: AWS::Lambda::Function, Properties: {Timeout: 30}}"


def _lint(template: str, head: str = HEAD) -> LintResult:
    return lint(read_template(f"{head}{template}".encode()), "it", DeployTarget())


def _list_findings(result: LintResult) -> set[str]:
    return {
        f"{finding.resource}: {finding.symptom}: {finding.line}"
        for finding in result.findings
        if finding.severity != "note"
    }


@pytest.mark.parametrize(
    ("items", "parameters"),
    [
        ("[Orders, Bills]", "{}"),
        ("!Ref Names", "{Names: {Type: CommaDelimitedList, Default: 'Orders, Bills'}}"),
        ("[!Ref First, Bills]", "{First: {Type: String, Default: Orders}}"),
        ("!FindInMap [Shops, de, names]", "{}"),
    ],
)
def test_loop_over_known_items_is_judged_at_the_lines_of_its_body(
    items: str, parameters: str
) -> None:
    head = f"{HEAD}Mappings: {{Shops: {{de: {{names: [Orders, Bills]}}}}}}\nParameters: "
    template = f"{parameters}\nResources:{QUEUE_LOOP.format(items=items)}{FUNCTION}"
    result = _lint(template, head)
    assert _list_findings(result) == {
        "OrdersQueue: visibility_timeout_too_short: 12",
        "OrdersQueue: dlq_missing: 8",
        "BillsQueue: visibility_timeout_too_short: 12",
        "BillsQueue: dlq_missing: 8",
    }
    assert result.not_judged == []
    assert result.queue_name_by_id["BillsQueue"] == "Bills-queue"
    assert len(result.defaults) == (0 if parameters == "{}" else 1)


@pytest.mark.parametrize(
    ("items", "reason"),
    [
        ("!Ref Names", "the parameter Names has no default"),
        ("!Ref AWS::Region", "AWS::Region: known when it is deployed"),
        ("Orders", "its items are not a list of texts"),
        ("[[Orders]]", "its items are not a list of texts"),
        ("[Orders, Orders]", "OrdersQueue is declared twice"),
        ("[Bill]", "BillQueue is declared twice"),
    ],
)
def test_loop_whose_items_are_not_known_is_listed_with_its_line(items: str, reason: str) -> None:
    head = f"{HEAD}Parameters: {{Names: {{Type: CommaDelimitedList}}}}\nResources:\n"
    queue = "  BillQueue: {Type: AWS::SQS::Queue}"
    result = _lint(f"{queue}{QUEUE_LOOP.format(items=items)}{FUNCTION}", head)
    (place,) = result.not_judged
    assert (place.path, place.line) == ("Resources.Fn::ForEach::Queues", 5)
    assert place.because == f"this loop is not written out: {reason}"
    assert _list_findings(result) == set()


@pytest.mark.parametrize("loop", ["text", "[Name, [a]]", "[Name, [a], text]", "[[Name], [a], {}]"])
def test_loop_without_identifier_collection_and_mapping_is_listed(loop: str) -> None:
    result = _lint(f"Resources: {{'Fn::ForEach::X': {loop}, Orders: {{Type: AWS::SQS::Queue}}}}")
    (place,) = result.not_judged
    assert (
        place.because
        == "this loop is not written out: it has no identifier, collection and mapping"
    )


def test_loops_in_loops_and_in_properties_are_written_out() -> None:
    template = """
Resources:
  Fn::ForEach::Shops:
    - Shop
    - [eu-1, us-1]
    - Fn::ForEach::Kinds:
        - Kind
        - [Orders, Bills]
        - "&{Shop}${Kind}":
            Type: AWS::SQS::Queue
            Properties:
              QueueName: !Join ["-", [!Ref Shop, "${Kind}"]]
              Fn::ForEach::Times:
                - Attribute
                - [VisibilityTimeout, DelaySeconds]
                - "${Attribute}": 20
"""
    read = read_template(f"{HEAD}{template}".encode())
    assert [*read.resources] == ["eu1Orders", "eu1Bills", "us1Orders", "us1Bills"]
    assert read.resources["us1Bills"].properties == {
        "QueueName": {"Fn::Join": ["-", ["us-1", "Bills"]]},
        "VisibilityTimeout": "20",
        "DelaySeconds": "20",
    }


def test_loop_of_unknown_items_in_properties_is_listed_and_the_queue_is_judged() -> None:
    loop = "Fn::ForEach::Tags: [Tag, !Ref AWS::Region, {'${Tag}': 1}]"
    queue = f"{{Type: AWS::SQS::Queue, Properties: {{{loop}, DelaySeconds: 900, "
    result = _lint(f"Resources: {{Orders: {queue}MessageRetentionPeriod: 60}}}}}}")
    assert {finding.symptom for finding in result.findings} >= {"messages_expire"}
    (place,) = result.not_judged
    assert place.path == "Resources.Orders.Properties.Fn::ForEach::Tags"


def test_loop_without_the_transform_is_not_written_out() -> None:
    """CloudFormation refuses it then."""
    result = _lint(f"Resources:{QUEUE_LOOP.format(items='[Orders]')}{FUNCTION}", "")
    assert [place.path for place in result.not_judged] == ["Resources.Fn::ForEach::Queues"]
    assert result.queues == 0


def test_loops_that_multiply_are_refused() -> None:
    loop: Any = {"${A}${B}${C}${D}${E}${F}": {"Type": "A"}}
    for name in "ABCDEF":
        loop = {f"Fn::ForEach::{name}": [name, [*"abcdefghijklmno"], loop]}
    root = {"Transform": "AWS::LanguageExtensions", "Resources": loop}
    with pytest.raises(NotATemplate, match="steps"):
        read_template(json.dumps(root).encode())


def test_loop_that_copies_a_long_text_is_refused() -> None:
    long_text = f"${{Name}}{'x' * 200_000}"
    items = [f"a{number}" for number in range(300)]
    loop = ["Name", items, {"${Name}": {"Type": "A", "Metadata": long_text}}]
    root = {"Transform": "AWS::LanguageExtensions", "Resources": {"Fn::ForEach::X": loop}}
    with pytest.raises(NotATemplate, match="steps"):
        read_template(json.dumps(root).encode())


@pytest.mark.parametrize(
    ("passed", "expected"),
    [("Names: 'A,B'", 2), ("Names: !Ref AWS::Region", 0), ("Other: x", 1)],
)
def test_loop_of_a_nested_stack_uses_what_the_outer_template_passes(
    tmp_path: Path, passed: str, expected: int
) -> None:
    names = "Parameters: {Names: {Type: CommaDelimitedList, Default: C}}\n"
    loop = QUEUE_LOOP.format(items="!Ref Names")
    (tmp_path / "inner.yaml").write_text(f"{HEAD}{names}Resources:{loop}{FUNCTION}")
    root = "Resources: {In: {Type: AWS::CloudFormation::Stack, Properties: "
    root += f"{{TemplateURL: inner.yaml, Parameters: {{{passed}}}}}}}}}"
    template = read_template(root.encode(), folder=TemplateFolder(tmp_path))
    result = lint(template, "it", DeployTarget())
    assert result.queues == expected
    defaults = {default["parameter"] for default in result.defaults}
    assert defaults == ({"In.Names"} if passed == "Other: x" else set())
    assert len(result.not_judged) == (0 if expected else 1)


def test_name_in_a_loop_that_is_no_loop_variable_is_left_as_it_is() -> None:
    """`${Tail}` is a parameter, and the number is no text."""
    loop = QUEUE_LOOP.format(items="['18', '2']").replace(
        "VisibilityTimeout: 30", "VisibilityTimeout: !Sub '${Name}${Tail}'"
    )
    head = f"{HEAD}Parameters: {{Tail: {{Type: Number, Default: 0}}}}\nResources:"
    loop = loop.replace("${Name}Queue:", "Q${Name}Queue:").replace(
        '"${Name}Queue"', '"Q${Name}Queue"'
    )
    result = _lint(f"{loop}{FUNCTION}", head)
    assert {finding for finding in _list_findings(result) if "visibility" in finding} == {
        "Q2Queue: visibility_timeout_too_short: 11"
    }
    assert result.not_judged == []


def test_null_in_a_template_with_loops_is_read() -> None:
    queue = "{Type: AWS::SQS::Queue, Properties: {KmsMasterKeyId: null}}"
    assert _lint(f"Resources: {{Orders: {queue}}}").queues == 1
