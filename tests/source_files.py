"""List the repository's files in one way for every check."""

from __future__ import annotations

import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def list_files(*patterns: str, root: Path = ROOT) -> list[Path]:
    """Return the files that git tracks or would add, sorted by path.

    A new file counts before `git add`, so that no check passes only because it does not see the
    file yet. Ignored files and files that were deleted from the disk do not count.

    Args:
        patterns: Pathspecs of git, relative to `root`. `*` also matches `/`, so `mendq/*.py` is
            every Python file below `mendq`. Without a pattern, every file is listed.
        root: A folder in a git repository.

    Raises:
        subprocess.CalledProcessError: `root` is not in a git repository, or git refuses to read it.
    """
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--"]
    output = subprocess.run([*command, *patterns], cwd=root, stdout=subprocess.PIPE, check=True)
    names = output.stdout.decode().split("\0")
    paths = {root / name for name in names if name}
    return sorted(path for path in paths if path.is_file())
