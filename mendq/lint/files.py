"""Read the templates that the user names on the command line.

The user names a file, a cdk.out folder with the templates of several stacks, or `-` for standard
input.

https://docs.aws.amazon.com/cdk/v2/guide/deploy.html
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mendq.lint.folder import TemplateFolder, is_inside_folder
from mendq.lint.template import MOST_TEMPLATE_BYTES, NotATemplate, get_mapping
from mendq.lint.terraform import MOST_PLAN_BYTES
from mendq.lint.values import DeployTarget

STDIN_ARGUMENT = "-"
# Folders that hold copies of others' files. They are not searched for Terraform files.
SKIPPED_FOLDERS = frozenset({"node_modules", "vendor"})
# The file name that results show for it.
STDIN_NAME = "(standard input)"
_MANIFEST_NAME = "manifest.json"
# Suffixes of a Serverless Framework configuration that only the framework can read.
_PROGRAM_SUFFIXES = (".ts", ".js", ".cjs", ".mjs")
# Types of artifacts in a manifest.
_STACK_ARTIFACT_TYPE = "aws:cloudformation:stack"
_ASSEMBLY_ARTIFACT_TYPE = "cdk:cloud-assembly"
_CDK_ENVIRONMENT_REGEX = re.compile(r"aws://([0-9]{12}|unknown-account)/([a-z0-9-]{1,32})")
# One byte above the limit shows that a file is too long.
_MAXIMUM_BYTES_TO_READ = MOST_PLAN_BYTES + 1


@dataclass(frozen=True)
class TemplateSource:
    """The bytes of one template, with its file, stack, account and region."""

    file: str
    content: bytes
    # Account and region of the deployment, as far as a cdk.out folder names them.
    deploy_target: DeployTarget
    # A folder of Terraform files, or one file of it. None for a template in `content`.
    terraform_path: Path | None = field(default=None, kw_only=True)
    # The folder to whose inside Terraform's modules are limited. None: the git work tree.
    outermost_folder: Path | None = field(default=None, kw_only=True)
    # Name of the stack. Empty if no manifest of a cdk.out folder names it.
    stack_name: str = ""
    # Where the files are that the template names. None if they are not read.
    folder: TemplateFolder | None = None


def list_template_sources(template_argument: str) -> Iterator[TemplateSource]:
    """Yield the templates that the user names. Each file is read just before it is yielded.

    Args:
        template_argument: A template, a Terraform plan, a cdk.out folder, a folder with Terraform
            files or one of them, a folder above such folders, or `-` for standard input.

    Raises:
        NotATemplate: A program such as `serverless.ts` is given, or a folder that is neither a
            valid cdk.out folder nor has `.tf` files.
        OSError: A file cannot be read.
    """
    path = Path(template_argument)
    if template_argument == STDIN_ARGUMENT:
        template_bytes = sys.stdin.buffer.read(_MAXIMUM_BYTES_TO_READ)
        yield TemplateSource(STDIN_NAME, template_bytes, DeployTarget())
    elif is_terraform_argument(template_argument) or _is_terraform_json(path):
        folder = TemplateFolder(path if path.is_dir() else path.parent)
        yield TemplateSource(
            template_argument, b"", DeployTarget(), folder=folder, terraform_path=path
        )
    elif path.is_dir() and not (path / _MANIFEST_NAME).exists() and _has_terraform_below(path):
        yield from _list_terraform_folders(path)
    elif path.suffix in _PROGRAM_SUFFIXES:
        raise NotATemplate(
            f"{path} is a program, and lint runs none: run `serverless package`, and lint "
            ".serverless/cloudformation-template-update-stack.json"
        )
    elif path.is_dir():
        yield from _list_stack_templates(path)
    else:
        content = _read_content(path)
        folder = TemplateFolder(path.parent, path.name)
        yield TemplateSource(template_argument, content, DeployTarget(), folder=folder)


def _is_terraform_json(path: Path) -> bool:
    """Return True for a `.tf.json` file, or a folder of them that is not a cdk.out folder."""
    if not path.is_dir():
        return path.name.endswith(".tf.json")
    return not (path / _MANIFEST_NAME).exists() and any(path.glob("*.tf.json"))


def _has_terraform_below(path: Path) -> bool:
    """Return True if a folder below this one, which is not hidden, holds a `.tf` file."""
    for _, folder_names, file_names in os.walk(path):
        folder_names[:] = [
            name
            for name in folder_names
            if not name.startswith(".") and name not in SKIPPED_FOLDERS
        ]
        if any(name.endswith((".tf", ".tf.json")) for name in file_names):
            return True
    return False


def _list_terraform_folders(outermost_folder: Path) -> Iterator[TemplateSource]:
    """Yield the folders below a folder that Terraform would be run in.

    They may call modules anywhere below the folder, because the user named it.
    """
    from mendq.lint.terraform_source import (  # noqa: PLC0415 - most templates do not need it
        list_root_modules,
    )

    for path in list_root_modules(outermost_folder):
        yield TemplateSource(
            str(path),
            b"",
            DeployTarget(),
            folder=TemplateFolder(path),
            terraform_path=path,
            outermost_folder=outermost_folder,
        )


def is_terraform_argument(template_argument: str) -> bool:
    """Return True if the user names a `.tf` file, or a folder of them and not a cdk.out folder."""
    path = Path(template_argument)
    if not path.is_dir():
        return path.suffix == ".tf"
    return not (path / _MANIFEST_NAME).exists() and any(path.glob("*.tf"))


def _list_stack_templates(outermost_folder: Path) -> Iterator[TemplateSource]:
    """Yield the templates of all stacks in a cdk.out folder and in the assemblies inside it.

    A template that several manifests name is read once. Raises NotATemplate if a manifest is
    missing or not valid, if it names a path outside the folder, or if no manifest names a stack.
    """
    seen_template_paths = set[Path]()
    for folder, artifact in _list_artifacts(outermost_folder):
        if artifact.get("type") != _STACK_ARTIFACT_TYPE:
            continue
        artifact_properties = get_mapping(artifact, "properties") or {}
        template_path = _require_path_inside(
            folder, artifact_properties.get("templateFile"), outermost_folder
        )
        if template_path.resolve() in seen_template_paths:
            continue
        seen_template_paths.add(template_path.resolve())
        _require_plain_file(template_path)
        template_bytes = _read_content(template_path, MOST_TEMPLATE_BYTES + 1)
        stack_name = str(artifact_properties.get("stackName") or "")
        yield TemplateSource(
            str(template_path),
            template_bytes,
            _find_deploy_target(artifact),
            stack_name,
            TemplateFolder(template_path.parent, template_path.name),
        )
    if not seen_template_paths:
        raise NotATemplate(f"{outermost_folder}: its {_MANIFEST_NAME} names no stack")


def _list_artifacts(outermost_folder: Path) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    """Yield each artifact of a cdk.out folder and its assemblies, in a pair with its folder.

    An assembly that several manifests name is read once. Raises NotATemplate if a manifest is
    missing or not valid, or if it names an assembly outside the cdk.out folder.
    """
    unread_folders = [outermost_folder]
    seen_folders = set[Path]()
    while unread_folders:
        folder = unread_folders.pop(0)
        if folder.resolve() in seen_folders:
            continue
        seen_folders.add(folder.resolve())
        for artifact in _read_artifacts(folder):
            if artifact.get("type") == _ASSEMBLY_ARTIFACT_TYPE:
                artifact_properties = get_mapping(artifact, "properties") or {}
                assembly_folder_name = artifact_properties.get("directoryName")
                unread_folders.append(
                    _require_path_inside(folder, assembly_folder_name, outermost_folder)
                )
            yield folder, artifact


def _read_artifacts(folder: Path) -> list[Mapping[str, Any]]:
    """Read the artifacts in the manifest of a folder.

    Raises NotATemplate if the folder has no valid manifest.
    """
    manifest_path = folder / _MANIFEST_NAME
    if not manifest_path.exists():
        raise NotATemplate(
            f"{folder} holds no {_MANIFEST_NAME} and no .tf file: give a template, a cdk.out "
            "folder or a folder with Terraform files"
        )
    _require_plain_file(manifest_path)
    try:
        artifacts = json.loads(_read_content(manifest_path, MOST_TEMPLATE_BYTES))[
            "artifacts"
        ].values()
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise NotATemplate(f"{manifest_path} is not a manifest of the CDK") from error
    return [artifact for artifact in artifacts if isinstance(artifact, dict)]


def _require_path_inside(folder: Path, name_in_manifest: object, outermost_folder: Path) -> Path:
    """Return the path of the file or folder that a manifest names.

    Args:
        folder: The manifest's folder.
        name_in_manifest: The name in the manifest. It may be anything, because the manifest may be
            forged.
        outermost_folder: The cdk.out folder that the user named.

    Raises:
        NotATemplate: `name_in_manifest` is not the name of a file or folder, or the path is outside
            `outermost_folder`.
    """
    path = folder / name_in_manifest if isinstance(name_in_manifest, str) else folder
    if path == folder or not is_inside_folder(path, outermost_folder):
        raise NotATemplate(
            f"{folder / _MANIFEST_NAME} names {str(name_in_manifest)[:120]!r}, which is not in it"
        )
    return path


def _find_deploy_target(artifact: Mapping[str, Any]) -> DeployTarget:
    """Return the account and region of a stack. Placeholders stand for unknown ones."""
    environment_match = _CDK_ENVIRONMENT_REGEX.fullmatch(str(artifact.get("environment")))
    if environment_match is None:
        return DeployTarget()
    account, region = environment_match.groups()
    known_account_and_region = dict[str, str]()
    if not account.startswith("unknown"):
        known_account_and_region["account"] = account
    if not region.startswith("unknown"):
        known_account_and_region["region"] = region
    return DeployTarget(**known_account_and_region)


def _require_plain_file(path: Path) -> None:
    """Raise NotATemplate for a pipe or a folder in a cdk.out folder: a pipe may never end.

    The path that the user names may be a pipe, as in `mendq lint <(cdk synth)`.
    """
    if path.exists() and not path.is_file():
        raise NotATemplate(f"{path} is not a regular file")


def _read_content(path: Path, most_bytes: int = _MAXIMUM_BYTES_TO_READ) -> bytes:
    """Read at most the first `most_bytes` bytes of a file."""
    with path.open("rb") as file:
        return file.read(most_bytes)
