"""The differences of two records, by the path at which they lie."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import unified_diff
from typing import Any

from tests.before.stored import NOT_HERE

ABSENT = object()
_SHORT = 90
_MOST_PATHS = 8


@dataclass(frozen=True)
class Difference:
    """One path whose value is another; ABSENT where a side has none."""

    path: str
    before: Any
    now: Any


def differences(before: Any, now: Any, path: str = "") -> list[Difference]:
    """Every difference, in the order of the paths.

    Mappings are compared name by name, lists of mappings place by place, and all else as a whole:
    a part that one side alone has is one difference, however much is in it. Texts that stand in
    their order now did so under their old names.
    """
    if _is_in_order(before, now):
        before = sorted(before)
    if before == now or NOT_HERE in (before, now):
        return []
    if isinstance(before, Mapping) and isinstance(now, Mapping):
        return list(_in_mappings(before, now, path))
    if _is_list_of_mappings(before) and _is_list_of_mappings(now) and len(before) == len(now):
        pairs = zip(before, now, strict=True)
        return [
            each
            for n, (old, new) in enumerate(pairs)
            for each in differences(old, new, _below(path, str(n)))
        ]
    return [Difference(path, before, now)]


def _in_mappings(
    before: Mapping[str, Any], now: Mapping[str, Any], path: str
) -> Iterator[Difference]:
    for name in sorted({*before, *now}):
        old, new = before.get(name, ABSENT), now.get(name, ABSENT)
        below = _below(path, name)
        if old is ABSENT or new is ABSENT:
            yield Difference(below, old, new)
        else:
            yield from differences(old, new, below)


def _is_list_of_mappings(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, Mapping) for each in value)


def _is_in_order(before: Any, now: Any) -> bool:
    texts = [
        isinstance(each, str) for side in (before, now) if isinstance(side, list) for each in side
    ]
    return isinstance(before, list) and isinstance(now, list) and all(texts) and now == sorted(now)


def _below(path: str, name: str) -> str:
    return f"{path}/{name}" if path else name


def alike(found: Iterable[Difference]) -> list[tuple[list[str], Difference]]:
    """The differences with the paths that differ in the same way, each way once."""
    by_value: dict[str, tuple[list[str], Difference]] = {}
    for each in found:
        sides = [_lines(each.before), _lines(each.now), each.before is ABSENT, each.now is ABSENT]
        paths, _ = by_value.setdefault(json.dumps(sides), ([], each))
        paths.append(each.path)
    return list(by_value.values())


def shown(paths: Sequence[str], difference: Difference) -> str:
    """The difference as a person reads it: one line a side, or a unified one of long values."""
    old, new = _lines(difference.before), _lines(difference.now)
    if len(old) <= 1 and len(new) <= 1:
        announced = [*(f"  - {line}" for line in old), *(f"  + {line}" for line in new)]
    else:
        unified = list(unified_diff(old, new, lineterm="", n=1))[2:]
        announced = [f"  {line[:1]} {line[1:]}" for line in unified if not line.startswith("@@")]
    named = list(paths[:_MOST_PATHS])
    if len(paths) > len(named):
        named.append(f"... and {len(paths) - len(named)} more paths")
    return "\n".join([*named, *announced])


def _lines(value: Any) -> list[str]:
    if value is ABSENT:
        return []
    if isinstance(value, str):
        return value.splitlines() or [""]
    text = json.dumps(value, sort_keys=True, ensure_ascii=False)
    if len(text) <= _SHORT:
        return [text]
    return json.dumps(value, sort_keys=True, ensure_ascii=False, indent=1).splitlines()
