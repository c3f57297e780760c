"""Read settings from JSON into a settings class, and collect every mistake with its remedy.

A settings class is a frozen dataclass. The type of each field says which values it takes: as
`Annotated[TYPE, BOUNDS]`, where BOUNDS comes from `text`, `one_of`, `entries` or `Range`. A field
whose type is another settings class is a section.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields, is_dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace

from mendq.model.limits import Range
from mendq.model.mode import MODE_BY_TEXT, Mode


class Mistake(Struct, frozen=True):
    """A setting that must be changed before Mendq can be deployed.

    Attributes:
        path: the setting as the user writes it, such as `trail.bucket`.
        fault: what is wrong with it.
        remedy: what the user should do.
    """

    path: str
    fault: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.path}: {self.fault}; {self.remedy}"


class SettingsRefused(Exception):
    """The settings have mistakes, so nothing is deployed. `str` gives one line for each mistake."""

    def __init__(self, mistakes: Sequence[Mistake]) -> None:
        super().__init__(mistakes)
        self.mistakes = tuple(mistakes)

    def __str__(self) -> str:
        return "\n".join(str(mistake) for mistake in self.mistakes)


class Conflict(Struct, frozen=True):
    """A mistake that a settings class finds by comparing several of its fields.

    Attributes:
        needs: names of the fields that are compared. The conflict is reported only if none of them
            has a mistake of its own.
        name: the setting that is reported, as the user writes it; empty for the whole section.
        fault: what is wrong with it.
        remedy: what the user should do.
    """

    needs: Collection[str]
    name: str
    fault: str
    remedy: str


def text(words: str, pattern: str, example: str, *near: tuple[str, str]) -> Meta:
    """Return the bounds of a text.

    Args:
        words: a description of the text.
        pattern: a regular expression that must match the whole text.
        example: a valid text.
        near: patterns of wrong texts that people may write, each with its remedy. The first pattern
            that is found in the text gives the remedy.
    """
    remedies = (*near, ("", f"say one such as {example}"))
    return Meta(title=words, pattern=rf"^(?:{pattern})\Z", extra={"remedies": remedies})


def one_of(words: str, names: Mapping[str, Any] | Iterable[str]) -> Meta:
    """Return the bounds of a word that must be one of `names`.

    If `names` is a mapping, the setting's value is the value under the name.
    """
    values = names if isinstance(names, Mapping) else {name: name for name in names}
    return Meta(title=words, extra={"names": values})


def entries(words: str, most: int = 200) -> Meta:
    """Return the bounds of a list with at most `most` entries. `words` describes the entries."""
    return Meta(title=f"list of {words}", max_length=most)


_NUMBERS = {int: "whole number", float: "number"}
# Bounds of types that need no annotation.
_DEFAULT_BOUNDS = {
    bool: Meta(title="true or false", extra={"remedies": [("", "write it without quotes")]}),
    Mode: Meta(
        title="a mode", description="observe, propose or heal", extra={"names": MODE_BY_TEXT}
    ),
}
# Stands for the value of a key that a JSON object has twice.
_TWICE = "(there twice)"


def type_and_bounds(kind: Any) -> tuple[Any, Any]:
    """Split the type of a setting into the plain type, without None, and its bounds."""
    alternatives = get_args(kind)
    if type(None) in alternatives:
        kind = alternatives[0]
    if get_origin(kind) is Annotated:
        return get_args(kind)
    return kind, _DEFAULT_BOUNDS.get(kind, Meta())


def describe_values(kind: Any, *, floors: bool = True) -> str:
    """Return in words which values a setting takes, such as `whole number from 1 to 24`.

    If `floors` is False, the numbers begin lower, as in the local account.
    """
    base, bounds = type_and_bounds(kind)
    if base not in _NUMBERS:
        return str(bounds.description or bounds.title)
    return f"{_NUMBERS[base]} from {bounds.begins(floors=floors):g} to {bounds.most:.12g}"


def has_bounds(kind: Any) -> bool:
    """Return True if the type of a setting says which values it takes."""
    base, bounds = type_and_bounds(kind)
    if base in _NUMBERS:
        return isinstance(bounds, Range)
    return bool(bounds.description or bounds.title)


def fields_by_name(kind: Any) -> Mapping[str, tuple[Field[Any], Any]]:
    """Return the fields of a settings class with their types, by the names that a user writes.

    The result is empty if `kind` is no settings class.
    """
    settings_class, _ = type_and_bounds(kind)
    if not is_dataclass(settings_class):
        return {}
    types = get_type_hints(settings_class, include_extras=True)
    return {
        to_camel_case(settings_field.name): (settings_field, types[settings_field.name])
        for settings_field in fields(settings_class)
    }


@dataclass
class SettingsReader:
    """Reads JSON into settings classes and collects the mistakes.

    A method that finds a mistake may return any value: the caller never uses the settings then.

    Attributes:
        floors: False lifts the lower limits of `timing`, for the local account.
        convert_text: applied to each valid text, before it becomes part of the settings.
        mistakes: the mistakes that were found so far.
    """

    floors: bool = True
    convert_text: Callable[[str], str] | None = None
    mistakes: list[Mistake] = field(default_factory=list)

    def add_mistake(self, path: str, fault: str, remedy: str) -> None:
        """Add a mistake."""
        self.mistakes.append(Mistake(path, fault, remedy))

    def read(self, kind: Any, raw: object, path: str) -> Any:
        """Convert `raw` to a setting of type `kind`. Add a mistake if it is not valid.

        Args:
            kind: the type of the setting.
            raw: a value that `parse_json` has returned.
            path: where the setting is, as the user writes it.
        """
        if is_duplicate(raw):
            return self.add_mistake(path or "mendq", "is there twice", "leave one out")
        base, bounds = type_and_bounds(kind)
        if is_dataclass(base):
            return self._read_section(base, raw, path)
        if get_origin(base) is tuple:
            return self._read_list(get_args(base)[0], bounds, raw, path)
        if get_origin(base) is Mapping:
            key_type, value_type = get_args(base)
            return self._read_mapping(key_type, value_type, bounds.extra, raw, path)
        return self._read_value(kind, raw, path)

    def _read_section(self, settings_class: Any, raw: object, path: str) -> Any:
        """Read an object into a settings class, and add the conflicts between its fields."""
        short_field = getattr(settings_class, "short_field", "")
        given = self._read_object(raw, path or "mendq", short_field)
        if given is None:
            return None
        known = fields_by_name(settings_class)
        for name in sorted(given.keys() - known.keys()):
            self.add_mistake(join_path(path, name), "no such setting", suggest_name(name, known))
        values: dict[str, Any] = {}
        wrong: set[str] = set()
        for name, (settings_field, field_type) in known.items():
            mistakes_before = len(self.mistakes)
            field_path = join_path(path, name)
            if name in given:
                values[settings_field.name] = self.read(field_type, given[name], field_path)
            elif settings_field.default is MISSING and settings_field.default_factory is MISSING:
                remedy = f"say {describe_values(field_type)}"
                self.add_mistake(field_path, "is missing", remedy)
            if len(self.mistakes) > mistakes_before:
                wrong.add(settings_field.name)
                values.pop(settings_field.name, None)
        if not hasattr(settings_class, "conflicts"):
            return None if wrong else settings_class(**values)
        section = settings_class(**values)
        for conflict in section.conflicts():
            if not wrong.intersection(conflict.needs):
                conflict_path = join_path(path, conflict.name)
                self.add_mistake(conflict_path, conflict.fault, conflict.remedy)
        return section

    def _read_object(
        self, raw: object, path: str, short_field: str = ""
    ) -> Mapping[str, Any] | None:
        """Return an object, or None with a mistake.

        If the section has a short form, a text stands for an object with only `short_field`.
        """
        if isinstance(raw, Mapping):
            return raw
        if short_field and isinstance(raw, str):
            return {short_field: raw}
        self.add_mistake(path, f"{shorten_value(raw)} is not an object", "write it as {..}")
        return None

    def _read_list(self, kind: Any, bounds: Meta, raw: object, path: str) -> Any:
        """Return a list as a tuple, each entry read as `kind`."""
        if not isinstance(raw, (list, tuple)):
            fault = f"{shorten_value(raw)} is not a {bounds.title}"
            self.add_mistake(path, fault, "write it as [..]")
            return ()
        most = bounds.max_length or 0
        if len(raw) > most:
            fault = f"{len(raw)} entries are too many"
            return self.add_mistake(path, fault, f"keep at most {most}")
        for index, entry in enumerate(raw):
            if entry in raw[:index]:
                fault = f"{shorten_value(entry)} is there twice"
                self.add_mistake(f"{path}[{index}]", fault, "leave one out")
        return tuple(self.read(kind, entry, f"{path}[{index}]") for index, entry in enumerate(raw))

    def _read_mapping(
        self, key_type: Any, value_type: Any, extra: Mapping[str, Any], raw: object, path: str
    ) -> Mapping[str, Any]:
        """Return an object whose keys are chosen by the user, such as names of teams.

        `extra` has the most entries as `most`. It may have a function as `unfit`, which returns
        fault and remedy of a key that does not fit, otherwise None.
        """
        given = self._read_object(raw, path) or {}
        most = extra["most"]
        if len(given) > most:
            fault = f"{len(given)} entries are too many"
            self.add_mistake(path, fault, f"keep at most {most}")
        find_unfit = extra.get("unfit")
        for name in given:
            self._read_value(key_type, name, f"{path}.{name}")
            unfit = find_unfit(name) if find_unfit else None
            if unfit:
                fault, remedy = unfit
                self.add_mistake(f"{path}.{name}", fault, remedy)
        return {
            name: self.read(value_type, value, f"{path}.{name}") for name, value in given.items()
        }

    def _read_value(self, kind: Any, raw: object, path: str) -> Any:
        """Return a number, a text, a mode, or true or false."""
        base, bounds = type_and_bounds(kind)
        if base in _NUMBERS:
            return self._read_number(kind, raw, path)
        names = (bounds.extra or {}).get("names")
        if names:
            if isinstance(raw, str) and raw in names:
                return names[raw]
            fault = f"{shorten_value(raw)} is not {bounds.title}"
            return self.add_mistake(path, fault, suggest_name(str(raw), names))
        try:
            value = msgspec.convert(raw, Annotated[base, bounds])
        except msgspec.ValidationError:
            written = raw if isinstance(raw, str) else ""
            remedies = bounds.extra["remedies"]
            remedy = next(remedy for pattern, remedy in remedies if re.search(pattern, written))
            return self.add_mistake(path, f"{shorten_value(raw)} is not {bounds.title}", remedy)
        if isinstance(value, str) and self.convert_text:
            return self.convert_text(value)
        return value

    def _read_number(self, kind: Any, raw: object, path: str) -> Any:
        """Return a number within its range."""
        base, bounds = type_and_bounds(kind)
        in_range = Meta(ge=bounds.begins(floors=self.floors), le=bounds.most)
        try:
            return msgspec.convert(raw, Annotated[base, in_range])
        except msgspec.ValidationError as error:
            is_wrong_type = "got" in str(error)
            fault = f"not a {_NUMBERS[base]}" if is_wrong_type else "out of range"
            remedy = f"say a {describe_values(kind, floors=self.floors)}"
            return self.add_mistake(path, f"{shorten_value(raw)} is {fault}", remedy)


SettingsClass = TypeVar("SettingsClass")


def read_settings(
    kind: type[SettingsClass],
    raw: object,
    *,
    floors: bool = True,
    path_prefix: str = "",
    convert_text: Callable[[str], str] | None = None,
) -> SettingsClass:
    """Convert `raw` to settings of the class `kind`. Raise SettingsRefused with every mistake.

    Args:
        kind: the settings class.
        raw: an object that `parse_json` has returned.
        floors: False lifts the lower limits of `timing`, for the local account.
        path_prefix: stands before the path of each mistake.
        convert_text: applied to each valid text, before it becomes part of the settings.
    """
    reader = SettingsReader(floors, convert_text)
    settings: SettingsClass = reader.read(kind, raw, "")
    if reader.mistakes:
        raise SettingsRefused(
            [replace(mistake, path=path_prefix + mistake.path) for mistake in reader.mistakes]
        )
    return settings


def to_camel_case(name: str) -> str:
    """Return a field's name as users write it: `writes_per_minute` becomes `writesPerMinute`."""
    head, *tail = name.split("_")
    return head + "".join(word.capitalize() for word in tail)


