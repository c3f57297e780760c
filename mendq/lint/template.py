"""A CloudFormation template as text, lists and mappings with lines, decoded by cfn-lint.

What may be anybody's is measured before it is decoded: bytes, nesting, nodes, keys. Aliases are
refused, as CloudFormation refuses them.
https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/template-formats.html
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import yaml
from cfnlint.decode.cfn_yaml import CfnFullLoader, CfnParseError, NodeConstructor, multi_constructor

# CloudFormation takes a template of at most 1 MB, and 500 resources.
# https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/cloudformation-limits.html
MOST_BYTES = 4 * 1024 * 1024
MOST_NESTED = 80
MOST_RESOURCES = 2_000
# A step is about a microsecond of one core: one for each character that is worked out.
MOST_STEPS = 8_000_000
A_NODE_READ, KEYS_COMPARED_A_STEP = 16, 32
# What JSON escapes and YAML does not: a slash, and a character as two surrogates.
_OF_JSON = re.compile(r"\\(?:(/)|u(d[89ab][0-9a-f]{2})\\u(d[c-f][0-9a-f]{2})|.)", re.IGNORECASE)
_OF_YAML = "tag:yaml.org,2002:"
_TAG = re.compile(rf"{_OF_YAML}(str|int|bool|float|null|seq|map)|![A-Z][A-Za-z0-9:]{{0,63}}")


class NotATemplate(Exception):
    """Input that cannot be judged at all; the message is one line."""


@dataclass
class Work:
    """Steps left for a template: counted, so machines agree."""

    left: int = MOST_STEPS

    def take(self, steps: int) -> None:
        """Raise NotATemplate where `steps` is more than is left."""
        self.left -= steps
        if self.left < 0:
            again = "and what repeats itself counts each time"
            raise NotATemplate(f"judging it takes more than {MOST_STEPS:,} steps, {again}")


class _Loader(CfnFullLoader):  # type: ignore[misc]
    """cfn-lint's, with scalars as they are written: `012` stays an account's digits."""

    def boolean(self, node: Any) -> Any:
        text = self.construct_yaml_str(node)
        is_true = self.bool_values.get(text.lower())
        return text if is_true is None else str(is_true).lower()


_Loader.add_multi_constructor("!", multi_constructor)
_Loader.add_constructor(f"{_OF_YAML}bool", _Loader.boolean)
for _kind in ("int", "float", "timestamp"):
    _Loader.add_constructor(f"{_OF_YAML}{_kind}", NodeConstructor.construct_yaml_str)


class Place(NamedTuple):
    """Where in a template something stands; `line` None where nobody knows."""

    path: str
    line: int | None


@dataclass(frozen=True)
class Resource:
    """One resource as it is written."""

    logical_id: str
    written: Mapping[str, Any]

    @property
    def type(self) -> str:
        found = self.written.get("Type")
        return found if isinstance(found, str) else ""

    @property
    def properties(self) -> Mapping[str, Any]:
        return under(self.written, "Properties") or {}

    @cached_property
    def ignored(self) -> frozenset[str]:
        """The symptoms that `Metadata: {mendq: {ignore: [..]}}` names."""
        named = listed((under(self.written, "Metadata", "mendq") or {}).get("ignore"))
        return frozenset(each for each in named if each and isinstance(each, str))


@dataclass(frozen=True)
class Template:
    """A decoded template; raises NotATemplate where there is nothing to judge."""

    root: Any
    work: Work = field(default_factory=Work)

    def __post_init__(self) -> None:
        resources = self.root.get("Resources") if isinstance(self.root, dict) else None
        if not isinstance(resources, dict):
            raise NotATemplate("no CloudFormation template: it has no mapping Resources")
        if len(resources) > MOST_RESOURCES:
            raise NotATemplate(f"more than {MOST_RESOURCES:,} resources; CloudFormation takes 500")

    @cached_property
    def resources(self) -> Mapping[str, Resource]:
        return {
            name: Resource(name, each if isinstance(each, dict) else {})
            for name, each in self.section("Resources").items()
        }

    def section(self, name: str) -> Mapping[str, Any]:
        return under(self.root, name) or {}

    def of_type(self, *types: str) -> Iterator[Resource]:
        return (each for each in self.resources.values() if each.type in types)

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


def under(found: Any, *keys: str) -> Any:
    """The mapping under the keys, one after the other; None where there is none."""
    for key in keys:
        found = found.get(key) if isinstance(found, dict) else None
    return found if isinstance(found, dict) else None


def listed(found: Any) -> list[Any]:
    """A list as it is, nothing as an empty one, anything else as a list of it alone."""
    if found is None:
        return []
    return found if isinstance(found, list) else [found]


def read(content: bytes, work: Work | None = None) -> Template:
    """The template in some bytes; raises NotATemplate."""
    work = work or Work()
    if len(content) > MOST_BYTES:
        raise NotATemplate(f"longer than {MOST_BYTES:,} bytes; CloudFormation takes 1 MB")
    work.take(len(content) // A_NODE_READ)
    try:
        text = content.decode("utf-8-sig")
        try:
            return Template(_decoded(text, work), work)
        except yaml.YAMLError:
            if not text.lstrip().startswith("{"):
                raise
        return Template(_decoded(_OF_JSON.sub(_as_yaml, text), work), work)
    except UnicodeDecodeError as error:
        raise NotATemplate(f"no UTF-8 at byte {error.start:,}") from error
    except (yaml.YAMLError, UnicodeEncodeError) as error:
        mark, problem = getattr(error, "problem_mark", None), getattr(error, "problem", None)
        where = f"line {mark.line + 1}: " if mark else ""
        raise NotATemplate(f"{where}no YAML: {_short(problem or str(error))}") from error


def _as_yaml(escaped: re.Match[str]) -> str:
    slash, high, low = escaped.groups()
    if high:
        return f"\\U{0x10000 + (int(high, 16) - 0xD800) * 0x400 + int(low, 16) - 0xDC00:08x}"
    return slash or escaped.group()


def _decoded(text: str, work: Work) -> Any:
    """Raise YAMLError where it is none, NotATemplate where it is more than anybody writes."""
    _measure(text, work)
    try:
        found = _Loader(text, None).get_single_data()
    except CfnParseError as error:
        first = error.matches[0]
        raise NotATemplate(f"line {first.linenumber}: {_short(first.message)}") from error
    if found is None:
        raise NotATemplate("it is empty")
    return found


def _measure(text: str, work: Work) -> None:
    """Count every node before anything is made of it."""
    nodes_in = [0]
    for event in yaml.parse(text, Loader=yaml.CSafeLoader):
        where = f"line {event.start_mark.line + 1}: "
        tag = getattr(event, "tag", None)
        if tag is not None and not _TAG.fullmatch(tag):
            raise NotATemplate(f"{where}the tag {tag[:64]!r} is none of CloudFormation's")
        if isinstance(event, yaml.AliasEvent):
            raise NotATemplate(f"{where}*{event.anchor[:64]}: CloudFormation takes no YAML aliases")
        if isinstance(event, yaml.NodeEvent):
            work.take(A_NODE_READ)
            nodes_in[-1] += 1
        if isinstance(event, yaml.CollectionStartEvent):
            nodes_in.append(0)
            if len(nodes_in) > MOST_NESTED + 1:
                raise NotATemplate(f"{where}nested more than {MOST_NESTED} deep")
        elif isinstance(event, yaml.CollectionEndEvent):
            nodes = nodes_in.pop()
            if isinstance(event, yaml.MappingEndEvent):
                # cfn-lint compares each key with each before it.
                work.take((nodes // 2) ** 2 // KEYS_COMPARED_A_STEP)


def _line(node: Any) -> int | None:
    mark = getattr(node, "start_mark", None)
    return mark.line + 1 if mark is not None else None


def _short(text: str) -> str:
    return " ".join(text.split())[:200]
