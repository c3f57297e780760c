"""What a stack set deploys, and the stack that it is in one account under given parameters."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from infra.stackset.one_template import read_stack_set_settings
from infra.stackset.publishing import write_stack_set_files
from tests.infra.synthesized import ACCOUNT, REGION, SETTINGS, _sources, light_code, retained

BUCKET = "our-mendq-${AWS::Region}"
# As StackSets calls one of its stacks.
STACK = "StackSet-mendq-0f1e2d3c-1111-2222-3333-444455556666"


def for_many(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The same settings with each stack's own account and region."""
    text = json.dumps(settings).replace(ACCOUNT, "${AWS::AccountId}")
    raw: dict[str, Any] = json.loads(text.replace(REGION, "${AWS::Region}"))
    return raw


def written(settings: Mapping[str, Any], folder: Path) -> Path:
    write_stack_set_files(read_stack_set_settings(settings), BUCKET, light_code(), folder=folder)
    return folder


@cache
def folder_of(name: str) -> Path:
    """Of one of SETTINGS, with light code."""
    settings = for_many(SETTINGS[name])
    return retained(
        json.dumps([_sources(), settings, "stack set"]), lambda to: written(settings, to)
    )


def template_in(folder: Path) -> dict[str, Any]:
    (file,) = folder.glob("objects/mendq/*.template.json")
    template: dict[str, Any] = json.loads(file.read_text())
    return template


class Deployed:
    """A template with its conditions decided and its parameters in place."""

    def __init__(self, template: Mapping[str, Any], **parameters: str) -> None:
        given = {name: each["Default"] for name, each in template["Parameters"].items()}
        place = {"AWS::Region": REGION, "AWS::AccountId": ACCOUNT, "AWS::Partition": "aws"}
        self._values = {**given, **parameters, **place}
        self._conditions = template["Conditions"]
        there = {
            name: each
            for name, each in template["Resources"].items()
            if "Condition" not in each or self._holds(each["Condition"])
        }
        self.resources: dict[str, Any] = {
            name: self._of({key: part for key, part in each.items() if key != "Condition"})
            for name, each in there.items()
        }

    def _holds(self, name: str) -> bool:
        return bool(self._of(self._conditions[name]))

    def _of(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self._of(each) for each in value if not self._is_nothing(each)]
        if not isinstance(value, dict):
            return value
        ((name, of), *others) = value.items() or [("", None)]
        is_known = name != "Ref" or of in self._values
        if not others and is_known and name in self._functions:
            return self._functions[name](of)
        return {key: self._of(each) for key, each in value.items()}

    @property
    def _functions(self) -> Mapping[str, Callable[[Any], Any]]:
        return {
            "Ref": lambda of: self._values[of],
            "Fn::If": lambda of: self._of(of[1] if self._holds(of[0]) else of[2]),
            "Fn::Sub": lambda of: of.replace("${AWS::Region}", REGION),
            "Fn::Equals": lambda of: self._of(of[0]) == self._of(of[1]),
            "Fn::Not": lambda of: not self._of(of[0]),
            "Fn::Or": lambda of: any(map(self._of, of)),
            "Fn::Join": lambda of: self._joined(of[0], self._of(of[1])),
        }

    def _is_nothing(self, each: Any) -> bool:
        if isinstance(each, dict) and "Fn::If" in each:
            name, yes, no = each["Fn::If"]
            each = yes if self._holds(name) else no
        return bool(each == {"Ref": "AWS::NoValue"})

    def _joined(self, between: str, parts: list[Any]) -> Any:
        """As CDK writes it where less is known at deployment only."""
        whole: list[Any] = []
        for part in parts:
            if whole and isinstance(part, str) and isinstance(whole[-1], str):
                whole[-1] += between + part
            else:
                whole.append(part)
        return whole[0] if len(whole) == 1 else {"Fn::Join": [between, whole]}
