"""What the checks of the repository share."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty git repository to throw away."""
    # A git hook sets such variables, and then git would use the repository of the hook.
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    # Without its `.git`, the folder is in no repository, wherever pytest makes its folders.
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    subprocess.run(["git", "init", "--quiet", tmp_path], check=True)
    return tmp_path
