"""Staged zips: what they hold, and how they do with nothing beside them."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

# What Lambda's runtime brings along: boto3 and what boto3 needs.
RUNTIME = ("boto3", "botocore", "s3transfer", "jmespath", "dateutil", "six.py", "urllib3")

_PREPARE = """
import json, sys
sys.path[:0] = json.loads(sys.argv[1])

def outside():
    return [
        each.__file__
        for each in sys.modules.values()
        if "site-packages" in (getattr(each, "__file__", None) or "")
    ]
"""


def link_runtime(folder: Path) -> None:
    """Fill `folder` with links to what Lambda's runtime brings along."""
    site_packages = Path(str(importlib.metadata.distribution("boto3").locate_file("")))
    for name in RUNTIME:
        (folder / name).symlink_to(site_packages / name)


def in_isolation(
    script: str, text: str, folders: Sequence[Path], environment: Mapping[str, str]
) -> Any:
    """The JSON that `script` prints last, given `text`; it imports from `folders` alone.

    `outside()` in it lists the modules that came from elsewhere. A failure is an AssertionError.
    """
    done = subprocess.run(
        [
            *(sys.executable, "-I", "-S", "-c", _PREPARE + script),
            json.dumps([str(each) for each in folders]),
        ],
        input=text,
        env={"AWS_REGION": "us-east-1", "AWS_DEFAULT_REGION": "us-east-1", **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


_IMPORT = """
import importlib

for name in json.load(sys.stdin):
    importlib.import_module(name)
print(json.dumps(outside()))
"""


def imported_from_elsewhere(folder: Path, *beside: Path) -> Any:
    """The modules from elsewhere, after each of ours in a staged folder was imported."""
    names = [
        ".".join(each.relative_to(folder).with_suffix("").parts).removesuffix(".__init__")
        for room in ("functions", "mendq")
        for each in (folder / room).rglob("*.py")
    ]
    assert names
    return in_isolation(_IMPORT, json.dumps(sorted(names)), [folder, *beside], {})


def ours(folder: Path) -> set[str]:
    """The files of `functions` that a staged folder holds."""
    return {each.name for each in (folder / "functions").iterdir()}


def rooms(folder: Path) -> set[str]:
    """The rooms of the engine that a folder holds."""
    return {each.name for each in (folder / "mendq").iterdir() if each.name[0] != "_"}


def modules(folder: Path) -> set[str]:
    """Python files as they are, native modules without what names their platform."""
    return {
        f"{each.parent.relative_to(folder) / each.name.split('.')[0]}"
        for each in folder.rglob("*")
        if each.suffix in (".py", ".so")
    }


def megabytes(folder: Path) -> float:
    return sum(each.stat().st_size for each in folder.rglob("*") if each.is_file()) / 1_000_000


def digest(folder: Path) -> str:
    digest = hashlib.sha256()
    for each in sorted(folder.rglob("*")):
        digest.update(str(each.relative_to(folder)).encode())
        digest.update(each.read_bytes() if each.is_file() else b"")
    return digest.hexdigest()
