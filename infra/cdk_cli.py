"""`python -m infra.cdk_cli ARGS`: the pinned CDK CLI on the Node that set-up brought.

npm's `latest` of aws-cdk cannot read what this CDK library writes, so the version is fixed.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence

from infra.node import NODE, NodeMissing, require_node

CLI = "aws-cdk@2.1148.1"
# The wheel's own `npx` is a copy that does not find its library.
NPX = NODE.parents[1] / "lib" / "node_modules" / "npm" / "bin" / "npx-cli.js"


def main(arguments: Sequence[str]) -> int:
    """The CLI's own exit code; 2 where there is no Node."""
    try:
        node = require_node()
    except NodeMissing as missing:
        print(missing, file=sys.stderr)  # noqa: T201
        return 2
    path = os.pathsep.join((str(node.parent), os.environ.get("PATH", "")))
    command = [str(node), str(NPX), "--yes", CLI, *arguments]
    return subprocess.run(command, env={**os.environ, "PATH": path}, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
