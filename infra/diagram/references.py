"""Which resources of a template a value in it refers to."""

from __future__ import annotations

import re

_IN_A_TEXT = re.compile(r"\$\{([A-Za-z0-9]+)(?:\.[A-Za-z0-9.]+)?\}")


def references(value: object) -> set[str]:
    """The logical ids, and pseudo parameters, that `Ref`, `GetAtt`, `Sub` and `DependsOn` name."""
    if isinstance(value, list):
        return {found for each in value for found in references(each)}
    if not isinstance(value, dict):
        return set()
    waits, named, text = (value.get(each) for each in ("DependsOn", "Ref", "Fn::Sub"))
    found = {each for each in (waits if isinstance(waits, list) else [waits]) if each}
    if isinstance(named, str):
        found.add(named)
    if isinstance(text, str):
        found |= set(_IN_A_TEXT.findall(text))
    if "Fn::GetAtt" in value:
        found.add(value["Fn::GetAtt"][0])
    inner = (each for name, each in value.items() if name not in {"DependsOn", "Fn::GetAtt"})
    return found.union(*(references(each) for each in inner))
