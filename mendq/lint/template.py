"""A CloudFormation template as text, lists and mappings with lines, whatever decoded it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any, NamedTuple

# CloudFormation takes a template of at most 1 MB, and 500 resources.
# https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/cloudformation-limits.html
MOST_BYTES = 4 * 1024 * 1024
MOST_NESTED = 80
MOST_RESOURCES = 2_000
# A step is about a microsecond of one core: one for each character that is worked out.
MOST_STEPS = 8_000_000
A_BYTE_READ = 16


class NotATemplate(Exception):
    """Input that cannot be judged at all; the message is one line."""


@dataclass
class WorkBudget:
    """Steps left for a template: counted, so machines agree."""

    left: int = MOST_STEPS

    def __post_init__(self) -> None:
        self.most = self.left

    def take(self, steps: int) -> None:
        """Raise NotATemplate where `steps` is more than is left."""
        self.left -= steps
        if self.left < 0:
            again = "and what repeats itself counts each time"
            raise NotATemplate(f"judging it takes more than {self.most:,} steps, {again}")


class Place(NamedTuple):
    """Where in a template something stands; `line` None where nobody knows."""

    path: str
    line: int | None


@dataclass(frozen=True)
class TemplateResource:
    """One resource as it is written."""

    logical_id: str
    written: Mapping[str, Any]

    @property
    def type(self) -> str:
        found = self.written.get("Type")
        return found if isinstance(found, str) else ""

    @property
    def properties(self) -> Mapping[str, Any]:
        return get_mapping(self.written, "Properties") or {}

    @property
    def construct(self) -> str:
        """Where it stands in the CDK app that made the template; empty where none did."""
        return str((get_mapping(self.written, "Metadata") or {}).get("aws:cdk:path", ""))

    @cached_property
    def ignored(self) -> frozenset[str]:
        """The symptoms that `Metadata: {mendq: {ignore: [..]}}` names."""
        named = to_list((get_mapping(self.written, "Metadata", "mendq") or {}).get("ignore"))
        return frozenset(each for each in named if each and isinstance(each, str))


@dataclass(frozen=True)
class Template:
    """A decoded template; raises NotATemplate where there is nothing to judge."""

    root: Any
    work: WorkBudget = field(default_factory=WorkBudget)
    # Its account and region, where it says them itself.
    where: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        resources = self.root.get("Resources") if isinstance(self.root, dict) else None
        if not isinstance(resources, dict):
            raise NotATemplate("no CloudFormation template: it has no mapping Resources")
        if len(resources) > MOST_RESOURCES:
            raise NotATemplate(f"more than {MOST_RESOURCES:,} resources; CloudFormation takes 500")

    @cached_property
    def resources(self) -> Mapping[str, TemplateResource]:
        return {
            name: TemplateResource(name, each if isinstance(each, dict) else {})
            for name, each in self.section("Resources").items()
        }

    def section(self, name: str) -> Mapping[str, Any]:
        return get_mapping(self.root, name) or {}

    def of_type(self, *types: str) -> Iterator[TemplateResource]:
        return (each for each in self.resources.values() if each.type in types)

    def named(self, attribute: str) -> str:
        """A queue's attribute as the template spells it."""
        return attribute

    def written(self, name: str, document: Any) -> tuple[str, ...]:
        """A property, a resource or, without a name, one of a list; one line of flow YAML here."""
        return (f"{name}: {json.dumps(document)}" if name else f"- {json.dumps(document)}",)

    def place(self, *keys: str | int) -> Place:
        """The place of the keys from the top, or of as many as lead anywhere."""
        found, line = self.root, _line(self.root)
        for key in keys:
            if isinstance(found, dict) and key in found:
                own = next(each for each in found if each == key)
                line, found = _line(own) or _line(found), found[key]
            elif isinstance(found, list) and isinstance(key, int):
                found = found[key]
                line = _line(found) or line
            else:
                break
        return Place(".".join(map(str, keys)), line)


def get_mapping(found: Any, *keys: str) -> Any:
    """The mapping under the keys, one after the other; None where there is none."""
    for key in keys:
        found = found.get(key) if isinstance(found, dict) else None
    return found if isinstance(found, dict) else None


def to_list(found: Any) -> list[Any]:
    """A list as it is, nothing as an empty one, anything else as a list of it alone."""
    if found is None:
        return []
    return found if isinstance(found, list) else [found]


def scalars_as_text(
    value: Any, work: WorkBudget, known: Mapping[str, Any] = MappingProxyType({}), depth: int = 0
) -> Any:
    """A value of JSON as a template's decoder gives it; `known` takes the place of its texts."""
    if depth > MOST_NESTED:
        raise NotATemplate(f"a value nested more than {MOST_NESTED} deep")
    if isinstance(value, dict):
        work.take(1 + len(value))
        return {k: scalars_as_text(each, work, known, depth + 1) for k, each in value.items()}
    if isinstance(value, list):
        work.take(1 + len(value))
        return [scalars_as_text(each, work, known, depth + 1) for each in value]
    if isinstance(value, str):
        work.take(1 + len(value) // A_BYTE_READ)
        return known.get(value, value)
    return value if value is None else json.dumps(value)


def _line(node: Any) -> int | None:
    mark = getattr(node, "start_mark", None)
    return mark.line + 1 if mark is not None else None
