"""What a rule is: findings on a template, and the faults that prove that it finds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tests.infra.synthesized import Template

Resources = dict[str, Any]
Findings = Iterator[str]
Fault = Callable[[Resources], Any]


@dataclass(frozen=True)
class Rule:
    """`findings` says of a template what breaks the rule; each of `faults` puts that into one."""

    findings: Callable[[Template], Findings]
    faults: Mapping[str, Fault]


def name_of(resources: Resources, resource_type: str, start: str = "") -> str:
    """The logical id of the first resource of a type that starts so."""
    return next(
        name
        for name, each in resources.items()
        if each["Type"] == resource_type and name.startswith(start)
    )


def properties(resources: Resources, resource_type: str, start: str = "") -> Any:
    """The properties, to be changed, of the first resource of a type that starts so."""
    return resources[name_of(resources, resource_type, start)]["Properties"]


def seeded(resource_type: str, **given: Any) -> Fault:
    """A resource that no construct of ours would make."""
    return lambda found: found.update(Seeded={"Type": resource_type, "Properties": given})


def changed(resource_type: str, start: str = "", **given: Any) -> Fault:
    """Other properties of one."""
    return lambda found: properties(found, resource_type, start).update(given)


def dropped(resource_type: str, field: str, start: str = "") -> Fault:
    """One of its properties gone."""
    return lambda found: properties(found, resource_type, start).pop(field)
