"""Who may be which role, and what it may change on queues that are not Mendq's own."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from stack_outline import REGION, resources
from states_page import table

from infra.diagram.grants import Grant, granted_to

BEGIN = "<!-- derived: roles (make docs) -->"
HEAD = ("role", "taken on by", "what it may do to queues beside reading")
NOTHING = "nothing"


def roles_table() -> str:
    """The roles that change queues one by one, and the others in one row for each service."""
    by_what = defaultdict[tuple[str, str], list[str]](list)
    for purpose, service, actions in sorted(_roles(resources())):
        named = ", ".join(f"`{each}`" for each in actions) or NOTHING
        by_what[service, named].append(purpose)
    rows = sorted(by_what.items(), key=lambda each: (each[0][1] == NOTHING, each[1]))
    return table(HEAD, [(_together(names), *what) for what, names in rows]).rstrip("\n")


def _roles(template: Mapping[str, Mapping[str, Any]]) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    for name, each in template.items():
        if each["Type"] == "AWS::IAM::Role":
            (trust,) = each["Properties"]["AssumeRolePolicyDocument"]["Statement"]
            purpose = each["Properties"]["RoleName"][len("mendq-") : -len(f"-{REGION}")]
            yield purpose, _service(trust), _writes(granted_to({name}, template))


def _service(trust: Mapping[str, Any]) -> str:
    return str(trust["Principal"]["Service"]).removesuffix(".amazonaws.com")


def _writes(grants: Iterator[Grant]) -> tuple[str, ...]:
    yours = (each for each in grants if each.is_of_your_queues)
    actions = {action for each in yours for action in each.actions if _is_write(action)}
    return tuple(sorted(each.removeprefix("sqs:") for each in actions))


def _is_write(action: str) -> bool:
    return action.startswith("sqs:") and "writes" in Grant(frozenset({action}), frozenset()).verbs


def _together(names: list[str]) -> str:
    return ", ".join(f"`{each}`" for each in names)
