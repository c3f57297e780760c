"""Whether a condition holds for a letter: yes, no, or not to be said.

What cannot be said is neither true nor false, and its negation cannot be said either, as in SQL: a
letter is only taken where the condition holds.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Protocol

from functions.healing.where_reading import MISSING, Field, Reading

Truth = bool | None
Wanted = str | Decimal | bool
CONTAINS = "~"
COMPARED: Mapping[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    CONTAINS: operator.contains,
}


class Condition(Protocol):
    """Part of an expression, or all of it."""

    def truth(self, reading: Reading) -> Truth: ...

    def fields(self) -> Iterator[Field]: ...


@dataclass(frozen=True)
class Comparison:
    """Not to be said where the field is missing, or of another kind than what is wanted."""

    field: Field
    sign: str
    wanted: Wanted

    def truth(self, reading: Reading) -> Truth:
        found = reading.value(self.field)
        if type(found) is not type(self.wanted):
            return None
        return COMPARED[self.sign](found, self.wanted)

    def fields(self) -> Iterator[Field]:
        yield self.field


@dataclass(frozen=True)
class Exists:
    """Always to be said."""

    field: Field

    def truth(self, reading: Reading) -> Truth:
        return reading.value(self.field) is not MISSING

    def fields(self) -> Iterator[Field]:
        yield self.field


@dataclass(frozen=True)
class Not:
    of: Condition

    def truth(self, reading: Reading) -> Truth:
        found = self.of.truth(reading)
        return None if found is None else not found

    def fields(self) -> Iterator[Field]:
        yield from self.of.fields()


@dataclass(frozen=True)
class Joined:
    """Parts with `and` or `or` between them; `decides` is what one part alone decides."""

    parts: tuple[Condition, ...]
    decides: bool

    def truth(self, reading: Reading) -> Truth:
        unsaid = False
        for each in self.parts:
            found = each.truth(reading)
            if found is self.decides:
                return self.decides
            unsaid = unsaid or found is None
        return None if unsaid else not self.decides

    def fields(self) -> Iterator[Field]:
        for each in self.parts:
            yield from each.fields()


@dataclass(frozen=True)
class Everything:
    """What `--all` says."""

    def truth(self, _reading: Reading) -> Truth:
        return True

    def fields(self) -> Iterator[Field]:
        yield from ()
