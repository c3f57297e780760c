"""docs/settings.md, derived from the settings classes; `make docs` writes it."""

from __future__ import annotations

import ast
import inspect
import json
from collections.abc import Iterator
from dataclasses import MISSING, Field
from itertools import pairwise
from typing import Any, get_args, get_origin

from infra.settings.deployment import DeploymentSettings
from infra.settings.reading import bounds_of, is_bounded, settings_of, words_of
from mendq.model.limits import Mode

_HEAD = """# Settings

<!-- Derived from infra/settings by `make docs`: change it there. -->

They stand in `cdk.json`, in the object `mendq` of `context`. For one command a file takes the place
of the whole object: `make synth SETTINGS=prod.json`, `make cdk SETTINGS=prod.json ARGS=deploy`.
Each names all mistakes at once, with field and remedy, and does nothing while there is one.

With the defaults Mendq watches and changes nothing. A queue is managed when it carries the tag
`mendq` or when `queues` names it ([the tags](symptoms.md)); how far Mendq goes there
is the lower of the queue's mode and the symptom's autonomy. Units stand in the names.
"""


def page() -> str:
    """The whole page."""
    return "\n".join((_HEAD, *_tables(DeploymentSettings, ""), ""))


def _tables(kind: Any, path: str) -> Iterator[str]:
    """One table of the plain settings, then one for each object within."""
    every, says = settings_of(kind), _sentences(kind)
    plain = {name: each for name, each in every.items() if not _object_of(each[1])}
    if plain:
        yield "| setting | what it holds | default | what it is for |"
        yield "|---|---|---|---|"
    for name, (each, held) in plain.items():
        yield f"| `{path}{name}` | {words_of(held)} | {_default(each)} | {says[each.name]} |"
    for name, (each, held) in every.items():
        if inner := _object_of(held):
            said = says.get(each.name) or inspect.getdoc(bounds_of(inner)[0])
            yield f"\n## `{path}{name}`\n\n{said}\n"
            yield from _tables(inner, f"{path}{name}{'' if inner is held else '[]'}.")


def _sentences(kind: Any) -> dict[str, str]:
    """What stands below each field of a class, and of those that it takes in."""
    found: dict[str, str] = {}
    for shape in bounds_of(kind)[0].__mro__[-2::-1]:  # without object
        (written,) = ast.parse(inspect.getsource(shape)).body
        assert isinstance(written, ast.ClassDef)  # noqa: S101 - the source of a class
        for each, says in pairwise(written.body):
            if isinstance(each, ast.AnnAssign) and isinstance(says, ast.Expr):
                found[ast.unparse(each.target)] = " ".join(ast.literal_eval(says.value).split())
    return found


def fields_without_sentence(kind: Any) -> Iterator[tuple[str, str]]:
    """Yield the class and the name of each plain setting that says nothing below its field."""
    for section, name, _ in _plain_fields(kind):
        if name not in _sentences(section):
            yield section.__name__, name


def fields_without_bounds(kind: Any) -> Iterator[tuple[str, str]]:
    """Yield the class and the name of each plain setting that does not say what it takes."""
    for section, name, held in _plain_fields(kind):
        if not is_bounded(held):
            yield section.__name__, name


def _plain_fields(kind: Any) -> Iterator[tuple[Any, str, Any]]:
    """Yield the section, the name and the type of each setting that is no section itself."""
    for field, held in settings_of(kind).values():
        if inner := _object_of(held):
            yield from _plain_fields(inner)
        else:
            yield bounds_of(kind)[0], field.name, held


def _object_of(kind: Any) -> Any:
    """The type of an object, or of the objects of a list."""
    base, _ = bounds_of(kind)
    inner = get_args(base)[0] if get_origin(base) is tuple else kind
    return inner if settings_of(inner) else None


def _default(each: Field[Any]) -> str:
    value = each.default if each.default_factory is MISSING else each.default_factory()
    if value is None:
        return "none"
    if value is MISSING:
        return "it must be said"
    return f"`{json.dumps(str(value) if isinstance(value, Mode) else value)}`"
