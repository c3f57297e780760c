"""Run the pinned CDK CLI."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from infra.node import NODE, NodeMissing, require_node
from infra.settings.reading import SettingsRefused, object_in

CLI = "aws-cdk@2.1148.1"
# The wheel's own `npx` is a copy that does not find its library.
NPX = NODE.parents[1] / "lib" / "node_modules" / "npm" / "bin" / "npx-cli.js"


def main(arguments: Sequence[str]) -> int:
    """The CLI's own exit code; 2 where there is no Node, or the file holds no settings."""
    try:
        node = require_node()
        words = with_settings(arguments)
    except (NodeMissing, SettingsRefused) as missing:
        print(missing, file=sys.stderr)  # noqa: T201
        return 2
    # cdk.json's `python3` is the one that runs this.
    first = (str(Path(sys.executable).parent), str(node.parent))
    path = os.pathsep.join((*first, os.environ.get("PATH", "")))
    command = [str(node), str(NPX), "--yes", CLI, *words]
    return subprocess.run(command, env={**os.environ, "PATH": path}, check=False).returncode


def with_settings(arguments: Sequence[str]) -> list[str]:
    """The CLI's arguments, the file's settings among them as context; raise SettingsRefused."""
    if arguments[:1] != ["--settings"]:
        return list(arguments)
    _, path, *rest = arguments
    return [*rest, "--context", f"mendq={json.dumps(object_in(Path(path)))}"]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
