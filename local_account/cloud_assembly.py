"""Reading a CDK cloud assembly: the stack it holds and the files to publish for it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from local_account.cannot_start import CannotStart
from local_account.where import ACCOUNT, REGION

_PLACEHOLDERS = {
    "${AWS::AccountId}": ACCOUNT,
    "${AWS::Region}": REGION,
    "${AWS::Partition}": "aws",
}


@dataclass(frozen=True)
class Asset:
    """A file or folder of the assembly and the object that the template expects it to be."""

    path: Path
    is_folder: bool
    bucket: str
    key: str


@dataclass(frozen=True)
class StackArtifact:
    """One stack of an assembly."""

    name: str
    template: Mapping[str, Any]
    template_text: str
    assets: tuple[Asset, ...]


def read_assembly(folder: Path) -> StackArtifact:
    """Return the only stack of the assembly in `folder`; raise CannotStart when there is none."""
    try:
        manifest = json.loads((folder / "manifest.json").read_text("utf-8"))
        artifacts = manifest["artifacts"]
        stacks = [
            (identifier, each)
            for identifier, each in artifacts.items()
            if each["type"] == "aws:cloudformation:stack"
        ]
        (identifier, stack), *others = stacks
        template_text = (folder / stack["properties"]["templateFile"]).read_text("utf-8")
    except (OSError, KeyError, ValueError) as error:
        raise CannotStart(f"{folder} holds no cloud assembly with one stack: {error}") from error
    if others:
        raise CannotStart(f"{folder} holds {len(stacks)} stacks: the account deploys one")
    return StackArtifact(
        name=stack["properties"].get("stackName", identifier),
        template=json.loads(template_text),
        template_text=template_text,
        assets=tuple(_assets(folder, artifacts)),
    )


def _assets(folder: Path, artifacts: Mapping[str, Any]) -> Iterator[Asset]:
    for artifact in artifacts.values():
        if artifact["type"] != "cdk:asset-manifest":
            continue
        manifest = json.loads((folder / artifact["properties"]["file"]).read_text("utf-8"))
        for each in manifest.get("files", {}).values():
            for destination in each["destinations"].values():
                yield Asset(
                    path=folder / each["source"]["path"],
                    is_folder=each["source"].get("packaging") == "zip",
                    bucket=_resolved(destination["bucketName"]),
                    key=_resolved(destination["objectKey"]),
                )


def _resolved(text: str) -> str:
    return re.sub(r"\$\{AWS::\w+\}", lambda found: _PLACEHOLDERS[found[0]], text)
