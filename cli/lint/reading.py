"""A template's bytes, YAML or JSON, as a tree with lines.

The parser's events are put together here and by nobody else: no tag makes an object, an alias costs
what it would cost written out, and nothing recurses.
https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/template-formats.html
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import yaml

from cli.lint.node import Node, NotATemplate, mapping, scalar, sequence
from cli.lint.work import A_NODE_READ, BYTES_A_STEP, MOST_STEPS, Work

# CloudFormation takes a template of at most 1 MB.
# https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/cloudformation-limits.html
MOST_BYTES = 4 * 1024 * 1024
MOST_NESTED = 80
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_OF_YAML = "tag:yaml.org,2002:"
_PLAIN_TAGS = frozenset(
    {"!", *(_OF_YAML + each for each in ("str", "int", "bool", "float", "null", "seq", "map"))}
)
_SHORT_FORM = re.compile(r"!([A-Z][A-Za-z0-9:]{0,63})")
_NULLS = frozenset({"", "~", "null", "Null", "NULL"})
_BOOLEANS = {"true": "true", "yes": "true", "on": "true"} | {
    "false": "false",
    "no": "false",
    "off": "false",
}
_MERGE = "<<"


def read(content: bytes, work: Work | None = None) -> Node:
    """The tree of a template's bytes; raises NotATemplate."""
    if len(content) > MOST_BYTES:
        raise NotATemplate(f"longer than {MOST_BYTES:,} bytes; CloudFormation takes 1 MB")
    work = work or Work()
    work.take(len(content) // BYTES_A_STEP)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise NotATemplate(f"no UTF-8 at byte {error.start:,}") from error
    try:
        return _Tree(work).of(yaml.parse(text, Loader=_LOADER))
    except yaml.YAMLError as error:
        if text.lstrip().startswith("{"):
            return _of_json(text, work)
        raise NotATemplate(_in_words(error)) from error


@dataclass
class _Open:
    """A list or a mapping whose end is still to come."""

    line: int
    tag: str | None
    anchor: str | None
    is_mapping: bool
    items: list[Node] = field(default_factory=list)
    entries: dict[str, Node] = field(default_factory=dict)
    key_lines: dict[str, int | None] = field(default_factory=dict)
    merged: list[Node] = field(default_factory=list)
    key: str | None = None

    def take(self, node: Node, line: int, *, is_merge: bool) -> None:
        if not self.is_mapping:
            self.items.append(node)
        elif self.key is None:
            self._take_key(node, line, is_merge=is_merge)
        else:
            self._take_value(node)

    def _take_key(self, node: Node, line: int, *, is_merge: bool) -> None:
        key = node.text if node.value is not None else ""
        if key is None:
            raise NotATemplate(f"line {line}: a key that is no text")
        if key in self.entries and not is_merge:
            raise NotATemplate(f"line {line}: the key {key[:64]!r} stands twice")
        self.key = key
        self.key_lines[key] = line

    def _take_value(self, node: Node) -> None:
        key, self.key = self.key or "", None
        if key == _MERGE:
            self.merged += node.items or [node]
        else:
            self.entries[key] = node

    @property
    def merged_keys(self) -> int:
        """How many are looked at, each as often as it is merged."""
        return sum(len(each.entries) for each in self.merged)

    @property
    def node(self) -> Node:
        if not self.is_mapping:
            return sequence(self.items, self.line)
        entries, key_lines = dict(self.entries), dict(self.key_lines)
        for each in self.merged:
            for key, merged in each.entries.items():
                if key not in entries:
                    entries[key], key_lines[key] = merged, each.key_lines.get(key)
        return mapping(entries, key_lines, self.line)


class _Tree:
    """One document, put together event by event."""

    def __init__(self, work: Work) -> None:
        self._work = work
        self._open: list[_Open] = []
        self._anchors: dict[str, Node] = {}
        self._root: Node | None = None
        self._documents = 0

    def of(self, events: Iterable[Any]) -> Node:
        for event in events:
            self._take(event)
        if self._root is None:
            raise NotATemplate("it is empty")
        return self._root

    def _take(self, event: Any) -> None:
        line = event.start_mark.line + 1
        match event:
            case yaml.DocumentStartEvent():
                self._documents += 1
                if self._documents > 1:
                    raise NotATemplate(f"line {line}: a second document begins")
            case yaml.ScalarEvent():
                node = scalar(_text_of(event), line)
                is_merge = bool(event.implicit[0]) and event.value == _MERGE
                self._put(_worked_in(event.tag, node, line), event.anchor, line, is_merge=is_merge)
            case yaml.AliasEvent():
                self._put(self._anchored(event.anchor, line), None, line)
            case yaml.SequenceStartEvent() | yaml.MappingStartEvent():
                is_mapping = isinstance(event, yaml.MappingStartEvent)
                self._open.append(_Open(line, event.tag, event.anchor, is_mapping))
                self._hold_bounds(0, line)
            case yaml.SequenceEndEvent() | yaml.MappingEndEvent():
                ended = self._open.pop()
                self._work.take(ended.merged_keys)
                node = _worked_in(ended.tag, ended.node, ended.line)
                self._put(node, ended.anchor, ended.line)

    def _anchored(self, name: str, line: int) -> Node:
        if name not in self._anchors:
            shown = name[:64]
            raise NotATemplate(f"line {line}: *{shown} stands before the end of what it is to be")
        return self._anchors[name]

    def _put(self, node: Node, anchor: str | None, line: int, *, is_merge: bool = False) -> None:
        if anchor:
            self._anchors[anchor] = node
        self._work.take(A_NODE_READ)
        self._hold_bounds(node.height, line)
        if node.size > MOST_STEPS:
            raise NotATemplate(f"line {line}: with its aliases written out it is too long")
        if self._open:
            self._open[-1].take(node, line, is_merge=is_merge)
        else:
            self._root = node

    def _hold_bounds(self, height: int, line: int) -> None:
        if len(self._open) + height > MOST_NESTED:
            raise NotATemplate(f"line {line}: nested more than {MOST_NESTED} deep")


def _text_of(event: Any) -> str | None:
    text: str = event.value
    if not event.implicit[0]:
        return text
    if text in _NULLS:
        return None
    lowered = text.lower()
    is_spelled_so = text in (lowered, lowered.capitalize(), lowered.upper())
    return _BOOLEANS[lowered] if is_spelled_so and lowered in _BOOLEANS else text


def _worked_in(tag: str | None, node: Node, line: int) -> Node:
    """`!Ref x` as `{Ref: x}`, which is the same."""
    if tag is None or tag in _PLAIN_TAGS:
        return node
    found = _SHORT_FORM.fullmatch(tag)
    if not found:
        raise NotATemplate(f"line {line}: the tag {tag[:64]!r} is none of CloudFormation's")
    name = found.group(1)
    if name == "GetAtt" and node.text is not None:
        node = sequence([scalar(each, line) for each in node.text.split(".", 1)], line)
    function = name if name in ("Ref", "Condition") else f"Fn::{name}"
    return mapping({function: node}, {function: line}, line)


def _of_json(text: str, work: Work) -> Node:
    """JSON that is no YAML: an escaped slash, a pair of surrogates. It has no lines."""
    try:
        found = json.loads(text, parse_int=str, parse_float=str, object_pairs_hook=_once)
        return _of_parsed(found, MOST_NESTED, work)
    except RecursionError as error:
        raise NotATemplate(f"nested more than {MOST_NESTED} deep") from error
    except json.JSONDecodeError as error:
        raise NotATemplate(f"line {error.lineno}: no JSON: {error.msg}") from error


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        seen = set[str]()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise NotATemplate(f"the key {twice[:64]!r} stands twice")
    return found


def _of_parsed(found: Any, levels: int, work: Work) -> Node:
    work.take(A_NODE_READ)
    if not levels:
        raise NotATemplate(f"nested more than {MOST_NESTED} deep")
    if isinstance(found, dict):
        entries = {key: _of_parsed(each, levels - 1, work) for key, each in found.items()}
        return mapping(entries, {}, None)
    if isinstance(found, list):
        return sequence([_of_parsed(each, levels - 1, work) for each in found], None)
    if isinstance(found, bool):
        return scalar(str(found).lower(), None)
    return scalar(None if found is None else str(found), None)


def _in_words(error: yaml.YAMLError) -> str:
    mark, problem = getattr(error, "problem_mark", None), getattr(error, "problem", None)
    where = f"line {mark.line + 1}: " if mark else ""
    return f"{where}no YAML: {problem or ' '.join(str(error).split())}"
