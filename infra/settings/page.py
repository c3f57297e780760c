"""Render docs/settings.md from the settings classes; `make docs` writes the file.

The sentence below a field is the description of its setting.
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
from infra.settings.reading import describe_values, fields_by_name, has_bounds, type_and_bounds
from mendq.model.mode import Mode

_HEAD = """# Settings

<!-- Derived from infra/settings by `make docs`: change it there. -->

They stand in `cdk.json`, in the object `mendq` of `context`. For one command a file takes the place
of the whole object: `make synth SETTINGS=prod.json`, `make cdk SETTINGS=prod.json ARGS=deploy`.
Each names all mistakes at once, with field and remedy, and does nothing while there is one.

With the defaults Mendq watches and changes nothing. A queue is managed when it carries the tag
`mendq` or when `queues` names it ([the tags](symptoms.md)); how far Mendq goes there
is the lower of the queue's mode and the symptom's autonomy. Units stand in the names.
"""


def render_page() -> str:
    """Return the whole page as Markdown."""
    return "\n".join((_HEAD, *_render_tables(DeploymentSettings, ""), ""))


def _render_tables(kind: Any, path: str) -> Iterator[str]:
    """Yield a table of the plain settings of a section, then the tables of each section in it.

    `path` is the path of the section with a dot at its end; it is empty for all settings.
    """
    fields = fields_by_name(kind)
    sentences = _sentences(kind)
    plain = {name: pair for name, pair in fields.items() if not _section_of(pair[1])}
    if plain:
        yield "| setting | what it holds | default | what it is for |"
        yield "|---|---|---|---|"
    for name, (field, field_type) in plain.items():
        values = describe_values(field_type)
        yield f"| `{path}{name}` | {values} | {_default(field)} | {sentences[field.name]} |"
    for name, (field, field_type) in fields.items():
        section = _section_of(field_type)
        if section:
            sentence = sentences.get(field.name) or inspect.getdoc(type_and_bounds(section)[0])
            yield f"\n## `{path}{name}`\n\n{sentence}\n"
            is_list = section is not field_type
            yield from _render_tables(section, f"{path}{name}{'[]' if is_list else ''}.")


def _sentences(kind: Any) -> dict[str, str]:
    """Return the sentences below the fields of a settings class and its base classes, by field."""
    sentences: dict[str, str] = {}
    settings_class, _ = type_and_bounds(kind)
    base_classes_first = [base for base in reversed(settings_class.__mro__) if base is not object]
    for base in base_classes_first:
        (class_node,) = ast.parse(inspect.getsource(base)).body
        assert isinstance(class_node, ast.ClassDef)  # noqa: S101 - the source of a class
        for statement, following in pairwise(class_node.body):
            if isinstance(statement, ast.AnnAssign) and isinstance(following, ast.Expr):
                words = ast.literal_eval(following.value).split()
                sentences[ast.unparse(statement.target)] = " ".join(words)
    return sentences


def fields_without_sentence(kind: Any) -> Iterator[tuple[str, str]]:
    """Yield class and name of each plain setting without a sentence below its field."""
    for section, name, _ in _plain_fields(kind):
        if name not in _sentences(section):
            yield section.__name__, name


def fields_without_bounds(kind: Any) -> Iterator[tuple[str, str]]:
    """Yield class and name of each plain setting whose type does not say which values it takes."""
    for section, name, field_type in _plain_fields(kind):
        if not has_bounds(field_type):
            yield section.__name__, name


def _plain_fields(kind: Any) -> Iterator[tuple[Any, str, Any]]:
    """Yield section, name and type of each setting that is not a section itself."""
    for field, field_type in fields_by_name(kind).values():
        section = _section_of(field_type)
        if section:
            yield from _plain_fields(section)
        else:
            yield type_and_bounds(kind)[0], field.name, field_type


def _section_of(kind: Any) -> Any:
    """Return the settings class of a section or of a list of sections; None for plain settings."""
    base, _ = type_and_bounds(kind)
    inner = get_args(base)[0] if get_origin(base) is tuple else kind
    return inner if fields_by_name(inner) else None


def _default(field: Field[Any]) -> str:
    """Return the default of a setting as the page shows it."""
    value = field.default if field.default_factory is MISSING else field.default_factory()
    if value is None:
        return "none"
    if value is MISSING:
        return "it must be said"
    return f"`{json.dumps(str(value) if isinstance(value, Mode) else value)}`"
