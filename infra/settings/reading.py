"""A settings class read from JSON: every mistake is noted, with its field and what to do."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields, is_dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace

from mendq.model.limits import MODES, Mode, Range


class Mistake(Struct, frozen=True):
    """One field that cannot stay as it is; `path` as the user wrote it."""

    path: str
    fault: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.path}: {self.fault}; {self.remedy}"


class SettingsRefused(Exception):
    """The settings are not deployed; `str` gives one line per mistake."""

    def __init__(self, mistakes: Sequence[Mistake]) -> None:
        super().__init__(mistakes)
        self.mistakes = tuple(mistakes)

    def __str__(self) -> str:
        return "\n".join(str(mistake) for mistake in self.mistakes)


_TWICE = "(there twice)"
# The fields that must be right for it, the key, what is wrong with it and what to do.
Conflict = tuple[Collection[str], str, str, str]


def text(words: str, pattern: str, example: str, *near: tuple[str, str]) -> Meta:
    """Bounds of a text that `pattern` matches whole.

    `near` has the patterns of near misses, each with what to do about it.
    """
    remedies = (*near, ("", f"say one such as {example}"))
    return Meta(title=words, pattern=rf"^(?:{pattern})\Z", extra={"remedies": remedies})


def one_of(words: str, names: Mapping[str, Any] | Iterable[str]) -> Meta:
    """Bounds of a word that is one of `names`; a mapping has the value of each."""
    values = names if isinstance(names, Mapping) else {each: each for each in names}
    return Meta(title=words, extra={"names": values})


def entries(words: str, most: int = 200) -> Meta:
    """Bounds of a list."""
    return Meta(title=f"list of {words}", max_length=most)


_NUMBERS = {int: "whole number", float: "number"}
_PLAIN = {
    bool: Meta(title="true or false", extra={"remedies": [("", "write it without quotes")]}),
    Mode: Meta(title="a mode", description="observe, propose or heal", extra={"names": MODES}),
}


def bounds_of(kind: Any) -> tuple[Any, Any]:
    """The bare type of a setting and what bounds it."""
    kind = next((each for each in get_args(kind) if type(None) in get_args(kind)), kind)
    return get_args(kind) if get_origin(kind) is Annotated else (kind, _PLAIN.get(kind, Meta()))


def words_of(kind: Any, *, floors: bool = True) -> str:
    """What a setting may hold, as a person reads it."""
    base, bounds = bounds_of(kind)
    if base not in _NUMBERS:
        return str(bounds.description or bounds.title)
    return f"{_NUMBERS[base]} from {bounds.begins(floors=floors):g} to {bounds.most:.12g}"


def is_bounded(kind: Any) -> bool:
    """Return True if the type of a setting says which values it takes."""
    base, bounds = bounds_of(kind)
    if base in _NUMBERS:
        return isinstance(bounds, Range)
    return bool(bounds.description or bounds.title)


def settings_of(kind: Any) -> Mapping[str, tuple[Field[Any], Any]]:
    """The fields of a settings class with their types, by the names that a user writes.

    None of any other type.
    """
    shape, _ = bounds_of(kind)
    if not is_dataclass(shape):
        return {}
    hints = get_type_hints(shape, include_extras=True)
    return {camel(each.name): (each, hints[each.name]) for each in fields(shape)}


@dataclass
class Reading:
    """One pass over the settings; `floors` says whether those of `timing` hold.

    What a method gives beside a mistake is never used.
    """

    floors: bool = True
    mistakes: list[Mistake] = field(default_factory=list)

    def note(self, path: str, fault: str, remedy: str) -> None:
        """Add a mistake."""
        self.mistakes.append(Mistake(path, fault, remedy))

    def read(self, kind: Any, raw: object, path: str) -> Any:
        """The value of type `kind` that `raw`, which `parse` has read, spells."""
        if is_there_twice(raw):
            return self.note(path or "mendq", "is there twice", "leave one out")
        base, bounds = bounds_of(kind)
        if is_dataclass(base):
            return self._section(kind, raw, path)
        if get_origin(base) is tuple:
            return self._list(get_args(base)[0], bounds, raw, path)
        if get_origin(base) is Mapping:
            return self._by_name(base, bounds.extra, raw, path)
        return self._leaf(kind, raw, path)

    def _section(self, kind: Any, raw: object, path: str) -> Any:
        shape, _ = bounds_of(kind)
        alone = getattr(shape, "alone", "")
        given, known = self._object(raw, path or "mendq", alone), settings_of(kind)
        if given is None:
            return None
        values, wrong = dict[str, Any](), set[str]()
        for name in sorted(given.keys() - known.keys()):
            self.note(join(path, name), "no such setting", nearest(name, known))
        for name, (each, inner) in known.items():
            so_far = len(self.mistakes)
            if name in given:
                values[each.name] = self.read(inner, given[name], join(path, name))
            elif each.default is each.default_factory is MISSING:
                self.note(join(path, name), "is missing", f"say {words_of(inner)}")
            if len(self.mistakes) > so_far:
                wrong.add(each.name)
                values.pop(each.name, None)
        if not hasattr(shape, "conflicts"):
            return None if wrong else shape(**values)
        whole = shape(**values)
        for needs, name, fault, remedy in whole.conflicts():
            if not wrong.intersection(needs):
                self.note(join(path, name), fault, remedy)
        return whole

    def _object(self, raw: object, path: str, alone: str = "") -> Mapping[str, Any] | None:
        """`alone` is the one field that a word may say without the others."""
        if isinstance(raw, Mapping):
            return raw
        if alone and isinstance(raw, str):
            return {alone: raw}
        self.note(path, f"{shown(raw)} is not an object", "write it as {..}")
        return None

    def _list(self, kind: Any, bounds: Meta, raw: object, path: str) -> Any:
        if not isinstance(raw, (list, tuple)):
            self.note(path, f"{shown(raw)} is not a {bounds.title}", "write it as [..]")
            return ()
        if len(raw) > (most := bounds.max_length or 0):
            return self.note(path, f"{len(raw)} entries are too many", f"keep at most {most}")
        for index, each in enumerate(raw):
            if each in raw[:index]:
                self.note(f"{path}[{index}]", f"{shown(each)} is there twice", "leave one out")
        return tuple(self.read(kind, each, f"{path}[{index}]") for index, each in enumerate(raw))

    def _by_name(self, kind: Any, extra: Any, raw: object, path: str) -> Mapping[str, Any]:
        """The values by name; `unfit`, if any, says what is wrong with one, and what to do."""
        given, (key, held) = self._object(raw, path) or {}, get_args(kind)
        if len(given) > (most := extra["most"]):
            self.note(path, f"{len(given)} entries are too many", f"keep at most {most}")
        for name in given:
            self._leaf(key, name, f"{path}.{name}")
            if wrong := extra.get("unfit", {}.get)(name):
                self.note(f"{path}.{name}", *wrong)
        return {name: self.read(held, each, f"{path}.{name}") for name, each in given.items()}

    def _leaf(self, kind: Any, raw: object, path: str) -> Any:
        base, bounds = bounds_of(kind)
        if base in _NUMBERS:
            bounds = Meta(ge=bounds.begins(floors=self.floors), le=bounds.most)
        elif names := (bounds.extra or {}).get("names"):
            if isinstance(raw, str) and raw in names:
                return names[raw]
            return self.note(path, f"{shown(raw)} is not {bounds.title}", nearest(str(raw), names))
        try:
            return msgspec.convert(raw, Annotated[base, bounds])
        except msgspec.ValidationError as error:
            if base in _NUMBERS:
                fault = f"not a {_NUMBERS[base]}" if "got" in str(error) else "out of range"
                remedy = f"say a {words_of(kind, floors=self.floors)}"
            else:
                fault, said = f"not {bounds.title}", raw if isinstance(raw, str) else ""
                near = bounds.extra["remedies"]
                remedy = next(remedy for pattern, remedy in near if re.search(pattern, said))
            return self.note(path, f"{shown(raw)} is {fault}", remedy)


Kind = TypeVar("Kind")


def whole(kind: type[Kind], raw: object, *, floors: bool = True, of: str = "") -> Kind:
    """The value of type `kind` that `raw` spells.

    Raises SettingsRefused with every mistake, `of` before the path of each.
    """
    reading = Reading(floors)
    value: Kind = reading.read(kind, raw, "")
    if found := reading.mistakes:
        raise SettingsRefused([replace(each, path=of + each.path) for each in found])
    return value


def camel(name: str) -> str:
    """`writes_per_minute` as settings spell it: `writesPerMinute`."""
    head, *tail = name.split("_")
    return head + "".join(word.capitalize() for word in tail)


def join(path: str, name: str) -> str:
    """The path of a key within an object."""
    return f"{path}.{name}".strip(".")


def nearest(word: str, known: Iterable[str]) -> str:
    """What to do about a word that is none of the known ones."""
    names = sorted(known)
    lowered = {name.lower(): name for name in names}
    close = get_close_matches(word.lower(), lowered, n=1)
    return f"did you mean {lowered[close[0]]}?" if close else f"say one of {', '.join(names)}"


# As long as PagerDuty's: what stands where an ARN should may be the secret itself.
_KEY = re.compile(r"\b(\w{4})\w{28,}")


def shown(raw: object) -> str:
    """A value as a person would know it again; of what may be a key, its beginning."""
    written = _KEY.sub(r"\1...", json.dumps(raw, default=str))
    return written if len(written) <= 60 else f"{written[:57]}..."


# Settings are four deep; whatever reads them further goes as deep as they are.
MOST_DEEP = 50
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{}]')


def parse(content: str) -> Any:
    """The JSON in `content`, a key that is there twice as what no setting can be.

    Raises ValueError, which names the place, where it is no JSON or nested too deep.
    """
    depth = 0
    for token in _TOKEN.finditer(content):
        depth += (token[0] in "[{") - (token[0] in "]}")
        if depth > MOST_DEEP:
            raise json.JSONDecodeError("nested too deep", content, token.start())
    return json.loads(content, object_pairs_hook=_object)


def _object(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    times = Counter(key for key, _ in pairs)
    return {key: {_TWICE: True} if times[key] > 1 else value for key, value in pairs}


def is_there_twice(value: object) -> bool:
    """True where `parse` found the key of the value twice."""
    return isinstance(value, Mapping) and _TWICE in value


def object_in(path: Path, of: str = "SETTINGS") -> dict[str, Any]:
    """What the file holds that `make` is given by `SETTINGS=`, or by what `of` says.

    Settings are what stands in `cdk.json` as the object `mendq` of `context`. Raises
    SettingsRefused where there is no object in it.
    """
    fault, remedy = "is not an object", "write it as {..}"
    try:
        content = parse(path.read_text("utf-8"))
        if isinstance(content, dict):
            return content
    except OSError as error:
        fault, remedy = f"cannot be read ({error.strerror})", "name a JSON file"
    except ValueError as error:
        fault, remedy = f"is not JSON ({error})", "fix it there"
    raise SettingsRefused([Mistake(f"{of} {path}", fault, remedy)])
