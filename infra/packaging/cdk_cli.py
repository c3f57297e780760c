"""Run the pinned version of the CDK CLI, as `make cdk` does."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from infra.node import NODE, NodeMissing, require_node
from infra.settings.reading import SettingsRefused, load_object

CLI = "aws-cdk@2.1148.1"
# The `npx` on the wheel's PATH is a copy that does not find its library.
NPX = NODE.parents[1] / "lib" / "node_modules" / "npm" / "bin" / "npx-cli.js"


def main(arguments: Sequence[str]) -> int:
    """Run the CLI and return its exit code; 2 if Node is missing or the settings cannot be read."""
    try:
        node = require_node()
        cli_arguments = with_settings(arguments)
    except (NodeMissing, SettingsRefused) as missing:
        print(missing, file=sys.stderr)  # noqa: T201
        return 2
    # The `python3` in cdk.json must be the Python that runs this module.
    python_folder = str(Path(sys.executable).parent)
    path = os.pathsep.join((python_folder, str(node.parent), os.environ.get("PATH", "")))
    command = [str(node), str(NPX), "--yes", CLI, *cli_arguments]
    return subprocess.run(command, env={**os.environ, "PATH": path}, check=False).returncode


def with_settings(arguments: Sequence[str]) -> list[str]:
    """Replace `--settings FILE` at the start of the arguments by the settings as context.

    Other arguments stay unchanged. Raises SettingsRefused if the file has no JSON object.
    """
    if arguments[:1] != ["--settings"]:
        return list(arguments)
    _, path, *rest = arguments
    return [*rest, "--context", f"mendq={json.dumps(load_object(Path(path)))}"]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
