"""A decoded CloudFormation template: mappings, lists and texts.

Every scalar is a text, as in CloudFormation. The template may come from any decoder. Places in it
have line numbers if the decoder marks its nodes with lines.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any, NamedTuple

# CloudFormation takes a template of at most 1 MB, and 500 resources. Lint takes larger ones.
# https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/cloudformation-limits.html
MOST_TEMPLATE_BYTES = 4 * 1024 * 1024
MOST_NESTED_LEVELS = 80
MOST_RESOURCES = 2_000
# Limit of work for one template. A step takes about a microsecond of one core; each character of a
# value that is resolved is one step.
MOST_STEPS = 8_000_000
# Bytes that are read for one step.
BYTES_PER_STEP = 16


class NotATemplate(Exception):
    """Input that cannot be checked at all. The message is one line."""


@dataclass
class WorkBudget:
    """Steps of work that are left for one template.

    Steps are counted and not seconds, so that the limit is the same on a slow and a fast machine.
    """

    steps_left: int = MOST_STEPS

    def __post_init__(self) -> None:
        self.steps_at_start = self.steps_left

    def use_steps(self, steps: int) -> None:
        """Use up `steps`. Raises NotATemplate if fewer are left."""
        self.steps_left -= steps
        if self.steps_left < 0:
            hint = "and what repeats itself counts each time"
            raise NotATemplate(f"judging it takes more than {self.steps_at_start:,} steps, {hint}")


class Place(NamedTuple):
    """A place in a template: the path of keys to it, and its line if the decoder knows it."""

    path: str
    line: int | None


@dataclass(frozen=True)
class TemplateResource:
    """One resource as the template declares it."""

    logical_id: str
    definition: Mapping[str, Any]

    @property
    def type(self) -> str:
        type_name = self.definition.get("Type")
        return type_name if isinstance(type_name, str) else ""

    @property
    def properties(self) -> Mapping[str, Any]:
        return get_mapping(self.definition, "Properties") or {}

    @property
    def construct(self) -> str:
        """Path of the construct in the CDK app that made the template. Empty without a CDK app."""
        return str((get_mapping(self.definition, "Metadata") or {}).get("aws:cdk:path", ""))

    @cached_property
    def ignored_symptoms(self) -> frozenset[str]:
        """Names of the symptoms to ignore, from `Metadata: {mendq: {ignore: [...]}}`."""
        metadata = get_mapping(self.definition, "Metadata", "mendq") or {}
        names = to_list(metadata.get("ignore"))
        return frozenset(name for name in names if name and isinstance(name, str))


@dataclass(frozen=True)
class Template:
    """A decoded template.

    The constructor raises NotATemplate if `Resources` is not a mapping, or has more than
    MOST_RESOURCES resources.
    """

    root: Any
    budget: WorkBudget = field(default_factory=WorkBudget)
    # Account and region of the deployment, if the template itself contains them.
    deploy_target: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        resources = self.root.get("Resources") if isinstance(self.root, dict) else None
        if not isinstance(resources, dict):
            raise NotATemplate("no CloudFormation template: it has no mapping Resources")
        if len(resources) > MOST_RESOURCES:
            raise NotATemplate(f"more than {MOST_RESOURCES:,} resources; CloudFormation takes 500")

    @cached_property
    def resources(self) -> Mapping[str, TemplateResource]:
        """Resources by logical ID."""
        return {
            logical_id: TemplateResource(
                logical_id, definition if isinstance(definition, dict) else {}
            )
            for logical_id, definition in self.get_section("Resources").items()
        }

    def get_section(self, name: str) -> Mapping[str, Any]:
        """Return a top-level mapping such as `Parameters`. Empty if there is none."""
        return get_mapping(self.root, name) or {}

    def list_resources(self, *types: str) -> Iterator[TemplateResource]:
        """Yield the resources of these types."""
        return (resource for resource in self.resources.values() if resource.type in types)

    def spell_attribute(self, attribute: str) -> str:
        """Return a queue attribute's name in the template's language.

        CloudFormation uses the same names as SQS.
        """
        return attribute

    def render(self, name: str, value: Any) -> tuple[str, ...]:
        """Return the lines that declare the property or resource `name`.

        If `name` is empty, return the lines of a list item. This class returns one line of YAML
        that has the value as JSON.
        """
        return (f"{name}: {json.dumps(value)}" if name else f"- {json.dumps(value)}",)

    def find_place(self, *keys: str | int) -> Place:
        """Return the place below these keys, from the top of the template.

        If a key is missing, the line is that of the last key that exists.
        """
        node = self.root
        line = _find_line(self.root)
        for key in keys:
            if isinstance(node, dict) and key in node:
                # The key in the mapping knows its line; the key that was passed does not.
                marked_key = next(candidate for candidate in node if candidate == key)
                line = _find_line(marked_key) or _find_line(node)
                node = node[key]
            elif isinstance(node, list) and isinstance(key, int):
                node = node[key]
                line = _find_line(node) or line
            else:
                break
        return Place(".".join(map(str, keys)), line)


def get_mapping(node: Any, *keys: str) -> Any:
    """Follow `keys` from `node` down and return the mapping there. None if there is no mapping."""
    for key in keys:
        node = node.get(key) if isinstance(node, dict) else None
    return node if isinstance(node, dict) else None


def to_list(node: Any) -> list[Any]:
    """Return a list unchanged, an empty list for None, and any other value as a list of one."""
    if node is None:
        return []
    return node if isinstance(node, list) else [node]


def convert_scalars_to_text(
    value: Any,
    budget: WorkBudget,
    replacement_by_text: Mapping[str, Any] = MappingProxyType({}),
    depth: int = 0,
) -> Any:
    """Return a JSON value in the form of a decoded template: every number and boolean as text.

    Args:
        value: The JSON value.
        budget: Raises NotATemplate if the value takes more steps than it has left.
        replacement_by_text: Values that replace texts equal to their keys.
        depth: Mappings and lists around the value. Raises NotATemplate above
            MOST_NESTED_LEVELS.
    """
    if depth > MOST_NESTED_LEVELS:
        raise NotATemplate(f"a value nested more than {MOST_NESTED_LEVELS} deep")
    if isinstance(value, dict):
        budget.use_steps(1 + len(value))
        return {
            key: convert_scalars_to_text(item, budget, replacement_by_text, depth + 1)
            for key, item in value.items()
        }
    if isinstance(value, list):
        budget.use_steps(1 + len(value))
        return [
            convert_scalars_to_text(item, budget, replacement_by_text, depth + 1) for item in value
        ]
    if isinstance(value, str):
        budget.use_steps(1 + len(value) // BYTES_PER_STEP)
        return replacement_by_text.get(value, value)
    return value if value is None else json.dumps(value)


def _find_line(node: Any) -> int | None:
    """Return the line of a decoded node, from 1. None if the decoder did not mark it."""
    mark = getattr(node, "start_mark", None)
    return mark.line + 1 if mark is not None else None
