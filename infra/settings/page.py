"""docs/settings.md, told by the settings classes; `make docs` writes it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import Field
from typing import Any

from functions.healing.mode import Mode
from infra.settings.deployment import DEPLOYMENT
from infra.settings.kinds import ListOf
from infra.settings.sections import Section, Setting

_HEAD = """# Settings

<!-- Derived from infra/settings by `make docs`: change it there. -->

They stand in `cdk.json`, in the object `mendq` of `context`. For one command a file takes the place
of the whole object: `make cdk SETTINGS=prod.json ARGS=deploy`. `make synth` names every mistake in
`cdk.json` at once, with its field and its cure, `make cdk ARGS=diff` those of a file too, and
nothing is deployed while there is one.

With the defaults Mendq watches and changes nothing. A queue is managed when it carries the tag
`mendq` or when `queues` names it ([the tags](../README.md#what-it-mends)); how far Mendq goes there
is the lower of the queue's mode and the symptom's autonomy. Units stand in the names.
"""


def page() -> str:
    """The whole page."""
    return "\n".join((_HEAD, *_tables(DEPLOYMENT, ""), ""))


def _tables(section: Section, path: str) -> Iterator[str]:
    """One table of the plain settings, then one for each object within."""
    plain = {n: s for n, s in section.settings().items() if not _object_of(s[1])}
    if plain:
        yield "| setting | what it holds | default | what it is for |"
        yield "|---|---|---|---|"
        for name, (field, described) in plain.items():
            yield _row(f"{path}{name}", field, described)
    for name, (_, described) in section.settings().items():
        inner = _object_of(described)
        if inner is not None:
            yield f"\n## `{name}`\n\n{described.says}\n"
            yield from _tables(
                inner, f"{name}{'[]' if isinstance(described.kind, ListOf) else ''}."
            )


def _row(name: str, field: Field[Any], described: Setting) -> str:
    return f"| `{name}` | {described.kind.words} | {_default(field)} | {described.says} |"


def _object_of(described: Setting) -> Section | None:
    kind = described.kind.kind if isinstance(described.kind, ListOf) else described.kind
    return kind if isinstance(kind, Section) else None


def _default(field: Field[Any]) -> str:
    if isinstance(field.default_factory, type):
        return f"`{json.dumps(field.default_factory())}`"
    if field.default is None:
        return "none"
    if not isinstance(field.default, (str, bool, int, float, tuple, Mapping)):
        return "it must be said"
    value = str(field.default) if isinstance(field.default, Mode) else field.default
    return f"`{json.dumps(value)}`"
