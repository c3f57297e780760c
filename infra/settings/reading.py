"""Read settings from JSON into a settings class, and collect every mistake with its remedy.

A settings class is a frozen dataclass. The type of each field says which values the setting may
have: as `Annotated[TYPE, BOUNDS]`, where BOUNDS comes from `make_text_bounds`, `make_name_bounds`,
`make_list_bounds` or `Range`. `bool` and `Mode` need no bounds. A field whose type is another
settings class is a section.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields, is_dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, ClassVar, TypeVar, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace

from mendq.model.limits import Range
from mendq.model.mode import MODE_BY_TEXT, Mode


class Mistake(Struct, frozen=True):
    """A setting that must be changed before Mendq can be deployed.

    Attributes:
        path: the setting as the user writes it, such as `trail.bucket`.
        fault: what is wrong with the setting.
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
    """A mistake that a settings class finds itself, mostly by comparing several of its fields.

    Attributes:
        compared_fields: names of the fields that are compared. The conflict is reported only if
            none of them has a mistake of its own.
        name: the setting that is reported, as the user writes it; empty for the whole section.
        fault: what is wrong with the setting.
        remedy: what the user should do.
    """

    compared_fields: Collection[str]
    name: str
    fault: str
    remedy: str


class ComparedSection:
    """Base of a settings class whose fields must fit together, or that has a short form.

    All fields of such a class must have defaults, because an object is made even if some fields
    have mistakes.

    Attributes:
        field_set_by_short_form: the field that a user can set by writing a text in place of the
            section's object; empty if the section has no short form.
    """

    field_set_by_short_form: ClassVar[str] = ""

    def list_conflicts(self) -> Iterator[Conflict]:
        """Yield the mistakes that only a comparison of several fields shows; here none."""
        return iter(())


def make_text_bounds(
    description: str, pattern: str, example: str, *wrong_text_patterns_and_remedies: tuple[str, str]
) -> Meta:
    """Return the bounds of a text setting: which texts it may have, and the remedies for others.

    Args:
        description: a description of the text.
        pattern: a regular expression that must match the whole text.
        example: a valid text.
        wrong_text_patterns_and_remedies: patterns of wrong texts that people may write, each with
            its remedy. The first pattern that is found in the text gives the remedy.
    """
    patterns_and_remedies = (*wrong_text_patterns_and_remedies, ("", f"say one such as {example}"))
    return Meta(
        title=description, pattern=rf"^(?:{pattern})\Z", extra={"remedies": patterns_and_remedies}
    )


def make_name_bounds(description: str, names: Mapping[str, Any] | Iterable[str]) -> Meta:
    """Return the bounds of a setting that must be one of `names`.

    If `names` is a mapping, the setting gets the mapping's value for the name that the user wrote.
    """
    value_by_allowed_name = names if isinstance(names, Mapping) else {name: name for name in names}
    return Meta(title=description, extra={"names": value_by_allowed_name})


def make_list_bounds(entries_description: str, maximum_entries: int = 200) -> Meta:
    """Return the bounds of a list.

    `entries_description` describes the entries, as in `e-mail addresses`.
    """
    return Meta(title=f"list of {entries_description}", max_length=maximum_entries)


def make_entries_bounds(
    entries_description: str,
    maximum_entries: int,
    read_entries: Callable[[Sequence[Any]], tuple[tuple[Any, ...], Iterable[Mistake]]],
) -> Meta:
    """Return the bounds of a list whose entries `read_entries` checks.

    Args:
        entries_description: describes the entries.
        maximum_entries: the most entries that the list may have.
        read_entries: returns the values of a list and its mistakes. The path of a mistake begins
            with the place of the entry, such as `[0].queue`.
    """
    return Meta(
        title=f"list of {entries_description}",
        max_length=maximum_entries,
        extra={"read_entries": read_entries},
    )


_NUMBER_NAME_BY_TYPE = {int: "whole number", float: "number"}
# Bounds of types that need no annotation.
_DEFAULT_BOUNDS = {
    bool: Meta(title="true or false", extra={"remedies": [("", "write it without quotes")]}),
    Mode: Meta(
        title="a mode", description="observe, propose or heal", extra={"names": MODE_BY_TEXT}
    ),
}
# Stands for the value of a key that a JSON object has twice.
_DUPLICATE_MARKER = "(there twice)"


