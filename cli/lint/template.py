"""The sections of a template that say something about queues; total after it was read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from cli.lint.node import Node, NotATemplate

# https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/cloudformation-limits.html
MOST_RESOURCES = 2_000


@dataclass(frozen=True)
class Place:
    """Where in a template something stands; `line` None where nobody knows."""

    path: str
    line: int | None


@dataclass(frozen=True)
class Resource:
    """One resource, as it is written."""

    logical_id: str
    node: Node

    @property
    def type(self) -> str:
        found = self.node.under("Type")
        return (found.text if found else None) or ""

    @property
    def properties(self) -> Mapping[str, Node]:
        found = self.node.under("Properties")
        return found.entries if found else {}

    @property
    def is_conditional(self) -> bool:
        return "Condition" in self.node.entries

    @cached_property
    def ignored(self) -> frozenset[str]:
        """The symptoms that `Metadata: {mendq: {ignore: [..]}}` names."""
        found = self.node.under("Metadata", "mendq", "ignore")
        named = (found.items or (found,)) if found else ()
        return frozenset(each.text for each in named if each.text)


@dataclass(frozen=True)
class Template:
    """Raises NotATemplate where there is nothing to judge."""

    root: Node

    def __post_init__(self) -> None:
        resources = self.root.under("Resources")
        if resources is None or not isinstance(resources.value, Mapping):
            raise NotATemplate("no CloudFormation template: it has no mapping Resources")
        if len(resources.entries) > MOST_RESOURCES:
            raise NotATemplate(f"more than {MOST_RESOURCES:,} resources; CloudFormation takes 500")

    @cached_property
    def resources(self) -> Mapping[str, Resource]:
        return {name: Resource(name, node) for name, node in self._section("Resources").items()}

    @property
    def parameters(self) -> Mapping[str, Node]:
        return self._section("Parameters")

    @property
    def mappings(self) -> Mapping[str, Node]:
        return self._section("Mappings")

    @property
    def transforms(self) -> Sequence[str]:
        found = self.root.under("Transform")
        named = found.items or (found,) if found else ()
        return [each.text or "a macro" for each in named]

    def of_type(self, *types: str) -> Iterator[Resource]:
        return (each for each in self.resources.values() if each.type in types)

    def place(self, *keys: str) -> Place:
        """Of the keys from the top, or as far as they lead."""
        return Place(".".join(keys), self.root.line_of(keys))

    def _section(self, name: str) -> Mapping[str, Node]:
        found = self.root.under(name)
        return found.entries if found else {}
