"""What a template's values come to, and that nothing is guessed where it does not tell."""

from __future__ import annotations

import json
from typing import Any

import pytest

from cli.lint.node import NotATemplate
from cli.lint.reading import read
from cli.lint.template import Template
from cli.lint.values import Known, NotKnown, Values

PARAMETERS = {
    "Stage": {"Type": "String", "Default": "prod"},
    "Open": {"Type": "String"},
    "Names": {"Type": "CommaDelimitedList", "Default": "a, b"},
    "Stored": {"Type": "AWS::SSM::Parameter::Value<String>", "Default": "/x"},
    "Secret": {"Type": "String", "Default": "s3cret", "NoEcho": True},
}
MAPPINGS = {"Leases": {"prod": {"seconds": 60, "other": {"Ref": "Open"}}}}
KNOWN = Known({"AWS::Region": "eu-west-1", "Queue": "url"}, {("Queue", "Arn"): "arn"})


def _values(given: Any) -> tuple[Any, Values]:
    text = {"Parameters": PARAMETERS, "Mappings": MAPPINGS, "Resources": {}, "given": given}
    template = Template(read(json.dumps(text).encode()))
    values = Values(template, KNOWN)
    return values.of(template.root.entries["given"]), values


@pytest.mark.parametrize(
    ("given", "comes_to"),
    [
        ({"Ref": "Stage"}, "prod"),
        ({"Ref": "Names"}, ["a", "b"]),
        ({"Ref": "Queue"}, "url"),
        ({"Ref": "AWS::NoValue"}, None),
        ({"a": {"Ref": "AWS::NoValue"}, "b": 1}, {"b": "1"}),
        ([{"Ref": "AWS::NoValue"}, "x"], ["x"]),
        ({"Fn::GetAtt": ["Queue", "Arn"]}, "arn"),
        (
            {"Fn::Sub": "${AWS::Region}/${Stage}/${!Stage}/${Queue.Arn}"},
            "eu-west-1/prod/${Stage}/arn",
        ),
        ({"Fn::Sub": ["${x}-${Stage}", {"x": {"Ref": "Queue"}}]}, "url-prod"),
        ({"Fn::Join": ["-", ["a", {"Ref": "Stage"}]]}, "a-prod"),
        ({"Fn::Join": [",", {"Ref": "Names"}]}, "a,b"),
        ({"Fn::FindInMap": ["Leases", {"Ref": "Stage"}, "seconds"]}, "60"),
        ({"Ref": "Stage", "more": 1}, {"Ref": "Stage", "more": "1"}),
    ],
)
def test_what_a_template_tells(given: Any, comes_to: Any) -> None:
    assert _values(given)[0] == comes_to


@pytest.mark.parametrize(
    "given",
    [
        {"Ref": "Open"},
        {"Ref": "Stored"},
        {"Ref": "Secret"},
        {"Ref": "Nobody"},
        {"Ref": ["Stage"]},
        {"Ref": None},
        {"Fn::GetAtt": "Queue"},
        {"Fn::GetAtt": ["Queue"]},
        {"Fn::GetAtt": ["Queue", {"Ref": "Stage"}]},
        {"Fn::GetAtt": ["Queue", "Color"]},
        {"Fn::Sub": "${Open}"},
        {"Fn::Sub": "${Names}"},
        {"Fn::Sub": "${AWS::NoValue}"},
        {"Fn::Sub": []},
        {"Fn::Sub": {"a": 1}},
        {"Fn::Join": "x"},
        {"Fn::Join": ["-", "x"]},
        {"Fn::Join": ["-", [["x"]]]},
        {"Fn::FindInMap": ["Leases", "test", "seconds"]},
        {"Fn::FindInMap": ["Leases", "prod", "other"]},
        {"Fn::FindInMap": ["Leases", "prod"]},
        {"Fn::FindInMap": []},
        {"Fn::If": ["IsProd", 1, 2]},
        {"Fn::ImportValue": "x"},
        {"Fn::Select": [0, ["x"]]},
        {"Fn::Whatever": None},
        ["x", {"Fn::ImportValue": "x"}],
    ],
)
def test_what_it_does_not_tell_is_not_known(given: Any) -> None:
    with pytest.raises(NotKnown):
        _values(given)


def test_the_defaults_that_were_taken_are_told_of_and_no_others() -> None:
    assert _values({"Fn::Sub": "${Stage}"})[1].defaults == {"Stage": "prod"}


@pytest.mark.parametrize(
    "given",
    [
        {"Fn::Sub": "${Big}" * 2_000},
        {"Fn::Join": ["x" * 10_000, ["y"] * 5_000]},
        [{"Ref": "Big"}] * 2_000,
    ],
)
def test_a_small_template_cannot_come_to_a_large_text(given: Any) -> None:
    parameters = {"Big": {"Type": "String", "Default": "x" * 100_000}}
    text = {"Parameters": parameters, "Resources": {}, "given": given}
    template = Template(read(json.dumps(text).encode()))
    with pytest.raises(NotATemplate, match="characters"):
        Values(template, KNOWN).of(template.root.entries["given"])