def split_type_and_bounds(setting_type: Any) -> tuple[Any, Any]:
    """Return the plain type of a setting, without None, and its bounds."""
    type_arguments = get_args(setting_type)
    if type(None) in type_arguments:
        setting_type = type_arguments[0]
    if get_origin(setting_type) is Annotated:
        return get_args(setting_type)
    return setting_type, _DEFAULT_BOUNDS.get(setting_type, Meta())


def describe_values(setting_type: Any, *, applies_floors: bool = True) -> str:
    """Return in words which values a setting may have, such as `whole number from 1 to 24`.

    If `applies_floors` is False, the lower limits are those of the local account.
    """
    plain_type, bounds = split_type_and_bounds(setting_type)
    if plain_type not in _NUMBER_NAME_BY_TYPE:
        return str(bounds.description or bounds.title)
    minimum_value = bounds.begins(floors=applies_floors)
    return f"{_NUMBER_NAME_BY_TYPE[plain_type]} from {minimum_value:g} to {bounds.most:.12g}"


def has_bounds(setting_type: Any) -> bool:
    """Return True if the type of a setting says which values it may have."""
    plain_type, bounds = split_type_and_bounds(setting_type)
    if plain_type in _NUMBER_NAME_BY_TYPE:
        return isinstance(bounds, Range)
    return bool(bounds.description or bounds.title)


def get_fields_by_name(settings_type: Any) -> Mapping[str, tuple[Field[Any], Any]]:
    """Return the fields of a settings class with their types, by the names that a user writes.

    The result is empty if `settings_type` is not a settings class.
    """
    settings_class, _ = split_type_and_bounds(settings_type)
    if not is_dataclass(settings_class):
        return {}
    type_by_field = get_type_hints(settings_class, include_extras=True)
    return {
        to_camel_case(settings_field.name): (settings_field, type_by_field[settings_field.name])
        for settings_field in fields(settings_class)
    }


def _is_required(settings_field: Field[Any]) -> bool:
    """Return True if a field of a settings class has no default."""
    return settings_field.default is MISSING and settings_field.default_factory is MISSING


