"""Describe how two values differ, so that a person can read it: by key, the old and the new."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from difflib import SequenceMatcher, unified_diff
from typing import Any

_KEY_SEPARATOR = " > "
# A longer text gets a line that shows only the words that changed.
_MOST_WORDS_TO_COMPARE_BY_EYE = 12
_WORDS_AROUND_A_CHANGE = 3


def describe_differences(recorded: Any, present: Any) -> list[str]:
    """Return lines that show what differs; empty if the values are equal.

    Each difference begins with a line that names the key. Below it, `-` begins a line of the
    recorded value and `+` one of the present value.
    """
    return list(_compare((), recorded, present))


def _compare(keys: tuple[str, ...], old: Any, new: Any) -> Iterator[str]:
    if old == new:
        return
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        yield from _compare_mappings(keys, old, new)
    elif isinstance(old, list) and isinstance(new, list):
        yield from _compare_lists(keys, old, new)
    else:
        yield _heading(keys)
        yield from _compare_values(old, new)


def _compare_mappings(
    keys: tuple[str, ...], old: Mapping[str, Any], new: Mapping[str, Any]
) -> Iterator[str]:
    for key in {**old, **new}:
        if key not in new:
            yield f"{_heading((*keys, key))} (removed)"
            yield from _with_mark("-", old[key])
        elif key not in old:
            yield f"{_heading((*keys, key))} (added)"
            yield from _with_mark("+", new[key])
        else:
            yield from _compare((*keys, key), old[key], new[key])


def _compare_lists(keys: tuple[str, ...], old: list[Any], new: list[Any]) -> Iterator[str]:
    """Compare lists element by element, and show elements that were added or removed as such."""
    matcher = SequenceMatcher(None, _as_texts(old), _as_texts(new), autojunk=False)
    is_plain = not any(isinstance(element, Mapping | list) for element in (*old, *new))
    if is_plain:
        yield _heading(keys)
    for kind, old_start, old_end, new_start, new_end in matcher.get_opcodes():
        if kind == "equal":
            continue
        old_part = old[old_start:old_end]
        new_part = new[new_start:new_end]
        pairs = list(zip(old_part, new_part, strict=False))
        for number, (old_element, new_element) in enumerate(pairs, start=old_start):
            if is_plain:
                yield from _compare_values(old_element, new_element)
            else:
                yield from _compare((*keys, _name(number, new_element)), old_element, new_element)
        headings = () if is_plain else _list_headings(keys, old, "removed")
        yield from _list_unpaired("-", old_part[len(pairs) :], headings[old_start + len(pairs) :])
        headings = () if is_plain else _list_headings(keys, new, "added")
        yield from _list_unpaired("+", new_part[len(pairs) :], headings[new_start + len(pairs) :])


def _list_headings(keys: tuple[str, ...], elements: list[Any], outcome: str) -> tuple[str, ...]:
    return tuple(
        f"{_heading((*keys, _name(number, element)))} ({outcome})"
        for number, element in enumerate(elements)
    )


def _list_unpaired(mark: str, elements: list[Any], headings: Sequence[str]) -> Iterator[str]:
    """Yield the elements that only one of two lists has, each below its heading if it has one."""
    for number, element in enumerate(elements):
        yield from headings[number : number + 1]
        yield from _with_mark(mark, element)


def _compare_values(old: Any, new: Any) -> Iterator[str]:
    if not isinstance(old, str) or not isinstance(new, str):
        yield from _with_mark("-", old)
        yield from _with_mark("+", new)
        return
    if "\n" in old or "\n" in new:
        yield from _compare_lines(old, new)
        return
    yield from _with_mark("-", old)
    yield from _with_mark("+", new)
    if min(len(old.split()), len(new.split())) > _MOST_WORDS_TO_COMPARE_BY_EYE:
        yield f"    changed: {_changed_words(old.split(), new.split())}"


def _compare_lines(old: str, new: str) -> Iterator[str]:
    """Yield the lines that differ, each change with one line before and after it."""
    lines = list(unified_diff(old.splitlines(), new.splitlines(), n=1, lineterm=""))
    for line in lines[2:]:  # the first two would name two files
        if line.startswith("@@"):
            yield "    ..."
        else:
            yield f"    {line[0]} {line[1:]}".rstrip()
    if old.splitlines() == new.splitlines():
        yield "    only the line break at the end differs"


def _changed_words(old: Sequence[str], new: Sequence[str]) -> str:
    """Return only the changed words, as [-old-]{+new+}, each with a few words around it."""
    parts: list[str] = []
    for kind, old_start, old_end, new_start, new_end in SequenceMatcher(
        None, old, new, autojunk=False
    ).get_opcodes():
        if kind == "equal":
            words = old[old_start:old_end]
            if len(words) > 2 * _WORDS_AROUND_A_CHANGE:
                words = [
                    *words[:_WORDS_AROUND_A_CHANGE],
                    "...",
                    *words[-_WORDS_AROUND_A_CHANGE:],
                ]
            parts += words
            continue
        removed = " ".join(old[old_start:old_end])
        added = " ".join(new[new_start:new_end])
        parts.append((f"[-{removed}-]" if removed else "") + (f"{{+{added}+}}" if added else ""))
    return " ".join(parts)


def _with_mark(mark: str, value: Any) -> Iterator[str]:
    for line in _list_lines((), value):
        yield f"    {mark} {line}".rstrip()


def _list_lines(keys: tuple[str, ...], value: Any) -> Iterator[str]:
    """Yield a line for each text or number in a value, with the keys that lead to it."""
    if isinstance(value, Mapping) and value:
        for key, inner in value.items():
            yield from _list_lines((*keys, key), inner)
    elif isinstance(value, list) and value:
        for inner in value:
            yield from _list_lines(keys, inner)
    else:
        yield from _list_lines_of_scalar(keys, value)


def _list_lines_of_scalar(keys: tuple[str, ...], value: Any) -> Iterator[str]:
    text = value if isinstance(value, str) else json.dumps(value)
    prefix = f"{_KEY_SEPARATOR.join(keys)}: " if keys else ""
    for line in text.splitlines() or ["(empty)"]:
        yield prefix + line


def _heading(keys: Sequence[str]) -> str:
    return f"  {_KEY_SEPARATOR.join(keys) or 'the whole file'}"


def _name(number: int, element: Any) -> str:
    """Name an element of a list by its position, and by its name if it has one."""
    name = element.get("name", "") if isinstance(element, Mapping) else ""
    return f"number {number + 1} {name}".strip()


def _as_texts(elements: Sequence[Any]) -> list[str]:
    return [json.dumps(element, sort_keys=True) for element in elements]
