"""A queue's attributes as a template sets them; one that nobody knows cannot be read by mistake."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from cli.lint.node import Node
from cli.lint.values import NotKnown, Values
from functions.healing.facts import Facts
from functions.healing.queue_defaults import DEFAULTS
from functions.healing.template_lines import NUMBER

_BOOLEANS = frozenset({"SqsManagedSseEnabled", "FifoQueue", "ContentBasedDeduplication"})
# SQS answers with these, set or not, and checks rely on that.
_ALWAYS_THERE = ("VisibilityTimeout", "MessageRetentionPeriod")


class Unknown(NotKnown):
    """An attribute that was read and is not known."""

    def __init__(self, attribute: str, because: str) -> None:
        super().__init__(because)
        self.attribute = attribute


@dataclass
class Attributes(Mapping[str, str]):
    """As SQS spells them; reading one of `unknown` raises Unknown. `read` collects what was asked.

    No check can take what is not known for what is not set.
    """

    known: Mapping[str, str]
    unknown: Mapping[str, NotKnown] = field(default_factory=dict)
    read: list[str] = field(default_factory=list)

    def __getitem__(self, name: str) -> str:
        self.read.append(name)
        if name in self.unknown:
            raise Unknown(name, self.unknown[name].because)
        return self.known[name]

    def __iter__(self) -> Iterator[str]:
        return iter({**self.known, **self.unknown})

    def __len__(self) -> int:
        return len({**self.known, **self.unknown})

    def asked_anew(self) -> Attributes:
        return replace(self, read=[])


@dataclass(frozen=True)
class DeclaredFacts(Facts):
    """A queue as a template declares it; what is not known raises Unknown where it is read."""

    dead_letters_unknown: NotKnown | None = None
    type_unknown: NotKnown | None = None

    @property
    def dead_letter_arn(self) -> str | None:
        if self.dead_letters_unknown is not None:
            raise Unknown("RedrivePolicy", self.dead_letters_unknown.because)
        return super().dead_letter_arn

    @property
    def is_fifo(self) -> bool:
        if self.type_unknown is not None:
            raise Unknown("FifoQueue", self.type_unknown.because)
        return super().is_fifo


def attributes_of(properties: Mapping[str, Node], values: Values) -> Attributes:
    """Every property as the attribute of its name; what SQS would not take is not known."""
    known = {name: str(DEFAULTS[name]) for name in _ALWAYS_THERE}
    unknown: dict[str, NotKnown] = {}
    for name, node in properties.items():
        try:
            text = _spelled(name, values.of(node))
        except NotKnown as because:
            unknown[name] = because
            continue
        if text is not None:
            known[name] = text
    return Attributes(known, unknown)


def _spelled(name: str, found: Any) -> str | None:
    if found is None:
        return None
    text = found if isinstance(found, str) else json.dumps(found)
    if name in DEFAULTS and not NUMBER.fullmatch(text):
        raise NotKnown("it is no whole number")
    if name in _BOOLEANS and text.lower() not in ("true", "false"):
        raise NotKnown("it is neither true nor false")
    return text.lower() if name in _BOOLEANS else text
