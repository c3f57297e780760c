"""The stack set template, and the stack that it gives in one account with given parameters."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from infra.stackset.one_template import read_stack_set_settings
from infra.stackset.publishing import write_stack_set_files
from tests.infra.synthesized import (
    ACCOUNT,
    REGION,
    SETTINGS,
    light_code,
    reuse_folder,
    sources_of_template,
)

BUCKET = "our-mendq-${AWS::Region}"
# A stack name as StackSets generates it.
STACK = "StackSet-mendq-0f1e2d3c-1111-2222-3333-444455556666"


def replace_account_and_region(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings with placeholders for the account and region of each stack."""
    text = json.dumps(settings).replace(ACCOUNT, "${AWS::AccountId}")
    raw: dict[str, Any] = json.loads(text.replace(REGION, "${AWS::Region}"))
    return raw


def write_stack_set(settings: Mapping[str, Any], folder: Path) -> Path:
    write_stack_set_files(read_stack_set_settings(settings), BUCKET, light_code(), folder=folder)
    return folder


@cache
def folder_of(name: str) -> Path:
    """Return the stack set folder of one of SETTINGS, without the product's code."""
    settings = replace_account_and_region(SETTINGS[name])
    return reuse_folder(
        json.dumps([sources_of_template(), settings, "stack set"]),
        lambda folder: write_stack_set(settings, folder),
    )


def read_template(folder: Path) -> dict[str, Any]:
    (file,) = folder.glob("objects/mendq/*.template.json")
    template: dict[str, Any] = json.loads(file.read_text())
    return template


class StackSetInstance:
    """The resources of a stack, with the template's conditions and parameters resolved."""

    def __init__(self, template: Mapping[str, Any], **parameters: str) -> None:
        defaults = {
            name: parameter["Default"] for name, parameter in template["Parameters"].items()
        }
        pseudo_parameters = {
            "AWS::Region": REGION,
            "AWS::AccountId": ACCOUNT,
            "AWS::Partition": "aws",
        }
        self._values = {**defaults, **parameters, **pseudo_parameters}
        self._conditions = template["Conditions"]
        self.resources: dict[str, Any] = {}
        for name, resource in template["Resources"].items():
            if "Condition" not in resource or self._holds(resource["Condition"]):
                parts = {key: part for key, part in resource.items() if key != "Condition"}
                self.resources[name] = self._resolve(parts)

    def _holds(self, name: str) -> bool:
        return bool(self._resolve(self._conditions[name]))

    def _resolve(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self._resolve(item) for item in value if not self._is_nothing(item)]
        if not isinstance(value, dict):
            return value
        ((name, argument), *others) = value.items() or [("", None)]
        is_known = name != "Ref" or argument in self._values
        if not others and is_known and name in self._functions:
            return self._functions[name](argument)
        return {key: self._resolve(item) for key, item in value.items()}

    @property
    def _functions(self) -> Mapping[str, Callable[[Any], Any]]:
        return {
            "Ref": lambda argument: self._values[argument],
            "Fn::If": lambda argument: self._resolve(
                argument[1] if self._holds(argument[0]) else argument[2]
            ),
            "Fn::Sub": lambda argument: argument.replace("${AWS::Region}", REGION),
            "Fn::Equals": lambda argument: self._resolve(argument[0]) == self._resolve(argument[1]),
            "Fn::Not": lambda argument: not self._resolve(argument[0]),
            "Fn::Or": lambda argument: any(map(self._resolve, argument)),
            "Fn::Join": lambda argument: self._join(argument[0], self._resolve(argument[1])),
        }

    def _is_nothing(self, value: Any) -> bool:
        if isinstance(value, dict) and "Fn::If" in value:
            name, yes, no = value["Fn::If"]
            value = yes if self._holds(name) else no
        return bool(value == {"Ref": "AWS::NoValue"})

    def _join(self, between: str, parts: list[Any]) -> Any:
        """Join the known texts and keep a `Fn::Join` for the rest, as CDK does."""
        whole: list[Any] = []
        for part in parts:
            if whole and isinstance(part, str) and isinstance(whole[-1], str):
                whole[-1] += between + part
            else:
                whole.append(part)
        return whole[0] if len(whole) == 1 else {"Fn::Join": [between, whole]}