@dataclass
class SettingsReader:
    """Reads JSON into settings classes and collects the mistakes.

    A method that finds a mistake may return any value: the caller never uses the settings then.

    Attributes:
        applies_floors: False replaces the lower limits of `timing` by those of the local account.
        convert_text: converts each valid text before it becomes part of the settings. Keys, and
            words from a fixed list of names, are not converted. None: no text is converted.
        mistakes: the mistakes that were found so far.
    """

    applies_floors: bool = True
    convert_text: Callable[[str], str] | None = None
    mistakes: list[Mistake] = field(default_factory=list)

    def add_mistake(self, path: str, fault: str, remedy: str) -> None:
        """Add a mistake."""
        self.mistakes.append(Mistake(path, fault, remedy))

    def read(self, setting_type: Any, raw_value: object, path: str) -> Any:
        """Convert a value to a setting of type `setting_type`. Add a mistake if it is not valid.

        Args:
            setting_type: the type of the setting.
            raw_value: a value that `parse_json` has returned.
            path: the place of the setting, as the user writes it.
        """
        if is_duplicate_key_marker(raw_value):
            return self.add_mistake(path or "mendq", "is there twice", "leave one out")
        plain_type, bounds = split_type_and_bounds(setting_type)
        if isinstance(bounds, Meta) and bounds.extra and "read_entries" in bounds.extra:
            return self._read_entries(bounds, raw_value, path)
        if is_dataclass(plain_type):
            return self._read_section(plain_type, raw_value, path)
        if get_origin(plain_type) is tuple:
            return self._read_list(get_args(plain_type)[0], bounds, raw_value, path)
        if get_origin(plain_type) is Mapping:
            key_type, value_type = get_args(plain_type)
            return self._read_mapping(key_type, value_type, bounds.extra, raw_value, path)
        return self._read_value(setting_type, raw_value, path)

    def _read_section(self, settings_class: Any, raw_value: object, path: str) -> Any:
        """Convert an object to a settings class, and add the conflicts between its fields."""
        is_compared_section = issubclass(settings_class, ComparedSection)
        field_set_by_short_form = (
            settings_class.field_set_by_short_form if is_compared_section else ""
        )
        raw_value_by_name = self._read_object(raw_value, path or "mendq", field_set_by_short_form)
        if raw_value_by_name is None:
            return None
        value_by_field, mistaken_fields = self._read_fields(settings_class, raw_value_by_name, path)
        if is_compared_section:
            section = settings_class(**value_by_field)
            self._add_conflicts(section, mistaken_fields, path)
            return section
        return None if mistaken_fields else settings_class(**value_by_field)

    def _read_fields(
        self, settings_class: Any, raw_value_by_name: Mapping[str, Any], path: str
    ) -> tuple[dict[str, Any], set[str]]:
        """Return the values of the fields that were given, and the names of mistaken fields.

        A mistaken field has no value in the result. A field without a default is mistaken too if it
        was not given. For a name that the class does not have, only a mistake is added.
        """
        field_by_name = get_fields_by_name(settings_class)
        for name in sorted(raw_value_by_name.keys() - field_by_name.keys()):
            remedy = suggest_name(name, field_by_name)
            self.add_mistake(join_path(path, name), "no such setting", remedy)
        value_by_field: dict[str, Any] = {}
        mistaken_fields: set[str] = set()
        for name, (settings_field, field_type) in field_by_name.items():
            mistake_count_before = len(self.mistakes)
            field_path = join_path(path, name)
            value = None
            if name in raw_value_by_name:
                value = self.read(field_type, raw_value_by_name[name], field_path)
            elif _is_required(settings_field):
                remedy = f"say {describe_values(field_type)}"
                self.add_mistake(field_path, "is missing", remedy)
            if len(self.mistakes) > mistake_count_before:
                mistaken_fields.add(settings_field.name)
            elif name in raw_value_by_name:
                value_by_field[settings_field.name] = value
        return value_by_field, mistaken_fields

    def _add_conflicts(
        self, section: ComparedSection, mistaken_fields: set[str], path: str
    ) -> None:
        """Add the section's conflicts, except those that compare a mistaken field."""
        for conflict in section.list_conflicts():
            if not mistaken_fields.intersection(conflict.compared_fields):
                conflict_path = join_path(path, conflict.name)
                self.add_mistake(conflict_path, conflict.fault, conflict.remedy)

    def _read_object(
        self, raw_value: object, path: str, field_set_by_short_form: str = ""
    ) -> Mapping[str, Any] | None:
        """Return the value if it is an object. Otherwise add a mistake and return None.

        If the section has a short form, a text is read as an object with only
        `field_set_by_short_form`.
        """
        if isinstance(raw_value, Mapping):
            return raw_value
        if field_set_by_short_form and isinstance(raw_value, str):
            return {field_set_by_short_form: raw_value}
        self.add_mistake(path, f"{shorten_value(raw_value)} is not an object", "write it as {..}")
        return None

    def _read_list(self, entry_type: Any, bounds: Meta, raw_value: object, path: str) -> Any:
        """Convert a list to a tuple, and each entry to `entry_type`.

        Add a mistake if it is no list, is too long, or has an entry twice.
        """
        entries = self._check_list(bounds, raw_value, path)
        return tuple(
            self.read(entry_type, entry, f"{path}[{index}]") for index, entry in enumerate(entries)
        )

    def _read_entries(self, bounds: Meta, raw_value: object, path: str) -> Any:
        """Convert a list with the function `read_entries` of its bounds (`make_entries_bounds`)."""
        entries = self._check_list(bounds, raw_value, path)
        values, mistakes = (bounds.extra or {})["read_entries"](entries)
        self.mistakes += [replace(mistake, path=f"{path}{mistake.path}") for mistake in mistakes]
        return values

    def _check_list(self, bounds: Meta, raw_value: object, path: str) -> Sequence[Any]:
        """Return the entries of a list. Add mistakes, and return none if it is unusable."""
        if not isinstance(raw_value, (list, tuple)):
            fault = f"{shorten_value(raw_value)} is not a {bounds.title}"
            self.add_mistake(path, fault, "write it as [..]")
            return ()
        maximum_entries = bounds.max_length or 0
        if len(raw_value) > maximum_entries:
            fault = f"{len(raw_value)} entries are too many"
            self.add_mistake(path, fault, f"keep at most {maximum_entries}")
            return ()
        for index, entry in enumerate(raw_value):
            if entry in raw_value[:index]:
                fault = f"{shorten_value(entry)} is there twice"
                self.add_mistake(f"{path}[{index}]", fault, "leave one out")
        return raw_value

    def _read_mapping(
        self,
        key_type: Any,
        value_type: Any,
        mapping_bounds: Mapping[str, Any],
        raw_value: object,
        path: str,
    ) -> Mapping[str, Any]:
        """Convert an object whose keys the user chooses, such as names of teams.

        `mapping_bounds["most"]` is the largest number of entries. `mapping_bounds["unfit"]`, if it
        is there, is a function of a key. It returns fault and remedy if the key does not fit,
        otherwise None.
        """
        raw_value_by_name = self._read_object(raw_value, path) or {}
        maximum_entries = mapping_bounds["most"]
        if len(raw_value_by_name) > maximum_entries:
            fault = f"{len(raw_value_by_name)} entries are too many"
            self.add_mistake(path, fault, f"keep at most {maximum_entries}")
        explain_unfit_name = mapping_bounds.get("unfit")
        for name in raw_value_by_name:
            self._read_value(key_type, name, f"{path}.{name}")
            fault_and_remedy = explain_unfit_name(name) if explain_unfit_name else None
            if fault_and_remedy:
                fault, remedy = fault_and_remedy
                self.add_mistake(f"{path}.{name}", fault, remedy)
        return {
            name: self.read(value_type, value, f"{path}.{name}")
            for name, value in raw_value_by_name.items()
        }

    def _read_value(self, setting_type: Any, raw_value: object, path: str) -> Any:
        """Convert a number, a text, a mode, or true or false."""
        plain_type, bounds = split_type_and_bounds(setting_type)
        if plain_type in _NUMBER_NAME_BY_TYPE:
            return self._read_number(setting_type, raw_value, path)
        value_by_allowed_name = (bounds.extra or {}).get("names")
        if value_by_allowed_name:
            if isinstance(raw_value, str) and raw_value in value_by_allowed_name:
                return value_by_allowed_name[raw_value]
            fault = f"{shorten_value(raw_value)} is not {bounds.title}"
            return self.add_mistake(
                path, fault, suggest_name(str(raw_value), value_by_allowed_name)
            )
        try:
            value = msgspec.convert(raw_value, Annotated[plain_type, bounds])
        except msgspec.ValidationError:
            raw_text = raw_value if isinstance(raw_value, str) else ""
            remedies = bounds.extra["remedies"]
            remedy = next(remedy for pattern, remedy in remedies if re.search(pattern, raw_text))
            return self.add_mistake(
                path, f"{shorten_value(raw_value)} is not {bounds.title}", remedy
            )
        if isinstance(value, str) and self.convert_text:
            return self.convert_text(value)
        return value

    def _read_number(self, number_type: Any, raw_value: object, path: str) -> Any:
        """Convert a number. Add a mistake if it is outside the range of its type."""
        plain_type, bounds = split_type_and_bounds(number_type)
        msgspec_bounds = Meta(ge=bounds.begins(floors=self.applies_floors), le=bounds.most)
        try:
            return msgspec.convert(raw_value, Annotated[plain_type, msgspec_bounds])
        except msgspec.ValidationError as error:
            is_wrong_type = "got" in str(error)
            fault = f"not a {_NUMBER_NAME_BY_TYPE[plain_type]}" if is_wrong_type else "out of range"
            remedy = f"say a {describe_values(number_type, applies_floors=self.applies_floors)}"
            return self.add_mistake(path, f"{shorten_value(raw_value)} is {fault}", remedy)


