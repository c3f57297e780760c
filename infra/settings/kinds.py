"""What a setting may hold: each kind reads JSON, notes every mistake, and says itself in words."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from functions.healing.mode import MODES, Mode
from infra.settings.mistakes import Mistake, nearest


@dataclass
class Reading:
    """One pass over the settings; `floors` says whether those of `timing` hold."""

    floors: bool = True
    mistakes: list[Mistake] = field(default_factory=list)

    def note(self, path: str, fault: str, cure: str) -> None:
        self.mistakes.append(Mistake(path, fault, cure))


class Kind(Protocol):
    """`read` gives the value; what it gives beside a mistake is never used."""

    @property
    def words(self) -> str: ...

    def read(self, raw: object, path: str, reading: Reading) -> Any: ...


@dataclass(frozen=True)
class Flag:
    words: str = "true or false"

    def read(self, raw: object, path: str, reading: Reading) -> bool:
        if not isinstance(raw, bool):
            reading.note(path, f"{shown(raw)} is not {self.words}", "write it without quotes")
        return raw is True


@dataclass(frozen=True)
class Number:
    """A number from `least` to `most`; below `floor` only where the floors are lifted."""

    least: float
    most: float
    whole: bool = True
    floor: float | None = None

    @property
    def words(self) -> str:
        return self._words(self.least if self.floor is None else self.floor)

    def _words(self, least: float) -> str:
        return f"{'whole ' if self.whole else ''}number from {least:g} to {self.most:.12g}"

    def read(self, raw: object, path: str, reading: Reading) -> Any:
        cure = f"say a {self.words if reading.floors else self._words(self.least)}"
        if isinstance(raw, bool) or not isinstance(raw, (int, float)) or not math.isfinite(raw):
            reading.note(path, f"{shown(raw)} is not a number", cure)
            return self.least
        if self.whole and not isinstance(raw, int):
            reading.note(path, f"{shown(raw)} is not whole", cure)
        elif not self.least <= raw <= self.most or (reading.floors and self.below_floor(raw)):
            reading.note(path, f"{shown(raw)} is out of range", cure)
        return raw

    def below_floor(self, value: float) -> bool:
        return self.floor is not None and value < self.floor


@dataclass(frozen=True)
class Text:
    """A text that `shape` matches whole; `hint` may know a better cure for a near miss."""

    words: str
    shape: re.Pattern[str]
    example: str
    hint: Callable[[str], str | None] = lambda _: None

    def read(self, raw: object, path: str, reading: Reading) -> str:
        if isinstance(raw, str) and self.shape.fullmatch(raw):
            return raw
        hint = self.hint(raw) if isinstance(raw, str) else None
        cure = hint or f"say one such as {self.example}"
        reading.note(path, f"{shown(raw)} is not {self.words}", cure)
        return ""


@dataclass(frozen=True)
class OneOf:
    names: Iterable[str]
    words: str

    def read(self, raw: object, path: str, reading: Reading) -> str:
        if not isinstance(raw, str) or raw not in self.names:
            cure = nearest(str(raw), self.names)
            reading.note(path, f"{shown(raw)} is not {self.words}", cure)
        return str(raw)


@dataclass(frozen=True)
class ModeWord:
    words: str = "observe, propose or heal"

    def read(self, raw: object, path: str, reading: Reading) -> Mode:
        mode = Mode.read(raw) if isinstance(raw, str) else None
        if mode is None:
            cure = nearest(str(raw), MODES)
            reading.note(path, f"{shown(raw)} is not {self.words}", cure)
        return Mode.OBSERVE if mode is None else mode


@dataclass(frozen=True)
class ListOf:
    kind: Kind
    of: str
    most: int = 200

    @property
    def words(self) -> str:
        return f"list of {self.of}"

    def read(self, raw: object, path: str, reading: Reading) -> tuple[Any, ...]:
        if not isinstance(raw, (list, tuple)):
            reading.note(path, f"{shown(raw)} is not a {self.words}", "write it as [..]")
            return ()
        if len(raw) > self.most:
            reading.note(path, f"{len(raw)} entries are too many", f"keep at most {self.most}")
        for index, each in enumerate(raw):
            if each in raw[:index]:
                reading.note(f"{path}[{index}]", f"{shown(each)} is there twice", "leave one out")
        return tuple(
            self.kind.read(each, f"{path}[{index}]", reading) for index, each in enumerate(raw)
        )


@dataclass(frozen=True)
class ByName:
    """A value for each of some known names; `without` has names that take none, and why."""

    names: Iterable[str]
    kind: Kind
    of: str
    without: Mapping[str, str] = field(default_factory=dict)

    @property
    def words(self) -> str:
        return f"{{{self.of}: {self.kind.words}}}"

    def read(self, raw: object, path: str, reading: Reading) -> Mapping[str, Any]:
        given = as_object(raw, path, reading) or {}
        for name in sorted(given.keys() - set(self.names)):
            if name in self.without:
                reading.note(f"{path}.{name}", self.without[name], "leave it out")
            else:
                reading.note(f"{path}.{name}", f"no such {self.of}", nearest(name, self.names))
        return {
            name: self.kind.read(value, f"{path}.{name}", reading)
            for name, value in given.items()
            if name in self.names
        }


def as_object(raw: object, path: str, reading: Reading) -> Mapping[str, Any] | None:
    """`raw` if it is a JSON object; else the mistake is noted."""
    if isinstance(raw, Mapping):
        return raw
    reading.note(path, f"{shown(raw)} is not an object", "write it as {..}")
    return None


def shown(raw: object) -> str:
    """A value as a person would know it again."""
    text = json.dumps(raw, default=str)
    return text if len(text) <= 60 else f"{text[:57]}..."
