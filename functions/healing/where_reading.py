"""What a `--where` expression can ask of a letter, and what the letter answers.

A letter is others' text: whatever it holds, the answer is a value or MISSING.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from enum import Enum, StrEnum
from functools import cached_property
from typing import Any, NoReturn

from functions.healing.letters import Letter, MessageAttribute
from functions.healing.where_words import steps_of

# What a path may lead to beside a text, a number and a truth: there is something, none of these.
Value = str | Decimal | bool | Enum


class Other(Enum):
    MISSING = "missing"
    COMPOSITE = "composite"


MISSING = Other.MISSING


class Asks(StrEnum):
    """What a field is compared with."""

    DURATION = "duration"
    SIZE = "size"
    COUNT = "count"
    TEXT = "text"
    ANYTHING = "anything"


FIELDS: Mapping[str, Asks] = {
    "attr": Asks.ANYTHING,
    "body": Asks.ANYTHING,
    "age": Asks.DURATION,
    "size": Asks.SIZE,
    "receives": Asks.COUNT,
    "hops": Asks.COUNT,
    "group": Asks.TEXT,
    "id": Asks.TEXT,
}


@dataclass(frozen=True)
class Field:
    """One of FIELDS; `steps` lead into the body, or are an attribute's name."""

    name: str
    steps: tuple[str | int, ...] = ()
    written: str = field(default="", compare=False)

    @classmethod
    def named(cls, written: str) -> Field | str:
        """What a name asks for; else why it asks for nothing."""
        name, steps = steps_of(written)
        if name not in FIELDS:
            return f"{name[:40]} is none of {', '.join(FIELDS)}; a text stands in quotes"
        if steps and FIELDS[name] is not Asks.ANYTHING:
            return f"{name} leads nowhere: write it alone"
        if name == "attr":
            if not steps or not all(isinstance(each, str) for each in steps):
                return "say which attribute: attr.NAME"
            return cls(name, (".".join(map(str, steps)),), written)
        return cls(name, steps, written)

    @property
    def asks(self) -> Asks:
        return FIELDS[self.name] if self.steps or self.name != "body" else Asks.TEXT


class Reading:
    """A letter at a moment; what was asked once is not read again."""

    def __init__(self, letter: Letter, now: datetime) -> None:
        self.letter = letter
        self.now = now
        self._known: dict[Field, Value] = {}

    def value(self, asked: Field) -> Value:
        """MISSING where the letter has no such thing; JSON's null is none either."""
        if asked not in self._known:
            self._known[asked] = self._read(asked)
        return self._known[asked]

    def _read(self, asked: Field) -> Value:
        if asked.name == "attr":
            found = self.letter.attributes.get(str(asked.steps[0]))
            return MISSING if found is None else _of_attribute(found)
        if asked.steps:
            return _shown(_walked(self._document, asked.steps))
        return _ASKED[asked.name](self)

    @cached_property
    def _document(self) -> Any:
        return _parsed(self.letter.body)

    @property
    def age_seconds(self) -> Decimal:
        return Decimal(max(0.0, (self.now - self.letter.sent_at).total_seconds()))


_ASKED: Mapping[str, Callable[[Reading], Value]] = {
    "body": lambda reading: reading.letter.body,
    "age": lambda reading: reading.age_seconds,
    "size": lambda reading: _size(reading.letter),
    "receives": lambda reading: Decimal(reading.letter.receive_count),
    "hops": lambda reading: Decimal(reading.letter.hops),
    "group": lambda reading: reading.letter.group_id or MISSING,
    "id": lambda reading: reading.letter.message_id,
}


def _size(letter: Letter) -> Value:
    """What SQS never took, half a character, has none."""
    try:
        return Decimal(letter.size_bytes)
    except UnicodeEncodeError:
        return MISSING


def _of_attribute(found: MessageAttribute) -> Value:
    if not isinstance(found.value, str):
        return Other.COMPOSITE
    if found.data_type.partition(".")[0] != "Number":
        return found.value
    try:
        number = Decimal(found.value)
    except ArithmeticError:
        return found.value
    return number if number.is_finite() else found.value


def _walked(document: Any, steps: tuple[str | int, ...]) -> Any:
    """Where they lead; a text on the way is gone into where it is JSON, as SNS wraps a message."""
    for step in steps:
        inside = _parsed(document) if isinstance(document, str) else document
        if not _has(inside, step):
            return MISSING
        document = inside[step]
    return document


def _has(inside: Any, step: str | int) -> bool:
    if isinstance(step, str):
        return isinstance(inside, dict) and step in inside
    return isinstance(inside, list) and step < len(inside)


def _shown(found: Any) -> Value:
    if found is None:
        return MISSING
    return found if isinstance(found, str | bool | Decimal | Other) else Other.COMPOSITE


def _parsed(text: str) -> Any:
    """The JSON in `text`; MISSING where it is none, or nested deeper than Python reads."""
    try:
        return json.loads(text, parse_float=Decimal, parse_int=Decimal, parse_constant=_refuse)
    except (ValueError, ArithmeticError, RecursionError):
        return MISSING


def _refuse(word: str) -> NoReturn:
    """NaN and Infinity are Python's own, not JSON's."""
    raise ValueError(word)