SettingsClass = TypeVar("SettingsClass")


def read_settings(
    settings_class: type[SettingsClass],
    raw_settings: object,
    *,
    applies_floors: bool = True,
    path_prefix: str = "",
    convert_text: Callable[[str], str] | None = None,
) -> SettingsClass:
    """Convert `raw_settings` to an object of a settings class.

    Raises SettingsRefused with every mistake.

    Args:
        settings_class: the settings class.
        raw_settings: an object that `parse_json` has returned.
        applies_floors: False replaces the lower limits of `timing` by those of the local account.
        path_prefix: text that is put before the path of each mistake.
        convert_text: converts each valid text before it becomes part of the settings. Keys, and
            words from a fixed list of names, are not converted. None: no text is converted.
    """
    reader = SettingsReader(applies_floors, convert_text)
    settings: SettingsClass = reader.read(settings_class, raw_settings, "")
    if reader.mistakes:
        raise SettingsRefused(
            [replace(mistake, path=path_prefix + mistake.path) for mistake in reader.mistakes]
        )
    return settings


def to_camel_case(field_name: str) -> str:
    """Return a field's name as users write it: `writes_per_minute` becomes `writesPerMinute`."""
    first_word, *other_words = field_name.split("_")
    return first_word + "".join(word.capitalize() for word in other_words)


