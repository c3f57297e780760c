"""What the CDK CLI does not say after a destroy: where to ask for what stayed."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

HEAD = "The ledger table and the buckets stay. What is there:"


def hint(arguments: Sequence[str], assembly: Path) -> list[str]:
    """Lines for people after `arguments` of the CDK CLI; none where it destroyed nothing.

    A stack of `assembly` that no argument names is meant where none is named. It is not asked here:
    the CLI alone knows whose credentials it used.
    """
    if "destroy" not in arguments:
        return []
    profile = _profile(arguments)
    credentials = ["--profile", profile] if profile else []
    asked = [
        shlex.join([".venv/bin/mendq", "kept", *credentials, "--region", region])
        for region in _regions(arguments, assembly)
    ]
    return [HEAD, *(f"  {each}" for each in dict.fromkeys(asked))]


def _profile(arguments: Sequence[str]) -> str:
    for flag, value in zip(arguments, [*arguments[1:], ""], strict=True):
        if flag == "--profile":
            return value
        if flag.startswith("--profile="):
            return flag.partition("=")[2]
    return ""


def _regions(arguments: Sequence[str], assembly: Path) -> Iterator[str]:
    """Of the stacks that are meant, as they were synthesized."""
    path = assembly / "manifest.json"
    if not path.exists():  # `--app` or `--output` named another
        yield "REGION"
        return
    manifest = json.loads(path.read_text())
    stacks = {
        name: each["environment"].rpartition("/")[2]
        for name, each in manifest["artifacts"].items()
        if each["type"] == "aws:cloudformation:stack"
    }
    named = {name for name in stacks if any(fnmatchcase(name, each) for each in arguments)}
    yield from (region for name, region in stacks.items() if name in named or not named)
