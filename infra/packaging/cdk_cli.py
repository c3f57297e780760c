"""Run the pinned CDK CLI, and say what is left after a destroy."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from infra.node import NODE, NodeMissing, require_node
from infra.packaging.wheels import ROOT
from infra.settings.deployment import FileRefused, object_in

HEAD = "The case store table and the buckets stay. What is there:"


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
        shlex.join([".venv/bin/mendq", "resources", *credentials, "--region", region])
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


CLI = "aws-cdk@2.1148.1"
# The wheel's own `npx` is a copy that does not find its library.
NPX = NODE.parents[1] / "lib" / "node_modules" / "npm" / "bin" / "npx-cli.js"


def main(arguments: Sequence[str]) -> int:
    """The CLI's own exit code; 2 where there is no Node, or the file holds no settings."""
    try:
        node = require_node()
        words = with_settings(arguments)
    except (NodeMissing, FileRefused) as missing:
        print(missing, file=sys.stderr)  # noqa: T201
        return 2
    # cdk.json's `python3` is the one that runs this.
    first = (str(Path(sys.executable).parent), str(node.parent))
    path = os.pathsep.join((*first, os.environ.get("PATH", "")))
    command = [str(node), str(NPX), "--yes", CLI, *words]
    code = subprocess.run(command, env={**os.environ, "PATH": path}, check=False).returncode
    for line in hint(words, ROOT / "cdk.out") if code == 0 else ():
        print(line)  # noqa: T201
    return code


def with_settings(arguments: Sequence[str]) -> list[str]:
    """The CLI's arguments, the file's settings among them as context; raise FileRefused."""
    if arguments[:1] != ["--settings"]:
        return list(arguments)
    _, path, *rest = arguments
    return [*rest, "--context", f"mendq={json.dumps(object_in(Path(path)))}"]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