def join_path(path: str, name: str) -> str:
    """Return the path of a key within an object, such as `trail.bucket`."""
    return f"{path}.{name}".strip(".")


def suggest_name(unknown_name: str, known_names: Iterable[str]) -> str:
    """Return the remedy for an unknown name: the most similar known name, or all known names."""
    sorted_names = sorted(known_names)
    name_by_lower_case = {name.lower(): name for name in sorted_names}
    similar_names = get_close_matches(unknown_name.lower(), name_by_lower_case, n=1)
    if similar_names:
        return f"did you mean {name_by_lower_case[similar_names[0]]}?"
    return f"say one of {', '.join(sorted_names)}"


# A word of the length of PagerDuty's integration key or longer. A user may have written the secret
# itself where the setting takes its ARN.
_POSSIBLE_SECRET_PATTERN = re.compile(r"\b(\w{4})\w{28,}")


def shorten_value(value: object) -> str:
    """Return a value as JSON of at most 60 characters. A possible secret is cut to 4 characters."""
    json_text = _POSSIBLE_SECRET_PATTERN.sub(r"\1...", json.dumps(value, default=str))
    return json_text if len(json_text) <= 60 else f"{json_text[:57]}..."


# Settings are four levels deep. A limit protects recursive code that reads the parsed JSON.
MAXIMUM_JSON_DEPTH = 50
_JSON_TOKEN_PATTERN = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{}]')


def parse_json(content: str) -> Any:
    """Return the value of the JSON text `content`.

    If an object has a key twice, the key's value is a marker that `is_duplicate_key_marker`
    recognizes. Raises ValueError, which names the place, if the content is not JSON or is nested
    deeper than MAXIMUM_JSON_DEPTH.
    """
    nesting_depth = 0
    for json_token in _JSON_TOKEN_PATTERN.finditer(content):
        if json_token[0] in ("[", "{"):
            nesting_depth += 1
        elif json_token[0] in ("]", "}"):
            nesting_depth -= 1
        if nesting_depth > MAXIMUM_JSON_DEPTH:
            raise json.JSONDecodeError("nested too deep", content, json_token.start())
    return json.loads(content, object_pairs_hook=_mark_duplicates)


def _mark_duplicates(keys_and_values: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """Return these keys and values as a dict.

    The value of a key that is there twice is replaced by the marker.
    """
    count_by_key = Counter(key for key, _ in keys_and_values)
    return {
        key: {_DUPLICATE_MARKER: True} if count_by_key[key] > 1 else value
        for key, value in keys_and_values
    }


def is_duplicate_key_marker(value: object) -> bool:
    """Return True if `value` is the marker of `parse_json` for a key that an object has twice."""
    return isinstance(value, Mapping) and _DUPLICATE_MARKER in value


def load_object(path: Path, makefile_variable_name: str = "SETTINGS") -> dict[str, Any]:
    """Load the JSON object in a file that the user has named to `make`.

    A file of settings contains the object that is `mendq` in `context` of `cdk.json`. Raises
    SettingsRefused if the file cannot be read or is not a JSON object.

    Args:
        path: the file.
        makefile_variable_name: the variable of `make` that names the file; the mistake's path
            begins with it.
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
    raise SettingsRefused([Mistake(f"{makefile_variable_name} {path}", fault, remedy)])
