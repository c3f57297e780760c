"""axe-core, the rules of accessibility that run in the page: fetched once, pinned, checked.

npm comes with the Node that set-up brought; nothing of it is in a lock, since npm's names the
registry. https://github.com/dequelabs/axe-core
"""

from __future__ import annotations

import hashlib
import subprocess
from pathlib import Path

from infra.node import NODE_EXECUTABLE, NodeMissing, require_node

PACKAGE = "axe-core@4.14.1"
SHA256 = "29348999450cdf2849a8e70b7912fc2da85a849da39c0d0d5394f51d4a9ed95c"
NPM = NODE_EXECUTABLE.parents[1] / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
FOLDER = Path(__file__).parents[2] / "build" / "axe"
PATIENCE_SECONDS = 300


class AxeMissing(Exception):
    """It is not here and could not be fetched; says why."""


def load_axe(folder: Path = FOLDER) -> str:
    """The script itself. Raises AxeMissing; a script of another content is an AssertionError."""
    script = folder / "node_modules" / "axe-core" / "axe.min.js"
    if not script.is_file():
        _fetch(folder)
    content = script.read_bytes()
    assert hashlib.sha256(content).hexdigest() == SHA256, f"{script} is not {PACKAGE}"
    return content.decode()


def _fetch(folder: Path) -> None:
    """Without the package's own scripts, which npm would run."""
    quiet = ("--ignore-scripts", "--no-audit", "--no-fund", "--no-package-lock", "--no-save")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        done = subprocess.run(
            [require_node(), NPM, "install", *quiet, "--prefix", folder, PACKAGE],
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE_SECONDS,
        )
    except (NodeMissing, subprocess.TimeoutExpired) as missing:
        raise AxeMissing(str(missing)) from None
    if done.returncode:
        *_, last = done.stderr.strip().splitlines() or ["npm says nothing"]
        raise AxeMissing(last)
