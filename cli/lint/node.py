"""A template as it is written, each value with its line; nothing in it is worked out yet."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

Written: TypeAlias = "str | tuple[Node, ...] | Mapping[str, Node] | None"


class NotATemplate(Exception):
    """Why a text cannot be judged at all, in one line."""


@dataclass(frozen=True, slots=True)
class Node:
    """A text, nothing, a list or a mapping; numbers and booleans are texts, as SQS spells them.

    `line` counts from 1, None where nobody knows; `key_lines` says where a mapping's keys stand.
    `size` and `height` are those of the whole with every alias written out.
    """

    value: Written
    line: int | None = None
    key_lines: Mapping[str, int | None] = field(default_factory=dict)
    size: int = 1
    height: int = 1

    @property
    def text(self) -> str | None:
        """None where it is no text."""
        return self.value if isinstance(self.value, str) else None

    @property
    def items(self) -> Sequence[Node]:
        """Of a list; none where it is no list."""
        return self.value if isinstance(self.value, tuple) else ()

    @property
    def entries(self) -> Mapping[str, Node]:
        """Of a mapping; none where it is no mapping."""
        return self.value if isinstance(self.value, Mapping) else {}

    def under(self, *keys: str) -> Node | None:
        """What stands under the keys, one after the other."""
        found: Node | None = self
        for key in keys:
            found = found.entries.get(key) if found else None
        return found

    def line_of(self, keys: Sequence[str]) -> int | None:
        """Where the last of the keys that there is stands; a number counts a list's items."""
        found, line = self, self.line
        for key in keys:
            items = found.items
            if key.isdecimal() and len(key) < 10 and int(key) < len(items):
                found = items[int(key)]
                line = found.line
            elif key in found.entries:
                line, found = found.key_lines.get(key), found.entries[key]
            else:
                break
        return line


def sequence(items: Sequence[Node], line: int | None) -> Node:
    return Node(tuple(items), line, {}, *_measure(items))


def mapping(
    entries: Mapping[str, Node], key_lines: Mapping[str, int | None], line: int | None
) -> Node:
    size, height = _measure(entries.values())
    return Node(entries, line, key_lines, size + sum(map(len, entries)), height)


def scalar(text: str | None, line: int | None) -> Node:
    return Node(text, line, {}, 1 + len(text or ""))


def _measure(parts: Iterable[Node]) -> tuple[int, int]:
    nodes = tuple(parts)
    return 1 + sum(each.size for each in nodes), 1 + max((each.height for each in nodes), default=0)
