"""Read the templates that a command's argument names.

The argument is a file, a cdk.out folder with the templates of several stacks, or `-` for standard
input.

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
# Types of artifacts in a manifest.
_STACK = "aws:cloudformation:stack"
_ASSEMBLY = "cdk:cloud-assembly"
_ENVIRONMENT = re.compile(r"aws://([0-9]{12}|unknown-account)/([a-z0-9-]{1,32})")
# One byte above the limit shows that a file is too long.
_READ_AT_MOST = MOST_PLAN_BYTES + 1


@dataclass(frozen=True)
class TemplateSource:
    """The bytes of one template, and where they come from."""

    file: str
    content: bytes
    # Account and region of the deployment, as far as a cdk.out folder names them.
    target: DeployTarget
    # Name of the stack. Empty if it does not come from a cdk.out folder.
    stack: str = ""


def list_sources(argument: str) -> Iterator[TemplateSource]:
    """Yield the templates that `argument` names. Each one is read only when the caller asks for it.

    Args:
        argument: A template, a Terraform plan, a cdk.out folder, or `-` for standard input.

    Raises:
        NotATemplate: A Terraform file is given, or a folder that is no cdk.out folder.
        OSError: A file cannot be read.
    """
    path = Path(argument)
    if argument == STDIN:
        content = sys.stdin.buffer.read(_READ_AT_MOST)
        yield TemplateSource("(standard input)", content, DeployTarget())
    elif path.is_dir():
        yield from _list_stacks(path)
    elif path.suffix == ".tf":
        raise NotATemplate(f"{argument} is HCL: give the plan, as `terraform show -json` says it")
    else:
        yield TemplateSource(argument, _read_content(path), DeployTarget())


def _list_stacks(outermost: Path) -> Iterator[TemplateSource]:
    """Yield the templates of all stacks of a cloud assembly and of the assemblies inside it.

    A file outside the folder is refused. Each assembly and each template is read once, even if
    several manifests name it.
    """
    waiting_folders = [outermost]
    seen_folders = set[Path]()
    seen_templates = set[Path]()
    while waiting_folders:
        folder = waiting_folders.pop(0)
        if folder.resolve() in seen_folders:
            continue
        seen_folders.add(folder.resolve())
        for artifact in _read_artifacts(folder):
            properties = get_mapping(artifact, "properties") or {}
            if artifact.get("type") == _ASSEMBLY:
                name = properties.get("directoryName")
                waiting_folders.append(_require_inside(folder, name, outermost))
            if artifact.get("type") != _STACK:
                continue
            path = _require_inside(folder, properties.get("templateFile"), outermost)
            if path.resolve() not in seen_templates:
                seen_templates.add(path.resolve())
                content = _read_content(path, MOST_BYTES + 1)
                stack = str(properties.get("stackName") or "")
                yield TemplateSource(str(path), content, _find_target(artifact), stack)
    if not seen_templates:
        raise NotATemplate(f"{outermost}: its {_MANIFEST} names no stack")


def _read_artifacts(folder: Path) -> list[Mapping[str, Any]]:
    """Return the artifacts in a folder's manifest. Raises NotATemplate if it has no valid one."""
    manifest = folder / _MANIFEST
    if not manifest.exists():
        raise NotATemplate(f"{folder} holds no {_MANIFEST}: give a template or a cdk.out folder")
    try:
        artifacts = json.loads(_read_content(manifest, MOST_BYTES))["artifacts"].values()
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise NotATemplate(f"{manifest} is no manifest of the CDK") from error
    return [artifact for artifact in artifacts if isinstance(artifact, dict)]


def _require_inside(folder: Path, name: object, outermost: Path) -> Path:
    """Return the path of `name` in a folder.

    Raises NotATemplate if `name` is no file name, or if the path is outside `outermost`.
    """
    path = folder / name if isinstance(name, str) else folder
    if path == folder or not path.resolve().is_relative_to(outermost.resolve()):
        raise NotATemplate(f"{folder / _MANIFEST} names {str(name)[:120]!r}, which is not in it")
    return path


def _find_target(artifact: Mapping[str, Any]) -> DeployTarget:
    """Return the account and region that an artifact names, with placeholders for unknown ones."""
    environment = _ENVIRONMENT.fullmatch(str(artifact.get("environment")))
    if environment is None:
        return DeployTarget()
    account, region = environment.groups()
    known = dict[str, str]()
    if not account.startswith("unknown"):
        known["account"] = account
    if not region.startswith("unknown"):
        known["region"] = region
    return DeployTarget(**known)


def _read_content(path: Path, most: int = _READ_AT_MOST) -> bytes:
    """Return at most `most` bytes of a file."""
    with path.open("rb") as file:
        return file.read(most)