def join_path(path: str, name: str) -> str:
    """Return the path of a key within an object, such as `trail.bucket`."""
    return f"{path}.{name}".strip(".")


def suggest_name(word: str, known: Iterable[str]) -> str:
    """Return the remedy for an unknown name: the most similar known name, or all of them."""
    names = sorted(known)
    names_by_lower_case = {name.lower(): name for name in names}
    similar = get_close_matches(word.lower(), names_by_lower_case, n=1)
    if similar:
        return f"did you mean {names_by_lower_case[similar[0]]}?"
    return f"say one of {', '.join(names)}"


# A word of the length of PagerDuty's integration key or longer. A user may have written the secret
# itself where the setting takes its ARN.
_POSSIBLE_SECRET = re.compile(r"\b(\w{4})\w{28,}")


def shorten_value(raw: object) -> str:
    """Return a value as JSON of at most 60 characters. Possible secrets are cut to 4 characters."""
    written = _POSSIBLE_SECRET.sub(r"\1...", json.dumps(raw, default=str))
    return written if len(written) <= 60 else f"{written[:57]}..."


# Settings are four levels deep. A limit protects recursive code that reads the parsed JSON.
MOST_DEEP = 50
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{}]')


def parse_json(content: str) -> Any:
    """Return the value of the JSON text `content`.

    If an object has a key twice, the key's value is a marker that `is_duplicate` recognizes. Raises
    ValueError, which names the place, if the content is no JSON or is nested deeper than MOST_DEEP.
    """
    depth = 0
    for token in _TOKEN.finditer(content):
        if token[0] in ("[", "{"):
            depth += 1
        elif token[0] in ("]", "}"):
            depth -= 1
        if depth > MOST_DEEP:
            raise json.JSONDecodeError("nested too deep", content, token.start())
    return json.loads(content, object_pairs_hook=_mark_duplicates)


