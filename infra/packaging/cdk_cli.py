"""Run the CDK CLI in its pinned version. `make cdk` calls this module."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from infra.node import NODE_EXECUTABLE, NodeMissing, require_node
from infra.settings.reading import SettingsRefused, load_object

CDK_CLI_PACKAGE = "aws-cdk@2.1148.1"
# The `npx` on the wheel's PATH is a copy that does not find its library.
NPX_SCRIPT = NODE_EXECUTABLE.parents[1] / "lib" / "node_modules" / "npm" / "bin" / "npx-cli.js"


def main(arguments: Sequence[str]) -> int:
    """Run the CLI and return its exit code.

    Return 2 if Node is missing or the settings cannot be read.
    """
    try:
        node = require_node()
        cli_arguments = replace_settings_option(arguments)
    except (NodeMissing, SettingsRefused) as refusal:
        print(refusal, file=sys.stderr)  # noqa: T201
        return 2
    # The `python3` in cdk.json must be the Python that runs this module.
    python_folder = str(Path(sys.executable).parent)
    executable_search_path = os.pathsep.join(
        (python_folder, str(node.parent), os.environ.get("PATH", ""))
    )
    command = [str(node), str(NPX_SCRIPT), "--yes", CDK_CLI_PACKAGE, *cli_arguments]
    return subprocess.run(
        command, env={**os.environ, "PATH": executable_search_path}, check=False
    ).returncode


def replace_settings_option(arguments: Sequence[str]) -> list[str]:
    """Replace `--settings FILE` at the start of the arguments by the settings as context.

    Other arguments stay unchanged. Raises SettingsRefused if the file cannot be read or is not a
    JSON object.
    """
    if arguments[:1] != ["--settings"]:
        return list(arguments)
    _, settings_path, *other_arguments = arguments
    return [*other_arguments, "--context", f"mendq={json.dumps(load_object(Path(settings_path)))}"]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
