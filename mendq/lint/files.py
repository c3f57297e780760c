"""The templates that one argument stands for: a file, a plan, a cdk.out folder, standard input.

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

from mendq.lint.template import MOST_BYTES, NotATemplate, get_mapping
from mendq.lint.terraform import MOST_PLAN_BYTES
from mendq.lint.values import DeployTarget

STDIN = "-"
_MANIFEST = "manifest.json"
_STACK, _ASSEMBLY = "aws:cloudformation:stack", "cdk:cloud-assembly"
_ENVIRONMENT = re.compile(r"aws://([0-9]{12}|unknown-account)/([a-z0-9-]{1,32})")
# One byte more than may be is as much as it takes to say so.
_READ_AT_MOST = MOST_PLAN_BYTES + 1


@dataclass(frozen=True)
class TemplateSource:
    """One template's bytes, where they come from, and where it would be deployed.

    `stack` is the stack's name, where an assembly says it.
    """

    file: str
    content: bytes
    environment: DeployTarget
    stack: str = ""


def list_sources(argument: str) -> Iterator[TemplateSource]:
    """One is read when it is asked for. Raises NotATemplate, and OSError where it cannot be."""
    path = Path(argument)
    if argument == STDIN:
        content = sys.stdin.buffer.read(_READ_AT_MOST)
        yield TemplateSource("(standard input)", content, DeployTarget())
    elif path.is_dir():
        yield from _of_folder(path)
    elif path.suffix == ".tf":
        raise NotATemplate(f"{argument} is HCL: give the plan, as `terraform show -json` says it")
    else:
        yield TemplateSource(argument, _content(path), DeployTarget())


def _of_folder(outermost: Path) -> Iterator[TemplateSource]:
    """Every stack of an assembly, and of the assemblies in it; nothing outside of the folder.

    An assembly and a template are looked at once, however many name them.
    """
    waiting, seen, templates = [outermost], set[Path](), set[Path]()
    while waiting:
        folder = waiting.pop(0)
        if folder.resolve() in seen:
            continue
        seen.add(folder.resolve())
        for artifact in _artifacts(folder):
            properties = get_mapping(artifact, "properties") or {}
            if artifact.get("type") == _STACK:
                path = _inside(folder, properties.get("templateFile"), outermost)
                if path.resolve() not in templates:
                    templates.add(path.resolve())
                    content, stack = _content(path, MOST_BYTES + 1), properties.get("stackName")
                    yield TemplateSource(
                        str(path), content, _environment(artifact), str(stack or "")
                    )
            elif artifact.get("type") == _ASSEMBLY:
                waiting.append(_inside(folder, properties.get("directoryName"), outermost))
    if not templates:
        raise NotATemplate(f"{outermost}: its {_MANIFEST} names no stack")


def _artifacts(folder: Path) -> list[Mapping[str, Any]]:
    manifest = folder / _MANIFEST
    if not manifest.exists():
        raise NotATemplate(f"{folder} holds no {_MANIFEST}: give a template or a cdk.out folder")
    try:
        artifacts = json.loads(_content(manifest, MOST_BYTES))["artifacts"].values()
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise NotATemplate(f"{manifest} is no manifest of the CDK") from error
    return [each for each in artifacts if isinstance(each, dict)]


def _inside(folder: Path, name: object, outermost: Path) -> Path:
    path = folder / name if isinstance(name, str) else folder
    if path == folder or not path.resolve().is_relative_to(outermost.resolve()):
        raise NotATemplate(f"{folder / _MANIFEST} names {str(name)[:120]!r}, which is not in it")
    return path


def _environment(artifact: Mapping[str, Any]) -> DeployTarget:
    """Of it what is known."""
    said = _ENVIRONMENT.fullmatch(str(artifact.get("environment")))
    found = zip(("account", "region"), said.groups() if said else (), strict=False)
    return DeployTarget(**{name: each for name, each in found if not each.startswith("unknown")})


def _content(path: Path, most: int = _READ_AT_MOST) -> bytes:
    with path.open("rb") as opened:
        return opened.read(most)
