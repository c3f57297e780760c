"""Render docs/settings.md from the settings classes; `make docs` writes the file.

In a settings class, the text below a field is the description of that setting.
"""

from __future__ import annotations

import ast
import inspect
import json
from collections.abc import Iterator
from dataclasses import MISSING, Field
from itertools import pairwise
from typing import Any, get_args, get_origin

from infra.settings.deployment import DeploymentSettings
from infra.settings.reading import (
    describe_values,
    get_fields_by_name,
    has_bounds,
    split_type_and_bounds,
)
from mendq.model.mode import Mode

_PAGE_HEAD = """# Settings

<!-- Derived from infra/settings by `make docs`: change it there. -->

Settings are in `cdk.json`, in the object `mendq` of `context`. To use a file instead of the whole
object for one command, name it: `make synth SETTINGS=prod.json`,
`make cdk SETTINGS=prod.json ARGS=deploy`. Each command reports every mistake with field and remedy,
and does nothing until all are corrected.

With the defaults, Mendq watches and changes nothing. Mendq manages a queue if it has the tag
`mendq` or if `queues` names it ([the tags](symptoms.md)). How far Mendq goes there is the lower of
the queue's mode and the symptom's autonomy. The name of a setting contains its unit.
"""
_MUTE_LIST_SECTION = """
## The mute list `mendq.toml`

You can mute a finding that is intended, until a day that you choose. `mendq scan` and `mendq lint`
read the list from `mendq.toml` in the current folder, or from `--config FILE`:

```toml
[[mute]]
# a name, or the start of names and a *; in a template also the logical ID
queue = "orders-audit*"
symptom = "dlq_missing"
reason = "every record is kept by hand"
# the last day on which it holds, in UTC
until = 2027-06-30
```

All four fields are needed. Muted findings are listed with their reason and do not count. A mute
that has ended mutes nothing and is reported. A mute is also reported if it is not needed any more:
the run fully checked the queues that it names, and none has the symptom. A list with mistakes is
refused as a whole, with each field and its remedy.

## Mutes of a deployed Mendq

The setting `mutes` is the same list for the deployed scan and heal, with the same fields:

```json
"mutes": [{"queue": "orders-audit*", "symptom": "dlq_missing",
           "reason": "every record is kept by hand", "until": "2027-06-30"}]
```

A muted symptom opens no case, notifies nobody and is not fixed, whether the scan finds it or calls
fail. A fix that was made before is still verified, and a case that waits for a person still waits.
Other symptoms of the queue are handled as before, also if the muted one would explain them: a
muted `consumer_stopped` does not hide `messages_expire`. Only a fix that must come after another
symptom still waits for it: while a muted `consumer_failing` shows, no DLQ is attached.

Nothing is hidden without a trace. The muted findings of each hour are in
[the hour's object](case-bucket.md) with their reason, and `mendq doctor` and the scan's log count
them and say what they do: "2 muted findings lose or duplicate messages". `make synth` and `mendq
doctor` name mutes that have ended, and `mendq doctor` those that no finding needs. All settings of
a Lambda together have 4 KB, room for about 20 mutes; `make synth` refuses more. A deployed stack of
an earlier version knows no mutes until it is deployed again."""


def render_page() -> str:
    """Return the whole page as Markdown."""
    return "\n".join((_PAGE_HEAD, *_render_tables(DeploymentSettings, ""), _MUTE_LIST_SECTION, ""))


def _render_tables(settings_type: Any, path_prefix: str) -> Iterator[str]:
    """Yield a table of the plain settings of a section, then the tables of each section in it.

    `path_prefix` is the path of the section with a dot at its end; it is empty for all settings.
    """
    field_and_type_by_name = get_fields_by_name(settings_type)
    sentence_by_field = _read_field_descriptions(settings_type)
    field_and_type_of_plain_setting = {
        name: field_and_type
        for name, field_and_type in field_and_type_by_name.items()
        if not _find_section_type(field_and_type[1])
    }
    if field_and_type_of_plain_setting:
        yield "| setting | value | default | what it is for |"
        yield "|---|---|---|---|"
    for name, (field, field_type) in field_and_type_of_plain_setting.items():
        allowed_values_text = describe_values(field_type)
        sentence = sentence_by_field[field.name]
        yield (
            f"| `{path_prefix}{name}` | {allowed_values_text} | {_format_default(field)} | "
            f"{sentence} |"
        )
    for name, (field, field_type) in field_and_type_by_name.items():
        section_type = _find_section_type(field_type)
        if section_type:
            description = sentence_by_field.get(field.name) or inspect.getdoc(
                split_type_and_bounds(section_type)[0]
            )
            yield f"\n## `{path_prefix}{name}`\n\n{description}\n"
            is_list = section_type is not field_type
            yield from _render_tables(
                section_type, f"{path_prefix}{name}{'[]' if is_list else ''}."
            )


def _read_field_descriptions(settings_type: Any) -> dict[str, str]:
    """Return the sentences below the fields of a settings class and its base classes, by field."""
    sentence_by_field: dict[str, str] = {}
    settings_class, _ = split_type_and_bounds(settings_type)
    classes_from_base_to_derived = [
        base_class for base_class in reversed(settings_class.__mro__) if base_class is not object
    ]
    for base_class in classes_from_base_to_derived:
        (class_node,) = ast.parse(inspect.getsource(base_class)).body
        assert isinstance(class_node, ast.ClassDef)  # noqa: S101 - the source of a class
        for statement, following_statement in pairwise(class_node.body):
            if isinstance(statement, ast.AnnAssign) and isinstance(following_statement, ast.Expr):
                sentence_words = ast.literal_eval(following_statement.value).split()
                sentence_by_field[ast.unparse(statement.target)] = " ".join(sentence_words)
    return sentence_by_field


def list_fields_without_sentence(settings_type: Any) -> Iterator[tuple[str, str]]:
    """Yield class and name of each plain setting that has no sentence below its field."""
    for section, name, _ in _list_plain_fields(settings_type):
        if name not in _read_field_descriptions(section):
            yield section.__name__, name


def list_fields_without_bounds(settings_type: Any) -> Iterator[tuple[str, str]]:
    """Yield class and name of each plain setting whose type does not say which values it takes."""
    for section, name, field_type in _list_plain_fields(settings_type):
        if not has_bounds(field_type):
            yield section.__name__, name


def _list_plain_fields(settings_type: Any) -> Iterator[tuple[Any, str, Any]]:
    """Yield settings class, field name and type of each setting that is not a section."""
    for field, field_type in get_fields_by_name(settings_type).values():
        section_type = _find_section_type(field_type)
        if section_type:
            yield from _list_plain_fields(section_type)
        else:
            yield split_type_and_bounds(settings_type)[0], field.name, field_type


def _find_section_type(setting_type: Any) -> Any:
    """Return the settings class of a section, or of the entries of a list of sections.

    Return None for plain settings.
    """
    plain_type, _ = split_type_and_bounds(setting_type)
    entry_type = get_args(plain_type)[0] if get_origin(plain_type) is tuple else setting_type
    return entry_type if get_fields_by_name(entry_type) else None


def _format_default(field: Field[Any]) -> str:
    """Return the default of a setting as the page shows it."""
    value = field.default if field.default_factory is MISSING else field.default_factory()
    if value is None:
        return "none"
    if value is MISSING:
        return "required"
    return f"`{json.dumps(str(value) if isinstance(value, Mode) else value)}`"
