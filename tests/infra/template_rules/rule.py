"""What a rule is: findings on a template, and the faults that prove that it finds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tests.infra.synthesized import Template

Resources = dict[str, Any]
Findings = Iterator[str]


@dataclass(frozen=True)
class Rule:
    """`findings` says of a template what breaks the rule; each of `faults` puts that into one."""

    findings: Callable[[Template], Findings]
    faults: Mapping[str, Callable[[Resources], None]]


def properties(resources: Resources, resource_type: str, start: str = "") -> Any:
    """The properties, to be changed, of the first resource of a type that starts so."""
    return next(
        each["Properties"]
        for name, each in resources.items()
        if each["Type"] == resource_type and name.startswith(start)
    )


def name_of(resources: Resources, resource_type: str, start: str = "") -> str:
    """The logical id of the first resource of a type that starts so."""
    return next(
        name
        for name, each in resources.items()
        if each["Type"] == resource_type and name.startswith(start)
    )


def add(resources: Resources, resource_type: str, **given: Any) -> None:
    """A resource that no construct of ours would make."""
    resources["Seeded"] = {"Type": resource_type, "Properties": given}


def as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
