"""A frozen class read from a JSON object: field names in camel case, unknown ones refused."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields
from typing import Any

from infra.settings.kinds import Kind, Reading, as_object
from infra.settings.mistakes import nearest

_KEY = "setting"


@dataclass(frozen=True)
class Setting:
    """What one field of a settings class may hold, and what it is for, in a sentence."""

    kind: Kind
    says: str


def setting(kind: Kind, says: str) -> dict[str, Setting]:
    """The metadata of a dataclass field that can be set; without a default it has to be."""
    return {_KEY: Setting(kind, says)}


@dataclass(frozen=True)
class Together:
    """What no single field can show: `look` is asked once the fields it names are right."""

    fields: frozenset[str]
    look: Callable[[Any, str, Reading], None]


@dataclass(frozen=True)
class Section:
    """An object whose keys are the fields of `shape`.

    `foreign` describes the fields of a class that is not ours to annotate.
    """

    shape: type[Any]
    foreign: Mapping[str, Setting] = field(default_factory=dict)
    together: tuple[Together, ...] = ()
    words: str = "object"

    def settings(self) -> dict[str, tuple[Field[Any], Setting]]:
        """Every field with what it may hold, by the name a user writes."""
        return {camel(each.name): (each, self._of(each)) for each in fields(self.shape)}

    def read(self, raw: object, path: str, reading: Reading) -> Any:
        """An instance of `shape`; beside a mistake it is worth nothing, and may be None."""
        given = as_object(raw, path or "mendq", reading)
        if given is None:
            return None
        known = self.settings()
        for name in sorted(given.keys() - known.keys()):
            reading.note(_join(path, name), "no such setting", nearest(name, known))
        values: dict[str, Any] = {}
        wrong: set[str] = set()
        for name, (each, described) in known.items():
            so_far = len(reading.mistakes)
            if name in given:
                values[each.name] = described.kind.read(given[name], _join(path, name), reading)
            elif _is_required(each):
                reading.note(_join(path, name), "is missing", f"say {described.kind.words}")
            if len(reading.mistakes) > so_far:
                wrong.add(each.name)
                values.pop(each.name, None)
        return self._whole(values, wrong, path, reading)

    def _whole(
        self, values: Mapping[str, Any], wrong: set[str], path: str, reading: Reading
    ) -> Any:
        if any(_is_required(each) and each.name in wrong for each in fields(self.shape)):
            return None
        whole = self.shape(**values)
        for rule in self.together:
            if not rule.fields & wrong:
                rule.look(whole, path, reading)
        return whole

    def _of(self, each: Field[Any]) -> Setting:
        described: Setting = each.metadata.get(_KEY) or self.foreign[each.name]
        return described


def camel(name: str) -> str:
    """`writes_per_minute` as settings spell it: `writesPerMinute`."""
    head, *tail = name.split("_")
    return head + "".join(word.capitalize() for word in tail)


def _is_required(each: Field[Any]) -> bool:
    return each.default is MISSING and each.default_factory is MISSING


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
