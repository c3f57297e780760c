"""The functions of the transform AWS::LanguageExtensions in `mendq lint`."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mendq.lint.decode import read_template
from mendq.lint.judging import lint
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


def test_only_the_loops_of_a_template_with_language_extensions_are_not_judged() -> None:
    queue = {"Type": "AWS::SQS::Queue"}
    loop = ["Name", ["a", "b"], {"Queue${Name}": queue}]
    root = {"Transform": "AWS::LanguageExtensions", "Resources": {"Orders": queue}}
    result = lint(read_template(json.dumps(root).encode()), "it", DeployTarget())
    assert result.not_judged == []
    root["Resources"] = {"Orders": queue, "Fn::ForEach::Queues": loop}
    result = lint(read_template(json.dumps(root).encode()), "it", DeployTarget())
    assert [place.path for place in result.not_judged] == ["Resources.Fn::ForEach::Queues"]
    assert {finding.resource for finding in result.findings} == {"Orders"}
