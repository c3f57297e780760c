"""The folder is for anybody to take: it works where there is nothing else of Mendq's."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from mendq import consumer

TAKEN = """
import sys
from consumer import VisibilityHeartbeat

with VisibilityHeartbeat(None, "url", seconds=30) as visibility:
    assert visibility.held == frozenset()
assert not [each for each in sys.modules if each.partition(".")[0] == "mendq"]
"""


def test_whoever_takes_the_folder_needs_nothing_else(tmp_path: Path) -> None:
    shutil.copytree(Path(consumer.__file__).parent, tmp_path / "consumer")
    subprocess.run([sys.executable, "-c", TAKEN], cwd=tmp_path, check=True, timeout=60)