def _mark_duplicates(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """Return the object of these keys and values. The value of a repeated key is the marker."""
    counts = Counter(key for key, _ in pairs)
    return {key: {_TWICE: True} if counts[key] > 1 else value for key, value in pairs}


def is_duplicate(value: object) -> bool:
    """Return True if `value` is the marker of `parse_json` for a key that an object has twice."""
    return isinstance(value, Mapping) and _TWICE in value


def load_object(path: Path, make_variable: str = "SETTINGS") -> dict[str, Any]:
    """Load the JSON object in a file that the user has named to `make`.

    A file of settings has the object that `cdk.json` has as `mendq` in `context`. Raises
    SettingsRefused if the file cannot be read or is no JSON object.

    Args:
        path: the file.
        make_variable: the variable of `make` that names the file; it begins the mistake.
    """
    fault = "is not an object"
    remedy = "write it as {..}"
    try:
        content = parse_json(path.read_text("utf-8"))
        if isinstance(content, dict):
            return content
    except OSError as error:
        fault = f"cannot be read ({error.strerror})"
        remedy = "name a JSON file"
    except ValueError as error:
        fault = f"is not JSON ({error})"
        remedy = "fix it there"
    raise SettingsRefused([Mistake(f"{make_variable} {path}", fault, remedy)])
