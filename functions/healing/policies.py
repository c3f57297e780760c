"""What a policy says, statement by statement; a person typed it, so anything may stand there.

https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_grammar.html
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

EVERYBODY = "*"
# SQS takes no longer one; what is longer is not read.
_MOST_CHARACTERS = 20_480
_KNOWN = frozenset(
    {"Sid", "Effect", "Condition"}
    | {
        f"{negation}{each}"
        for each in ("Principal", "Action", "Resource")
        for negation in ("", "Not")
    }
)


@dataclass(frozen=True)
class Statement:
    """One statement as it stands; nothing is resolved, and texts are in their own spelling.

    `principals` by kind (`AWS`, `Service`, `Federated`, ...), of which `"Principal": "*"` is
    `AWS`'s EVERYBODY; `conditions` by operator and key; `excepting` names what is given by what it
    is not: `Principal`, `Action`, `Resource`.
    """

    allows: bool
    principals: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    actions: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    conditions: Mapping[str, Mapping[str, tuple[str, ...]]] = field(default_factory=dict)
    excepting: frozenset[str] = frozenset()
    sid: str = ""

    @property
    def is_for_everybody(self) -> bool:
        return EVERYBODY in self.principals.get("AWS", ())


def statements_of(policy: str) -> tuple[Statement, ...] | None:
    """The statements of a policy's text; none where it is empty, None where it is unreadable.

    What is spelled twice, unknown or of another kind than IAM's grammar has is unreadable as a
    whole: half of a policy says nothing.
    """
    if not policy:
        return ()
    if len(policy) > _MOST_CHARACTERS:
        return None
    try:
        document = json.loads(policy, object_pairs_hook=_once, parse_constant=_refuse)
        found = document["Statement"]
        return tuple(map(_statement, found if isinstance(found, list) else [found]))
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError):
        return None


def _statement(found: dict[str, Any]) -> Statement:
    if found.keys() - _KNOWN or found["Effect"] not in ("Allow", "Deny"):
        raise ValueError("no statement of IAM's grammar")
    principal, _ = given = _given(found, "Principal")
    actions, _ = acts = _given(found, "Action")
    resources, _ = on = _given(found, "Resource")
    return Statement(
        allows=found["Effect"] == "Allow",
        principals=_principals(principal),
        actions=_texts(actions),
        resources=_texts(resources),
        conditions={
            operator: {key: _texts(values) for key, values in asked.items()}
            for operator, asked in found.get("Condition", {}).items()
        },
        excepting=frozenset(name for _, name in (given, acts, on) if name),
        sid=str(found.get("Sid", "")),
    )


def _given(found: Mapping[str, Any], element: str) -> tuple[Any, str]:
    """What it is given as, and its name where that is what it is not."""
    if element in found and f"Not{element}" in found:
        raise ValueError(f"{element} is given twice")
    negated = f"Not{element}" in found
    return found.get(f"Not{element}" if negated else element, []), element if negated else ""


def _principals(given: Any) -> dict[str, tuple[str, ...]]:
    if given == EVERYBODY:
        return {"AWS": (EVERYBODY,)}
    return {kind: _texts(each) for kind, each in given.items()} if given else {}


def _texts(given: Any) -> tuple[str, ...]:
    listed = given if isinstance(given, list) else [given]
    return tuple(map(_text, listed))


def _text(given: Any) -> str:
    """Conditions may hold numbers and booleans, which mean the same as their text."""
    if isinstance(given, bool):
        return str(given).lower()
    if not isinstance(given, str | int | float):
        raise TypeError("neither a text nor a number")
    return str(given)


def _once(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, given in pairs:
        if key in found:
            raise ValueError(f"{key} is given twice")
        found[key] = given
    return found


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON")
