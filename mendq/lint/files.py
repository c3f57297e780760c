"""The templates that one argument stands for: a file, a cdk.out folder, standard input.

https://docs.aws.amazon.com/cdk/v2/guide/deploy.html
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mendq.lint.template import MOST_BYTES, NotATemplate, under
from mendq.lint.values import Environment

STDIN = "-"
# The CDK puts a stage's assembly into its app's.
MOST_ASSEMBLIES_DEEP = 16
_MANIFEST = "manifest.json"
_STACK, _ASSEMBLY = "aws:cloudformation:stack", "cdk:cloud-assembly"
_ENVIRONMENT = re.compile(r"aws://([0-9]{12}|unknown-account)/([a-z0-9-]{1,32})")
_STACK_NAME = re.compile(r"[A-Za-z][A-Za-z0-9-]{0,127}")
# One byte more than may be is as much as it takes to say so.
_READ_AT_MOST = MOST_BYTES + 1


@dataclass(frozen=True)
class Source:
    """One template's bytes, where they come from, and where it would be deployed."""

    file: str
    content: bytes
    environment: Environment


def sources(argument: str) -> Iterator[Source]:
    """One is read when it is asked for. Raises NotATemplate, and OSError where it cannot be."""
    path = Path(argument)
    if argument == STDIN:
        content = sys.stdin.buffer.read(_READ_AT_MOST)
        yield Source("(standard input)", content, Environment())
    elif path.is_dir():
        yield from _of_folder(path, path.resolve(), {path.resolve()}, MOST_ASSEMBLIES_DEEP)
    else:
        yield Source(argument, _content(path), Environment())


def _of_folder(folder: Path, outermost: Path, seen: set[Path], levels: int) -> Iterator[Source]:
    """Every stack of an assembly, and of the assemblies in it; nothing outside of the folder.

    An assembly is looked at once, however many name it.
    """
    if not levels:
        raise NotATemplate(f"{folder}: assemblies stand more than {MOST_ASSEMBLIES_DEEP} deep")
    found = False
    for artifact in _artifacts(folder):
        properties = under(artifact, "properties") or {}
        kind = artifact.get("type")
        if kind == _STACK:
            path = _inside(folder, properties.get("templateFile"), outermost)
            yield Source(str(path), _content(path), _environment(artifact, properties))
            found = True
        elif kind == _ASSEMBLY:
            inner = _inside(folder, properties.get("directoryName"), outermost)
            if inner.resolve() not in seen:
                seen.add(inner.resolve())
                yield from _of_folder(inner, outermost, seen, levels - 1)
                found = True
    if not found:
        raise NotATemplate(f"{folder}: its {_MANIFEST} names no stack")


def _artifacts(folder: Path) -> list[Mapping[str, Any]]:
    manifest = folder / _MANIFEST
    if not manifest.exists():
        raise NotATemplate(f"{folder} holds no {_MANIFEST}: give a template or a cdk.out folder")
    try:
        artifacts = json.loads(_content(manifest))["artifacts"].values()
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise NotATemplate(f"{manifest} is no manifest of the CDK") from error
    return [each for each in artifacts if isinstance(each, dict)]


def _inside(folder: Path, name: object, outermost: Path) -> Path:
    path = folder / name if isinstance(name, str) else folder
    if path == folder or not path.resolve().is_relative_to(outermost):
        raise NotATemplate(f"{folder / _MANIFEST} names {str(name)[:120]!r}, which is not in it")
    return path


def _environment(artifact: Mapping[str, Any], properties: Mapping[str, Any]) -> Environment:
    """Of it what is known."""
    said = _ENVIRONMENT.fullmatch(str(artifact.get("environment")))
    account, region = said.groups() if said else ("unknown-account", "unknown-region")
    stack = str(properties.get("stackName") or artifact.get("displayName") or "")
    found = {"account": account, "region": region}
    found = {name: each for name, each in found.items() if not each.startswith("unknown")}
    return Environment(**found, **({"stack": stack} if _STACK_NAME.fullmatch(stack) else {}))


def _content(path: Path) -> bytes:
    with path.open("rb") as opened:
        return opened.read(_READ_AT_MOST)
